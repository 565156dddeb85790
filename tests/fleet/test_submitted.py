"""A run that spark-submit has started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

PROGRAM = """\
from reassign.spark import session

spark = session.start(None)
names = ("shuffle.partitions", "session.timeZone", "files.maxPartitionNum")
print(spark.conf.get("spark.master"), *(spark.conf.get(f"spark.sql.{name}") for name in names))
spark.stop()
"""


def test_settings_of_spark_submit_win_over_those_of_a_run(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    home = Path(pyspark.__file__).parent
    told = ["--master=local[1]", "--conf=spark.sql.shuffle.partitions=3", "--conf=spark.sql.files.maxPartitionNum=7"]
    ended = subprocess.run(
        [home / "bin" / "spark-submit", *told, program],
        env=os.environ
        | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert ended.stdout.splitlines()[-1] == "local[1] 3 UTC 7", ended.stderr[-2000:]
