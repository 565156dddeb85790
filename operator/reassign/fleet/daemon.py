"""Spark's daemon of Python workers: it loads all that answers for a cluster once, and forks the workers after that."""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from pyspark.daemon import manager

from reassign.planning.compile_ahead import make_plans

if __name__ == "__main__":
    for loaded in ("pandas", "pyspark.sql.pandas.serializers", "reassign.fleet.handout"):
        import_module(loaded)
    make_plans(100)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")  # of the workers: where memory ends, before driver and JVM
    gc.freeze()  # a worker collects garbage after each task: not what it was forked with
    manager()  # type: ignore[no-untyped-call]
