"""The command line where no program of its name is installed, as in the operator's image."""

from reassign.cli.app import main

main()
