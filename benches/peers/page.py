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


def output(*command, may_fail=False, **env):
    """What a command prints. One that may fail has a reason to: its program is not installed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **env})
    if done.returncode != 0 and not may_fail:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done.stdout if done.returncode == 0 else None


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
    lines = output(sys.executable, HERE / "sums.py", rows, columns, clusters).splitlines()
    return [json.loads(line) for line in lines]


def simulated(sites, length, share, *options):
    text = output(RELEASE / "veilsum-lab", "simulate", "--json", "--sites", sites, "--length", length, "--drop", share, *options)
    return json.loads(text)


def flower(clients, length, missing, rounds):
    text = output(WORK / "flower/bin/python", HERE / "flower.py", clients, length, missing, rounds, may_fail=True)
    return json.loads(text) if text else None


def main():
    loops = [loop() for _ in range(3)]
    say = print
    say("# Performance\n")
    say("`benches/peers/run` wrote this page: it installs the other programs, builds what is shipped, and measures all of it in one run, in turns.")
    say("Each number is the median, with the smallest and the largest behind it. Ratios say how many times as long the other takes.\n")
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
            say(f"| {one['program']} | {one['kind']} | {spread(one['seconds'])} | {ratios(one['seconds'], ours)} |")
    say("\nA fuzzy round weighs every row for every cluster; a hard one only finds the nearest centre. `python benches/peers/sums.py` measures this alone.\n")

    say("## Secure sums of 100 parties, 100 numbers, a tenth of them missing\n")
    opened, plain = simulated(100, 100, 0.1), simulated(100, 100, 0.1, "--no-opening")
    theirs = flower(100, 100, 10, 1)
    say("| | ms of a site or client | ms of the coordinator or server |\n|---|---|---|")
    for name, of in (("veilsum, opened to all sites", opened), ("veilsum, not opened", plain)):
        # The first round is without a predecessor to open; the deck serves sixteen.
        sites, aggregators = ([one[key] / 1e3 for one in of["rounds"]] for key in ("site_ms", "aggregator_ms"))
        say(f"| {name}, a round | {spread(sites)} | {spread(aggregators)} |")
        if theirs:
            say(f"| SecAgg+ of Flower / {name} | {ratios(theirs['client'], sites)} | {ratios(theirs['server'], aggregators)} |")
    deck = opened["deck"]
    say(f"| veilsum, keys for 16 rounds, once | {deck['site_ms']:.1f} | {deck['aggregator_ms']:.1f} |")
    if theirs:
        say(f"| SecAgg+ of Flower 1.41, a round, keys included | {spread(theirs['client'])} | {spread(theirs['server'])} |")
        say(f"\nFlower's clients share with {theirs['shares']} others, ours with all. Its masks are of 32 bits, ours of 64.")
    else:
        say("\nSecAgg+ of Flower was not measured: it cannot be installed here.")
    say("`veilsum-lab simulate --sites 100 --length 100 --drop 0.1` and `python benches/peers/flower.py 100 100 10` measure this alone.\n")

    say("## A proof that entries are bounded, in place of masks (Prio3 of `prio`)\n")
    say("```text\n" + output(RELEASE / "two-aggregators").rstrip() + "\n```\n")
    say("## This machine\n")
    say(f"{processor()}. A fixed loop took {spread(loops + [loop() for _ in range(3)], 1e3, 0)} ms before and after.\n")
    say("| limit, one thread | |\n|---|---|")
    for name, value in table:
        say(f"| {name} | {value} |")


main()
