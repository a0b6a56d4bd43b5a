"""A site's own policy: what it demands whatever the plan says (spec section 11.1). Pure."""

from codec import Refused

MIN_SITES = 3
GOOD = {
    "min_cohort": 3, "max_rounds": 10, "methods": None, "columns": None, "nano_rho": None, "exact": "by-agreement",
    "rows_per_person": None,
}  # fmt: skip


def check_size(policy, least, sites, over, roster):
    """[POL-1]; `least` and `sites` are the plan's, the total is over so many of those of the roster."""
    if over < max(policy["min_cohort"], roster if sites == "same" else max(least, MIN_SITES)):
        raise Refused("POL-1", "too few sites")


def check_questions(policy, questions):
    """[POL-2]."""
    if questions > policy["max_rounds"]:
        raise Refused("POL-2", "too many questions")


def check_plan(policy, method, columns, rows):
    """[POL-4]; `rows` are those of one person, if the plan's unit is a person."""
    for name, listed in [(method, "methods"), *((c, "columns") for c in columns)]:
        if policy[listed] is not None and name not in policy[listed]:
            raise Refused("POL-4", f"{name} is not on the list")
    if rows != policy["rows_per_person"]:
        raise Refused("POL-4", "another unit")


def check_account(policy, nano_rho, agreed, spent, cap, before):
    """[POL-8] to [POL-10]; `nano_rho` is nothing without noise; the last two are the account's own."""
    own, most = policy["nano_rho"], 2 * cap
    if nano_rho is None:
        if policy["exact"] == "never" or not agreed:
            raise Refused("POL-9", "no agreement to exact totals")
    elif own is not None and own > most:
        raise Refused("POL-8", "the policy raises no cap")
    elif before + spent + nano_rho > (most if own is None else own):
        raise Refused("POL-8", "the account is spent")
    elif not agreed:
        raise Refused("POL-10", "no agreement to the plan")


CHECKS = {"size": check_size, "questions": check_questions, "plan": check_plan, "account": check_account}


def policy_cases():
    cases = []

    def add(function, policy, **args):
        case = {"function": function, "policy": {**GOOD, **policy}, **args}
        try:
            CHECKS[function](case["policy"], **args)
        except Refused as bad:
            case["rule"] = bad.rule
        cases.append(case)

    for own, least, sites, over, roster in [
        (3, 3, "any", 3, 5), (3, 3, "any", 2, 5), (5, 3, "any", 4, 5), (5, 3, "any", 5, 5), (3, 7, "any", 6, 9), (0, 0, "any", 2, 5),
        (0, 0, "any", 3, 5), (3, 3, "same", 5, 5), (3, 3, "same", 4, 5), (3, 3, "same", 3, 3), (6, 3, "same", 5, 5),
    ]:  # fmt: skip
        add("size", {"min_cohort": own}, least=least, sites=sites, over=over, roster=roster)
    for questions in (0, 10, 11, 2**64 - 1):
        add("questions", {}, questions=questions)
    for policy, method, columns, rows in [
        ({}, "fcm", ["age"], None), ({"methods": ["fcm"]}, "fcm", [], None), ({"methods": ["fcm"]}, "kmeans", [], None),
        ({"methods": []}, "fcm", [], None), ({"columns": ["age"]}, "fcm", ["age"], None),
        ({"columns": ["age"]}, "fcm", ["age", "sex"], None), ({}, "fcm", [], 3),
        ({"rows_per_person": 3}, "fcm", [], 3), ({"rows_per_person": 4}, "fcm", [], 3), ({"rows_per_person": 4}, "fcm", [], None),
        ({"rows_per_person": 2}, "fcm", [], 3),
    ]:  # fmt: skip
        add("plan", policy, method=method, columns=columns, rows=rows)
    for policy, nano_rho, agreed, spent, *bound in [
        ({}, 2 * 10**9, True, 0), ({}, 10**9, True, 10**9 + 1), ({}, 1, True, 2 * 10**9), ({}, 0, True, 2 * 10**9), ({"nano_rho": 0}, 1, True, 0),
        ({}, 4 * 10**9, True, 0, 2 * 10**9, 0), ({}, 4 * 10**9, True, 0, 2 * 10**9, 1), ({}, 1, True, 0, 0, 0),
        ({"nano_rho": 9}, 9, True, 0, 5, 0), ({"nano_rho": 10}, 9, True, 0, 5, 1), ({"nano_rho": 11}, 1, True, 0, 5, 0), ({"nano_rho": 9}, 9, True, 0, 5, 1),
        ({}, 1, False, 0), ({}, 1, False, 2 * 10**9),
        ({}, None, True, 0), ({}, None, False, 0), ({"exact": "never"}, None, True, 0), ({"exact": "never"}, 5, False, 5),
    ]:  # fmt: skip
        cap, before = bound or (10**9, 0)
        add("account", policy, nano_rho=nano_rho, agreed=agreed, spent=spent, cap=cap, before=before)
    return "Policy (section 11.1): sizes, numbers of questions, plans and accounts that a site takes or refuses.", cases
