#!/usr/bin/env python3
"""An answerer for Spark: `spark_answerer.py MASTER SOURCE`, as in `spark_answerer.py spark://HOST:7077 'parquet.`/data/patients`'`.

SOURCE is what stands behind FROM in Spark's SQL: a table, a view, or files. The kernel runs in the executors (docs/src/engines.md), which need
the Python package veilsum; the rows stay there, and one row of words a partition comes back. Whatever `spark-defaults.conf` says holds, and
`spark.pyspark.python` names the executors' Python. Started by a site: `veilsum client --answerer 'spark_answerer.py MASTER SOURCE' …`.
"""

import sys

import veilsum.spark
from pyspark.sql import SparkSession
from veilsum.answerer import serve
from veilsum.engines import InParts


def main(master, source):
    session = SparkSession.builder.master(master).appName("veilsum").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    # Kept where the executors are: every question is a pass over the rows, and other rows than before would be an error.
    rows = session.sql(f"SELECT * FROM {source}").cache()
    try:
        serve(InParts(veilsum.spark.Parts(rows), "spark_answerer.py"))
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
