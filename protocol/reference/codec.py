"""The encoding of everything but masked words (spec section 3).

A type is an object with `put(value) -> bytes` and `get(reader) -> value`. Values of a `Struct` are dicts in the order
of the fields, so that they can be printed as they are.
"""

import struct as _struct


class Refused(Exception):
    """A rule of the specification was broken: which one, and by which site where a site is at fault."""

    def __init__(self, rule, why="", culprit=None):
        super().__init__(f"{why} [{rule}]")
        self.rule, self.culprit = rule, culprit


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        # Compared before anything is sliced: a declared length allocates nothing ([ENC-2]).
        if n > len(self.data) - self.at:
            raise Refused("ENC-1", "the bytes end early")
        self.at += n
        return self.data[self.at - n : self.at]


class Int:
    def __init__(self, size, signed=False):
        self.size, self.signed = size, signed

    def put(self, v):
        return v.to_bytes(self.size, "little", signed=self.signed)

    def get(self, r):
        return int.from_bytes(r.take(self.size), "little", signed=self.signed)


class Double:
    def put(self, v):
        return _struct.pack("<d", v)

    def get(self, r):
        return _struct.unpack("<d", r.take(8))[0]


class Bool:
    def put(self, v):
        return bytes([v])

    def get(self, r):
        tag = r.take(1)[0]
        if tag > 1:
            raise Refused("ENC-1", "a bool other than 0 and 1")
        return tag == 1


class Raw:
    """N bytes, no length before them."""

    def __init__(self, n):
        self.n = n

    def put(self, v):
        assert len(v) == self.n
        return bytes(v)

    def get(self, r):
        return r.take(self.n)


class Blob:
    """`Vec<u8>`."""

    def put(self, v):
        return U64.put(len(v)) + bytes(v)

    def get(self, r):
        return r.take(U64.get(r))


class Text:
    def put(self, v):
        return BLOB.put(v.encode())

    def get(self, r):
        try:
            return BLOB.get(r).decode()
        except UnicodeDecodeError:
            raise Refused("ENC-1", "text that is not UTF-8") from None


class List:
    def __init__(self, item):
        self.item = item

    def put(self, v):
        return U64.put(len(v)) + b"".join(self.item.put(x) for x in v)

    def get(self, r):
        n, out = U64.get(r), []
        while len(out) < n:
            out.append(self.item.get(r))
        return out


class Option:
    def __init__(self, item):
        self.item = item

    def put(self, v):
        return b"\0" if v is None else b"\1" + self.item.put(v)

    def get(self, r):
        return self.item.get(r) if BOOL.get(r) else None


class Struct:
    def __init__(self, **fields):
        self.fields = fields

    def put(self, v):
        assert list(v) == list(self.fields), f"{list(v)} where {list(self.fields)} belong"
        return b"".join(t.put(v[name]) for name, t in self.fields.items())

    def get(self, r):
        return {name: t.get(r) for name, t in self.fields.items()}


class Enum:
    """A value is a pair: the variant's name and its fields."""

    def __init__(self, **variants):
        self.names, self.types = list(variants), list(variants.values())

    def put(self, v):
        i = self.names.index(v[0])
        return U32.put(i) + self.types[i].put(v[1])

    def get(self, r):
        i = U32.get(r)
        if i >= len(self.names):
            raise Refused("ENC-1", "an unknown variant")
        return self.names[i], self.types[i].get(r)


U8, U16, U32, U64 = Int(1), Int(2), Int(4), Int(8)
I16, F64, BOOL, BLOB, TEXT = Int(2, signed=True), Double(), Bool(), Blob(), Text()
HASH, NOTHING = Raw(32), Struct()


def encode(kind, value):
    return kind.put(value)


def decode(kind, data, limit):
    """Exactly one value from all the bytes, and canonical ([ENC-1]), none longer than the limit ([ENC-2])."""
    if len(data) > limit:
        raise Refused("ENC-2", f"{len(data)} bytes where at most {limit} are allowed")
    r = Reader(data)
    value = kind.get(r)
    if r.at != len(data):
        raise Refused("ENC-1", "bytes are left over")
    if kind.put(value) != data:
        raise Refused("ENC-1", "not canonical")
    return value
