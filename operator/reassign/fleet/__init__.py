"""Whole fleets of clusters, planned from snapshots on Spark.

The driver runs `stages`. It lists the files (`inventory`), has `one_pass` made, and writes manifests (`emit`) and the
report (`overview`, `report`). `choose` judges snapshots as files, and `kept` is the work folder.

Spark's workers run `cluster` for each snapshot, which `handout` gives them, with `loads` and `history_rows`. What they
return is rows of `outcomes`. What spans days is Spark's expressions in `history`. Rules on rows are in `files.rules`.
"""
