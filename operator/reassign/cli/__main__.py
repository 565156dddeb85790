"""Run the command line with `python -m reassign.cli`, as in the operator's image, which installs no program."""

from reassign.cli.app import main

main()
