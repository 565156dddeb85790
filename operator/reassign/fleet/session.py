"""The Spark session of a run: whatever `spark-submit` was told wins, and what it was not told suits short jobs."""

from __future__ import annotations

import os
import sys

from pyspark import SparkConf
from pyspark.sql import SparkSession

LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""On one machine nothing listens on its network."""

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",  # a fleet is small beside what Spark reckons with
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a cluster may be called 0012
}


def start(master: str | None) -> SparkSession:
    """The session; `master` is Spark's master URL, None what spark-submit says, else all cores of this machine."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf()
    if master is not None:
        conf.setMaster(master)
    conf.setIfMissing("spark.master", "local[*]")
    local = (conf.get("spark.master") or "").startswith("local")
    for key, value in (DEFAULTS | (LOCAL if local else {})).items():
        conf.setIfMissing(key, value)
    session = SparkSession.builder.appName("kafka-reassign-fleet").config(conf=conf).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
