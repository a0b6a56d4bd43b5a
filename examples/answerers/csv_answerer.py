#!/usr/bin/env python3
"""An answerer for a CSV file, in one page and without a library: `csv_answerer.py ROWS.csv`. See docs/src/answerers.md."""
import csv, hashlib, json, math, sys

KINDS = ["fuzzy_sums", "moments"]


class Refused(Exception):
    def __init__(self, code, message, next):
        self.code, self.message, self.next = code, message, next


def open_rows(path, hello):
    """The rows in working units, and what `ready` says of them."""
    if hello["protocol"] != 1:
        raise Refused("version", "this answerer speaks version 1", "install one of the site's release")
    if hello["scaling"] == "direction":
        raise Refused("kind", "directions are not offered here", "ask for a plan without scale=direction")
    numbers, names = hello["columns"], hello["categorical"]
    header = [c["name"] for c in numbers] + [c["column"] for c in names]
    rows, bad, raw = [], {}, []
    with open(path, newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        missing = [name for name in header if name not in (table.fieldnames or [])]
        if missing:
            raise Refused("columns", "there is no column " + ", ".join(map(repr, missing)), "add it to the file")
        for line in table:
            row, own, reason = [], {}, None
            for c in numbers:
                try:
                    x = float(line[c["name"]])
                except ValueError:
                    reason = reason or "no number in " + repr(c["name"])
                    continue
                own[c["name"]] = x + 0.0  # -0.0 is 0.0
                if not c["lower"] <= x <= c["upper"]:  # also what is no finite number
                    if hello["out_of_box"] == "refuse" or not math.isfinite(x):
                        reason = reason or "a value outside the plan's public box in " + repr(c["name"])
                        continue
                    x = min(max(x, c["lower"]), c["upper"])
                row.append((x - c["lower"]) / (c["upper"] - c["lower"]) if hello["scaling"] == "box" else x)
            for c in names:
                name = own[c["column"]] = line[c["column"]]
                if hello.get("noise") and name and name not in c["categories"] and "other" in c["categories"]:
                    name = "other"
                if name not in c["categories"]:
                    reason = reason or "an unknown category in " + repr(c["column"])
                row += [c["one"] if name == category else 0.0 for category in c["categories"]]
            if reason:
                bad[reason] = bad.get(reason, 0) + 1
            else:
                rows.append(row)
                raw.append([own[name] for name in sorted(header)])
    digest = lambda what: hashlib.sha256(json.dumps(what).encode()).hexdigest()
    columns = [[row[sorted(header).index(name)] for row in raw] for name in header]
    return rows, {
        "type": "ready", "protocol": 1, "name": "csv_answerer.py", "version": "1", "rows": len(rows), "bad": bad,
        # Sorted: the order of the rows must not count, nor that of the columns. Values are those of the file, whatever the plan's bounds.
        "fingerprint": {"rows": digest(sorted(raw)), "columns": [digest(sorted(column)) for column in columns]},
        "kinds": KINDS,
    }


def moved(transform, rows):
    """Federated standardisation: clipped, shifted, multiplied, and kept in the box that follows."""
    if transform is None:
        return rows
    lower, upper, shift, factor = (transform[key] for key in ("lower", "upper", "shift", "factor"))
    d = len(shift)
    if len(factor) == d:
        lines = [[(j, factor[j])] for j in range(d)]
    else:
        lines = [[(i, factor[j * (j + 1) // 2 + i]) for i in range(j + 1)] for j in range(d)]
    ends = []
    for line in lines:
        least = most = 0.0
        for i, part in line:
            a, b = (lower[i] - shift[i]) * part, (upper[i] - shift[i]) * part
            least, most = least + min(a, b), most + max(a, b)
        ends.append((least, most))
    out = []
    for row in rows:
        x = [min(max(v, lower[i]), upper[i]) for i, v in enumerate(row)]
        out.append([min(max(added((x[i] - shift[i]) * part for i, part in line), low), high)
                    for line, (low, high) in zip(lines, ends)])
    return out


def added(items):
    """From the left, as the specification adds: sum() of newer versions of Python compensates."""
    items = iter(items)
    total = next(items)
    for item in items:
        total = total + item
    return total


def squares(x, centres):
    return [added((a - b) * (a - b) for a, b in zip(x, centre)) for centre in centres]


def weights(q, m):
    """u^m of one row for every centre."""
    on = [k for k, square in enumerate(q) if square == 0.0]
    if on:
        return [(1.0 / len(on)) ** m if k in on else 0.0 for k in range(len(q))]
    if m == 2.0:
        inverse = [1.0 / square for square in q]
        v = 1.0 / added(inverse)
        return [(i * v) * (i * v) for i in inverse]
    ratio = [min(q) / square for square in q]
    r = [1.0 if part == 1.0 else part ** (1.0 / (m - 1.0)) for part in ratio]
    scale = 1.0 / added(r) ** m
    return [a * b * scale for a, b in zip(r, ratio)]


def contributions(query, rows):
    """Of every row what it adds to each word, in working units."""
    (kind, of), = query.items()
    if kind == "fuzzy_sums":
        centres = matrix(of["centres"])
        for x in rows:
            w = weights(squares(x, centres), of["m"])
            yield [a * b for a in w for b in x] + w
    elif kind == "moments":
        around = of["around"]
        for x in rows:
            yield [1.0] + (x if around is None else [(a - b) * (a - b) for a, b in zip(x, around)])


def matrix(centres):
    """K rows of d coordinates."""
    d, values = centres["columns"], centres["values"]
    return [values[i:i + d] for i in range(0, len(values), d)]


def answer(rows, ask):
    kinds = [kind for query in ask["question"]["queries"] for kind in query]
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise Refused("kind", "not answered here: " + ", ".join(unknown), "ask only what `ready` lists")
    rows = moved(ask["question"]["transform"], rows)
    steps = [2.0 ** block["fraction_bits"] for block in ask["blocks"] for _ in range(block["len"])]
    words = []
    for query in ask["question"]["queries"]:
        total = None
        for one in contributions(query, rows):
            total = total or [0] * len(one)
            # round() of a float is to nearest, ties to even, and the sum is one of integers: its order does not count.
            for i, g in enumerate(one):
                total[i] += round(g * steps[len(words) + i])
        words += total or []
    if len(words) != len(steps):
        raise Refused("protocol", "the blocks are not those of the question", "keep to the contract")
    return words


def main(path):
    ready = rows = None
    for line in sys.stdin.buffer:
        said = {}
        try:
            try:
                said = json.loads(line)
                kind = said["type"]
                if kind == "end":
                    return
                if kind == "hello":
                    if ready:
                        raise Refused("protocol", "`hello` comes once", "start another process")
                    rows, ready = open_rows(path, said)
                    reply = ready
                elif kind == "ask" and ready:
                    words = [w if abs(w) < 2**53 else str(w) for w in answer(rows, said)]
                    reply = {"type": "answer", "id": said["id"], "rows": ready["rows"], "bad": sum(ready["bad"].values()),
                             "fingerprint": ready["fingerprint"]["rows"], "words": words}
                else:
                    raise Refused("protocol", "this line does not come here", "keep to the contract")
            except (ValueError, KeyError, TypeError, IndexError, UnicodeDecodeError, AttributeError):
                raise Refused("protocol", "a line is no object of the contract", "keep to the contract")
        except Refused as why:
            reply = {"type": "error", "code": why.code, "message": why.message, "next": why.next}
            if isinstance(said, dict) and said.get("type") == "ask" and "id" in said:
                reply["id"] = said["id"]
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
