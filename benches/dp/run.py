#!/usr/bin/env python3
"""Our noisy clustering beside others at the same guarantee: `python benches/dp/run.py --quick`, or without it for the page.

Numbers go to results.json, and the page's tables and charts are made of that file alone (`--page`).
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import dp_accounting
from dp_accounting.rdp import rdp_privacy_accountant
import numpy as np

import data
from estimators import ESTIMATORS, Budget, Public, best, best_fuzzy, fuzzy_objective, objective
import page

HERE = Path(__file__).parent
DELTA = 1e-6
EPSILONS = [0.1, 0.25, 0.5, 0.75, 1.0]
FEWER = [(1_000_000, 10), (60_000, 4)]  # sets with more numbers than this are run with so many times fewer seeds
OURS = {"kmeans": "ours", "fcm": "ours, fcm"}


def program():
    """The product's mechanism, built if need be."""
    if "VEILSUM_DP" in os.environ:
        return os.environ["VEILSUM_DP"]
    command = ["cargo", "build", "--profile", "dist", "-q", "-p", "veilsum-lab", "--example", "dp"]
    subprocess.run(command, cwd=data.ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", data.ROOT / "target"))
    return str(target / "dist" / "examples" / "dp")


def lines(command):
    text = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def rho_of(epsilon):
    """The zCDP that gives (epsilon, DELTA)."""
    orders = list(1 + np.exp(np.linspace(-12, 25, 4001)))
    low, high = 1e-9, 1e3
    for _ in range(60):
        rho = math.sqrt(low * high)
        spent = rdp_privacy_accountant.RdpAccountant(orders=orders).compose(dp_accounting.ZCDpEvent(rho))
        low, high = (rho, high) if spent.get_epsilon(DELTA) <= epsilon else (low, rho)
    return low


def summary(ratios):
    low, median, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return {"median": round(float(median), 5), "low": round(float(low), 5), "high": round(float(high), 5), "seeds": len(ratios)}


def ours(binary, found, epsilons, seeds, rho, into):
    """Runs of the product, through a table in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        np.savetxt(table, found.rows, "%.8g", ",")
        runs = lines([binary, table, ",".join(OURS), found.k, ",".join(str(rho[epsilon]) for epsilon in epsilons), seeds])
    failed = [run["failure"] for run in runs if run["centres"] is None]
    if failed:
        print(f"{found.name}: {len(failed)} runs of ours failed: {failed[0]}", file=sys.stderr)
    for method, name in OURS.items():
        judge, least = (objective, into["best"]) if method == "kmeans" else (fuzzy_objective, into["best_fuzzy"])
        for epsilon in epsilons:
            of = [run for run in runs if (run["method"], run["rho"]) == (method, rho[epsilon])]
            ratios = [judge(found.rows, np.array(run["centres"])) / least for run in of if run["centres"] is not None]
            if ratios:
                into["cells"][str(epsilon)][name] = {**summary(ratios), "useful": of[0]["useful"]}


def measure(found, binary, epsilons, seeds, rho, only, before):
    """What was found `before` on a set, with the estimators of `only` anew."""
    n, d = found.rows.shape
    seeds = next((max(seeds // times, 2) for numbers, times in FEWER if n * d > numbers), seeds)
    into = before
    if not before:
        fit = best(found.rows, found.k)
        into = {"rows": n, "columns": d, "k": found.k, "best": fit.inertia_, "cells": {str(epsilon): {} for epsilon in epsilons}}
        into["best_fuzzy"] = best_fuzzy(found.rows, found.k, fit.cluster_centers_, 20 if n * d < FEWER[1][0] else 2)
    epsilons = [epsilon for epsilon in epsilons if str(epsilon) in into["cells"]]
    took = {}
    public = Public(found.server, found.radius)
    for name in only:
        begun = time.monotonic()
        if name == "ours":
            ours(binary, found, epsilons, seeds, rho, into)
        else:
            others(name, found, epsilons, seeds, rho, public, into)
        took[name] = time.monotonic() - begun
    print(f"{found.name}: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items()), file=sys.stderr)
    return into


def others(name, found, epsilons, seeds, rho, public, into):
    for epsilon in epsilons:
        if name == "bootstrap" and epsilon != epsilons[0]:
            into["cells"][str(epsilon)][name] = into["cells"][str(epsilons[0])][name]
            continue
        budget = Budget(epsilon, DELTA, rho[epsilon])
        ratios = []
        for seed in range(1, seeds + 1):
            centres = ESTIMATORS[name](found.rows, found.k, budget, np.random.default_rng(seed), public)
            ratios.append(objective(found.rows, centres) / into["best"])
        into["cells"][str(epsilon)][name] = summary(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five sets, three epsilons and five seeds; prints the tables, writes no page")
    parser.add_argument("--seeds", type=int, help="default 50; 5 with --quick")
    parser.add_argument("--sets", help="names with commas; the others of results.json stay as they are")
    parser.add_argument("--epsilons", help="with commas")
    parser.add_argument("--only", help="estimators with commas; the others stay as results.json has them")
    parser.add_argument("--page", action="store_true", help="runs nothing, makes the page anew of results.json")
    args = parser.parse_args()
    everything = ["ours", *ESTIMATORS]
    only = args.only.split(",") if args.only else everything
    warnings.filterwarnings("ignore")
    stored = HERE / "results.json"
    results = {"delta": DELTA, "sets": {}, "skipped": {}}
    if (args.page or args.sets or only != everything) and not args.quick and stored.exists():
        results = json.loads(stored.read_text())
    if not args.page:
        binary = program()
        epsilons = [float(text) for text in args.epsilons.split(",")] if args.epsilons else [0.1, 0.5, 1.0] if args.quick else EPSILONS
        rho = {epsilon: rho_of(epsilon) for epsilon in epsilons}
        names = args.sets.split(",") if args.sets else data.QUICK if args.quick else list(data.SOURCES)
        for name in names:
            seeds = args.seeds or (5 if args.quick else 50)
            results["skipped"].pop(name, None)
            try:
                found = data.load(name)
            except data.Missing as why:
                results["skipped"][name] = str(why)
                print(f"{name}: SKIPPED, {why}", file=sys.stderr)
                continue
            before = results["sets"].get(name) if only != everything else None
            results["sets"][name] = measure(found, binary, epsilons, seeds, rho, only, before)
            if not args.quick:
                stored.write_text(json.dumps(results, indent=1) + "\n")
    if args.quick:
        print(page.tables(results))
    else:
        page.write(results, HERE)


if __name__ == "__main__":
    main()
