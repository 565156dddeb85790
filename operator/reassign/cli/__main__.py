"""Run the command line, also with `python -m reassign.cli`, as in the operator's image, which installs no program.

A Ctrl-C ends the program without a traceback while it is imported.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored, as in the background
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from reassign.cli.app import main

if __name__ == "__main__":
    main()
