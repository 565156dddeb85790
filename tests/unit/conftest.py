"""Property tests try the same examples at every run, to judge a change by itself; `make explore` tries others. However
long one takes: a test asserts no time."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
