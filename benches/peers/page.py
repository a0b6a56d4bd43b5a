"""Prints the page from the raw numbers of `measure.py`: python page.py FOLDER_OF_PARTS. What other commands measured is kept from the page there is."""

import json
import math
import os
import platform
import re
import statistics
import sys
from pathlib import Path

FOLDER, ROOT = Path(sys.argv[1]), Path(__file__).parents[2]
OTHERS = "## By other commands\n"
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


def medians(others, ours, unit, name):
    """Both sides of a ratio."""
    shown = (statistics.median(one) * unit for one in (others, ours))
    return ": " + " / ".join(f"{one:.{min(digits(one), 3)}f}" for one in shown) + f" {name}"


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
    rows = []
    kernel = FOUND["kernel"]
    if "1" in kernel:
        rows.append(("unfused operations alone / the kernel in whole steps, quickest turns", f"{kernel['of limit, %']:.0f} %"))
        rows.append(("a sweep over K = 2 to 9 in one pass / in eight", kernel["sweep"]))
    secure = FOUND["secure"]
    if "skipped" not in secure and "skipped" not in secure["flower"]:
        for ours, theirs in (("site", "client"), ("coordinator", "server")):
            rows.append((f"Flower's {theirs} / our {ours}", ratios(secure["flower"][theirs], secure["opened"][ours])))
    deck = FOUND["deck"]
    if "floor" in deck:
        what = f"keys of a deck of {deck['slots']} slots for each other site / one X25519 and one ML-KEM-768 operation"
        rows.append((what, ratios(deck["for each other"], deck["floor"]) + medians(deck["for each other"], deck["floor"], 1e6, "µs")))
    for size, round_ in FOUND["ratio"].get("rounds", {}).items():
        masked, unmasked = (round_[one].split(" ")[0] for one in ("masked", "unmasked"))
        rows.append((f"masked round / unmasked, {size} rows at each of 20 sites", f"{round_['ratio']}: {masked} / {unmasked} ms"))
    spark = FOUND["spark"]
    if "ours" in spark:
        rows.append(("Spark ML's k-means / our fuzzy round in Spark's executors", ratios(spark["k-means"], spark["ours"])))
    for name in ("deck", "ratio", "spark"):
        if "skipped" in FOUND[name]:
            rows.append((f"the part `{name}`", f"not measured: {FOUND[name]['skipped']}"))
    say("The kernel: one thread. Masked rounds: K = 10, d = 16, all 21 parties on this machine (`cargo bench --bench masked_ratio`).\n")
    say("| ratio of times | |\n|---|---|")
    for what, value in rows:
        say(f"| {what} | {value or 'not measured'} |")
    say()


def local_sums():
    found = FOUND["sums"]
    if why_not(found):
        return
    say(f"{found['rows']:,} rows, {found['columns']} columns, {found['clusters']} clusters, one thread, milliseconds on the wall; programs take turns in one process.\n")
    say("| program | ms a round | times ours |\n|---|---|---|")
    measured = programs()
    for one in found["programs"]:
        name = one["program"]
        if name in measured:
            seconds, ours = measured[name]
            numpy = f", NumPy {one['numpy']}" if "ours" in one else ""
            hard = " (hard)" if one["kind"] == "hard" else ""
            times = statistics.median(seconds) / statistics.median(ours)
            say(f"| {name}{hard}{numpy} | {spread(seconds)} | {times:.{min(digits(times), 2)}f} |")
        else:
            say(f"| {name} | not measured: {one['skipped']} | |")
    say("\nThe specification rounds each operation by itself ([SUM-2]), so the kernel's limit is that of unfused operations.\n")


def secure_sums():
    found = FOUND["secure"]
    if why_not(found):
        return
    say(f"{found['sites']} parties, {found['length']} numbers, {found['missing']} missing, half before their masked vector, half after it. Milliseconds of processor")
    say("time, divided by the number of sites or clients that stay. Totals are opened to the sites.\n")
    say("| | a site or client | coordinator or server |\n|---|---|---|")
    say(f"| veilsum, a round with its part of the keys | {spread(found['opened']['site'])} | {spread(found['opened']['coordinator'])} |")
    theirs = found["flower"]
    if "skipped" in theirs:
        say(f"\nSecAgg+ of Flower was not measured: {theirs['skipped']}\n")
    else:
        say(f"| SecAgg+ of Flower 1.41, a round, keys included | {spread(theirs['client'])} | {spread(theirs['server'])} |")
        say(f"\nFlower makes keys for every round, and its clients share with {theirs['shares'] - 1} others; ours make them for a deck of {found['slots']} rounds")
        say(f"({found['opened']['deck of a site'] * 1e3:.1f} ms of a site) and share with all. Its masks are of 32 bits, ours of 64. Most of its time is Python's. Its messages are objects; ours")
        say("are encoded, signed and checked.\n")


def proofs():
    found = FOUND["prio"]
    if why_not(found):
        return
    say("L1Bound, milliseconds of the processor, one thread (`cargo run --release --manifest-path benches/two-aggregators/Cargo.toml`).\n")
    say("| numbers | bits | a site | an aggregator, for each site | a site sends, bytes | masked here, bytes |\n|---|---|---|---|---|---|")
    sizes = [one["numbers"] for one in found["proofs"]]
    for one in found["proofs"]:
        if one["proof"] != "L1Bound" or one["numbers"] not in (min(sizes), max(sizes)):
            continue
        times = (spread([ms / 1e3 for ms in one[who]]) for who in ("site_ms", "aggregator_ms"))
        say(f"| {one['numbers']:,} | {one['bits']} | {' | '.join(times)} | {one['bytes']:,} | {one['masked']:,} |")
    say()


def scaling():
    found = FOUND["scaling"]
    if why_not(found):
        return
    say("One size changes at a time: exponent of a fitted power law, and its standard error. Local sums: 250,000 rows, 16 columns, 10")
    say("clusters, one thread. Rounds: 100 numbers or 20 sites, in processor time like keys; over QUIC on the wall.\n")
    say("| time of | against | exponent | ± | at the largest, ms |\n|---|---|---|---|---|")
    for name, points in found.items():
        what, against = name.split(": ")
        if isinstance(points, dict):
            say(f"| {what} | {against} | not measured: {points['skipped']} | | |")
        elif len(points) < 2:
            say(f"| {what} | {against} | one point only | | |")
        else:
            slope, error = fit(points)
            size, times = points[-1]
            last = statistics.median(times) * 1e3
            shown = f"{size:,}: {last:.{min(digits(last), 3)}f}"
            say(f"| {what} | {against} | {slope:.2f} | {'–' if error is None else f'{error:.2f}'} | {shown} |")
    say()


def machine():
    try:
        name = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        name = platform.processor() or platform.machine()
    say(f"{name}, {os.cpu_count()} cores, {platform.system()}.\n")
    if not why_not(FOUND["limits"]):
        limits = FOUND["limits"]
        aes = limits["aes"]
        aes = f"not measured: {aes['skipped']}" if isinstance(aes, dict) else f"{aes / 1e9:.1f} GB/s"
        say(f"One thread: matrix product in doubles {spread(limits['flops'], 1e-9)} GFLOP/s, copying memory {spread(limits['copied'], 1e-9)} GB/s, AES-128-CTR {aes}.\n")
    whole = {}
    for name, part in PARTS.items():
        if "loops" in part:
            whole.setdefault((part["begun"], part["commit"] or "not known"), []).append((name, part))
    for (begun, commit), parts in whole.items():
        names = "All parts" if len(whole) == 1 else ", ".join(name for name, _ in parts)
        loops = [1e3 * loop for _, part in parts for loop in part["loops"]]
        say(f"{names}: measured on {begun} at commit {commit}; a fixed loop took {min(loops):.0f} to {max(loops):.0f} ms beside them.")


def main():
    say("# Performance\n")
    if any(part.get("quick") for part in PARTS.values()):
        say("**Of tiny sizes (`--quick`): these numbers say nothing of speed.**\n")
    say("`benches/peers/run FOLDER` writes this page down to \"By other commands\"; `run FOLDER PART` measures one part. A number is a median, with the smallest and the")
    say("largest in parentheses. A ratio a / b divides the time of a by that of b, on one clock.\n")
    for title, part in (
        ("Ratios", summary),
        ("Local sums", local_sums),
        ("Secure sums", secure_sums),
        ("Proofs of bounds (Prio3)", proofs),
        ("Scaling", scaling),
        ("The machine", machine),
    ):
        say(f"## {title}\n")
        part()
    page = ROOT / "PERFORMANCE.md"
    if page.exists() and OTHERS in (text := page.read_text()):
        say("\n" + OTHERS + text.split(OTHERS, 1)[1].rstrip())


main()
