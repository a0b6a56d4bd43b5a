"""Vectors of the application's questions: bytes, layouts, answers in fixed point, draws, plans (spec section 13)."""

import copy

import answers
import questions
from domain import carried, exponent, scaled
from codec import F64, Refused, decode, encode
from documents import MAX_APPLICATION
from draws import Stream, drawn, uniform_centres
from question_samples import (
    BOUNDS, BOXES, GOOD, ROWS, STANDARD, THREE, UNITS, features, fuzzy, histogram,
    local_choice, local_fuzzy, local_means, margins, moments, question_of, shifts, steps, validation,
)  # fmt: skip
from questions import QUESTION, WORK, shown
from suite import H, le32, le64

MAX_QUERY, SITES, MAX_ROWS = 9_437_184, 20, 1_000_000
COUNTS = {"rows", "sites", "counts", "cluster_rows"}


def layout_lines(scales):
    return [{"name": n, "words": w, "bound_exp": e, "fraction_bits": f} for n, w, e, f, *_ in scales]


def is_exact(question):
    """[SUM-2]: whether every operation on a row is prescribed."""
    lloyd = {"most": 1, "epsilon": 0.0}
    exact = {
        "fuzzy_sums": lambda q: True, "moments": lambda q: True, "margins": lambda q: True, "histogram": lambda q: True,
        "local_means": lambda q: q["local"] == lloyd and q["min_rows"] == 1 and not q["nearest"],
    }  # fmt: skip
    queries = question[1].get("queries", [])
    return all(kind in exact and exact[kind](q) for kind, q in queries)


def tolerances(question, blocks, scales):
    """How far another order of operations on a row may lead, in units of the last place: not at all in counts, and where the order
    is prescribed; otherwise 2, or 2^-48 of the bound where that is more: closer than [QRY-6] demands, on few rows."""
    if is_exact(question):
        return [0] * len(blocks)
    counts = [name in COUNTS or (name == "weights" and per == "site") for name, _, _, per in blocks]
    return [0 if c else max(2, 2 ** max(f + e - 48, 0)) for c, (_, _, e, f, *_) in zip(counts, scales)]


def question_case(name, domain, question, rows, step_bits=None):
    blocks = answers.layout(question, BOXES[domain])
    scales = scaled(blocks, SITES, MAX_ROWS, step_bits)
    assert decode(QUESTION, encode(QUESTION, question), MAX_QUERY) == question
    case = {
        "function": "question", "name": name, "box": domain, "sites": SITES, "max_rows": MAX_ROWS,
        "step_bits": step_bits, "question": shown(QUESTION, question), "encoded": encode(QUESTION, question),
        "layout": layout_lines(scales), "within": tolerances(question, blocks, scales), "answers": {},
    }  # fmt: skip
    # After a first step on one row all local centres coincide with it up to rounding, which then decides ([QRY-6]).
    queries = question[1].get("queries", [])
    unstable = any(kind == "local_fuzzy" and q["local"]["most"] > 1 for kind, q in queries)
    for site in (site for site in rows if site != "one row" or not unstable):
        values = answers.answer(question, BOXES[domain], BOXES[domain].working(ROWS[site]))
        case["answers"][site] = carried(values, scales)
    return case


def bad_bytes():
    one = encode(QUESTION, question_of([fuzzy("fuzzy_sums", [[0.5]])]))
    at = one.index(le32(1) + le32(1) + le64(1))
    return {
        "a byte is left over": one + b"\0",
        "no centres": one[:at] + le32(0) + le32(1) + le64(0) + one[-8:],
        "another number of values than K x d": one[:at] + le32(2) + one[at + 4 :],
        "a coordinate that is no number": one[:-16] + bytes(6) + b"\xf8\x7f" + one[-8:],
        "an unknown question": le32(4),
        "an unknown query": one[:5] + le64(1) + le32(12) + one[at:],
        "a list of 2^60 queries": one[:5] + le64(2**60),
    }


def bad_questions():
    bad = {
        "m = 1": [fuzzy("fuzzy_sums", m=1.0)], "m is infinite": [fuzzy("fuzzy_validation", m=float("inf"))],
        "other columns": [fuzzy("fuzzy_sums", [[0.5]])], "no queries": [],
        "one of two": [moments(), moments([0.5])], "around a point outside": [moments([0.5, 1.5])],
        "no steps": [local_means(most=0)], "1001 steps": [local_fuzzy("powers", most=1001)],
        "epsilon below 0": [local_means(epsilon=-1.0)], "groups of no rows": [local_means(min_rows=0)],
        "one bin": [histogram(1, (0, 0.0, 1.0))],
        "1025 bins": [histogram(1025, (0, 0.0, 1.0))], "no bracket": [histogram(4)],
        "an empty bracket": [histogram(4, (0, 0.5, 0.5))], "a bracket outside": [histogram(4, (0, 0.5, 1.5))],
        "a bracket of no column": [histogram(4, (2, 0.0, 1.0))], "features: min 1": [features(low=1)],
        "features: max 1001": [features(high=1001)], "features: tau 0": [features(tau=0.0)],
        "K = 1 alone": [local_choice(1, 3)], "K = 65 alone": [local_choice(2, 65)],
        "17 starts": [local_choice(2, 3, starts=17)],
        "one bin of margins": [margins(1)], "1025 bins of margins": [margins(1025)],
    }  # fmt: skip
    for name, queries in bad.items():
        yield name, question_of(queries)
    changes = {
        "factor 0": ("factor", [0.0, 1.0]), "a shift outside": ("shift", [1.5, 0.0]),
        "an empty clip": ("upper", [0.1, 1.0]),
        "a clip outside": ("lower", [-0.1, 0.0]), "a factor too large": ("factor", [1e13, 1.0]),
        "one column": ("shift", [0.5]), "a factor more": ("factor", [4.0, 1.0, 2.5]),
    }  # fmt: skip
    for name, (field, value) in changes.items():
        yield f"transform: {name}", question_of([moments()], {**STANDARD, field: value})


def refusal(function, *args):
    try:
        function(*args)
    except Refused as bad:
        return bad.rule
    raise AssertionError(f"it must be refused: {args}")


def works():
    by = {"p": 2.0, "q": 1.0}

    def work(algorithm, seeding, columns=("x", "y"), **change):
        return {
            "columns": [{"name": name, "lower": -1.0, "upper": 2.5} for name in columns],
            "scaling": ("box", {}), "out_of_box": ("refuse", {}),
            "recipe": {
                "clusters": {"min": 2, "max": 4}, "algorithm": algorithm, "stop": ("frobenius", {}), "range": None,
                "seeding": seeding, "restarts": 1,
                "preparation": ("none", {}),
                "validity": {"full": True, "vectors": False, "judge_m": 2.0, "davies_bouldin": by},
                "choice": {"by": ("xie-beni", {}), "elbow": False}, "noise": None,
            },
            "sampling": None, "judge": ("coordinator", {}), "step_bits": None, "categorical": [], **change,
        }  # fmt: skip

    m, stop = {"m": 2.0}, {"epsilon": 0.001, "max_rounds": 50}
    uniform, params = ("uniform", {"seed": 7}), {"min": 5, "max": 50, "tau": 1.0, "m": 2.0}
    candidates = ("candidates", {"seed": 1, "each": 5, "tries": 20})
    yield work(("fcm", {**m, **stop}), uniform)
    first = {**m, **stop, "local": steps(5), "powers": True}
    yield work(("ffcm-avg1", first), candidates, sampling={"share": 0.5, "seed": 9})
    coarse = {"scaling": ("none", {}), "step_bits": 20}
    yield work(("ffcm-avg2", {**m, **stop, "local": steps(5, 0.01)}), uniform, **coarse)
    yield work(("fkm", {**stop, "min_rows": 5, "local_steps": 3, "finish": 10}), uniform, out_of_box=("clip", {}))
    yield work(("kmeans", stop), uniform)
    yield work(("ffcf", {**m, "features": params, "anchors": 0, "merge": True}), candidates, judge=("intermediary", {}))
    rich = work(("ffcm-avg1", {**m, **stop, "local": steps(9), "powers": False}), ("given", {"centres": [[0.5, 0.25], [0.125, 1.0]]}))
    rich["recipe"]["range"] = {"most": 8, "starts": 2, "seed": 3}
    rich["recipe"]["preparation"] = ("standard", {})
    rich["recipe"]["clusters"] = {"min": 2, "max": 2}
    rich["recipe"]["validity"] = {"full": True, "vectors": True, "judge_m": 1.5, "davies_bouldin": {"p": 1.5, "q": 2.0}}
    rich["recipe"]["stop"] = ("sum", {})
    rich["recipe"]["choice"] = {"by": ("calinski-harabasz", {}), "elbow": True}
    yield rich
    noisy = work(("kmeans", {"epsilon": 0.0, "max_rounds": 8}), uniform, out_of_box=("clip", {}))
    noisy["recipe"] |= {
        "validity": {"full": False, "vectors": False, "judge_m": 2.0, "davies_bouldin": {"p": 1.0, "q": 1.0}},
        "choice": {"by": ("gap", {}), "elbow": False},
        "noise": {
            "nano_rho": 250_000_000, "unit": ("person", {"rows": 128}), "count_share": 0.02, "seeding_share": 0.1,
            "validation_share": 0.1, "standardising_share": 0.05, "absolute_rounds": 2, "tau": 0.25,
            "expected_rows": 2000, "retries": 3,
        },
    }  # fmt: skip
    yield noisy
    persons = copy.deepcopy(noisy)
    persons["recipe"]["noise"]["unit"] = ("person", {"rows": 3})
    yield persons
    smoker = {"column": "smoker", "categories": ["never", "former", "é, current"], "weight": 0.5}
    sex = {"column": "sex", "categories": ["f", "m"], "weight": 0.25}
    yield work(("fcm", {**m, **stop}), uniform, categorical=[smoker, sex])
    described = work(("describe", {"bins": 20}), uniform, step_bits=40, categorical=[sex])
    described["recipe"] |= {
        "clusters": {"min": 1, "max": 1},
        "validity": {"full": False, "vectors": False, "judge_m": 2.0, "davies_bouldin": by},
    }
    yield described


def question_cases():
    cases = [question_case("count", "scaled", ("CountRows", {}), ROWS)]
    cases += [question_case(name, "scaled", question_of(queries), ROWS) for name, queries in GOOD.items()]
    cases += [question_case(name, domain, question_of(q, t), ROWS) for name, (domain, t, q) in UNITS.items()]
    cases += [question_case(name, domain, question_of(q), []) for name, (domain, q) in BOUNDS.items()]
    cases.append(question_case("coarse", "scaled", question_of([fuzzy("fuzzy_sums")]), ["grid"], 12))
    numbered = ("Drawn", {"number": 3, "batch": question_of([fuzzy("fuzzy_sums")])[1]})
    cases.append(question_case("drawn", "scaled", numbered, ["grid"]))
    judge = ("Judge", {"digest": H("judged question", b""), "words": 258})
    cases.append({"function": "encoding", "question": shown(QUESTION, judge), "encoded": encode(QUESTION, judge)})
    for name, data in bad_bytes().items():
        rule = refusal(decode, QUESTION, data, MAX_QUERY)
        cases.append({"function": "encoding", "name": name, "encoded": data, "rule": rule})
    for name, question in bad_questions():
        rule = refusal(answers.layout, question, BOXES["scaled"])
        data = encode(QUESTION, question)
        cases.append({"function": "refused", "name": name, "box": "scaled", "encoded": data, "rule": rule})
    for domain, transform in [("scaled", None), ("scaled", STANDARD), ("raw", None)]:
        judged = [validation(vectors=False), fuzzy("fuzzy_validation", THREE[:2])]
        batch = question_of(judged, transform)[1]
        data = encode(questions.BATCH, batch)
        scales = scaled(answers.judged_layout(batch, BOXES[domain]), SITES, MAX_ROWS)
        cases.append({
            "function": "judged", "box": domain, "sites": SITES, "max_rows": MAX_ROWS, "encoded": data,
            "digest": H("judged question", data), "exponents": [e for _, _, e, *_ in scales],
            "layout": layout_lines(scales),
        })  # fmt: skip
    for x in [1.0, 0.5, 0.3, 1.0000001, 2.0, 3.0, 1e9, 2.0000000000000004, 2.0**-600, 2.0**400]:
        cases.append({"function": "exponent", "bound": F64.put(x), "exponent": exponent(x)})
    for share, seed, number, sites in [
        (0.25, 7, 1, 20), (0.25, 7, 2, 20), (0.5, 2**64 - 1, 2**32 - 1, 5), (0.1, 0, 1, 3), (0.35, 1, 9, 10),
        (0.9, 5, 1, 1000),
    ]:  # fmt: skip
        who = drawn(share, seed, number, sites)
        case = {"function": "drawn", "share": share, "seed": seed, "number": number, "sites": sites}
        cases.append({**case, "drawn": who})
    stream = Stream(258, b"veilsum question vectors")
    words = [stream.word() for _ in range(20)]
    cases.append({"function": "stream", "seed": 258, "label": "veilsum question vectors", "words": words})
    for domain, k, seed in [("scaled", 3, 1), ("raw", 2, 2**64 - 1), ("mixed", 2, 5)]:
        centres = questions.POINTS.put(uniform_centres(BOXES[domain], k, seed))
        cases.append({"function": "uniform", "box": domain, "k": k, "seed": seed, "encoded": centres})
    for work in works():
        assert decode(WORK, encode(WORK, work), MAX_APPLICATION) == work
        cases.append({"function": "plan", "work": shown(WORK, work), "encoded": encode(WORK, work)})
    about = {
        "boxes": {name: {"lower": b.lower, "upper": b.upper, "scaling": b.scaling, "indicators": b.indicators} for name, b in BOXES.items()},
        "rows": ROWS,
    }
    text = "Questions (section 13). Rows are in original units. `within`: units by which words of a block may differ."
    return text, cases, about
