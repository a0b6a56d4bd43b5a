"""The folders that Spark writes hold the same table as its rows in memory."""

import datetime
import decimal

import numpy as np
import pytest

import veilsum
from test_forms import CATEGORIES, COLUMNS, ROWS, data
from veilsum import questions


def test_what_spark_writes_is_the_same_table(spark, tmp_path):
    types = pytest.importorskip("pyspark.sql.types")
    own = data()
    del own["day"]
    kinds = {
        "age": (types.IntegerType(), int),
        "bmi": (types.DoubleType(), float),
        "cost": (types.DecimalType(9, 2), lambda x: decimal.Decimal(int(4 * x)) / 4),
        "sex": (types.LongType(), int),
        "smoker": (types.BooleanType(), bool),
        "ward": (types.StringType(), str),
    }
    # Nobody asks for the last one: a time, which old files keep in 96 bits, and a text with every sign that a cell can trip over.
    schema = types.StructType([types.StructField(name, kind) for name, (kind, _) in kinds.items()])
    schema = schema.add("seen", types.TimestampType()).add("note", types.StringType())
    columns = [[of(value) for value in own[name]] for name, (_, of) in kinds.items()]
    times = [datetime.datetime(1999, 12, 31, 23, 59, 59, i) for i in range(ROWS)]
    notes = [('a, "b"', "c; d", None, "")[i % 4] for i in range(ROWS)]
    rows = spark.createDataFrame(list(zip(*columns, times, notes)), schema).repartition(3)

    federation = veilsum.Federation.of(COLUMNS, categories=CATEGORIES, sites=["a", "b", "c"], k=3, exact=True)
    question = questions.fuzzy_sums(np.random.default_rng(1).random((3, 9)), 2.0)
    expected = questions.answer(question, questions.layout(federation, question), own)
    quoted = {"header": True, "escape": '"'}
    forms = {
        "csv": quoted,
        "csv, packed": {**quoted, "compression": "gzip"},
        "csv, semicolons": {**quoted, "sep": ";"},
        "csv, tabs": {**quoted, "sep": "\t"},
        **{f"parquet, {packing}": {"compression": packing} for packing in ("none", "snappy", "gzip", "zstd")},
    }
    for name, options in forms.items():
        getattr(rows.write.options(**options), name.split(",")[0])(str(tmp_path / name))
    for setting, value in {"writeLegacyFormat": "true", "outputTimestampType": "INT96"}.items():
        spark.conf.set(f"spark.sql.parquet.{setting}", value)
        forms[f"parquet, {setting}"] = {}
        rows.write.parquet(str(tmp_path / f"parquet, {setting}"))
        spark.conf.unset(f"spark.sql.parquet.{setting}")
    for name in forms:
        folder = tmp_path / name
        assert len([part for part in folder.iterdir() if part.name.startswith("part-")]) == 3, name
        try:
            words = questions.of_file(federation, question, folder)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error
        assert np.array_equal(words, expected), name
