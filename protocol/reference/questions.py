"""What an aggregator may ask, and the application's part of a plan, as bytes (spec sections 13.1 and 13.7)."""

import math

from codec import BOOL, F64, HASH, NOTHING, TEXT, U8, U32, U64, Enum, List, Option, Raw, Refused, Struct


class Points:
    """Centres: K and d as u32, then a list of K x d doubles. A value is a list of K lists."""

    FLAT = Struct(k=U32, columns=U32, values=List(F64))

    def flat(self, v):
        return {"k": len(v), "columns": len(v[0]), "values": [x for row in v for x in row]}

    def put(self, v):
        return self.FLAT.put(self.flat(v))

    def get(self, r):
        flat = self.FLAT.get(r)
        k, d, values = flat["k"], flat["columns"], flat["values"]
        if k == 0 or d == 0 or len(values) != k * d or not all(map(math.isfinite, values)):
            raise Refused("ENC-1", "no centres, another number of values than K x d, or one that is not finite")
        return [values[d * i : d * (i + 1)] for i in range(k)]


POINTS, DOUBLES, NUMBERS = Points(), List(F64), List(U32)

# Section 13.1: questions.
TRANSFORM = Struct(lower=DOUBLES, upper=DOUBLES, shift=DOUBLES, factor=DOUBLES)
STEPS = Struct(most=U32, epsilon=F64)
PULL = Enum(memberships=NOTHING, powers=NOTHING, nearest=NOTHING)
FEATURE_PARAMS = Struct(min=U32, max=U32, tau=F64, m=F64)
BRACKET = Struct(column=U32, lower=F64, upper=F64)
QUERY = Enum(
    fuzzy_sums=Struct(centres=POINTS, m=F64),
    fuzzy_validation=Struct(centres=POINTS, m=F64),
    local_fuzzy=Struct(centres=POINTS, m=F64, local=STEPS, pull=PULL),
    local_means=Struct(centres=POINTS, local=STEPS, min_rows=U64, nearest=BOOL),
    features=Struct(anchors=POINTS, params=FEATURE_PARAMS),
    moments=Struct(around=Option(DOUBLES)),
    histogram=Struct(brackets=List(BRACKET), bins=U32),
    local_choice=Struct(min=U32, most=U32, m=F64, local=STEPS, seed=U64, starts=U32),
    margins=Struct(bins=U32),
    validation=Struct(centres=POINTS, m=F64, vectors=BOOL),
    shifts=Struct(
        centres=POINTS,
        m=Option(F64),
        middle=BOOL,
        clip=F64,
        round=U32,
    ),
    missing=Struct(),
)
BATCH = Struct(transform=Option(TRANSFORM), queries=List(QUERY))
QUESTION = Enum(
    CountRows=NOTHING,
    Cluster=BATCH,
    Drawn=Struct(number=U32, batch=BATCH),
    Judge=Struct(digest=HASH, words=U32),
)

# Section 13.7: the application's part of a plan.
ALGORITHM = Enum(
    **{
        "fcm": Struct(m=F64, epsilon=F64, max_rounds=U32),
        "ffcm-avg1": Struct(m=F64, epsilon=F64, max_rounds=U32, local=STEPS, powers=BOOL),
        "ffcm-avg2": Struct(m=F64, epsilon=F64, max_rounds=U32, local=STEPS),
        "fkm": Struct(epsilon=F64, max_rounds=U32, min_rows=U64, local_steps=U32, finish=U32),
        "kmeans": Struct(epsilon=F64, max_rounds=U32),
        "ffcf": Struct(m=F64, features=FEATURE_PARAMS, anchors=U32, merge=BOOL),
        "describe": Struct(bins=U32),
    }
)
SEEDING = Enum(
    uniform=Struct(seed=U64),
    given=Struct(centres=POINTS),
    candidates=Struct(seed=U64, each=U32, tries=U32),
)
PICK = Enum(
    **dict.fromkeys(
        "fuzzy-davies-bouldin davies-bouldin xie-beni partition-coefficient partition-entropy "
        "modified-partition-coefficient fukuyama-sugeno calinski-harabasz gap".split(),
        NOTHING,
    )
)
NOISE = Struct(
    nano_rho=U64,
    unit=Enum(record=NOTHING, person=Struct(rows=U64)),
    count_share=F64,
    seeding_share=F64,
    validation_share=F64,
    standardising_share=F64,
    absolute_rounds=U32,
    tau=F64,
    expected_rows=U64,
    retries=U32,
)
RECIPE = Struct(
    clusters=Struct(min=U32, max=U32),
    algorithm=ALGORITHM,
    stop=Enum(frobenius=NOTHING, sum=NOTHING),
    range=Option(Struct(most=U32, starts=U32, seed=U64)),
    seeding=SEEDING,
    restarts=U32,
    preparation=Enum(none=NOTHING, standard=NOTHING),
    validity=Struct(
        full=BOOL,
        vectors=BOOL,
        judge_m=F64,
        davies_bouldin=Struct(p=F64, q=F64),
    ),
    choice=Struct(by=PICK, elbow=BOOL),
    noise=Option(NOISE),
)
WORK = Struct(
    columns=List(Struct(name=TEXT, lower=F64, upper=F64)),
    scaling=Enum(box=NOTHING, none=NOTHING),
    out_of_box=Enum(refuse=NOTHING, clip=NOTHING),
    recipe=RECIPE,
    sampling=Option(Struct(share=F64, seed=U64)),
    judge=Enum(coordinator=NOTHING, intermediary=NOTHING),
    step_bits=Option(U8),
    categorical=List(Struct(column=TEXT, categories=List(TEXT), weight=F64)),
)


def shown(kind, v):
    """A value as JSON: a variant is its name, or an object of its name and fields."""
    if isinstance(kind, Enum):
        inner = kind.types[kind.names.index(v[0])]
        return v[0] if inner is NOTHING else {v[0]: shown(inner, v[1])}
    if isinstance(kind, Struct):
        return {name: shown(t, v[name]) for name, t in kind.fields.items()}
    if isinstance(kind, Option):
        return None if v is None else shown(kind.item, v)
    if isinstance(kind, List):
        return [shown(kind.item, x) for x in v]
    if isinstance(kind, Points):
        return kind.flat(v)
    return v.hex() if isinstance(kind, Raw) else v
