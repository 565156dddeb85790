"""Spark's executors and their workers: how many tasks they run at once, and whether one of them has died."""

from __future__ import annotations

import os
import re

from pyspark import SparkContext
from pyspark.errors import PythonException

LOST = ("Python worker exited unexpectedly", "ExecutorLostFailure")
"""What Spark says where a worker has died, one of many whose snapshots it had, or the whole executor."""
RESET = "Connection reset"
"""What Spark also says of a worker that has died, as of a storage that hangs up."""


def slots(context: SparkContext) -> int:
    """Return how many tasks an executor runs at once, or more where Spark does not say."""
    conf, master, cores = context.getConf(), context.master or "", str(context.defaultParallelism)
    if here := re.match(r"local(?:\[(\d+|\*))?", master):
        cores = str(os.cpu_count()) if here[1] == "*" else here[1] or "1"
    else:
        cores = conf.get("spark.executor.cores", "1" if master.startswith(("k8s", "yarn")) else cores)
    return max(int(cores) // int(conf.get("spark.task.cpus", "1")), 1)


def has_crashed(error: Exception) -> bool:
    """Whether a worker has died, or failed. Processes of their own tell which snapshot it had."""
    return isinstance(error, PythonException) or any(text in str(error) for text in (*LOST, RESET))
