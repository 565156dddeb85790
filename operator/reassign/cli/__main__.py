"""`python -m reassign.cli`: the program, where it is not installed."""

from reassign.cli.app import main

main()
