"""One HTML file about a whole fleet, from plain data. It opens without a network; the same data give the same bytes.

What is sorted, counted and written at the top is worked out here; a script of the page's own draws what is opened.
"""
