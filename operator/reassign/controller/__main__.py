"""The operator's entry point."""

import os
import signal

if __name__ == "__main__":
    # before the imports, which take seconds: for the first process of a container the default is to ignore it
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from reassign.controller.process import main

    main()
