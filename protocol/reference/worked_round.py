"""Writes "One round in numbers" of the specification anew: `python3 worked_round.py session_3.json spec.md`."""

import json
import pathlib
import sys

from shamir import from_bytes, recover, to_bytes
from suite import stream


def word(data):
    return int.from_bytes(data[:8], "little")


def section(session):
    frames = {name: bytes.fromhex(data) for name, data in session["frames"].items()}
    rounds = [r for r in session["rounds"] if (r["deck"], r["slot"]) == (0, 0)]
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
        f1=shares[0].hex(), f2=shares[1].hex(), f3=shares[2].hex(),
        b=to_bytes(b).hex(), s1=rounds[1]["self_key"], stream=stream_bytes(rounds[1]["self_key"])[:8].hex(),
        words="\n".join(lines), total=sums[0].to_bytes(8, "little").hex(),
    )  # fmt: skip


def stream_bytes(key):
    return stream(bytes.fromhex(key), 1)[0].to_bytes(8, "little")


TEXT = """\
### 10.8 One round in numbers

The first round of [`vectors/v4/session_3.json`](vectors/v4/session_3.json), which has every byte of its frames: three sites,
t = 3, nobody missing, five words, of which the first is followed. `reference/worked_round.py` writes this section, which is not
normative.

*The self-mask of site 1.* The `Unmask` frames bring three shares of its b, at x = 1, 2, 3. Lagrange's interpolation at zero
gives b = 3·f(1) − 3·f(2) + f(3) modulo ℓ; all as 32 bytes, least significant first:

```text
f(1)     {f1}   `shares`, second, of site 0
f(2)     {f2}   `shares`, second, of site 1
f(3)     {f3}   `shares`, second, of site 2
b        {b}   fits the commitment of [KEX-2]
s(1)     {s1}   derive(b, "self-mask"; ctx)
stream   {stream}                                                   its first word
```

*The total.* Words are numbers in hexadecimal, on the wire in reverse order. Every line adds up to its y ([MSK-3]):

| site | x | stream(s) | stream(k(0, 1)) | stream(k(0, 2)) | stream(k(1, 2)) | y |
|---|---|---|---|---|---|---|
{words}

Every stream of a k occurs once with + and once with −. What remains is Σ y − Σ stream(s) = Σ x, as bytes `{total}`. The
aggregator knows the columns y and stream(s) alone; with `Opening` every site knows their sums.

"""


def main():
    session, spec = sys.argv[1], pathlib.Path(sys.argv[2])
    text = spec.read_text()
    start, end = text.index("### 10.8 "), text.index("\n## 12.") + 1
    spec.write_text(text[:start] + section(json.loads(pathlib.Path(session).read_text())) + text[end:])


if __name__ == "__main__":
    main()
