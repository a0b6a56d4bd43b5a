#!/usr/bin/env python3
"""An answerer for Spark: `spark_answerer.py MASTER SOURCE`, as in `spark_answerer.py spark://HOST:7077 'parquet.`/data/patients`'`.

SOURCE is what stands behind FROM in Spark's SQL: a table, a view, or files. The kernel runs in the executors (docs/src/engines.md), which need
the Python package veilsum; the rows stay there, and one row of words a partition comes back. Whatever `spark-defaults.conf` says holds, and
`spark.pyspark.python` names the executors' Python. A site names it in its site.toml, under [rows]: `answerer = ["spark_answerer.py", MASTER, SOURCE]`.
"""

import sys

import veilsum.spark
from pyspark.sql import SparkSession
from veilsum.answerer import serve
from veilsum.engines import InParts
from veilsum.errors import NetworkError


class Rows:
    """The rows, once somebody asks for them. Kept where the executors are: every question is a pass over them."""

    def __init__(self, master, source):
        self.master, self.source, self.parts = master, source, None

    def __call__(self, columns, function):
        if self.parts is None:
            builder = SparkSession.builder.master(self.master).appName("veilsum").config("spark.ui.showConsoleProgress", "false")
            try:
                rows = builder.getOrCreate().sql(f"SELECT * FROM {self.source}").cache()
            except Exception as e:
                what = f"Spark at {self.master} does not read the source: {type(e).__name__}"
                raise NetworkError(what, "try `SELECT * FROM SOURCE` in its shell, on this machine") from None
            self.parts = veilsum.spark.Parts(rows)
        return self.parts(columns, function)


if __name__ == "__main__":
    serve(InParts(Rows(*sys.argv[1:]), "spark_answerer.py"))
