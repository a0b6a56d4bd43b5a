"""Roster, plan, threshold and a site's own floor (spec sections 5, 6 and 11)."""

from codec import BLOB, BOOL, HASH, NOTHING, TEXT, U16, U64, Enum, List, Raw, Refused, Struct, encode
from identity import usable, verify
from suite import H

MIN_SITES, MAX_SITES, MAX_SLOTS, MAX_NAME, MAX_ADDRESS, MAX_APPLICATION = 3, 1000, 256, 64, 262, 1 << 20

MEMBER = Struct(name=TEXT, key=HASH, address=TEXT)
ROSTER = Struct(name=TEXT, coordinator=MEMBER, intermediary=MEMBER, sites=List(MEMBER))
SIGNED_ROSTER = Struct(roster=ROSTER, signature=Raw(64))
SITES = Enum(Same=NOTHING, Any=NOTHING)
TERMS = Struct(
    roster=HASH, min_cohort=U16, threshold=U16, colluders=U16, sites=SITES, slots=U16, max_rows=U64,
    min_total_rows=U64, application=BLOB,
)  # fmt: skip
SIGNED_TERMS = Struct(terms=TERMS, signature=Raw(64))
PARTY = Enum(Coordinator=NOTHING, Intermediary=NOTHING, Site=Struct(number=U16))


def roster_hash(roster):
    return H("roster", encode(ROSTER, roster))


def plan_hash(terms):
    return H("plan", encode(TERMS, terms))


def session(terms, roster, role):
    """[SES-1]; `role` is `Coordinator` or `Intermediary`."""
    return H("session", plan_hash(terms), roster_hash(roster), encode(PARTY, (role, {})))


def check_name(name):
    plain = all(c.isascii() and (c.isalnum() or c in "-_.") for c in name)
    if not 1 <= len(name.encode()) <= MAX_NAME or not plain:
        raise Refused("ROS-2", f"the name {name!r}")


def check_roster(roster):
    """[ROS-1], [ROS-2], [ROS-4], [KEY-2]."""
    if not MIN_SITES <= len(roster["sites"]) <= MAX_SITES:
        raise Refused("ROS-1", "too few or too many sites")
    check_name(roster["name"])
    members = [roster["coordinator"], roster["intermediary"], *roster["sites"]]
    for m in members:
        check_name(m["name"])
        if not usable(m["key"]):
            raise Refused("KEY-2", f"the key of {m['name']}")
        if len(m["address"].encode()) > MAX_ADDRESS:
            raise Refused("ROS-2", f"the address of {m['name']}")
    for field in ("key", "name"):
        if len({m[field] for m in members}) < len(members):
            raise Refused("ROS-4", f"a {field} stands twice")


def verify_roster(signed):
    """[ROS-6]."""
    check_roster(signed["roster"])
    if not verify(signed["roster"]["coordinator"]["key"], roster_hash(signed["roster"]), signed["signature"]):
        raise Refused("ROS-6", "not signed by its coordinator")
    return signed["roster"]


def check_terms(terms, roster):
    """[PLN-1], [PLN-2], [THR-2]."""
    n = len(roster["sites"])
    if terms["roster"] != roster_hash(roster):
        raise Refused("PLN-1", "another roster's plan")
    if not (
        MIN_SITES <= terms["min_cohort"] <= n
        and 1 <= terms["slots"] <= MAX_SLOTS
        and terms["max_rows"] != 0
        and terms["min_total_rows"] <= terms["max_rows"] * n
        and len(terms["application"]) <= MAX_APPLICATION
    ):
        raise Refused("PLN-2", "a number of the plan")
    threshold(terms, n, n)


def verify_terms(signed, roster):
    """[PLN-7]."""
    check_terms(signed["terms"], roster)
    if not verify(roster["coordinator"]["key"], plan_hash(signed["terms"]), signed["signature"]):
        raise Refused("PLN-7", "not signed by the coordinator")
    return signed["terms"]


def opens(terms, role):
    """Whether the totals of this aggregator are opened to the cohort: the intermediary's never are."""
    return role == "Coordinator"


def colluders(terms, sites):
    """c of the plan; `sites` are those of the roster."""
    return terms["colluders"] or (sites - 1) // 3


def supposed(terms, floor, sites):
    """The colluders that a site reckons with."""
    return max(colluders(terms, sites), floor["colluders"])


def threshold(terms, n, sites):
    """t for a deck of n members ([THR-1]), checked."""
    c = colluders(terms, sites)
    t = terms["threshold"] or max(2 * n // 3 + 1, (n + c) // 2 + 1)
    check_threshold(n, t, c)
    return t


def check_threshold(n, t, c):
    """[THR-2]."""
    if t > n or 2 * t <= n + c or t - c < 2:
        raise Refused("THR-2", f"n = {n}, t = {t}, c = {c}")


DEFAULT_FLOOR = {"min_cohort": MIN_SITES, "colluders": 0, "max_rounds": 1000}


def plan_least(terms, sites):
    """[POL-1]: the fewest sites of a total, of those of the roster."""
    return sites if terms["sites"][0] == "Same" else max(terms["min_cohort"], MIN_SITES)


def least(terms, floor, sites):
    """[POL-1], for a site."""
    return max(plan_least(terms, sites), floor["min_cohort"])


def site_threshold(terms, floor, n, sites):
    """What a site accepts for a directory of n entries ([THR-1])."""
    if n < least(terms, floor, sites):
        raise Refused("POL-1", f"{n} sites")
    t = threshold(terms, n, sites)
    check_threshold(n, t, supposed(terms, floor, sites))
    return t
