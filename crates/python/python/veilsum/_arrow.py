"""Reads columns from whatever speaks the Arrow PyCapsule interface, without importing its library.

``__arrow_c_stream__`` hands over a C structure (https://arrow.apache.org/docs/format/CStreamInterface.html). Its layout is fixed for
good, so a few lines of ctypes read it: numbers, decimals, booleans and, for columns of categories, strings and dictionaries of strings.
Which types are read as what is the table that files have, too (``_core.type_of``).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, py_object
from typing import Any, Iterator, NamedTuple, Union

import numpy as np

from . import _core
from .errors import InputError


class Unread(NamedTuple):
    """A column of a type that is read as no number and no word."""

    #: What it is, and why it is not read.
    why: str
    #: What to do.
    next_step: str

    @classmethod
    def of(cls, format: str, extension: str | None = None) -> Unread:
        """The one of this format of the Arrow C interface, which its writer calls ``extension``."""
        told, refused = _core.type_of(format, extension)
        why, next_step = refused or ("which is not read here", "turn it into numbers first")
        return cls(f"it is of the type {told}, {why}", next_step)


Column = Union[np.ndarray, Unread]


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(_Schema))),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(_Array))),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(c_char_p, POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(_Stream))),
    ("private_data", c_void_p),
]

#: Arrow's letters for numbers, as NumPy's types.
_NUMBERS = {
    b"c": np.int8, b"C": np.uint8, b"s": np.int16, b"S": np.uint16, b"i": np.int32, b"I": np.uint32,
    b"l": np.int64, b"L": np.uint64, b"e": np.float16, b"f": np.float32, b"g": np.float64,
}  # fmt: skip
_STRINGS = {b"u": np.int32, b"U": np.int64}


def _pointer(capsule: Any) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    return get(capsule, b"arrow_array_stream")


def _view(address: int | None, dtype: Any, first: int, length: int) -> np.ndarray:
    dtype = np.dtype(dtype)
    if not length or not address:
        return np.zeros(length, dtype)
    size = dtype.itemsize
    buffer = (ctypes.c_char * (length * size)).from_address(address + first * size)
    return np.frombuffer(buffer, dtype, length)


def _bits(address: int | None, first: int, length: int) -> np.ndarray:
    packed = _view(address, np.uint8, first // 8, (first % 8 + length + 7) // 8)
    return np.unpackbits(packed, bitorder="little")[first % 8 : first % 8 + length].astype(bool)


def _valid(array: _Array, first: int, length: int) -> np.ndarray | None:
    if array.null_count == 0 or not array.n_buffers or not array.buffers[0]:
        return None
    return _bits(array.buffers[0], first, length)


def _strings(schema: _Schema, array: _Array, first: int, length: int) -> np.ndarray:
    first += array.offset
    kind = _STRINGS.get(schema.format)
    out = np.empty(length, object)
    if schema.format == b"vu":
        # Short strings stand in their view; others in a buffer that it names.
        views = _view(array.buffers[1], np.dtype((np.void, 16)), first, length)
        for i, view in enumerate(views):
            raw = view.tobytes()
            size = int.from_bytes(raw[:4], "little")
            if size <= 12:
                out[i] = raw[4 : 4 + size].decode()
            else:
                buffer, at = int.from_bytes(raw[8:12], "little"), int.from_bytes(raw[12:16], "little")
                out[i] = ctypes.string_at(array.buffers[2 + buffer] + at, size).decode()
    elif kind is not None:
        ends = _view(array.buffers[1], kind, first, length + 1 if length else 0).tolist()
        for i in range(length):
            out[i] = ctypes.string_at(array.buffers[2] + ends[i], ends[i + 1] - ends[i]).decode() if ends[i + 1] > ends[i] else ""
    else:
        raise TypeError
    valid = _valid(array, first, length)
    if valid is not None:
        out[~valid] = None
    return out


def _decimals(format: bytes, address: int | None, first: int, length: int) -> np.ndarray:
    """``d:precision,scale[,bits]``: the doubles nearest to these decimals."""
    _, scale, bits, *_ = [*map(int, format[2:].split(b",")), 128]
    if bits <= 64:
        numbers = _view(address, f"i{bits // 8}", first, length).tolist()
    else:
        size = bits // 8
        raw = _view(address, np.dtype((np.void, size)), first, length).tobytes()
        numbers = [int.from_bytes(raw[at : at + size], "little", signed=True) for at in range(0, length * size, size)]
    # A quotient of whole numbers is rounded once, however long they are.
    over, times = 10 ** max(scale, 0), 10 ** max(-scale, 0)
    return np.array([number * times / over for number in numbers], np.float64)


def _column(schema: _Schema, array: _Array, first: int, length: int) -> np.ndarray:
    """One column of a batch: float64 with NaN where there is no value; objects for strings; booleans, or objects where one lacks."""
    if schema.dictionary:
        words = _column(schema.dictionary[0], array.dictionary[0], 0, array.dictionary[0].length)
        places = _view(array.buffers[1], _NUMBERS[schema.format], array.offset + first, length)
        valid = _valid(array, array.offset + first, length)
        missing: Any = np.nan if words.dtype != object else None
        if not len(words):
            return np.full(length, missing, words.dtype)
        out = words[np.where(valid, places, 0) if valid is not None else places]
        if valid is not None:
            out[~valid] = missing
        return out
    if schema.format in _STRINGS or schema.format == b"vu":
        return _strings(schema, array, first, length)
    at = array.offset + first
    if schema.format == b"n":
        return np.full(length, np.nan)
    if schema.format == b"b":
        yes = _bits(array.buffers[1], at, length)
        valid = _valid(array, at, length)
        return yes if valid is None else np.where(valid, yes.astype(object), None)
    if schema.format in _NUMBERS:
        values = _view(array.buffers[1], _NUMBERS[schema.format], at, length)
        # In their own precision floats keep the digits of their names.
        values = values.astype(values.dtype if values.dtype.kind == "f" else np.float64)
    elif schema.format.startswith(b"d:"):
        values = _decimals(schema.format, array.buffers[1], at, length)
    else:
        raise TypeError
    valid = _valid(array, at, length)
    if valid is not None:
        values[~valid] = np.nan
    return values


def batches(table: Any) -> Iterator[tuple[list[str], list[Column]]]:
    """Names and columns of every batch of ``table``.

    Parameters
    ----------
    table : object with ``__arrow_c_stream__``
        A polars or pandas frame, a pyarrow table or batch, a DuckDB relation, ...

    Raises
    ------
    InputError
        Where the stream fails, or is no table.
    """
    capsule = table.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer(capsule))
    schema = _Schema()
    try:
        _checked(stream, stream.get_schema(stream, schema))
        try:
            if schema.format != b"+s":
                raise InputError("the rows are a single column without a name", "hand over a table")
            fields = [schema.children[i][0] for i in range(schema.n_children)]
            names = [(field.name or b"").decode() for field in fields]
            while True:
                array = _Array()
                _checked(stream, stream.get_next(stream, array))
                if not array.release:
                    return
                try:
                    yield names, [_read(field, array, i) for i, field in enumerate(fields)]
                finally:
                    array.release(array)
        finally:
            if schema.release:
                schema.release(schema)
    finally:
        if stream.release:
            stream.release(stream)


def _extension(field: _Schema) -> str | None:
    """What its writer calls the type of a column that is held as another: one of the pairs of its metadata."""
    if not field.metadata:
        return None
    at = field.metadata

    def next_text() -> bytes:
        nonlocal at
        size = ctypes.c_int32.from_address(at).value
        text = ctypes.string_at(at + 4, size)
        at += 4 + size
        return text

    pairs = ctypes.c_int32.from_address(at).value
    at += 4
    found = {next_text(): next_text() for _ in range(pairs)}
    name = found.get(b"ARROW:extension:name")
    return name.decode(errors="replace") if name else None


def _read(field: _Schema, array: _Array, i: int) -> Column:
    extension = _extension(field)
    if extension and not field.dictionary and _core.type_of(field.format.decode(), extension)[1] != _core.type_of(field.format.decode())[1]:
        return Unread.of(field.format.decode(), extension)
    try:
        return _column(field, array.children[i][0], array.offset, array.length)
    except (TypeError, KeyError):
        return Unread.of((field.dictionary[0] if field.dictionary else field).format.decode())


def _checked(stream: _Stream, code: int) -> None:
    if code:
        why = stream.get_last_error(stream)
        raise InputError(f"the table cannot be read: {(why or b'').decode(errors='replace')}", "look at where it comes from")


def table(source: Any) -> tuple[list[str], list[Column], int]:
    """All of a table: names, columns, number of rows."""
    names: list[str] = []
    parts: list[list[Column]] = []
    rows = 0
    for names, columns in batches(source):
        parts.append(columns)
        rows += next((len(column) for column in columns if isinstance(column, np.ndarray)), 0)
    if not parts:
        capsule = source.__arrow_c_stream__()
        stream, schema = _Stream.from_address(_pointer(capsule)), _Schema()
        _checked(stream, stream.get_schema(stream, schema))
        names = [(schema.children[i][0].name or b"").decode() for i in range(schema.n_children)]
        schema.release(schema)
        stream.release(stream)
        return names, [np.zeros(0) for _ in names], 0
    unread = ([part for part in column if isinstance(part, Unread)] for column in zip(*parts))
    return names, [part[0] if part else np.concatenate(column) for part, column in zip(unread, zip(*parts))], rows
