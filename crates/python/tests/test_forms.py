"""One data set is the same table in every form, as pandas, polars, DuckDB and pyarrow write it themselves."""

import datetime
import decimal
import gzip
import io

import numpy as np
import pytest

import veilsum
from veilsum import questions
from veilsum._rows import matrix, of_plan
from veilsum.errors import InputError

ROWS = 200
COLUMNS = {"age": (0.0, 120.0), "bmi": (10.0, 60.0), "cost": (0.0, 100.0)}
CATEGORIES = {"sex": ["1", "2"], "smoker": ["true", "false"], "ward": ["north", "s\u00fcd"]}


def data():
    source = np.random.default_rng(7)
    return {
        "age": source.integers(0, 120, ROWS),
        "bmi": source.uniform(10, 60, ROWS),
        "cost": source.integers(0, 400, ROWS) / 4,
        "sex": source.integers(1, 3, ROWS),
        "smoker": source.integers(0, 2, ROWS).astype(bool),
        "ward": np.array(["north", "s\u00fcd"], object)[source.integers(0, 2, ROWS)],
        "day": np.array(["2020-01-01"] * ROWS, "datetime64[D]"),
    }


@pytest.fixture(scope="module")
def asked():
    federation = veilsum.Federation.of(COLUMNS, categories=CATEGORIES, sites=["a", "b", "c"], k=3, exact=True)
    question = questions.fuzzy_sums(np.random.default_rng(1).random((3, 9)), 2.0)
    return federation, question, questions.layout(federation, question)


def forms(folder):
    """Every form by name: a file, or a frame."""
    pd, pa, pl = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "polars"))
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet as pq

    own = data()
    frame = pd.DataFrame(own)
    polars = pl.DataFrame({**own, "ward": own["ward"].tolist()})
    table = pa.table({**own, "ward": own["ward"].tolist()})
    decimals = pa.array([decimal.Decimal(int(4 * x)) / 4 for x in own["cost"]], pa.decimal128(9, 2))
    exact = table.set_column(2, "cost", decimals)
    coded = frame.astype({"ward": "category"})

    def written(name, write):
        path = folder / name
        write(path)
        return path

    def arrow(to, made, table=table, **options):
        with made(str(to), table.schema, **options) as writer:
            writer.write_table(table, max_chunksize=64)

    all_forms = {"dict": own, "pandas": frame, "polars": polars, "pyarrow": table}
    all_forms["pandas nullable"] = frame.convert_dtypes()
    all_forms["pandas arrow"] = frame.convert_dtypes(dtype_backend="pyarrow")
    all_forms["pandas codes as floats"] = frame.astype({"sex": float, "age": float})
    all_forms["pandas category"] = coded
    all_forms["pyarrow decimals"] = exact
    all_forms["polars decimals"] = polars.with_columns(pl.col("cost").cast(pl.Decimal(9, 2)))
    all_forms["polars categorical"] = polars.with_columns(pl.col("ward").cast(pl.Categorical))
    files = {
        "pandas.csv": lambda to: frame.to_csv(to, index=False),
        "pandas-floats.csv": lambda to: frame.astype({"sex": float, "age": float}).to_csv(to, index=False),
        "pandas.csv.gz": lambda to: frame.to_csv(to, index=False),
        "polars.csv": polars.write_csv,
        "pyarrow.csv": lambda to: pyarrow.csv.write_csv(table, to),
        "pandas.parquet": frame.to_parquet,
        "pandas-category.parquet": coded.to_parquet,
        "polars.parquet": polars.write_parquet,
        "decimals.parquet": lambda to: pq.write_table(exact, to),
        "pandas.feather": lambda to: pyarrow.feather.write_feather(frame, to),
        "pyarrow.arrow": lambda to: arrow(to, pa.ipc.new_file),
        "pyarrow.arrows": lambda to: arrow(to, pa.ipc.new_stream),
        "decimals.arrow": lambda to: arrow(to, pa.ipc.new_file, exact),
        "legacy.arrow": lambda to: arrow(
            to, pa.ipc.new_file, options=pa.ipc.IpcWriteOptions(use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)
        ),
        "polars-newest.arrow": lambda to: polars.write_ipc(to, compat_level=pl.CompatLevel.newest()),
        "polars-oldest.arrow": lambda to: polars.write_ipc(to, compat_level=pl.CompatLevel.oldest()),
        "polars-newest.arrows": lambda to: polars.write_ipc_stream(to, compat_level=pl.CompatLevel.newest()),
        "polars-oldest.arrows": lambda to: polars.write_ipc_stream(to, compat_level=pl.CompatLevel.oldest()),
    }
    for compression in ("zstd", "lz4"):
        packed = pa.ipc.IpcWriteOptions(compression=compression)
        files[f"{compression}.arrow"] = lambda to, packed=packed: arrow(to, pa.ipc.new_file, options=packed)
        files[f"{compression}.arrows"] = lambda to, packed=packed: arrow(to, pa.ipc.new_stream, options=packed)
    # The shapes of Parquet: versions, pages, encodings, groups, times of old.
    plain = {"use_dictionary": False}
    for name, options in {
        "v2": {"version": "2.6", "data_page_version": "2.0"},
        "split": {**plain, "column_encoding": {"bmi": "BYTE_STREAM_SPLIT", "cost": "BYTE_STREAM_SPLIT"}},
        "delta": {**plain, "column_encoding": {"age": "DELTA_BINARY_PACKED", "ward": "DELTA_BYTE_ARRAY", "sex": "DELTA_BINARY_PACKED"}},
        "delta-length": {**plain, "column_encoding": {"ward": "DELTA_LENGTH_BYTE_ARRAY"}},
        "rle": {**plain, "version": "2.6", "column_encoding": {"smoker": "RLE"}},
        "groups": {"row_group_size": 7},
        "pages": {"data_page_size": 64, "write_page_index": True},
        "int96": {"use_deprecated_int96_timestamps": True},
        "small-decimals": {"store_decimal_as_integer": True},
        **{packing: {"compression": packing} for packing in ("none", "snappy", "gzip", "zstd", "lz4")},
    }.items():
        files[f"{name}.parquet"] = lambda to, options=options: pq.write_table(exact, to, **options)

    def with_empty_groups(to):
        with pq.ParquetWriter(to, table.schema) as writer:
            for part in (table.slice(0, 0), table.slice(0, 90), table.slice(0, 0), table.slice(90)):
                writer.write_table(part)

    nested = pa.array([[{"a": i}] for i in range(ROWS)])
    files["empty-groups.parquet"] = with_empty_groups
    files["nested.parquet"] = lambda to: pq.write_table(table.append_column("parts", nested), to)
    for name, write in files.items():
        all_forms[name] = written(name, write)
    zipped = io.BytesIO()
    with gzip.GzipFile(fileobj=zipped, mode="wb") as stream:
        stream.write((folder / "pyarrow.arrows").read_bytes())
    all_forms["stream, packed"] = written("packed", lambda to: to.write_bytes(zipped.getvalue()))
    with pa.CompressedOutputStream(str(folder / "rows.csv.zst"), "zstd") as stream:
        pyarrow.csv.write_csv(table, stream)
    all_forms["csv.zst"] = folder / "rows.csv.zst"
    return all_forms, table


def test_one_data_set_is_the_same_table_in_every_form(asked, tmp_path):
    federation, question, layout = asked
    all_forms, table = forms(tmp_path)
    try:
        import duckdb
    except ImportError:
        duckdb = None
    if duckdb:
        con = duckdb.connect()
        con.register("rows", table)
        all_forms["duckdb"] = con.sql("SELECT * REPLACE (cost::DECIMAL(9, 2) AS cost, age::HUGEINT AS age) FROM rows")
        for name, options in {
            "duckdb.csv": "FORMAT csv, HEADER",
            "duckdb.parquet": "FORMAT parquet",
            "duckdb-v2.parquet": "FORMAT parquet, PARQUET_VERSION v2",
            "duckdb-zstd.parquet": "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048",
        }.items():
            con.execute(f"COPY rows TO '{tmp_path / name}' ({options})")
            all_forms[name] = tmp_path / name
    expected = None
    for name, form in all_forms.items():
        is_file = hasattr(form, "read_bytes")
        try:
            words = questions.of_file(federation, question, form) if is_file else questions.answer(question, layout, form)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error
        expected = words if expected is None else expected
        assert np.array_equal(words, expected), name
    assert len(all_forms) > 40


def test_no_value_is_no_value_in_every_form(asked, tmp_path):
    pd, pa, pl = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "polars"))
    federation, question, layout = asked
    base = {name: column[:4] for name, column in data().items() if name != "day"}
    gaps = {**base, "bmi": np.array([20.0, np.nan, 30.0, np.nan])}
    frame = pd.DataFrame(gaps)
    polars = pl.DataFrame({**gaps, "ward": gaps["ward"].tolist()})
    files = {
        "nan.parquet": polars.write_parquet,
        "null.parquet": polars.with_columns(pl.col("bmi").fill_nan(None)).write_parquet,
        "nan.csv": polars.write_csv,
        "null.csv": lambda to: frame.to_csv(to, index=False),
        "na.csv": lambda to: frame.to_csv(to, index=False, na_rep="<NA>"),
        "nan.arrow": polars.write_ipc,
    }
    for name, write in files.items():
        write(tmp_path / name)
        with pytest.raises(InputError, match="2 with no value in \"bmi\""):
            questions.of_file(federation, question, tmp_path / name)
    masked = np.ma.array([20.0, 999, 30, 999], mask=[0, 1, 0, 1])
    for form in (frame, frame.convert_dtypes(), polars, pa.table(polars.to_arrow()), {**base, "bmi": masked}):
        rows = of_plan(form, list(COLUMNS), list(CATEGORIES.items()), finite=False)
        assert np.isnan(rows[:, 1]).tolist() == [False, True, False, True]
        with pytest.raises(InputError, match="2 rows have a value"):
            questions.answer(question, layout, form)


def test_masked_entries_are_missing_wherever_they_are():
    masked = np.ma.masked_equal(np.array([[1.0, 999], [2, 3], [4, 5]]), 999)
    expected = [[1.0, None], [2.0, 3.0], [4.0, 5.0]]

    def told(x):
        return [[None if np.isnan(value) else value for value in row] for row in matrix(x)[0]]

    assert told(masked) == expected and told(list(masked)) == expected and told(masked.astype(int)) == expected
    assert told(np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [1, 1]])) == [[1, 2], [None, None]]
    assert of_plan({"x": masked[:, 1]}, ["x"], [], finite=False)[1:].tolist() == [[3.0], [5.0]]
    words = np.ma.array(["a", "b"], mask=[0, 1])
    assert np.isnan(of_plan({"w": words}, [], [("w", ["a", "b"])], finite=False)[1]).all()


@pytest.mark.parametrize("kind", ["M8[D]", "M8[ns]", "m8[D]", "m8[s]"])
def test_arrays_of_times_are_refused(kind):
    for values in ([[1, 2], [3, 4]], [[1, "NaT"]]):
        array = np.array(values, "i8").astype(kind) if values[0][1] != "NaT" else np.array([["NaT", "NaT"]], kind)
        for made in (array, np.ma.array(array)):
            with pytest.raises(ValueError, match="a point in time is not a number"):
                matrix(made)


def test_frames_of_times_are_refused_as_files_are(tmp_path):
    pd, pa, pl = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "polars"))
    day = datetime.date(2020, 1, 1)
    times = pd.to_datetime(["2020-01-01", "2021-01-01"])
    for frame in (
        pd.DataFrame({"a": times, "b": [1.0, 2.0]}),
        pd.DataFrame({"a": times.tz_localize("UTC"), "b": [1.0, 2.0]}),
        pd.DataFrame({"a": pd.to_timedelta([1, 2], "D"), "b": [1.0, 2.0]}),
        pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="D"), "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [day, None], "b": [1.0, 2.0]}),
        pd.DataFrame({"a": pd.array([day, None], pd.ArrowDtype(pa.date32())), "b": [1.0, 2.0]}),
        pl.DataFrame({"a": [day, None], "b": [1.0, 2.0]}),
        pl.DataFrame({"a": [datetime.timedelta(1), None], "b": [1.0, 2.0]}),
        pa.table({"a": pa.array([1, 2], pa.time32("s")), "b": [1.0, 2.0]}),
    ):
        with pytest.raises(ValueError, match="a' holds no numbers.*point in time"):
            matrix(frame)
        with pytest.raises(InputError, match="a' holds no numbers.*point in time"):
            of_plan(frame, ["a", "b"], [], finite=False)
        assert of_plan(frame, ["b"], []).tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match="a' holds no numbers.*point in time"):
        matrix(pd.DataFrame({"a": times, "b": times}))
    # A value that lacks in a column of something else is missing.
    assert np.isnan(matrix(pd.DataFrame({"a": [1.0, pd.NaT], "b": [1.0, 2.0]}, dtype=object))[0][1, 0])


def test_decimals_are_the_doubles_of_their_digits():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    digits = ["1.50", None, "-0.07", "123456789012345678.901234567", "0.1"]
    values = [text and decimal.Decimal(text) for text in digits]
    expected = [np.nan if text is None else float(text) for text in digits]
    for kind in (pa.decimal128(38, 9), pa.decimal256(60, 9)):
        table = pa.table({"a": pa.array(values, kind)})
        np.testing.assert_array_equal(matrix(table)[0][:, 0], expected)
        np.testing.assert_array_equal(matrix(table.slice(2))[0][:, 0], expected[2:])
    for kind in (pa.decimal32(5, 2), pa.decimal64(12, 2)):
        table = pa.table({"a": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.10")], kind)})
        np.testing.assert_array_equal(matrix(table)[0][:, 0], [1.25, np.nan, -3.1])
    np.testing.assert_array_equal(matrix(pl.DataFrame({"a": values}))[0][:, 0], expected)


def test_names_that_are_numbers_are_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=[2019, 2020])
    assert of_plan(frame, ["2020", "2019"], []).tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert of_plan({"Gro\u0308\u00dfe": [1.0]}, ["Gr\u00f6\u00dfe"], []).tolist() == [[1.0]]
    with pytest.raises(InputError, match="one name"):
        of_plan({" a": [1.0], "a": [1.0]}, ["a"], [])


def test_what_a_writer_gave_another_meaning_is_refused(tmp_path):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"month": pd.period_range("2020", periods=2, freq="M"), "b": [1.0, 2.0]})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for form in (table, frame):
        with pytest.raises(ValueError, match="month' holds no numbers.*point in time"):
            matrix(form)
        with pytest.raises(InputError, match="month' holds no .*point in time"):
            of_plan(form, ["b"], [("month", ["600", "601"])], finite=False)
        assert of_plan(form, ["b"], []).tolist() == [[1.0], [2.0]]
    frame.to_parquet(tmp_path / "rows")
    federation = veilsum.Federation.of({"month": (0.0, 1e6)}, sites=["a", "b", "c"], k=2, exact=True)
    with pytest.raises(InputError, match="point in time"):
        questions.of_file(federation, questions.fuzzy_sums(np.array([[0.1], [0.2]])), tmp_path / "rows")


def test_numbers_that_are_written_as_text_are_numbers():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    texts = {"a": ["1", " 2.50 ", "NA"], "b": [1.0, 2.0, 3.0]}
    for form in (pa.table(texts), pl.DataFrame(texts), {name: np.array(column) for name, column in texts.items()}):
        rows = of_plan(form, ["a"], [], finite=False)
        assert rows[:2].tolist() == [[1.0], [2.5]] and np.isnan(rows[2, 0])
    with pytest.raises(InputError, match="words stand for no numbers"):
        of_plan(pl.DataFrame({"a": ["1", "word"]}), ["a"], [], finite=False)


def test_a_float_in_single_precision_has_the_name_of_its_fewest_digits():
    pa = pytest.importorskip("pyarrow")
    own = np.array([0.1, 2.0, np.nan], np.float32)
    for form in ({"c": own}, pa.table({"c": own})):
        assert of_plan(form, [], [("c", ["0.1", "2"])], finite=False)[:2].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_page_whose_checksum_is_another_is_refused(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    federation = veilsum.Federation.of({"x": (0.0, 1e6)}, sites=["a", "b", "c"], k=2, exact=True)
    question = questions.fuzzy_sums(np.array([[0.1], [0.2]]))
    path = tmp_path / "rows.parquet"
    table = pa.table({"x": np.arange(100, 200).astype(float)})
    for dictionary in (False, True):
        pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=dictionary)
        questions.of_file(federation, question, path)
        data = bytearray(path.read_bytes())
        at = data.index(np.float64(150).tobytes())
        data[at : at + 8] = np.float64(151).tobytes()
        path.write_bytes(data)
        with pytest.raises(InputError, match="damaged"):
            questions.of_file(federation, question, path)


def test_streams_of_old_and_whole_numbers_of_many_bits(tmp_path):
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    federation = veilsum.Federation.of({"x": (0.0, 1e6)}, sites=["a", "b", "c"], k=2, exact=True)
    question = questions.fuzzy_sums(np.array([[0.1], [0.2]]))
    table = pa.table({"x": np.arange(5.0), "n": np.arange(5)})
    old = pa.ipc.IpcWriteOptions(use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)
    words = []
    for options in (old, pa.ipc.IpcWriteOptions()):
        with pa.ipc.new_stream(str(tmp_path / "rows"), table.schema, options=options) as writer:
            writer.write_table(table)
        words.append(questions.of_file(federation, question, tmp_path / "rows"))
    assert (words[0] == words[1]).all()
    pl.DataFrame({"x": [1.0], "n": pl.Series([1], dtype=pl.Int128)}).write_ipc(tmp_path / "wide")
    with pytest.raises(InputError, match='"n" has whole numbers of more than 64 bits'):
        questions.of_file(federation, question, tmp_path / "wide")


def test_noi_8_no_cell_refuses_a_table_under_noise():
    """[NOI-8]: what is no number or no word makes its own row count for nothing, and no other."""
    rows = {
        "x": np.array([1, "abc", 10**400, b"z", None, 2], object),
        "c": np.array(["a", "a", "a", "a", "a", ["a"]], object),
    }
    table = of_plan(rows, ["x"], [("c", ["a", "other"])], finite=False, noise=True)
    assert np.isfinite(table).all(axis=1).tolist() == [True, False, False, False, False, False]
