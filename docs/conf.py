"""How Sphinx builds the pages of this folder as a site that opens without a network: `make docs`."""

project = "kafka-reassign-operator"
html_title = "kafka-reassign-operator"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = False
html_show_search_summary = False  # it would fetch the pages, which a browser refuses to those of a disk
extensions = ["myst_parser"]
myst_heading_anchors = 3
nitpicky = True
pygments_style = "default"
highlight_language = "text"
