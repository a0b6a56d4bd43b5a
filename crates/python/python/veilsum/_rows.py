"""Rows from whatever people keep them in, as C-contiguous float64 and the names of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrow
from .errors import InputError

__all__ = ["matrix", "of_plan"]


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
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert to a dense numpy array."
        )
    if hasattr(x, "iloc") and hasattr(x, "to_numpy"):
        # A pandas frame: the Arrow interface would need another library.
        names = _names(getattr(x, "columns", ()))
        try:
            array = x.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            array = x.to_numpy()
    elif hasattr(x, "__arrow_c_stream__") and not isinstance(x, np.ndarray):
        words, columns, rows = _arrow.table(x)
        names = _names(words)
        for name, column in zip(words, columns):
            if column is None or column.dtype == object:
                raise ValueError(f"column {name!r} holds no numbers")
        array = np.empty((rows, len(columns)))
        for place, column in enumerate(columns):
            array[:, place] = column
    else:
        array = np.asarray(x)
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


def _coded(column: np.ndarray, categories: list[str], name: str, refuse: bool) -> np.ndarray:
    """0 and 1 for every category, n x c."""
    if column.dtype != object:
        # As a file would have them: 3, and not 3.0.
        column = np.array([None if not np.isfinite(v) else repr(int(v)) if v == int(v) else repr(float(v)) for v in column], object)
    codes = {category: place for place, category in enumerate(categories)}
    places = np.array([codes.get(value, -1) for value in column], np.intp)
    bad = np.flatnonzero(places < 0)
    if len(bad) and refuse:
        raise InputError(
            f"row {bad[0]}, column {name!r}: not one of the plan's categories ({len(bad)} such rows)",
            "correct the row, or agree on a plan that lists its category",
        )
    coded = np.eye(len(categories))[places]
    coded[bad] = np.nan
    return coded


def _columns(x: Any) -> dict[str, np.ndarray] | None:
    """Columns by name, or ``None`` for rows without names."""
    if isinstance(x, dict):
        return {name: _plain(np.asarray(column)) for name, column in x.items()}
    if hasattr(x, "iloc") and hasattr(x, "columns"):
        return {str(name): _plain(np.asarray(x[name])) for name in x.columns}
    if hasattr(x, "__arrow_c_stream__"):
        names, columns, _ = _arrow.table(x)
        return {name: column for name, column in zip(names, columns) if column is not None}
    return None


def _plain(column: np.ndarray) -> np.ndarray:
    """float64, or objects that are strings or ``None``."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return np.array([value if isinstance(value, str) else None for value in column], object)


def of_plan(
    x: Any, columns: list[str], categorical: list[tuple[str, list[str]]], *, finite: bool = True
) -> np.ndarray:
    """Rows in the columns of a plan: n x d in original units, indicators of categories behind the numbers.

    A table has its columns found by name, others are ignored; an array has the plan's columns of numbers in their order. Without
    ``finite`` a row that cannot be used has a NaN, and nobody complains.
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
    lacking = [name for name in [*columns, *(name for name, _ in categorical)] if name not in named]
    if lacking:
        raise InputError(f"the table has no column {', '.join(map(repr, lacking))}", "rename its columns as the plan has them")
    for name in columns:
        if named[name].dtype == object:
            raise InputError(f"column {name!r} holds no numbers", "turn it into numbers first")
    parts = [named[name][:, None] for name in columns]
    parts += [_coded(named[name], categories, name, finite) for name, categories in categorical]
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
