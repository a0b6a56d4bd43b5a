"""What the tests of engines need. Where something is not installed they are skipped, and say what is missing."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
sys.path[:0] = [str(Path(__file__).parents[at]) for at in (0, 1)]

EXAMPLES = Path(__file__).parents[4] / "examples" / "answerers"


@pytest.fixture(scope="session")
def examples():
    return EXAMPLES


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


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory, files):
    """A PostgreSQL with the data set as the table ``rows``: its port."""
    programs = {name: shutil.which(name) for name in ("initdb", "pg_ctl", "psql")}
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin")):
        programs = {name: str(folder / name) if (folder / name).exists() else at for name, at in programs.items()}
    missing = [name for name, at in programs.items() if at is None]
    if missing:
        pytest.skip(f"SKIPPED: there is no PostgreSQL server here ({', '.join(missing)})")
    # The server does not run as root.
    person = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
    home = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    data, port = home / "data", _free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", "check": True}
    if person:
        shutil.chown(home, "postgres")
    subprocess.run([*person, programs["initdb"], "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"], **quiet)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    subprocess.run([*person, programs["pg_ctl"], "-D", data, "-w", "-l", home / "log", "-o", options, "start"], **quiet)
    try:
        import world

        columns = ", ".join('"' + name.replace('"', '""') + '" float8' for name in world.COLUMNS)
        script = f"CREATE TABLE rows ({columns});\nCOPY rows FROM STDIN WITH (FORMAT csv, HEADER);\n"
        text = script + (files / "rows.csv").read_text() + "\\.\nANALYZE rows;\n"
        psql = [programs["psql"], "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-f", "-"]
        subprocess.run(psql, input=text, text=True, check=True)
        yield port
    finally:
        subprocess.run([*person, programs["pg_ctl"], "-D", data, "-m", "immediate", "-w", "stop"], cwd="/", stdout=subprocess.DEVNULL)
        shutil.rmtree(home, ignore_errors=True)
