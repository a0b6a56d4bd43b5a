#!/usr/bin/env python3
"""An answerer for DuckDB, in two pages: `duckdb_answerer.py DATABASE TABLE`, or `duckdb_answerer.py :memory: "'rows/*.parquet'"`.

The sums are computed in SQL. `veilsum.engines` speaks the contract (docs/src/answerers.md); what is left is to find the rows and to write
the definition of a sum (protocol/door.md, section 21) in the words of the database. Copy it for a database of yours. Three rules make the words
come out the same as everywhere:

* every operation is one of doubles, in the order of the specification, and none of them is fused with another;
* (g + M) - M with M = 1.5 * 2^(52 - f) is g rounded to the step 2^-f, to nearest and ties to even: what a database's ROUND makes of ties differs;
* integers are added, never doubles: the order of the rows and the number of threads do not count then.
"""

import math
import sys

import duckdb
from veilsum.answerer import serve
from veilsum.engines import Engine, Opened, Refused


# Of log2((1 + z) / (1 - z)) in odd powers of z, and of 2^f.
OF_LOG = [2 * math.log2(math.e) / (2 * i + 1) for i in range(11)]
OF_EXP = [1.0]
for i in range(1, 14):
    OF_EXP.append(OF_EXP[-1] * math.log(2) / i)
HALF = math.sqrt(0.5)


def number(x):
    """A constant. A bare 0.1 would be a decimal."""
    return f"CAST('{x!r}' AS DOUBLE)"


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def text(word):
    return "'" + word.replace("'", "''") + "'"


def added(items):
    """From the left."""
    return " + ".join(items)


def clipped(x, low, high):
    return f"LEAST(GREATEST({x}, {number(low)}), {number(high)})"


def powers(names, to, exponent):
    """Parts of a WITH that end with the powers of columns, by the operations of the specification: those of the machine's library differ in the
    last bit. Of its own functions only whole powers of 2 count, which are exact, and a guess of an exponent, which is put right."""

    def polynomial(x, coefficients):
        text = number(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            text = f"({text} * {x} + {number(coefficient)})"
        return text

    def part(expression, name):
        return f"SELECT *, {', '.join(f'{expression(i, x)} AS {to}_{name}{i}' for i, x in enumerate(names))} FROM {{before}}"

    def cases(low, high, other):
        return lambda i, x: "CASE WHEN {b} < {h} THEN {low} WHEN {b} >= {h2} THEN {high} ELSE {other} END".format(
            b=f"{to}_b{i}", h=number(HALF), h2=number(2 * HALF), low=low.format(i), high=high.format(i), other=other.format(i)
        )

    one, two, half = number(1.0), number(2.0), number(0.5)
    yield part(lambda i, x: f"CASE WHEN {x} > 0 THEN round(log2({x})) ELSE {number(0.0)} END", "g")
    yield part(lambda i, x: f"{x} * pow({two}, -{to}_g{i})", "b")
    yield part(cases(f"{to}_g{{}} - {one}", f"{to}_g{{}} + {one}", f"{to}_g{{}}"), "w")
    yield part(cases(f"{to}_b{{}} * {two}", f"{to}_b{{}} * {half}", f"{to}_b{{}}"), "c")
    yield part(lambda i, x: f"({to}_c{i} - {one}) / ({to}_c{i} + {one})", "z")
    yield part(lambda i, x: f"{to}_z{i} * {to}_z{i}", "y")
    log2 = lambda i: f"({to}_w{i} + {to}_z{i} * {polynomial(f'{to}_y{i}', OF_LOG)})"  # noqa: E731
    yield part(lambda i, x: f"GREATEST({log2(i)} * {number(exponent)}, {number(-1022.0)})", "t")
    near = number(1.5 * 2.0**52)
    yield part(lambda i, x: f"(({to}_t{i} + {near}) - {near})", "n")
    yield part(lambda i, x: f"{to}_t{i} - {to}_n{i}", "f")
    power = [f"pow({two}, {to}_n{i}) * {polynomial(f'{to}_f{i}', OF_EXP)}" for i in range(len(names))]
    yield f"SELECT *, {', '.join(f'CASE WHEN {x} > 0 THEN {power[i]} ELSE {number(0.0)} END AS {to}{i}' for i, x in enumerate(names))} FROM {{before}}"


class DuckDB(Engine):
    kinds = ["fuzzy_sums", "local_means", "moments"]

    def __init__(self, database, table):
        super().__init__("duckdb_answerer.py")
        self.table = table
        try:
            self.db = duckdb.connect(database, read_only=database != ":memory:")
        except duckdb.Error:
            raise Refused("connection", f"the database {database} cannot be opened", "say where it is, and let no other process write to it")

    # ---- Rows

    def open(self, hello):
        """Keeps the rows as they are now, in working units: nobody can change a temporary table of ours."""
        if hello["scaling"] == "direction":
            raise Refused("kind", "directions are not offered here", "ask for a plan without scale=direction")
        try:
            known = {row[0] for row in self.db.execute(f"DESCRIBE SELECT * FROM {self.table}").fetchall()}
        except duckdb.Error:
            raise Refused("connection", "the table cannot be read", "give its name, or what stands behind FROM, as the second argument")
        names = [c["name"] for c in hello["columns"]] + [c["column"] for c in hello["categorical"]]
        missing = [name for name in names if name not in known]
        if missing:
            raise Refused("columns", "there is no column " + ", ".join(map(repr, missing)), "add it to the table, or make a view that has it")
        working, bad, values = [], [], []
        noise = hello.get("noise", False)
        for c in hello["columns"]:
            # Under noise what is no number takes its row out, and stops nothing.
            x, low, high = f"{'TRY_CAST' if noise else 'CAST'}({quoted(c['name'])} AS DOUBLE)", c["lower"], c["upper"]
            # What the rows are known by is the value, however it is written: 1 is 1.0, and -0.0 is 0.0.
            values.append(f"CAST({x} + {number(0.0)} AS VARCHAR)")
            if hello["out_of_box"] == "refuse":
                bad.append(f"NOT COALESCE({x} BETWEEN {number(low)} AND {number(high)}, FALSE)")
            else:
                bad.append(f"NOT COALESCE(isfinite({x}), FALSE)")
                x = clipped(x, low, high)
            working.append(f"({x} - {number(low)}) / ({number(high)} - {number(low)})" if hello["scaling"] == "box" else x)
        for c in hello["categorical"]:
            own = f"CAST({quoted(c['column'])} AS VARCHAR)"
            values.append(own)
            if noise and "other" in c["categories"]:
                own = f"CASE WHEN {own} = '' THEN NULL WHEN {own} NOT IN ({', '.join(map(text, c['categories']))}) THEN 'other' ELSE {own} END"
            bad.append(f"NOT COALESCE({own} IN ({', '.join(map(text, c['categories']))}), FALSE)")
            working += [f"CASE WHEN {own} = {text(word)} THEN {number(c['one'])} ELSE {number(0.0)} END" for word in c["categories"]]
        self.d = len(working)
        columns = ", ".join(f"{x} AS x{j}" for j, x in enumerate(working))
        columns += "".join(f", {value} AS c{i}" for i, value in enumerate(values))
        try:
            self.db.execute(f"CREATE TEMP TABLE kept AS SELECT {columns}, {' OR '.join(bad)} AS bad FROM {self.table}")
        except duckdb.Error:
            raise Refused("columns", "a column holds something that is no number", "make a view that has numbers there")
        # Neither the order of the rows must count nor that of the columns: sums of hashes, modulo 2^64, of columns in the order of their names.
        order = sorted(range(len(names)), key=names.__getitem__)
        hashed = [f"c{i}" for i in range(len(names))] + [f"concat({', '.join(f'length(c{i}), chr(58), c{i}' for i in order)})"]
        sums = [f"sum(CAST(md5_number_{half}({what}) AS HUGEINT)) FILTER (NOT bad)" for what in hashed for half in ("upper", "lower")]
        counts = "count(*) FILTER (NOT bad), count(*) FILTER (bad)"
        n, wrong, *rest = self.db.execute(f"SELECT {counts}, {', '.join(sums)} FROM kept").fetchone()
        halves = [int(half or 0) % 2**64 for half in rest]
        *columns, whole = [f"{n:016x}{upper:016x}{lower:016x}" for upper, lower in zip(halves[::2], halves[1::2])]
        reasons = {"a value that is no finite number, outside the plan's public box, or no category of it": wrong} if wrong else {}
        return Opened(n, reasons, whole, columns)

    # ---- Questions

    def words(self, question, blocks):
        source, words = "SELECT * FROM kept WHERE NOT bad", []
        if question["transform"]:
            source = self.moved(question["transform"])
        blocks = list(blocks)
        for query in question["queries"]:
            ((kind, of),) = query.items()
            words += getattr(self, kind)(source, of, blocks)
        return words

    def one(self, parts, sums):
        """Parts of a WITH, each from the one before it, and the integer sums over the last one."""
        chain = ",\n".join(f"s{i} AS ({part.format(before=f's{i - 1}')})" for i, part in enumerate(parts))
        row = self.db.execute(f"WITH {chain}\nSELECT {', '.join(sums)} FROM s{len(parts) - 1}").fetchone()
        return [int(word or 0) for word in row]

    @staticmethod
    def rounded(g, block):
        """The sum of g, rounded row by row to the step of a block."""
        f = block["fraction_bits"]
        m = number(1.5 * 2.0 ** (52 - f))
        return f"sum(CAST((({g}) + {m} - {m}) * {number(2.0**f)} AS BIGINT))"

    @staticmethod
    def counted(rows, block):
        return f"count(*) FILTER ({rows}) * {2 ** block['fraction_bits']}"

    @staticmethod
    def squares(centres, prefix="q"):
        """Squared distances q0, q1, ... to K centres of d coordinates."""
        d, values = centres["columns"], centres["values"]
        for k in range(centres["k"]):
            parts = [f"(x{j} - {number(c)}) * (x{j} - {number(c)})" for j, c in enumerate(values[k * d : (k + 1) * d])]
            yield f"{added(parts)} AS {prefix}{k}"

    def fuzzy_sums(self, source, of, blocks):
        k, m, sums, weights = of["centres"]["k"], of["m"], blocks.pop(0), blocks.pop(0)
        q = [f"q{c}" for c in range(k)]
        on = added(f"CASE WHEN {one} = 0 THEN 1 ELSE 0 END" for one in q)
        parts = [source, f"SELECT *, {', '.join(self.squares(of['centres']))} FROM {{before}}"]
        parts.append(f"SELECT *, LEAST({', '.join(q)}) AS least, CAST({on} AS DOUBLE) AS z FROM {{before}}")
        if m == 2.0:
            i = [f"CASE WHEN z > 0 THEN CASE WHEN {one} = 0 THEN 1.0 ELSE 0.0 END ELSE {number(1.0)} / {one} END AS i{c}" for c, one in enumerate(q)]
            parts.append(f"SELECT *, {', '.join(i)} FROM {{before}}")
            # On z centres the memberships are 1 / z, and i is 1 there: the same formula.
            parts.append(f"SELECT *, {number(1.0)} / ({added(f'i{c}' for c in range(k))}) AS v FROM {{before}}")
            parts.append(f"SELECT *, {', '.join(f'i{c} * v AS u{c}' for c in range(k))} FROM {{before}}")
            parts.append(f"SELECT *, {', '.join(f'u{c} * u{c} AS w{c}' for c in range(k))} FROM {{before}}")
        else:
            ratio = [f"CASE WHEN z > 0 THEN CASE WHEN {one} = 0 THEN 1.0 ELSE 0.0 END ELSE least / {one} END AS r{c}" for c, one in enumerate(q)]
            parts.append(f"SELECT *, {', '.join(ratio)} FROM {{before}}")
            parts += powers([f"r{c}" for c in range(k)], "p", 1.0 / (m - 1.0))
            parts.append(f"SELECT *, {added(f'p{c}' for c in range(k))} AS s FROM {{before}}")
            parts += powers(["s"], "v", -m)
            parts.append(f"SELECT *, CASE WHEN z > 0 THEN pow({number(1.0)} / z, {number(m)}) ELSE v0 END AS v FROM {{before}}")
            parts.append(f"SELECT *, {', '.join(f'p{c} * r{c} * v AS w{c}' for c in range(k))} FROM {{before}}")
        wanted = [self.rounded(f"w{c} * x{j}", sums) for c in range(k) for j in range(self.d)]
        return self.one(parts, wanted + [self.rounded(f"w{c}", weights) for c in range(k)])

    @classmethod
    def owners(cls, centres, prefix):
        """Parts that end with the lowest index of the nearest centre."""
        q = [f"{prefix}{k}" for k in range(centres["k"])]
        yield f"SELECT *, {', '.join(cls.squares(centres, prefix))} FROM {{before}}"
        yield f"SELECT *, LEAST({', '.join(q)}) AS {prefix}_least FROM {{before}}"
        first = " ".join(f"WHEN {one} = {prefix}_least THEN {k}" for k, one in enumerate(q))
        yield f"SELECT *, CASE {first} END AS {prefix}_own FROM {{before}}"

    def local_means(self, source, of, blocks):
        k, rows, sums, distances = of["centres"]["k"], blocks.pop(0), blocks.pop(0), blocks.pop(0)
        wanted = [self.counted(f"q_own = {c}", rows) for c in range(k)]
        wanted += [self.rounded(f"CASE WHEN q_own = {c} THEN x{j} ELSE 0.0 END", sums) for c in range(k) for j in range(self.d)]
        return self.one([source, *self.owners(of["centres"], "q")], wanted + [self.rounded("q_least", distances)])

    def moments(self, source, of, blocks):
        # A block for every column: its squares have bounds of their own.
        rows, sums = blocks.pop(0), [blocks.pop(0) for _ in range(self.d)]
        around = of["around"]
        gs = [f"x{j}" if around is None else f"(x{j} - {number(around[j])}) * (x{j} - {number(around[j])})" for j in range(self.d)]
        return self.one([source], [self.counted("TRUE", rows)] + [self.rounded(g, block) for g, block in zip(gs, sums)])

    def moved(self, transform):
        """Federated standardisation: clipped, shifted, multiplied, and kept in the box that follows."""
        lower, upper, shift, factor = (transform[key] for key in ("lower", "upper", "shift", "factor"))
        alone = len(factor) == self.d
        lines = [[(j, factor[j])] if alone else [(i, factor[j * (j + 1) // 2 + i]) for i in range(j + 1)] for j in range(self.d)]
        clip = ", ".join(f"{clipped(f'x{j}', lower[j], upper[j])} AS x{j}" for j in range(self.d))
        out = []
        for j, line in enumerate(lines):
            ends = [sorted([(lower[i] - shift[i]) * part, (upper[i] - shift[i]) * part]) for i, part in line]
            low = high = 0.0
            for least, most in ends:
                low, high = low + least, high + most
            x = added(f"(x{i} - {number(shift[i])}) * {number(part)}" for i, part in line)
            out.append(f"{clipped(x, low, high)} AS x{j}")
        return f"SELECT {', '.join(out)} FROM (SELECT {clip} FROM kept WHERE NOT bad)"


if __name__ == "__main__":
    try:
        serve(DuckDB(*sys.argv[1:]))
    except Refused as why:
        sys.exit(f"error: {why}\nnext: {why.document['next']}")
