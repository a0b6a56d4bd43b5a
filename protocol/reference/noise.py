"""Noise: exact discrete Gaussian draws, and whole answers with noise (spec section 17)."""

import math

import answers
from domain import Domain
from codec import Refused, encode
from questions import QUESTION, WORK
from suite import H, stream

MAX_SIGMA = 1 << 40
HONEST = 2


class Words:
    """Words of the stream of one key."""

    def __init__(self, key):
        self.key, self.words, self.at = key, [], 0

    def word(self):
        if self.at == len(self.words):
            self.words = stream(self.key, 2 * len(self.words) or 256)
        self.at += 1
        return self.words[self.at - 1]

    def below(self, n):
        bits = (n - 1).bit_length()
        while True:
            draw = 0
            for i in range((bits + 63) // 64):
                draw |= self.word() << (64 * i)
            draw &= (1 << bits) - 1
            if draw < n:
                return draw


def exp_below_one(words, x):
    """True with probability exp(-x) for a fraction x of 0 to 1, given as numerator and denominator."""
    p, q = x
    k = 1
    while words.below(q * k) < p:
        k += 1
    return k % 2 == 1


def exponential(words, p, q):
    while p > q:
        if not exp_below_one(words, (1, 1)):
            return False
        p -= q
    return exp_below_one(words, (p, q))


def laplace(words, t):
    while True:
        low = words.below(t)
        if not exp_below_one(words, (low, t)):
            continue
        high = 0
        while exp_below_one(words, (1, 1)):
            high += 1
        negative = words.below(2) == 1
        size = high * t + low
        if not (negative and size == 0):
            return -size if negative else size


def gaussian(words, sigma):
    """[NOI-1]."""
    if not 1 <= sigma <= MAX_SIGMA:
        raise Refused("NOI-1", "no such deviation")
    while True:
        y = laplace(words, sigma)
        if exponential(words, (abs(y) - sigma) ** 2, 2 * sigma * sigma):
            return y


def budgets(noise, rounds):
    """Section 17.4: what the row count, one round and the validation may cost, for one K and a run without first centres from totals."""
    count, validation = noise["count_share"], noise["validation_share"]
    round_ = (1 - validation - count) / rounds
    totals = 1 + rounds + 1 + noise["retries"]
    rho = (noise["nano_rho"] - totals) / 1e9 / (1 + noise["retries"] * max(count, validation, round_))
    return rho * count, rho * round_, rho * validation


def rows_of_unit(noise):
    return noise["unit"][1].get("rows", 1)


def levels(question, noise, rounds, domain):
    """Section 17.4: sensitivity and deviation of every block, for one K, one restart and one unit."""
    spans = [high - low for low, high in map(domain.interval, range(domain.columns))]
    far = math.sqrt(math.fsum(x * x for x in spans)) / 2 * (1 + 1e-5)

    def own(of_a_row, rho):
        sensitivity = of_a_row * rows_of_unit(noise)
        return sensitivity, sensitivity / math.sqrt(2 * rho)

    count, each, validation = budgets(noise, rounds)
    if question[0] == "CountRows":
        return [own(1.0, count)]
    [(name, q)] = question[1]["queries"]
    if name == "shifts":
        return [own(q["clip"] ** power, each * part) for power, part in enumerate((0.14, 0.81, 0.05))]
    k, third = len(q["centres"]), validation / 3
    return [own(math.sqrt(k) * 2 * far, third), own(1.0, third), own(4 * far * far * k ** (1 - q["m"]), third)]


WHOLE, REACH = 2**24 - 1, 2**24


def sure(x):
    """A whole number that doubles do not decide."""
    assert 1e-4 < x % 1 < 1 - 1e-4, x
    return math.floor(x)


def priced(of_each, rows, sites, max_rows):
    """[NOI-3], [NOI-4]: the factor of each block and what an entry of 1 adds, the price, the deviation and the largest entry of a site."""
    rho = [(sensitivity / deviation) ** 2 / 2 for sensitivity, deviation in of_each]
    factors, ones = [], []
    for (sensitivity, _), own in zip(of_each, rho, strict=True):
        exact = math.sqrt(own / math.fsum(rho)) * rows / sensitivity * WHOLE
        whole = WHOLE if len(rho) == 1 and sensitivity == rows else sure(exact)
        times, one = (whole - 0.5, whole - 1) if exact >= 2**20 else (exact, exact)
        factors.append(times / WHOLE)
        ones.append(one)
    price = sure(math.fsum(rho) * HONEST * 1e9)
    deviation = math.isqrt((REACH * rows) ** 2 * 500_000_000 // price) + 1
    limit = max_rows * REACH + 40 * deviation
    assert deviation <= MAX_SIGMA and limit * sites < 2**63
    return factors, ones, price, deviation, limit


def guarded(values, factors):
    """[NOI-6]: the words of all rows. `values` has for each entry what every row adds."""
    words = [0] * len(values)
    for row in zip(*values, strict=True):
        scaled = [x * factor for x, factor in zip(row, factors, strict=True)]
        own = [math.trunc(x * WHOLE) for x in scaled]
        assert all(x == 0 or 1e-6 < abs(x * WHOLE) % 1 < 1 - 1e-6 for x in scaled), "doubles would decide"
        if all(abs(x) <= 1 for x in scaled) and sum(x * x for x in own) <= REACH**2:
            words = [a + b for a, b in zip(words, own, strict=True)]
    return words


def noisy_answer(work, question, rows, sites, max_rows, k):
    """The layout and the words of one site's answer, before they are masked."""
    recipe = work["recipe"]
    domain = Domain.of(work)
    noise, rounds = recipe["noise"], recipe["algorithm"][1]["max_rounds"]
    of_each = levels(question, noise, rounds, domain)
    factors, ones, price, deviation, limit = priced(of_each, rows_of_unit(noise), sites, max_rows)
    blocks = answers.layout(question, domain)
    told = [{"name": b[0], "words": b[1], "one": one} for b, one in zip(blocks, ones, strict=True)]
    values = answers.answer(question, domain, domain.working(rows, work["out_of_box"][0]))
    if question[0] == "CountRows":
        values = [[1.0] * len(rows)]
    words = Words(k)
    each = [factor for b, factor in zip(blocks, factors, strict=True) for _ in range(b[1])]
    drawn = [(word + gaussian(words, deviation)) % 2**64 for word in guarded(values, each)]
    return {"blocks": told, "price": price, "deviation": deviation, "limit": limit}, drawn


def answer_cases():
    centres = [[0.25, 0.5], [0.75, 0.375]]
    work = {
        "columns": [{"name": "x", "lower": 0.0, "upper": 10.0}, {"name": "y", "lower": -1.0, "upper": 3.0}],
        "scaling": ("box", {}), "out_of_box": ("clip", {}),
        "recipe": {
            "clusters": {"min": 2, "max": 2}, "algorithm": ("fcm", {"m": 2.0, "epsilon": 0.0, "max_rounds": 4}),
            "stop": ("frobenius", {}), "range": None, "seeding": ("given", {"centres": centres}), "restarts": 1,
            "preparation": ("none", {}),
            "validity": {"full": False, "vectors": False, "judge_m": 2.0, "davies_bouldin": {"p": 2.0, "q": 1.0}},
            "choice": {"by": ("fuzzy-davies-bouldin", {}), "elbow": False},
            "noise": {
                "nano_rho": 311_000_000, "unit": ("record", {}), "count_share": 0.02, "seeding_share": 0.1,
                "validation_share": 0.1, "standardising_share": 0.1, "absolute_rounds": 1, "tau": 0.25,
                "expected_rows": 500, "retries": 2,
            },
        },
        "sampling": None, "judge": ("coordinator", {}), "step_bits": None, "categorical": [],
    }  # fmt: skip
    first = {"centres": centres, "m": 2.0, "middle": True, "clip": math.sqrt(0.5) * (1 + 1e-5), "round": 0}
    queries = {"first round": ("shifts", first), "validation": ("fuzzy_validation", {"centres": centres, "m": 2.0})}
    questions = {"count": ("CountRows", {})}
    questions |= {name: ("Cluster", {"transform": None, "queries": [query]}) for name, query in queries.items()}
    cases = [(name, question, ("record", {})) for name, question in questions.items()]
    cases += [(f"{name}, persons", questions[name], ("person", {"rows": 5})) for name in ("count", "first round")]
    rows = [[2.2, 0.75], [7.1, 0.3], [11.5, 2.9]]
    for name, question, work["recipe"]["noise"]["unit"] in cases:
        plan, k = {"sites": 5, "max_rows": 10_000_000}, H("key of an answer", name.encode())
        layout, words = noisy_answer(work, question, rows, **plan, k=k)
        yield {
            "function": "answer", "name": name, "work": encode(WORK, work), **plan, "question": encode(QUESTION, question),
            "site": rows, "key": k, "layout": layout, "words": words,
        }  # fmt: skip


def noise_cases():
    cases = []
    for sigma in (1, 4, 37, 12_345, MAX_SIGMA):
        k = H("noise vectors", sigma.to_bytes(8, "little"))
        words = Words(k)
        draws = [gaussian(words, sigma) for _ in range(24)]
        cases.append({"function": "gaussian", "key": k, "sigma": sigma, "draws": draws})
    for sigma in (0, MAX_SIGMA + 1, 2**64 - 1):
        k = H("noise vectors", sigma.to_bytes(8, "little"))
        try:
            gaussian(Words(k), sigma)
        except Refused as bad:
            cases.append({"function": "gaussian", "key": k, "sigma": sigma, "rule": bad.rule})
    words = Words(H("a key"))
    cases.append({"function": "stream", "key": words.key, "words": [words.word() for _ in range(200)]})
    cases += answer_cases()
    return "Noise (section 17): draws from a key, and answers of a site.", cases
