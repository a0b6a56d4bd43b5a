"""Measures part by part and keeps raw numbers: called by `benches/peers/run`, which builds and installs what this needs.

    python measure.py [--quick] FOLDER [PART ...]

Each part is a function below; its numbers go to FOLDER/parts/PART.json (FOLDER/quick/PART.json). Times are in seconds where nothing else is said.
What cannot be measured is kept as {"skipped": why}.
"""

import json
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
ARGS = [word for word in sys.argv[1:] if word != "--quick"]
QUICK = "--quick" in sys.argv[1:]
WORK = Path(ARGS[0])
TARGET = Path(os.environ["CARGO_TARGET_DIR"]) / ("debug" if QUICK else "release")
#: No program is waited for longer than this, in seconds.
PATIENCE = 900


class Failed(Exception):
    """A program that did not do what it should: the reason, for the page."""


def output(*command, **env):
    """What a command prints."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **env}, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Failed(f"{Path(words[0]).name}: {e}") from e
    if done.returncode:
        print(f"{' '.join(words)}:\n{done.stderr[-3000:]}", file=sys.stderr)
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        # Of a trace of Java or Python the line that names the error.
        named = [line for line in said if re.match(r"[:\w. ]*(Error|Exception|error)\b", line)]
        raise Failed(f"{Path(words[0]).name}: {(named or said)[-1][:200]}")
    return done.stdout


def kept(measure, *args):
    """What a measurement gives, or why it gives nothing: one program that is missing keeps nobody else from being measured."""
    try:
        return measure(*args)
    except Failed as e:
        why = str(e)
    except Exception as e:
        # What a program printed is not what it printed when this was written, a package is not there, or this has a defect.
        traceback.print_exc()
        why = f"{type(e).__name__}: {e}"
    print(f"  not measured: {why}", flush=True)
    return {"skipped": why}


def bench(name, *args):
    """The output of one of our benches, which cargo built under a name of its own."""
    for line in (WORK / "built.json").read_text().splitlines():
        built = json.loads(line)
        if built.get("executable") and built["target"]["name"] == name and "bench" in built["target"]["kind"]:
            return output(built["executable"], "--bench", *args)
    raise Failed(f"the bench {name} was not built")


def example(name, *args):
    return output(TARGET / "examples" / name, *args)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def numbers(text):
    return [float(line) for line in text.split()]


def loop():
    """Seconds of a fixed loop: how steady the machine was."""
    begun, value = time.perf_counter(), 1
    for i in range(2_000_000):
        value = (value * 31 + i) & 0xFFFFFFFF
    return time.perf_counter() - begun


def limits():
    """What this machine can do at most on one thread."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    size, length, turns = (300, 1 << 20, 3) if QUICK else (1500, 1 << 25, 7)
    with threadpool_limits(1):
        a = np.random.default_rng(1).random((size, size))
        a @ a
        flops = []
        for _ in range(turns):
            begun = time.perf_counter()
            a @ a
            flops.append(2 * size**3 / (time.perf_counter() - begun))
    big, to = np.zeros(length), np.ones(length)
    rates = []
    for _ in range(turns):
        begun = time.perf_counter()
        np.copyto(to, big)
        rates.append(2 * big.nbytes / (time.perf_counter() - begun))

    def ciphers():
        aes = output("openssl", "speed", "-elapsed", "-seconds", "1", "-bytes", "16384", "-evp", "aes-128-ctr")
        found = re.search(r"(?i)aes-128-ctr\s+([\d.]+)k", aes)
        if not found:
            raise Failed("openssl speed says nothing of aes-128-ctr")
        return 1e3 * float(found[1])

    return {"flops": flops, "copied": rates, "aes": kept(ciphers)}


def sums():
    """Local sums of every program against ours in the same process: those that share an environment, then the one that has its own."""
    size = (20_000, 16, 10, 2) if QUICK else (1_000_000, 16, 10, 5)
    found = lines(output(sys.executable, HERE / "sums.py", *size))
    found = [one for one in found if one["program"] != "fuzzy-c-means"]

    def older():
        return lines(output(WORK / "older/bin/python", HERE / "sums.py", *size, "fuzzy-c-means"))

    beside = kept(older)
    if isinstance(beside, dict):
        found.append({"program": "fuzzy-c-means", **beside})
    else:
        ours = next(one["seconds"] for one in beside if one["program"] == "veilsum")
        found += [{**one, "ours": ours} for one in beside if one["program"] == "fuzzy-c-means"]
    return {"rows": size[0], "columns": size[1], "clusters": size[2], "programs": found}


def kernel():
    """Ours against the operations alone, and a sweep."""
    text = example("kernel_speed", 20_000 if QUICK else 1_000_000)
    found = {}
    for line in text.splitlines():
        if line.startswith("operations alone"):
            found["of limit, %"] = float(re.search(r"reaches (\d+) %", line)[1])
        elif line.startswith("K = 2 to 9"):
            found["sweep"] = re.search(r"ratio (.+)$", line)[1]
    return {"text": text, **found}


def simulated(sites, length, share, rounds, *options):
    text = output(
        TARGET / "veilsum-lab", "simulate", "--json", "--rounds", rounds, "--sites", sites, "--length", length, "--drop", share, *options
    )
    return json.loads(text)


def secure():
    """Secure sums beside those of Flower. Processor time on both sides.

    A round of ours is the first of a federation: the missing leave in it, and its opening is in it. Its part of the keys is that of a deck of 16
    slots; ours make them once for a deck, Flower's for every round. The time of all sites, and of all clients of Flower, is divided by the number
    of those that stay to the end: the others do half of a round, or nothing but keys."""
    sites, length, turns, slots = (20, 20, 2, 4) if QUICK else (100, 100, 3, 16)
    missing = sites // 10
    staying = sites - missing
    found = {"sites": sites, "length": length, "missing": missing, "slots": slots}
    for name, options in (("opened", []),):
        deck = simulated(sites, length, missing / sites, slots // 2, *options)["deck"]
        rounds = [simulated(sites, length, missing / sites, 1, *options)["rounds"][0] for _ in range(turns)]
        found[name] = {
            "site": [(one["site_ms"] + deck["site_ms"] / slots) / 1e3 * sites / staying for one in rounds],
            "coordinator": [(one["aggregator_ms"] + deck["aggregator_ms"] / slots) / 1e3 for one in rounds],
            "deck of a site": deck["site_ms"] / 1e3,
        }
    found["flower"] = kept(lambda: json.loads(output(WORK / "flower/bin/python", HERE / "flower.py", sites, length, missing, turns)))
    return found


def deck():
    """What a deck's keys cost a site for each other one, against what it cannot do without: one X25519 and one ML-KEM operation."""
    sites, turns = (10, 20) if QUICK else (100, 400)
    floor, found = [], []
    for _ in range(2 if QUICK else 3):
        floor += numbers(example("counts", "deck-pair", turns))
        found.append(simulated(sites, 100, 0, 8)["deck"]["site_ms"] / 1e3 / (sites - 1))
    return {"sites": sites, "slots": 16, "floor": [one / 2e6 for one in floor], "for each other": found}


def ratio():
    """A masked round against an unmasked one."""
    if QUICK:
        text = {"100": bench("masked_ratio", "--rows", "100")}
    else:
        text = {"5,000": bench("masked_ratio"), "100,000": bench("masked_ratio", "--rows", "100000")}
    lines = {rows: re.search(r"wall time of a round, ms\s+(.+?\))\s+(.+?\))\s+(.+?\))", out).groups() for rows, out in text.items()}
    return {"text": text, "rounds": {rows: dict(zip(("masked", "unmasked", "ratio"), line)) for rows, line in lines.items()}}


def prio():
    """Proofs that entries are bounded: of as many numbers as `secure` has, and of more."""
    return {"proofs": lines(output(TARGET / "two-aggregators", "--json", *([20] if QUICK else [100, 1_000, 10_000])))}


def spark():
    """A round of ours in Spark's executors against one of Spark's own k-means."""
    size = (20_000, 4, 3, "local-cluster[2,1,2048]", 1) if QUICK else (1_000_000, 16, 10, "local-cluster[2,1,2048]", 5)
    text = output(sys.executable, HERE.parent / "python/spark.py", *size)
    turns = re.findall(r"^ +ours ([\d.]+) s, k-means (-?[\d.]+) s", text, re.M)
    ours, theirs = zip(*(map(float, turn) for turn in turns))
    return {"text": text, "ours": ours, "k-means": theirs}


def scaling():
    """Times against one size at a time; the page fits the exponents. Every list is of points (size, times)."""
    found = {}
    n, d, k = (20_000, 8, 4) if QUICK else (250_000, 16, 10)

    def local(sizes, place):
        points = []
        for size in sizes:
            args = [n, d, k, 1]
            args[place] = size
            points.append((size, [ms / 1e3 for ms in numbers(example("kernel_speed", *args))]))
        return points

    found["local sums: rows N"] = local((5_000, 10_000, 20_000) if QUICK else (31_250, 62_500, 125_000, 250_000, 500_000, 1_000_000), 0)
    found["local sums: columns d"] = local((4, 8, 16) if QUICK else (4, 8, 16, 32, 64), 1)
    found["local sums: clusters K"] = local((2, 4, 8) if QUICK else (3, 6, 12, 24, 48), 2)
    cores = os.cpu_count() or 1
    threads = [1 << i for i in range(cores.bit_length()) if 1 << i <= cores]
    found["local sums: threads"] = local(threads, 3)
    sites, lengths = ((5, 10, 20), (50, 100, 200)) if QUICK else ((10, 20, 40, 80, 160), (100, 300, 1_000, 3_000, 10_000))
    few = sites[0] if QUICK else sites[1]
    for what, sizes, shapes in (("sites n", sites, [(n, 100) for n in sites]), ("numbers L", lengths, [(few, length) for length in lengths])):
        runs = [simulated(*shape, 0, 5) for shape in shapes]
        for key, who in (("site_ms", "a site"), ("aggregator_ms", "the coordinator")):
            # The first round opens none before it, the last one two.
            points = [(size, [one[key] / 1e3 for one in run["rounds"][1:-1]]) for size, run in zip(sizes, runs)]
            found[f"a round, {who}: {what}"] = points
        if what == "sites n":
            found["keys of a deck of 10 slots, a site: sites n"] = [(size, [run["deck"]["site_ms"] / 1e3]) for size, run in zip(sizes, runs)]

    def distance():
        trips, runs, rounds = ((20, 40), 1, 4) if QUICK else ((25, 50, 100, 200), 3, 15)
        cells = ",".join(f"{trip}:0:quic" for trip in trips)
        text = bench("networks", "--runs", runs, "--rounds", rounds, "--only", cells)
        if "SKIPPED" in text:
            raise Failed(text.strip().splitlines()[-1])
        rows = re.findall(r"^\| (\d+) ms \| 0 % \| ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text, re.M)
        return [(int(trip), [1 / float(pace) for pace in paces]) for trip, *paces in rows]

    found["a round over QUIC, three sites: round trip in ms"] = kept(distance)
    return found


PARTS = {part.__name__: part for part in (limits, sums, kernel, secure, deck, ratio, prio, spark, scaling)}


def main():
    folder = WORK / ("quick" if QUICK else "parts")
    folder.mkdir(exist_ok=True)
    wanted = ARGS[1:]
    try:
        commit = output("git", "-C", HERE, "rev-parse", "--short", "HEAD").strip()
    except Failed:
        # This is not a checkout: a source archive, say.
        commit = None
    unknown = set(wanted) - set(PARTS)
    if unknown:
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    for name in wanted or PARTS:
        file = folder / f"{name}.json"
        if file.exists() and not wanted:
            print(f"== {name}: {file} is there", flush=True)
            continue
        print(f"== {name}", flush=True)
        loops, begun, load = [loop() for _ in range(3)], time.time(), os.getloadavg()[0]
        found = kept(PARTS[name])
        took = time.time() - begun
        loops += [loop() for _ in range(3)]
        print(f"   {took:.0f} s", flush=True)
        part = {"part": name, "commit": commit, "quick": QUICK, "begun": time.strftime("%Y-%m-%d", time.gmtime(begun)), "took": took, "load": load, "loops": loops}
        written = file.with_suffix(".new")
        written.write_text(json.dumps({**part, "found": found}, indent=1))
        # What is skipped is tried again by the next run.
        written.replace(file if "skipped" not in found else folder / f"{name}.skipped.json")


main()
