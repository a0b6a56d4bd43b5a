"""Writes "One round, byte by byte" of the specification anew: `python3 worked_round.py session_3.json spec.md`."""

import json
import pathlib
import sys

from shamir import from_bytes, recover, to_bytes
from suite import stream

ASK, INPUT, SURVIVORS, UNMASK, OPENING = (
    "020 Ask", "022 MaskedInput of site 1", "024 Survivors", "026 Unmask of site 1", "028 Opening",
)  # fmt: skip


class Table:
    """The rows of one frame."""

    def __init__(self, name, data):
        self.data, self.at, self.rows = data, 0, [f"`{name}`, {len(data)} bytes:", "", HEAD, "|---|---|---|---|---|"]

    def row(self, length, field, meaning):
        part = self.data[self.at : self.at + length]
        shown = f"{part[:6].hex()} … {part[-6:].hex()}" if length > 20 else part.hex(" ")
        self.rows.append(f"| {self.at} | {length} | `{shown}` | {field} | {meaning} |")
        self.at += length
        return part

    def begin(self, kind, name, context, named="ctx ([RND-1])"):
        self.row(2, "wire version", "4")
        self.row(2, "kind", f"{kind}, `{name}`")
        self.row(4, "length of the body", f"{len(self.data) - 8} = 32 + {len(self.data) - 104} + 64")
        assert self.row(32, "context", named) == context

    def list(self, field, what, entries):
        number = int.from_bytes(self.row(8, f"`{field}`, number", what), "little")
        assert number == entries, (field, number)

    def end(self, whose):
        self.row(32, "signature, R", whose)
        self.row(32, "signature, S", "the same")
        assert self.at == len(self.data)
        return "\n".join(self.rows)


HEAD = "| offset | bytes | hex | field | meaning |"


def tables(frames, ctx):
    t = Table(ASK, frames[ASK])
    t.begin(10, "Ask", ctx)
    t.row(4, "`deck`", "the first deck")
    t.row(2, "`slot`", "its first slot")
    t.list("cohort", "3 sites", 3)
    for s in range(3):
        t.row(2, "`cohort`", f"site {s}")
    t.row(4, "`words`", "a vector of 5")
    t.row(32, "`previous_context`", "zeros: there was no round before")
    t.row(32, "`previous_total`", "zeros")
    t.list("query", "5 bytes", 5)
    t.row(5, "`query`", "`first` in ASCII; the core does not read it")
    yield t.end("the coordinator's")

    t = Table(INPUT, frames[INPUT])
    t.begin(11, "MaskedInput", ctx)
    t.row(32, "commitment", "to the words below ([OPN-1])")
    for i in range(5):
        t.row(8, f"word {i}", "y of site 1, followed below" if i == 0 else "y")
    yield t.end("site 1's; stands again in `Survivors` and in `Opening`")

    t = Table(SURVIVORS, frames[SURVIVORS])
    t.begin(12, "Survivors", ctx)
    t.list("alive", "3 sites", 3)
    for s in range(3):
        t.row(2, "`alive`", f"site {s}")
    t.list("inputs", "3 proofs", 3)
    for s in range(3):
        t.row(32, "`inputs`, rest hash", f'H("input"; commitment of site {s}, H("masked"; its words))')
        t.row(64, "`inputs`, signature", f"the last 64 bytes, 112 to 175 of the `MaskedInput` of site {s}")
    yield t.end("the coordinator's")

    t = Table(UNMASK, frames[UNMASK])
    t.begin(15, "Unmask", frames[UNMASK][8:40], "of the survivors and their inputs ([CON-2])")
    t.list("shares", "3 shares", 3)
    for s in range(3):
        own = ": its own" if s == 1 else ""
        t.row(32, "`shares`", f"the share of b of site {s} that site 1 holds, at x = 2{own}")
    yield t.end("site 1's")

    t = Table(OPENING, frames[OPENING])
    t.begin(17, "Opening", ctx)
    t.list("alive", "3 sites", 3)
    for s in range(3):
        t.row(2, "`alive`", f"site {s}")
    t.list("inputs", "3 inputs", 3)
    for s in range(3):
        t.row(32, "`inputs`, commitment", f"bytes 40 to 71 of the `MaskedInput` of site {s}")
        t.row(32, "`inputs`, hash", f'H("masked"; the words of site {s})')
        t.row(64, "`inputs`, signature", f"the last 64 bytes of the `MaskedInput` of site {s}")
    t.list("seeds", "3 self-mask seeds", 3)
    for s in range(3):
        t.row(32, "`seeds`", f"b of site {s}" + (", followed below" if s == 1 else ""))
    t.list("others", "every member survived", 0)
    t.list("checks", "nobody is missing", 0)
    t.list("agreed", "3 sites, t of them", 3)
    for s in range(3):
        t.row(2, "`agreed`, site", f"site {s}")
        t.row(32, "`agreed`, rest hash", f'H("rest"; the message of the `Unmask` of site {s})')
        t.row(64, "`agreed`, signature", f"the last 64 bytes of the `Unmask` of site {s}")
    t.list("low", "5 words", 5)
    for i in range(5):
        t.row(8, "`low`", f"lower 64 bits of the sum of word {i}")
    t.list("high", "5 words", 5)
    for i in range(5):
        t.row(2, "`high`", f"how often the sum of word {i} ran over")
    yield t.end("the coordinator's")


def word(data):
    return int.from_bytes(data[:8], "little")


def section(session):
    frames = {name: bytes.fromhex(data) for name, data in session["frames"].items()}
    rounds = [r for r in session["rounds"] if (r["deck"], r["slot"]) == (0, 0)]
    ctx = bytes.fromhex(rounds[0]["context"])
    shares = [frames[f"0{25 + s} Unmask of site {s}"][80:112] for s in range(3)]
    b = recover({s: from_bytes(x) for s, x in enumerate(shares)})
    own = {r["site"]: word(stream_bytes(r["self_key"])) for r in rounds}
    lines, sums = [], [0, 0, 0]
    for r in rounds:
        s, x = r["site"], word(bytes.fromhex(r["x"]))
        y = word(frames[f"0{21 + s} MaskedInput of site {s}"][72:])
        cells = []
        for low, high in ((0, 1), (0, 2), (1, 2)):
            other = {low: high, high: low}.get(s)
            key = None if other is None else r["round_seeds"][str(other)]
            sign = "+" if s == low else "−"
            cells.append(f" {sign} `{word(stream_bytes(key)):016x}` " if key else "  ")
        lines.append(f"| {s} | `{x:016x}` | + `{own[s]:016x}` |{'|'.join(cells)}| `{y:016x}` |")
        sums = [(a + v) % 2**64 for a, v in zip(sums, (x, own[s], y))]
    lines.append(f"| sum | `{sums[0]:016x}` | `{sums[1]:016x}` | | | | `{sums[2]:016x}` |")
    return TEXT.format(
        tables="\n\n".join(tables(frames, ctx)), f1=shares[0].hex(), f2=shares[1].hex(), f3=shares[2].hex(),
        b=to_bytes(b).hex(), s1=rounds[1]["self_key"], stream=stream_bytes(rounds[1]["self_key"])[:8].hex(),
        words="\n".join(lines), total=sums[0].to_bytes(8, "little").hex(),
    )  # fmt: skip


def stream_bytes(key):
    return stream(bytes.fromhex(key), 1)[0].to_bytes(8, "little")


TEXT = """\
### 10.8 One round, byte by byte

This section shows the first round of [`vectors/v4/session_3.json`](vectors/v4/session_3.json). It has three sites, t = 3,
nobody missing, and a vector of five words. Each frame has the same name in the vector as here. A field of more than 20 bytes
is shown by its first and last six. Sites 0 and 2 send frames like those of site 1. This section explains and is not normative;
`reference/worked_round.py` writes it.

{tables}

**The self-masks.** Three `Unmask` frames bring three shares of every b, at x = 1, 2, 3. With t = 3, Lagrange's interpolation
at zero gives b = 3·f(1) − 3·f(2) + f(3) modulo ℓ. For site 1 these are, as 32 bytes, least significant first:

```text
f(1)     {f1}   `shares`, second, of site 0
f(2)     {f2}   `shares`, second, of site 1
f(3)     {f3}   `shares`, second, of site 2
b        {b}   fits the commitment of [KEX-2]
s(1)     {s1}   derive(b, "self-mask"; ctx)
stream   {stream}                                                   its first word
```

**The total.** The table has word 0 of all three sites, as numbers modulo 2^64 in hexadecimal; on the wire the bytes are in reverse
order. Every line adds up to its y, which the site computes by [MSK-3]; the lower number adds.

| site | x | stream(s) | stream(k(0, 1)) | stream(k(0, 2)) | stream(k(1, 2)) | y |
|---|---|---|---|---|---|---|
{words}

In the sum of the lines every stream of a k occurs once with + and once with −. What remains is Σ y − Σ stream(s) = Σ x,
which is `{total}` as bytes: the first word of the total. The aggregator knows the columns y and stream(s), and no other
column. With `Opening` every site knows their sums.

"""


def main():
    session, spec = sys.argv[1], pathlib.Path(sys.argv[2])
    text = spec.read_text()
    start, end = text.index("### 10.8 "), text.index("\n## 12.") + 1
    spec.write_text(text[:start] + section(json.loads(pathlib.Path(session).read_text())) + text[end:])


if __name__ == "__main__":
    main()
