"""Rows from whatever people keep them in, as C-contiguous float64 and the names of their columns."""

from __future__ import annotations

from typing import Any, Callable, Iterable

import numpy as np

from . import _arrow, _core
from .errors import InputError

__all__ = ["handed", "matrix", "of_plan"]

#: Kinds of NumPy that hold no numbers, as formats of the Arrow C interface.
_FORMATS = {"M": "tsn:", "m": "tDn", "S": "z", "V": "z", "c": "z"}


def _names(columns: Any) -> list[str] | None:
    """Names as scikit-learn has them: all of them strings, or none at all."""
    names = list(columns)
    words = [isinstance(name, str) for name in names]
    if all(words):
        return names or None
    if any(words):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{sorted({type(name).__name__ for name in names})} as feature name / column name types. If you want feature names to be "
            "stored and validated, you must convert them all to strings, by using X.columns = X.columns.astype(str) for example. "
            "Otherwise you can remove feature / column names from your input data, or convert them all to a non-string data type."
        )
    return None


def matrix(x: Any) -> tuple[np.ndarray, list[str] | None]:
    """``x`` as it is where it is a C-contiguous float64 array, else a copy that is, and the names of its columns.

    Takes NumPy arrays and what turns into one, pandas frames, and whatever speaks the Arrow PyCapsule interface
    (``__arrow_c_stream__``: polars, pyarrow, DuckDB, ...). A missing value becomes NaN.
    """
    names = None
    x = _here(x)
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert to a dense numpy array."
        )
    if hasattr(x, "iloc") and hasattr(x, "to_numpy"):
        # A pandas frame: the Arrow interface would need another library.
        names = _names(getattr(x, "columns", ()))
        if x.ndim == 2 and not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in x.dtypes):
            array = _joined((name, np.asarray(x.iloc[:, i])) for i, name in enumerate(x.columns))
        else:
            array = x.to_numpy()
    elif hasattr(x, "__arrow_c_stream__") and not isinstance(x, np.ndarray):
        all_names, columns, rows = _arrow.table(x)
        names = _names(all_names)
        array = _joined(zip(all_names, columns)) if columns else np.empty((rows, 0))
    else:
        if isinstance(x, (list, tuple)) and any(np.ma.isMaskedArray(row) for row in x):
            x = np.ma.stack([np.ma.asarray(row) for row in x])
        # NumPy itself forgets which entries are masked.
        array = _plain(x) if np.ma.isMaskedArray(x) else np.asarray(x)
        if array.dtype.kind in "MmSV":
            unread = _arrow.Unread.of(_FORMATS[array.dtype.kind])
            raise ValueError(f"the rows hold no numbers: {unread.why}\nnext: {unread.next_step}")
        if array.dtype.kind not in "biufc":
            array = np.array([_number(value) for value in array.ravel()], np.float64).reshape(array.shape)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array}\n")
    if array.ndim != 2:
        if array.ndim < 2:
            kind = "scalar" if array.ndim == 0 else "1D"
            raise ValueError(
                f"Expected 2D array, got {kind} array instead:\narray={array!r}.\nReshape your data either using array.reshape(-1, 1) "
                "if your data has a single feature or array.reshape(1, -1) if it contains a single sample."
            )
        raise ValueError(f"Found array with dim {array.ndim}, while dim <= 2 is required.")
    return np.ascontiguousarray(array, dtype=np.float64), names


def _here(x: Any) -> Any:
    """A Dask frame or array as what its parts make; everything else as it is."""
    return x.compute() if hasattr(x, "dask") and hasattr(x, "compute") else x


def _plain(column: Any) -> Any:
    """A column without a mask: nothing stands where an entry is masked."""
    if isinstance(column, _arrow.Unread):
        return column
    if not np.ma.isMaskedArray(column) or column.dtype.kind in "Mm":
        return np.asarray(column)
    plain = column.data.astype(object)
    plain[np.ma.getmaskarray(column)] = None
    return plain


def _joined(columns: Iterable[tuple[Any, _arrow.Column]]) -> np.ndarray:
    parts = []
    for name, column in columns:
        numbers = _numbers(column)
        if isinstance(numbers, _arrow.Unread):
            raise ValueError(f"column {name!r} holds no numbers: {numbers.why}\nnext: {numbers.next_step}")
        parts.append(numbers)
    return np.column_stack(parts)


def _is_nothing(value: Any) -> bool:
    """``None``, NaN, ``pandas.NA``, ``NaT``, or an entry that is masked."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.generic)) and bool(value != value)


def _number(value: Any) -> float:
    if _is_nothing(value):
        return np.nan
    if isinstance(value, str):
        number = _core.number(value)
        if number is None:
            raise ValueError("a text is no number")
        return number
    if isinstance(value, (bytes, np.datetime64, np.timedelta64)):
        raise TypeError(f"a value of the type {type(value).__name__} is no number")
    return float(value)


def _any_number(value: Any) -> float:
    """Infinity for what is no number: under noise such a row counts for nothing, and decides nothing."""
    try:
        return _number(value)
    except (TypeError, ValueError, OverflowError):
        return np.inf


def _numbers(column: _arrow.Column, noise: bool = False) -> np.ndarray | _arrow.Unread:
    """float64, NaN where there is nothing; under noise infinity where something else stands than a number."""
    if isinstance(column, _arrow.Unread):
        return column
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind in _FORMATS:
        return _arrow.Unread.of(_FORMATS[column.dtype.kind])
    if noise:
        return np.array([_any_number(value) for value in column], np.float64)
    try:
        return np.array([_number(value) for value in column], np.float64)
    except (TypeError, ValueError, OverflowError):
        return _unread(column)


def _unread(column: np.ndarray) -> _arrow.Unread:
    """What a column of objects holds in the place of numbers and words."""
    kinds = {type(value).__name__ for value in column if not _is_nothing(value)}
    times = kinds & {"date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "Timestamp", "Timedelta", "Period"}
    return _arrow.Unread.of("tsn:" if times else "u" if "str" in kinds else "z")


def _coded(column: _arrow.Column, categories: list[str], name: str, refuse: bool, noise: bool) -> np.ndarray:
    """0 and 1 for every category, n x c. Under noise a word that is not listed is ``other`` where that is."""

    def no_names(unread: _arrow.Unread) -> InputError:
        return InputError(f"column {name!r} holds no categories: {unread.why}", unread.next_step)

    if isinstance(column, _arrow.Unread) or column.dtype.kind in _FORMATS:
        raise no_names(column if isinstance(column, _arrow.Unread) else _arrow.Unread.of(_FORMATS[column.dtype.kind]))
    other = categories.index("other") if noise and "other" in categories else None
    # The name of a number in single precision has its fewest digits.
    narrow = column.dtype.kind == "f" and column.dtype.itemsize < 8
    values = [None if _is_nothing(value) else float(str(value)) if narrow else value for value in (column if narrow else column.tolist())]
    if noise:
        # Of what has no name nobody is told: such a row counts for nothing.
        values = [value if isinstance(value, (str, bool, int, float)) else None for value in values]
    try:
        places = np.array(_core.coded(values, categories, other), np.intp)
    except TypeError:
        raise no_names(_unread(column)) from None
    bad = np.flatnonzero(places < 0)
    if len(bad) and refuse:
        raise InputError(
            f"row {bad[0]}, column {name!r}: not one of the plan's categories ({len(bad)} such rows)",
            "correct the row, or agree on a plan that lists its category",
        )
    coded = np.eye(len(categories))[np.maximum(places, 0)]
    coded[bad] = np.where(places[bad] == -2, np.nan, np.inf)[:, None]
    return coded


def _columns(x: Any) -> dict[str, _arrow.Column] | None:
    """Columns by name, as they are, or ``None`` for rows without names."""
    x = _here(x)
    if isinstance(x, dict):
        columns = [(name, _plain(column)) for name, column in x.items()]
    elif hasattr(x, "iloc") and hasattr(x, "columns"):
        columns = [(name, np.asarray(x.iloc[:, i])) for i, name in enumerate(x.columns)]
    elif hasattr(x, "__arrow_c_stream__"):
        columns = list(zip(*_arrow.table(x)[:2]))
    else:
        return None
    named = {_core.normal(str(name)): column for name, column in columns}
    if len(named) < len(columns):
        raise InputError("two columns of the table have one name", "rename one")
    return named


def handed(x: Any) -> Callable[[Any], Any]:
    """What a site's rows are under a plan (``_core.Planned``), for as many plans as come."""
    if hasattr(x, "mapInArrow"):
        from . import spark

        return lambda planned: spark.Frame(x, planned)
    # A stream may be read once.
    rows = _columns(x) if hasattr(x, "__arrow_c_stream__") and not hasattr(x, "iloc") else _here(x)
    return lambda planned: of_plan(rows, planned.columns, planned.categorical, finite=not planned.noise, noise=planned.noise)


def of_plan(
    x: Any, columns: list[str], categorical: list[tuple[str, list[str]]], *, finite: bool = True, noise: bool = False
) -> np.ndarray:
    """Rows in the columns of a plan: n x d in original units, indicators of categories behind the numbers.

    A table has its columns found by name, others are ignored; an array has the plan's columns of numbers in their order. Without
    ``finite`` a row that cannot be used has a NaN, or of a category that is not listed infinity, and nobody complains. ``noise`` is whether the plan has any.
    """
    named = _columns(x)
    if named is None:
        array, _ = matrix(x)
        if categorical:
            raise InputError("the plan has columns of categories, and the rows have no names", "hand over a table")
        if array.shape[1] != len(columns):
            raise InputError(
                f"the rows have {array.shape[1]} columns, the plan has {len(columns)}: {', '.join(columns)}",
                "hand over a table, or an array with these columns in this order",
            )
        return array
    lacking = [name for name in [*columns, *(name for name, _ in categorical)] if _core.normal(name) not in named]
    if lacking:
        raise InputError(f"the table has no column {', '.join(map(repr, lacking))}", "rename its columns as the plan has them")
    parts = []
    for name in columns:
        numbers = _numbers(named[_core.normal(name)], noise)
        if isinstance(numbers, _arrow.Unread):
            raise InputError(f"column {name!r} holds no numbers: {numbers.why}", numbers.next_step)
        parts.append(numbers[:, None])
    parts += [_coded(named[_core.normal(name)], categories, name, finite, noise) for name, categories in categorical]
    rows = np.ascontiguousarray(np.hstack(parts))
    bad = np.argwhere(~np.isfinite(rows)) if finite else ()
    if len(bad):
        row, column = bad[0]
        name = columns[column] if column < len(columns) else "?"
        raise InputError(
            f"row {row}, column {name!r}: no finite number ({len(np.unique(bad[:, 0]))} such rows)",
            "leave these rows out, or fill them in, before you hand them over",
        )
    return rows
