"""What the person at the terminal reads: one line per step, and the one error that ends a command."""

import sys
import time

_STARTED = time.monotonic()


class PlatformError(Exception):
    """The platform cannot go on; the message says what is wrong and what to do about it."""


class SettingError(PlatformError):
    """A setting of the environment, or of make's command line, is none."""


def say(message: str) -> None:
    """Print a progress line, with the time since the command began (minutes:seconds)."""
    minutes, seconds = divmod(int(time.monotonic() - _STARTED), 60)
    print(f"[{minutes:02d}:{seconds:02d}] {message}", file=sys.stderr, flush=True)
