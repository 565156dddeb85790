"""The command `report`: one HTML file about one PartitionReassignment, from what the API server knows of it.

`reading` asks for the objects, `history` makes of them what is known and what is not, and `page` writes it.
"""
