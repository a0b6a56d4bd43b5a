"""Measures, and prints the page: called by `benches/peers/run FOLDER`, which builds and installs what this needs."""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

WORK, HERE = Path(sys.argv[1]), Path(__file__).parent
RELEASE = Path(os.environ["CARGO_TARGET_DIR"]) / "release"
#: Of ours, to which keys belong that serve twice as many. A plan's own number is larger.
ROUNDS = 8


def output(*command, may_fail=False, **env):
    """What a command prints. One that may fail has a reason to: its program is not installed."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **env})
        why = done.stderr[-2000:] if done.returncode else None
    except OSError as e:
        why = str(e)
    if why is not None and not may_fail:
        raise SystemExit(f"{' '.join(map(str, command))}: {why}")
    if why is not None:
        print(f"{command[0]}: {why}", file=sys.stderr)
    return done.stdout if why is None else None


def median(values):
    return statistics.median(values)


def spread(values, unit=1e3, digits=1):
    """Median and range."""
    low, high = min(values) * unit, max(values) * unit
    return f"{median(values) * unit:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def ratios(others, ours):
    """Ratio of medians, and the smallest and largest that turns of either could give."""
    of = median(others) / median(ours)
    return f"{of:.1f} ({min(others) / max(ours):.1f} to {max(others) / min(ours):.1f})"


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

    with threadpool_limits(1):
        a = np.random.default_rng(1).random((1500, 1500))
        a @ a
        flops = []
        for _ in range(5):
            begun = time.perf_counter()
            a @ a
            flops.append(2 * 1500**3 / (time.perf_counter() - begun) / 1e9)
    big, to = np.zeros(1 << 25), np.ones(1 << 25)
    rates = []
    for _ in range(5):
        begun = time.perf_counter()
        np.copyto(to, big)
        rates.append(2 * big.nbytes / (time.perf_counter() - begun) / 1e9)
    aes = output("openssl", "speed", "-elapsed", "-seconds", "1", "-bytes", "16384", "-evp", "aes-128-ctr", may_fail=True)
    found = re.search(r"(?i)aes-128-ctr\s+([\d.]+)k", aes or "")
    yield "double-precision matrix product (FMA peak)", f"{spread(flops, 1, 0)} GFLOP/s"
    yield "copying memory, read and written", f"{spread(rates, 1, 1)} GB/s"
    yield "AES-128 in counter mode, OpenSSL", f"{float(found[1]) / 1e6:.1f} GB/s" if found else "not measured: no `openssl`"


def processor():
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return f"{found[1] if found else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def local_sums(rows, columns, clusters):
    """Every program against ours in the same process: those that share an environment, then the one that has its own."""
    found = [json.loads(line) for line in output(sys.executable, HERE / "sums.py", rows, columns, clusters).splitlines()]
    older = output(WORK / "older/bin/python", HERE / "sums.py", rows, columns, clusters, 3, "fuzzy-c-means", may_fail=True)
    found = [one for one in found if one["program"] != "fuzzy-c-means"]
    beside = [json.loads(line) for line in (older or "").splitlines()]
    ours = {one["program"]: one["seconds"] for one in beside if "seconds" in one}
    for one in beside:
        if one["program"] == "fuzzy-c-means":
            found.append({**one, "ours": ours["veilsum"]})
    return found


def simulated(sites, length, share, *options):
    """Rounds of so many numbers, the first of which opens none before it and is left out; every site's time with its part of the keys."""
    text = output(
        RELEASE / "veilsum-lab", "simulate", "--json", "--rounds", ROUNDS, "--sites", sites, "--length", length, "--drop", share, *options
    )
    found, deck = json.loads(text), {}
    for key in ("site_ms", "aggregator_ms"):
        # Keys are made for twice as many rounds as are asked for.
        deck[key] = found["deck"][key] / (2 * ROUNDS)
    # The time of all sites, by those that stayed to the end: the others did half of a round, or nothing.
    rounds = [(one["site_ms"] * sites / one["sites_in_total"], one["aggregator_ms"]) for one in found["rounds"][1:]]
    return {
        "site": [(site + deck["site_ms"]) / 1e3 for site, _ in rounds],
        "aggregator": [(aggregator + deck["aggregator_ms"]) / 1e3 for _, aggregator in rounds],
    }


def flower(clients, length, missing, rounds):
    text = output(WORK / "flower/bin/python", HERE / "flower.py", clients, length, missing, rounds, may_fail=True)
    return json.loads(text) if text else None


def main():
    loops = [loop() for _ in range(3)]
    say = print
    say("# Performance\n")
    say("`benches/peers/run` wrote this page: it installs the other programs, builds what is shipped, and measures all of it in one run; programs of one")
    say("table that share an environment take turns. Each number is the median, with the smallest and the largest behind it. Ratios say how many times")
    say("as long the other takes.\n")
    table = list(limits())
    rows, columns, clusters = 1_000_000, 16, 10
    sums = local_sums(rows, columns, clusters)
    say(f"## A round over {rows:,} rows, {columns} columns, {clusters} clusters, one thread\n")
    say("| program | what it computes | ms a round | of `veilsum` |\n|---|---|---|---|")
    ours = next(one["seconds"] for one in sums if one["program"] == "veilsum")
    for one in sums:
        if "skipped" in one:
            say(f"| {one['program']} | not measured: {one['skipped']} | | |")
        else:
            beside = f", NumPy {one['numpy']}" if "ours" in one else ""
            say(f"| {one['program']}{beside} | {one['kind']} | {spread(one['seconds'])} | {ratios(one['seconds'], one.get('ours', ours))} |")
    say("\nA fuzzy round weighs every row for every cluster; a hard one only finds the nearest centre. `python benches/peers/sums.py` measures this alone.\n")

    say("## Secure sums of 100 parties, 100 numbers, a tenth of them missing\n")
    opened, plain = simulated(100, 100, 0.1), simulated(100, 100, 0.1, "--no-opening")
    theirs = flower(100, 100, 10, 2)
    say("| | ms of a site or client that stays | ms of the coordinator or server |\n|---|---|---|")
    for name, of in (("veilsum, opened to all sites", opened), ("veilsum, not opened", plain)):
        say(f"| {name}, a round with its part of the keys | {spread(of['site'])} | {spread(of['aggregator'])} |")
        if theirs:
            say(f"| SecAgg+ of Flower / {name} | {ratios(theirs['client'], of['site'])} | {ratios(theirs['server'], of['aggregator'])} |")
    if theirs:
        say(f"| SecAgg+ of Flower 1.41, a round, keys included | {spread(theirs['client'])} | {spread(theirs['server'])} |")
        say(f"\nFlower makes keys for every round, and its clients share with {theirs['shares'] - 1} others; ours make them for {2 * ROUNDS} rounds, and share with all.")
        say("Its masks are of 32 bits, ours of 64. It is written in Python, whose own time is most of what is compared here.")
    else:
        say("\nSecAgg+ of Flower was not measured: standard error says why.")
    say("`veilsum-lab simulate --sites 100 --length 100 --drop 0.1` and `python benches/peers/flower.py 100 100 10` measure this alone.\n")

    say("## A proof that entries are bounded, in place of masks (Prio3 of `prio`)\n")
    say("```text\n" + output(RELEASE / "two-aggregators").rstrip() + "\n```\n")
    say("## This machine\n")
    say(f"{processor()}. A fixed loop took {spread(loops + [loop() for _ in range(3)], 1e3, 0)} ms before and after.\n")
    say("| limit, one thread | |\n|---|---|")
    for name, value in table:
        say(f"| {name} | {value} |")


main()
