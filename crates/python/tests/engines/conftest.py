"""What the tests of engines need. Where something is not installed they are skipped, and say what is missing."""

import os
import shutil
import sys
from pathlib import Path

import pytest

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
sys.path[:0] = [str(Path(__file__).parents[at]) for at in (0, 1)]

@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The data set as files: ``rows.csv``, ``rows.parquet`` in groups of rows, ``rows.arrow`` in batches."""
    pa = pytest.importorskip("pyarrow", reason="SKIPPED: pyarrow is not installed")
    import pyarrow.csv
    import pyarrow.parquet
    import world

    folder = tmp_path_factory.mktemp("rows")
    table = pa.table({name: world.X[:, j] for j, name in enumerate(world.COLUMNS)})
    header = ",".join('"' + name.replace('"', '""') + '"' for name in world.COLUMNS)
    # The shortest digits that give the same double.
    lines = (",".join(map(repr, row)) for row in world.X.tolist())
    (folder / "rows.csv").write_text("\n".join([header, *lines]) + "\n")
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=4_000)
    with pa.ipc.new_file(folder / "rows.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=3_000)
    return folder


@pytest.fixture(scope="session")
def spark():
    """A Spark with two executors, each a process of its own."""
    sql = pytest.importorskip("pyspark.sql", reason="SKIPPED: pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("SKIPPED: there is no Java here, which Spark needs")
    session = (
        sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("veilsum tests")
        .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2500").config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )  # fmt: skip
    yield session
    session.stop()
