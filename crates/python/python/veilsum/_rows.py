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
        all_names, columns, rows = _arrow.table(x)
        names = _names(all_names)
        array = np.empty((rows, len(columns)))
        for place, (name, column) in enumerate(zip(all_names, columns)):
            words = column is None or column.dtype == object and any(isinstance(value, str) for value in column)
            numbers = None if words else _numbers(column)
            if numbers is None:
                raise ValueError(f"column {name!r} holds no numbers")
            array[:, place] = numbers
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


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """float64, NaN where there is nothing; ``None`` where it holds something else, such as words or points in time."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind not in "OUS":
        return None
    try:
        return np.array([np.nan if value is None or isinstance(value, str) and not value.strip() else value for value in column], np.float64)
    except (TypeError, ValueError):
        return None


def _words(column: np.ndarray) -> list[list[str]]:
    """What each value may be called in a list of categories, as a file with the same value would have it: 3 and not 3.0; a word as it is,
    "01" too; a yes or no as a word, or else as a digit. Nothing where there is no value."""

    def of(value: Any) -> list[str]:
        if isinstance(value, (bool, np.bool_)):
            return ["true", "1"] if value else ["false", "0"]
        if isinstance(value, str):
            return [value.strip()] if value.strip() else []
        if isinstance(value, (int, float, np.integer, np.floating)) and np.isfinite(value):
            return [repr(int(value)) if value == int(value) else repr(float(value))]
        return []

    return [of(value) for value in column]


def _coded(column: np.ndarray, categories: list[str], name: str, refuse: bool, noise: bool) -> np.ndarray:
    """0 and 1 for every category, n x c. Under noise a word that is not listed is ``other`` where that is."""
    codes = {category: place for place, category in enumerate(categories)}
    other = codes.get("other", -1) if noise else -1
    places = np.array([next((codes[word] for word in words if word in codes), other if words else -1) for words in _words(column)], np.intp)
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
    """Columns by name, as they are, or ``None`` for rows without names."""
    if isinstance(x, dict):
        return {name: np.asarray(column) for name, column in x.items()}
    if hasattr(x, "iloc") and hasattr(x, "columns"):
        return {str(name): np.asarray(x[name]) for name in x.columns}
    if hasattr(x, "__arrow_c_stream__"):
        names, columns, _ = _arrow.table(x)
        return {name: column for name, column in zip(names, columns) if column is not None}
    return None


def has_direction(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which rows (n x d, numbers first) are not all zeros in the box: the others have no direction, and no part in a plan about directions."""
    d = len(low)
    return (x[:, :d].clip(low, high) != 0).any(axis=1) | (x[:, d:] != 0).any(axis=1)


def of_plan(
    x: Any, columns: list[str], categorical: list[tuple[str, list[str]]], *, finite: bool = True, noise: bool = False
) -> np.ndarray:
    """Rows in the columns of a plan: n x d in original units, indicators of categories behind the numbers.

    A table has its columns found by name, others are ignored; an array has the plan's columns of numbers in their order. Without
    ``finite`` a row that cannot be used has a NaN, and nobody complains. ``noise`` is whether the plan has any.
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
    parts = []
    for name in columns:
        numbers = _numbers(named[name])
        if numbers is None:
            raise InputError(f"column {name!r} holds no numbers", "turn it into numbers first")
        parts.append(numbers[:, None])
    parts += [_coded(named[name], categories, name, finite, noise) for name, categories in categorical]
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
