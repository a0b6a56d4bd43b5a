"""What a site lets itself be asked, and whether it follows from the totals that it recomputed (spec 9.8, 11, 13.8).

Fuzzy c-means and k-means from given or uniform centres, for one K, with their validation: enough to take part in a run.
A site refuses to take part under any other plan, and under one with noise.
"""

import fixed
from answers import layout
from domain import Domain, scaled
from codec import Refused, decode
from draws import uniform_centres
from questions import QUESTION, WORK

MAX_QUERY, CLOSE = 9_437_184, 1e-9


def no(why):
    raise Refused("POL-3", why)


def other(why):
    raise Refused("OPN-9", why)


class Course:
    def __init__(self, env):
        self.env, self.work = env, decode(WORK, env.terms["application"], 1 << 20)
        work, recipe = self.work, self.work["recipe"]
        self.domain = Domain.of(work)
        self.k, self.validated, self.centres = recipe["clusters"]["max"], False, None
        self.asked, self.scales = None, None
        (self.method, self.of_method), (seeding, start) = recipe["algorithm"], recipe["seeding"]
        validity = recipe["validity"]
        others = [
            work["sampling"], recipe["noise"], recipe["range"], recipe["preparation"][0] != "none",
            recipe["clusters"]["min"] != self.k, recipe["restarts"] != 1,
            work["judge"][0] != "coordinator",
            self.method not in ("fcm", "kmeans"), seeding not in ("given", "uniform"),
        ]  # fmt: skip
        if any(others):
            raise SystemExit("this reference does fuzzy c-means and k-means from given or uniform centres only")
        if seeding == "uniform":
            self.centres = uniform_centres(self.domain, self.k, start["seed"])
        else:
            ends = [self.domain.interval(j) for j in range(self.domain.columns)]
            self.centres = [[low + x * (high - low) for x, (low, high) in zip(c, ends)] for c in start["centres"]]

    def judge_m(self):
        return self.of_method.get("m", self.work["recipe"]["validity"]["judge_m"])

    def take(self, asked, role):
        """[POL-2], [POL-3], [APP-4], [OPN-9]: the question, where it may be answered."""
        if asked["rounds"] > self.env.floor["max_rounds"]:
            raise Refused("POL-2", "more questions than this site allows")
        question = decode(QUESTION, asked["query"], MAX_QUERY)
        if question[0] != {"Intermediary": "CountRows", "Coordinator": "Cluster"}[role]:
            no("not this aggregator's to ask")
        if role == "Coordinator":
            self.admit(question[1], asked)
        n, max_rows = len(self.env.roster["sites"]), self.env.terms["max_rows"]
        self.scales = scaled(layout(question, self.domain), n, max_rows, self.work["step_bits"])
        if sum(length for _, length, *_ in self.scales) != asked["words"]:
            no("another length than that of the answer")
        return question

    def admit(self, batch, asked):
        if batch["transform"] is not None or len(batch["queries"]) != 1:
            other("a transform, or more than one query")
        ((kind, q),) = batch["queries"]
        validity = self.work["recipe"]["validity"]
        full = validity["full"] or self.method == "kmeans"
        wanted = {
            "fuzzy_sums": self.method == "fcm" and q.get("m") == self.of_method.get("m"),
            "local_means": self.method == "kmeans" and kind == "local_means" and plain_means(q),
            "fuzzy_validation": not full and q.get("m") == self.judge_m(),
            "validation": full and (q.get("m"), q.get("vectors")) == (self.judge_m(), validity["vectors"]),
        }
        if not wanted.get(kind):
            other(f"{kind}, or its parameters, are not the plan's")
        if len(q["centres"]) != self.k or any(len(c) != self.domain.columns for c in q["centres"]):
            other("another K than the plan's")
        if self.validated or asked["rounds"] > self.of_method["max_rounds"] + 1:
            other("a question after the validation, or more than the method can ask")
        self.validated = kind.endswith("validation")
        # [OPN-9]: with the first centres the plan's, all others follow from totals that this site recomputed.
        pairs = (each for x, y in zip(q["centres"], self.centres) for each in zip(x, y, self.domain.units()))
        apart = max(abs(a - b) / unit for a, b, unit in pairs)
        if apart > CLOSE:
            other("centres that do not follow from the totals")
        self.asked = kind, q

    def opened(self, words):
        """The next centres, from the total of the question before."""
        kind, q = self.asked
        values, at = [], 0
        for _, length, _, bits, *_ in self.scales:
            values += [fixed.signed(w) * 2.0**-bits for w in words[at : at + length]]
            at += length
        k, d = self.k, self.domain.columns
        if kind == "fuzzy_sums":
            sums, weights = values[: k * d], values[k * d : k * d + k]
        elif kind == "local_means":
            weights, sums = values[:k], values[k : k + k * d]
        else:
            return
        for i, w in enumerate(weights):
            if w > 0:
                self.centres[i] = [s / w for s in sums[d * i : d * i + d]]


def plain_means(q):
    one_step = q["local"] == {"most": 1, "epsilon": 0.0}
    return one_step and not q["nearest"] and q["min_rows"] == 1
