"""What the total of a question leads to, method by method (spec sections 13.3 and 13.8): the step of a round, from its blocks."""

MEANS = {"fuzzy_sums", "local_fuzzy", "local_means"}
# Of all clusters together: a weight below this share cannot be told from the rounding of totals.
CLEAR_SHARE = 1e-9


class Step:
    """From where clusters were `asked` about to where their total leads."""

    def __init__(self, asked, after):
        self.asked, self.after, self.gone_on = asked, after, False


def named(blocks, values):
    """The values of an answer by the names of its blocks."""
    out, at = {}, 0
    for name, length, *_ in blocks:
        out.setdefault(name, []).extend(values[at : at + length])
        at += length
    return out


def some(weight):
    """Whether a whole number, up to the rounding of totals, is above 0."""
    return weight > 0.5


def clear(weights):
    least = CLEAR_SHARE * sum(weights)
    return [w if w > least else 0.0 for w in weights]


class Steps:
    """The steps of a plan's method."""

    def __init__(self, recipe):
        self.most = recipe["clusters"]["max"]

    def stands(self, name, q):
        """Where a question asks about its clusters; nothing for a question that is none of a round, such as one about candidates for
        first centres, which are more than there are clusters."""
        if name in MEANS and len(q["centres"]) <= self.most:
            return q["centres"]
        return None

    def of(self, name, q, blocks, box):
        """The step that an answer to this question is, `box` its domain in the units of the question."""
        d = box.columns
        weights = blocks.get("weights") or blocks["rows"]
        sums = blocks.get("sums") or blocks.get("weighted_sums")
        counted = name == "local_means" or (name == "local_fuzzy" and q["pull"][0] == "nearest")
        weights = [w if some(w) else 0.0 for w in weights] if counted else clear(weights)
        after = list(q["centres"])
        for i, w in enumerate(weights):
            if w > 0:
                after[i] = confined([s / w for s in sums[d * i : d * i + d]], box)
        return Step(q["centres"], after)


def confined(centre, box):
    return [min(max(x, low), high) for x, (low, high) in zip(centre, map(box.interval, range(box.columns)))]
