"""The tables and charts of the page, from results.json."""

import re

from data import SOURCES, SUITE

OTHERS = ["FastLloyd", "FedDP-KMeans", "PE", "diffprivlib"]
COLUMNS = ["ours", *OTHERS, "bootstrap"]
LOSS = 1.05
BEGIN, END = "<!-- made by run.py: begin -->", "<!-- made by run.py: end -->"


def ordered(results):
    return [name for name in SOURCES if name in results["sets"]]


def cells(results):
    """Set, epsilon and what was found, in the order of the page."""
    for name in ordered(results):
        for epsilon, found in results["sets"][name]["cells"].items():
            if "ours" in found:
                yield name, float(epsilon), found


def table(head, rows):
    line = lambda row: "| " + " | ".join(row) + " |"
    return "\n".join([line(head), line(["---"] * len(head)), *map(line, rows)])


def verdict(results, other, wanted=lambda name, found: True):
    """Cells, cells ahead, cells where ours is more than 5 % worse, and the median ratio of excess objectives."""
    both = [found for name, _, found in cells(results) if other in found and wanted(name, found)]
    pairs = [(found["ours"]["median"], found[other]["median"]) for found in both]
    if not pairs:
        return None
    ahead = sum(ours <= theirs for ours, theirs in pairs)
    worse = sum(ours > LOSS * theirs for ours, theirs in pairs)
    nearer = sorted(max(theirs - 1, 1e-6) / max(ours - 1, 1e-6) for ours, theirs in pairs)
    return len(pairs), ahead, worse, nearer[len(nearer) // 2]


def verdicts(results):
    kinds = [
        ("all", lambda name, found: True),
        ("useful", lambda name, found: found["ours"]["useful"]),
        ("FastLloyd's suite", lambda name, found: name in SUITE),
        ("FastLloyd's suite, useful", lambda name, found: name in SUITE and found["ours"]["useful"]),
    ]
    rows = []
    for kind, wanted in kinds:
        found = [verdict(results, other, wanted) for other in OTHERS]
        told = [f"{100 * one[1] / one[0]:.0f} %, {one[2]}, {one[3]:.2f}" if one else "–" for one in found]
        rows.append([f"{kind} ({max((one[0] for one in found if one), default=0)})", *told])
    about = "Share of cells where ours is ahead or equal, number of cells where it is over 5 % worse, median of their excess over ours."
    return f"{about}\n\n{table(['cells', *OTHERS], rows)}"


def targets(results):
    """What was wanted before anything was measured, and whether it is so."""
    suite = lambda name, found: name in SUITE and found["ours"]["useful"]
    rows = []

    def say(what, measured, met):
        rows.append(f"{'met' if met else '**missed**'}: {what} ({measured})")

    if found := verdict(results, "FastLloyd", lambda name, found: name in SUITE):
        say("against FastLloyd on its suite never worse", f"worse in {found[0] - found[1]} of {found[0]} cells", found[1] == found[0])
    if found := verdict(results, "FastLloyd", suite):
        say("against FastLloyd on its suite, useful cells: twice as near in the median", f"{found[3]:.1f} times", found[3] >= 2)
    for other in OTHERS[1:]:
        if found := verdict(results, other):
            count, ahead, worse, _ = found
            say(f"against {other} never more than 5 % worse", f"worse in {worse} of {count} cells", worse == 0)
            say(f"against {other} ahead in 70 % of cells", f"{100 * ahead / count:.0f} %", ahead >= 0.7 * count)
    return "\n".join(f"- {row}" for row in rows)


def sets(results):
    of = results["sets"]
    said = "; ".join(f"{name} {of[name]['rows']} × {of[name]['columns']}, {of[name]['k']}" for name in ordered(results))
    skipped = "".join(f" Skipped: {name}, {why}." for name, why in results["skipped"].items())
    return f"Sets (rows × columns, K): {said}.{skipped}"


def tables(results):
    parts = [
        ("Targets", targets(results)),
        ("Against each", verdicts(results)),
    ]
    return sets(results) + "\n\n" + "\n\n".join(f"### {title}\n\n{text}" for title, text in parts)


def charts(results, folder):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "veilsum", "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    names = ordered(results)
    across = 4
    figure, axes = plt.subplots(-(-len(names) // across), across, figsize=(13, 2.6 * -(-len(names) // across)), squeeze=False)
    for axis, name in zip(axes.flat, names):
        found = results["sets"][name]["cells"]
        epsilons = sorted(map(float, found))
        for column in [*COLUMNS, "ours, fcm"]:
            of = [found[f"{epsilon:.1f}" if f"{epsilon:.1f}" in found else str(epsilon)].get(column) for epsilon in epsilons]
            if all(of):
                style = {"ours": "k-", "ours, fcm": "k--", "bootstrap": ":"}.get(column, "-")
                line = axis.plot(epsilons, [max(cell["median"] - 1, 1e-4) for cell in of], style, label=column)[0]
                low, high = ([max(cell[end] - 1, 1e-4) for cell in of] for end in ["low", "high"])
                axis.fill_between(epsilons, low, high, color=line.get_color(), alpha=0.08, linewidth=0)
        axis.set_yscale("log")
        axis.minorticks_off()
        axis.set_title(name, fontsize=9)
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="lower center", ncol=7, fontsize=9)
    figure.supxlabel("epsilon", fontsize=9, y=0.025)
    figure.supylabel("objective over the best, less 1", fontsize=9)
    figure.tight_layout(rect=(0.01, 0.04, 1, 1))
    figure.savefig(folder / "excess.svg", metadata={"Date": None})


def write(results, folder):
    charts(results, folder)
    path = folder / "README.md"
    text = path.read_text()
    made = f"{BEGIN}\n\n![Excess objective by epsilon](excess.svg)\n\n{tables(results)}\n\n{END}"
    path.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: made, text, flags=re.S))
