"""Tables through the Arrow PyCapsule interface, and without the library that made them."""

import subprocess
import sys

import numpy as np
import pytest

from veilsum import _arrow
from veilsum._rows import matrix, of_plan
from veilsum.errors import InputError

pa = pytest.importorskip("pyarrow")


def test_numbers_of_every_width_with_gaps_and_offsets():
    columns = {
        "i8": pa.array([1, None, 3, 4, 5], pa.int8()),
        "u64": pa.array([1, 2, 3, None, 5], pa.uint64()),
        "f32": pa.array([0.5, 1.5, None, 3.5, 4.5], pa.float32()),
        "b": pa.array([True, False, None, True, True]),
        "f64": pa.array([0.1, 0.2, 0.3, 0.4, 0.5]),
        "null": pa.nulls(5),
    }
    table = pa.table(columns)
    for first, length in [(0, 5), (1, 3), (3, 2), (2, 0)]:
        names, read, rows = _arrow.table(table.slice(first, length))
        assert names == list(columns) and rows == length
        for name, column in zip(names, read):
            kept = columns[name].slice(first, length).to_pylist()
            if name == "b":
                # A yes or no may be a category, too.
                assert column.tolist() == kept
                column = column.astype(float)
            np.testing.assert_array_equal(column, np.array([np.nan if v is None else float(v) for v in kept], float))


def test_many_batches_and_none():
    table = pa.table({"x": pa.chunked_array([[1.0, 2.0], [], [3.0]])})
    assert matrix(table)[0].tolist() == [[1.0], [2.0], [3.0]]
    assert matrix(table.slice(0, 0))[0].shape == (0, 1)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_categories(kind):
    words = ["north", None, "south", "a name of more than twelve letters", ""]
    column = pa.array(words, pa.string()).cast(kind)
    read = _arrow.table(pa.table({"w": column}))[1][0]
    assert read.tolist() == words
    assert _arrow.table(pa.table({"w": column}).slice(2, 2))[1][0].tolist() == words[2:4]


def test_rows_of_a_plan():
    table = pa.table({"ward": ["b", "a"], "other": [None, None], "y": [1, 2], "x": [0.5, 1.5]})
    assert of_plan(table, ["x", "y"], [("ward", ["a", "b"])]).tolist() == [[0.5, 1, 0, 1], [1.5, 2, 1, 0]]
    with pytest.raises(InputError, match="no column 'z'"):
        of_plan(table, ["z"], [])
    with pytest.raises(InputError, match="categories"):
        of_plan(table, ["x"], [("ward", ["a"])])
    with pytest.raises(InputError, match="holds no numbers"):
        of_plan(table, ["ward"], [])
    with pytest.raises(InputError, match="no finite number"):
        of_plan(table.append_column("gap", pa.array([None, 1.0])), ["gap"], [])


@pytest.mark.parametrize("made", [dict, pa.table, pytest.param("pandas", id="pandas")])
def test_words_stay_words_whatever_else_a_batch_holds(made):
    if made == "pandas":
        made = pytest.importorskip("pandas").DataFrame

    def coded(values, categories):
        values = values if made is pa.table else np.array(values, None if isinstance(values[0], (bool, int, float)) else object)
        return of_plan(made({"x": [0.0] * len(values), "w": values}), ["x"], [("w", categories)], finite=False)[:, 1:].argmax(axis=1).tolist()

    assert coded(["01", "1"], ["01", "1"]) == [0, 1]
    assert coded(["1", "01", " 01 "], ["01", "1"]) == [1, 0, 0]
    assert coded([True, False], ["false", "true"]) == [1, 0] and coded([True, False], ["0", "1"]) == [1, 0]
    assert coded([3, 1], ["1", "3"]) == [1, 0] and coded([3.0, 0.5], ["0.5", "3"]) == [1, 0]
    one = of_plan(made({"w": np.array(["1", None], object) if made is not pa.table else ["1", None]}), [], [("w", ["1", "x"])], finite=False)
    assert one[0].tolist() == [1.0, 0.0] and np.isnan(one[1]).all()


@pytest.mark.parametrize("column", [np.array(["2020-01-01", "NaT"], "datetime64[ns]"), np.array([1, 2], "timedelta64[s]"), np.array([1j, 2])])
def test_points_in_time_are_no_numbers(column):
    with pytest.raises(InputError, match="holds no numbers"):
        of_plan({"x": column}, ["x"], [], finite=False)


@pytest.mark.parametrize(
    "column", [pa.array([1, 2], pa.date32()), pa.array([[1], [2]]), pa.array([{"a": 1}, {"a": 2}]), pa.array(["one", "2"])]
)
def test_types_that_are_no_numbers(column):
    with pytest.raises(ValueError, match="holds no numbers"):
        matrix(pa.table({"x": column}))


def test_polars_is_read_without_pyarrow():
    pytest.importorskip("polars")
    program = (
        "import sys; sys.modules['pyarrow'] = None; import polars, veilsum\n"
        "frame = polars.DataFrame({'x': [1.0, 2.0, 9.0], 'y': [1, None, 3]}).drop_nulls()\n"
        "model = veilsum.FuzzyCMeans(2, random_state=0).fit(frame)\n"
        "assert list(model.feature_names_in_) == ['x', 'y'], model"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
