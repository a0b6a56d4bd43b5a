"""Prints the page from the raw numbers of `measure.py`: python page.py FOLDER_OF_PARTS."""

import json
import math
import os
import platform
import re
import statistics
import sys
from pathlib import Path

FOLDER, ROOT = Path(sys.argv[1]), Path(__file__).parents[2]
say = print


def read(name):
    """A part's numbers, or why there are none."""
    for file in (FOLDER / f"{name}.json", FOLDER / f"{name}.skipped.json"):
        if file.exists():
            return json.loads(file.read_text())
    return {"found": {"skipped": "this part was not run"}}


PARTS = {name: read(name) for name in ("limits", "sums", "kernel", "secure", "deck", "ratio", "prio", "spark", "scaling")}
FOUND = {name: part["found"] for name, part in PARTS.items()}


def why_not(of):
    """Whether a measurement was skipped; says so where it was."""
    if "skipped" in of:
        say(f"Not measured: {of['skipped']}\n")
    return "skipped" in of


def digits(value):
    return max(0, 2 - math.floor(math.log10(value))) if value > 0 else 1


def spread(values, unit=1e3):
    """Median and range."""
    median = statistics.median(values) * unit
    show = f".{min(digits(median), 3)}f"
    return f"{median:{show}} ({min(values) * unit:{show}} to {max(values) * unit:{show}})"


def ratios(others, ours):
    """Ratio of medians, and the smallest and largest that turns of either could give."""
    of = statistics.median(others) / statistics.median(ours)
    show = f".{min(digits(of), 2)}f"
    return f"{of:{show}} ({min(others) / max(ours):{show}} to {max(others) / min(ours):{show}})"


def fit(points):
    """Exponent of a power law through medians, by least squares in logarithms; its standard error where there are three points or more."""
    x, y = zip(*((math.log(size), math.log(statistics.median(times))) for size, times in points))
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    spread_x = sum((one - mean_x) ** 2 for one in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / spread_x
    rest = sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in zip(x, y))
    return slope, math.sqrt(rest / (len(x) - 2) / spread_x) if len(x) > 2 else None


def programs():
    """Seconds of a program of the local sums, with those of ours in the same process; none where it did not run."""
    found = {one["program"]: one for one in FOUND["sums"].get("programs", []) if "seconds" in one}
    return {name: (one["seconds"], one.get("ours", found["veilsum"]["seconds"])) for name, one in found.items()}


def summary():
    """What the project is measured by, in one table."""
    local, rows = programs(), []
    for name, what in (
        ("scikit-fuzzy", "scikit-fuzzy / veilsum, a round"),
        ("fuzzy-c-means", "fuzzy-c-means / veilsum, a round"),
        ("numba, one loop", "numba / veilsum, a round"),
        ("scikit-learn, Lloyd", "scikit-learn's Lloyd (hard) / veilsum (fuzzy), a round"),
        ("veilsum, m = 1.5", "veilsum, m = 1.5 / m = 2, a round"),
    ):
        rows.append((what, ratios(*local[name]) if name in local else None))
    kernel = FOUND["kernel"]
    if "1" in kernel and "2" in kernel:
        one, two = kernel["1"], kernel["2"]
        # Of quickest turns, without a range: the rows say so.
        rows.append(("the kernel with one thread / with two, quickest turns", f"{one['kernel'] / two['kernel']:.2f}"))
        rows.append(("the kernel, m = 1.5 / m = 2, one thread, quickest turns", f"{one['m = 1.5'] / one['kernel']:.2f}"))
        rows.append(("plain ndarray loops / the kernel, one thread, quickest turns", f"{one['naive'] / one['kernel']:.1f}"))
        rows.append(("unfused operations alone / the kernel in whole steps, one thread, quickest turns", f"{kernel['of limit, %']:.0f} %"))
        rows.append(("a sweep over K = 2 to 9 in one pass / in eight", kernel["sweep"]))
    secure = FOUND["secure"]
    if "skipped" not in secure and "skipped" not in secure["flower"]:
        for name in ("opened", "not opened"):
            for ours, theirs in (("site", "client"), ("coordinator", "server")):
                rows.append((f"Flower's {theirs} / our {ours}, {name}", ratios(secure["flower"][theirs], secure[name][ours])))
    for one in FOUND["prio"].get("proofs", []):
        if (one["proof"], one["numbers"], one["bits"]) == ("SumVec", secure.get("length"), 16):
            what = f"a site's proof by Prio3 SumVec, {one['numbers']} numbers of 16 bits / our site's round, opened"
            rows.append((what, ratios([ms / 1e3 for ms in one["site_ms"]], secure["opened"]["site"])))
    deck = FOUND["deck"]
    if "floor" in deck:
        rows.append(("keys of a deck for each other site / their floor", ratios(deck["for each other"], deck["floor"])))
    for size, round_ in FOUND["ratio"].get("rounds", {}).items():
        rows.append((f"masked round / unmasked, {size} rows at each of 20 sites", round_["ratio"]))
    spark = FOUND["spark"]
    if "ours" in spark:
        rows.append(("Spark ML's k-means / our fuzzy round in Spark's executors", ratios(spark["k-means"], spark["ours"])))
    say("| ratio of times | |\n|---|---|")
    for what, value in rows:
        say(f"| {what} | {value or 'not measured'} |")
    say()


def local_sums():
    found = FOUND["sums"]
    if why_not(found):
        return
    say(f"{found['rows']:,} rows, {found['columns']} columns, {found['clusters']} clusters, one thread, milliseconds on the wall; all programs of one environment take turns in one process.\n")
    say("| program | what it computes | ms a round | program / `veilsum` |\n|---|---|---|---|")
    measured = programs()
    for one in found["programs"]:
        name = one["program"]
        if name in measured:
            seconds, ours = measured[name]
            numpy = f", NumPy {one['numpy']}" if "ours" in one else ""
            say(f"| {name}{numpy} | {one['kind']} | {spread(seconds)} | {ratios(seconds, ours)} |")
        else:
            say(f"| {name} | not measured: {one['skipped']} | | |")
    say("\nA fuzzy round weighs every row for every cluster; a hard one only finds the nearest centre. `python benches/peers/sums.py` measures this alone.\n")
    if not why_not(FOUND["kernel"]):
        say("`kernel_speed`: the quickest of several turns, or a median where a range stands behind it:\n\n```text\n" + FOUND["kernel"]["text"].rstrip() + "\n```\n")


def secure_sums():
    found = FOUND["secure"]
    if why_not(found):
        return
    say(f"{found['sites']} parties, {found['length']} numbers, {found['missing']} missing: half of them leave before their masked vector, half after it. Milliseconds of processor time on both sides; that of")
    say("all sites, or all clients, is divided by the number of those that stay, which do most of it.\n")
    say("| | a site or client, for each that stays | coordinator or server |\n|---|---|---|")
    for name in ("opened", "not opened"):
        say(f"| veilsum, {name}: a round, with its part of the keys | {spread(found[name]['site'])} | {spread(found[name]['coordinator'])} |")
    theirs = found["flower"]
    if "skipped" in theirs:
        say(f"\nSecAgg+ of Flower was not measured: {theirs['skipped']}\n")
    else:
        say(f"| SecAgg+ of Flower 1.41, a round, keys included | {spread(theirs['client'])} | {spread(theirs['server'])} |")
        for name in ("opened", "not opened"):
            say(f"| Flower / veilsum, {name} | {ratios(theirs['client'], found[name]['site'])} | {ratios(theirs['server'], found[name]['coordinator'])} |")
        say(f"\nFlower makes keys for every round, and its clients share with {theirs['shares'] - 1} others; ours make them for a deck of {found['slots']} rounds")
        say(f"({found['opened']['deck of a site'] * 1e3:.1f} ms of a site) and share with all. Its masks are of 32 bits, ours of 64. It is written in Python, whose own")
        say("time is most of what is compared here. Messages of ours are encoded, signed and checked; those of Flower are handed over as objects, and the")
        say("copies that takes are in neither number. Our round is the first of a federation, in which sites leave, with its opening; later ones cost less.\n")
    say(f"`veilsum-lab simulate --sites {found['sites']} --length {found['length']} --drop 0.1 --rounds 1` and `python benches/peers/flower.py {found['sites']} {found['length']} {found['missing']}` measure this alone.\n")


def keys():
    found = FOUND["deck"]
    if why_not(found):
        return
    each = found["for each other"]
    say(f"A deck of {found['slots']} slots among {found['sites']} sites takes a site {spread(each, 1e6)} µs of the processor for each other one: keys, shares of every slot,")
    say(f"sealed boxes and signatures. One X25519 and one ML-KEM-768 operation alone take {spread(found['floor'], 1e6)} µs of it here (half of `counts deck-pair`, same run).\n")


def masked():
    found = FOUND["ratio"]
    if why_not(found):
        return
    say("20 sites, K = 10, d = 16, all 21 parties on this machine, milliseconds on the wall (`cargo bench --bench masked_ratio`).\n")
    say("| rows at each site | masked | unmasked | ratio |\n|---|---|---|---|")
    for rows, one in found["rounds"].items():
        say(f"| {rows} | {one['masked']} | {one['unmasked']} | {one['ratio']} |")
    say()


def proofs():
    found = FOUND["prio"]
    if why_not(found):
        return
    say("Milliseconds of the processor, one thread (`cargo run --release --manifest-path benches/two-aggregators/Cargo.toml`).\n")
    say("| proof | numbers | bits | a site | an aggregator, for each site | a site sends, bytes | masked here, bytes |\n|---|---|---|---|---|---|---|")
    for one in found["proofs"]:
        times = (spread([ms / 1e3 for ms in one[who]]) for who in ("site_ms", "aggregator_ms"))
        say(f"| {one['proof']} | {one['numbers']:,} | {one['bits']} | {' | '.join(times)} | {one['bytes']:,} | {one['masked']:,} |")
    say()


def spark():
    if not why_not(FOUND["spark"]):
        say("```text\n" + FOUND["spark"]["text"].rstrip() + "\n```\n")


def scaling():
    found = FOUND["scaling"]
    if why_not(found):
        return
    say("One size is changed at a time; the exponent is the slope of a line through the logarithms of the points, by least squares, with its standard error. A point is")
    say("a median, but that of a deck's keys is one measurement. Local sums are of 250,000 rows, 16 columns, 10 clusters and one thread, on the wall; rounds are of 100")
    say("numbers or 20 sites, opened, and like keys in processor time, but rounds over QUIC are on the wall.\n")
    say("| time of | against | exponent | ± | points, ms |\n|---|---|---|---|---|")
    for name, points in found.items():
        what, against = name.split(": ")
        if isinstance(points, dict):
            say(f"| {what} | {against} | not measured: {points['skipped']} | | |")
        elif len(points) < 2:
            say(f"| {what} | {against} | one point only | | |")
        else:
            slope, error = fit(points)
            shown = ", ".join(f"{size:,}: {statistics.median(times) * 1e3:.{min(digits(statistics.median(times) * 1e3), 3)}f}" for size, times in points)
            say(f"| {what} | {against} | {slope:.2f} | {'–' if error is None else f'{error:.2f}'} | {shown} |")
    say("\n`benches/peers/run FOLDER scaling` measures this part alone.\n")


def machine():
    try:
        name = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        name = platform.processor() or platform.machine()
    say(f"{name}, {os.cpu_count()} cores, {platform.system()}.\n")
    if not why_not(FOUND["limits"]):
        limits = FOUND["limits"]
        aes = limits["aes"]
        say("| limit, one thread | |\n|---|---|")
        say(f"| double-precision matrix product (FMA peak) | {spread(limits['flops'], 1e-9)} GFLOP/s |")
        say(f"| copying memory, read and written | {spread(limits['copied'], 1e-9)} GB/s |")
        say(f"| AES-128 in counter mode, OpenSSL, one measurement | {'not measured: ' + aes['skipped'] if isinstance(aes, dict) else f'{aes / 1e9:.1f} GB/s'} |\n")
    say("| part | measured on | commit | took, s | load before | a fixed loop before and after, ms |\n|---|---|---|---|---|---|")
    for name, part in PARTS.items():
        if "loops" in part:
            say(f"| {name} | {part['begun']} | {part['commit'] or 'not known'} | {part['took']:.0f} | {part['load']:.1f} | {spread(part['loops'])} |")


def main():
    say("# Performance\n")
    if any(part.get("quick") for part in PARTS.values()):
        say("**Of tiny sizes (`--quick`): these numbers say nothing of speed.**\n")
    say("`benches/peers/run` wrote this page: it installs the other programs, builds what is shipped, and measures all of it. A number is the median, with the")
    say("smallest and the largest behind it; one without them is of the quickest turns, or one measurement, as its row says. A ratio is the time of what stands left of")
    say("the stroke by the time of what stands right of it, both by the same clock. What a part was measured beside stands at the end.\n")
    for title, part in (
        ("Ratios", summary),
        ("Local sums", local_sums),
        ("Secure sums", secure_sums),
        ("Keys", keys),
        ("Masked and unmasked", masked),
        ("A proof that entries are bounded, in place of masks (Prio3 of `prio`)", proofs),
        ("In Spark", spark),
        ("Scaling", scaling),
        ("This machine", machine),
    ):
        say(f"## {title}\n")
        part()


main()
