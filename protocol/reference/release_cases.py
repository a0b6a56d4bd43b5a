"""Vectors of the rule of blocks (spec section 11.3): partitions, whole sets, sizes, versions, arrangements."""

import release
from codec import Refused
from suite import Draws, H, le16


def member(site, block=None, version=0, account=None):
    """A member that states the block of these sites."""
    called = block and release.block_id([key(s) for s in block])
    return {"site": site, "key": key(site), "standing": {"account": account, "block": called, "version": version}}


def key(site):
    """Public here: only its bytes matter, and their order is not that of the numbers."""
    return H("a key", le16(site))


def partitions():
    old = [member(s, [0, 1, 2], s) for s in range(3)] + [member(s) for s in (3, 4, 300)]
    for name, lists in [
        ("sound", [[0, 1, 2], [3, 4, 300]]), ("in another order", [[3, 4, 300], [0, 1, 2]]),
        ("blocks of one", [[0, 1, 2], [3], [4], [300]]), ("a site left out", [[0, 1, 2], [3, 4]]),
        ("no block", []), ("an empty block", [[0, 1, 2], [], [3, 4, 300]]), ("not sorted", [[0, 2, 1], [3, 4, 300]]),
        ("a site twice in one", [[0, 1, 2], [3, 3, 4, 300]]), ("a site in two", [[0, 1, 2], [2, 3, 4, 300]]),
        ("a stranger", [[0, 1, 2], [3, 4, 5, 300]]), ("a stated block cut", [[0, 1], [2, 3, 4, 300]]),
        ("a stated block with one more", [[0, 1, 2, 3], [4, 300]]), ("one block of all", [[0, 1, 2, 3, 4, 300]]),
    ]:  # fmt: skip
        case = {"function": "partition", "name": name, "members": old, "lists": lists}
        try:
            case["blocks"] = release.partition(old, lists)
        except Refused as bad:
            case |= {"rule": bad.rule, "site": bad.culprit}
        yield case
    account = H("an account")
    for name, members in [
        ("known by an account", [member(0, account=account), member(1), member(2)]),
        ("one account at two sites", [member(0, account=account), member(1, account=account), member(2)]),
        ("another's key as an account", [member(0, account=key(1)), member(1), member(2)]),
    ]:
        case = {"function": "partition", "name": name, "members": members, "lists": [[0, 1, 2]]}
        try:
            case["blocks"] = release.partition(members, [[0, 1, 2]])
        except Refused as bad:
            case |= {"rule": bad.rule, "site": bad.culprit}
        yield case


def sets():
    members = [member(s) for s in range(9)]
    blocks = release.partition(members, [[0, 4, 8], [1, 2, 3], [5], [6, 7]])
    for sites in ([], [5], [0, 4, 8], [0, 4], [1, 2, 3, 5], [0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 6, 7], [6], [5, 6, 7]):
        case = {"function": "set", "members": members, "lists": [b["sites"] for b in blocks], "sites": sites}
        case |= {"whole": release.whole_among(blocks, sites), "cut": release.cut_among(blocks, sites)}
        try:
            release.check_whole(blocks, sites)
        except Refused as bad:
            case |= {"rule": bad.rule, "site": bad.culprit}
        yield case


def sizes():
    for contributors in (0, 1, 2, 3, 10):
        for colluders in (0, 1, 4):
            found = release.least_sites(contributors, colluders)
            yield {"function": "least", "contributors": contributors, "colluders": colluders, "result": found}
    for n, t, c in [(3, 3, 0), (5, 4, 1), (10, 7, 3), (20, 14, 6), (9, 6, 1), (1000, 667, 333), (100, 66, 31)]:
        found = release.burned_by(n, t, c)
        yield {"function": "burned_by", "members": n, "threshold": t, "colluders": c, "result": found}


def changes():
    before = [1, 1, 0, 5]
    for name, now, least in [
        ("nobody", [1, 1, 0, 5], 3), ("three of three", [2, 2, 9, 5], 3), ("two of three", [2, 2, 0, 5], 3),
        ("one goes back", [2, 2, 1, 4], 3), ("one, where one is enough", [2, 1, 0, 5], 1), ("all", [9, 9, 9, 9], 4),
    ]:  # fmt: skip
        case = {"function": "change", "name": name, "keys": [key(s) for s in range(4)], "before": before, "now": now}
        case["least"] = least
        try:
            release.may_change(dict(zip(case["keys"], before)), dict(zip(case["keys"], now)), least)
        except Refused as bad:
            case["rule"] = bad.rule
        yield case


def admissions():
    members, lists, all_six = [member(s) for s in range(6)], [[0, 1, 2], [3, 4, 5]], list(range(6))
    blocks = release.partition(members, lists)

    def own(sites, version=0):
        return [[key(s), version] for s in sites]

    mine, one = own([0, 1, 2]), [[key(0), 1], *own([1, 2])]
    for name, now, before, cohort, drawn in [
        ("the first answer", mine, None, all_six, None), ("the same block", mine, mine, [0, 1, 2], [0, 1, 2]),
        ("another block before", mine, own([0, 1, 2, 3]), all_six, None), ("a smaller one", mine, own([0, 1]), all_six, None),
        ("a cut block", mine, mine, [0, 1, 2, 3], None), ("a draw that cuts", mine, mine, all_six, [1, 2, 3, 4, 5]),
        ("too few sites", own([0, 1]), None, all_six, None), ("all rows are new", own([0, 1, 2], 1), mine, all_six, None),
        ("the rows of one are new", one, mine, all_six, None), ("rows of before", mine, one, all_six, None),
    ]:  # fmt: skip
        case = {"function": "admit", "name": name, "members": members, "lists": lists, "own": now, "before": before}
        case |= {"cohort": cohort, "drawn": drawn, "least": 3}
        try:
            release.admit(dict(now), before and dict(before), blocks, cohort, drawn, 3)
        except Refused as bad:
            case["rule"] = bad.rule
        yield case


def arrangements():
    def case(name, members, size, least, known=()):
        found = release.propose(members, release.partition(*known) if known else [], size, least)
        shown = {"members": known[0], "lists": known[1]} if known else None
        return {"function": "propose", "name": name, "members": members, "size": size, "least": least, "known": shown, **found}

    def none(n):
        return [member(s) for s in range(n)]

    yield case("one block of all", none(5), 0, 3)
    yield case("too few", none(2), 0, 3)
    yield case("as even as can be", none(10), 3, 3)
    yield case("each by itself", none(3), 1, 1)
    yield case("larger ones than the least", none(11), 5, 3)
    yield case("a plan's size below the least", none(11), 2, 4)
    old = [0, 1, 2, 3]

    def there(sites, late=()):
        return [member(s, old if s < 4 and s not in late else None) for s in sites]

    yield case("a joiner waits for others", there([0, 1, 2, 3, 4]), 0, 3)
    yield case("a block waits for somebody", there([0, 1, 3, 4, 5, 6]), 0, 3)
    yield case("one of a block states none", there(old, [2]), 0, 3)
    yield case("one of a block states none, and another is new", there([*old, 4], [2]), 0, 3)
    nine, lists = none(9), [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    some = [member(s, [3, 4, 5] if s == 4 else None) for s in range(9)]
    yield case("blocks of the deck before", some, 0, 3, (nine, lists))
    yield case("of the deck before, one lacks a site", some[1:], 0, 3, (nine, lists))
    yield case("of the deck before, one site states another", [member(0, [0, 1]), *some[1:]], 3, 3, (nine, lists))
    draws = Draws("arrangements")
    for i in range(40):
        of = [draws.take(1)[0] % 5 for _ in range(1 + draws.take(1)[0] % 16)]
        blocks = [[s for s, o in enumerate(of) if o == b] for b in range(5)]
        members = []
        for s, b in enumerate(of):
            here, states = draws.take(2)
            if here % 8:
                members.append(member(s, blocks[b] if b < 4 and states % 4 else None))
        size, least = draws.take(1)[0] % 5, 1 + draws.take(1)[0] % 3
        found = case(f"drawn, {i}", members, size, least)
        kept = [m for m in members if m["site"] not in found["incomplete"] + found["too_few"]]
        release.partition(kept, found["blocks"])  # every site accepts it
        yield found


def identities():
    for sites in ([0], [1, 0], [0, 1], [5, 300, 2]):
        keys = [key(s) for s in sites]
        yield {"function": "identity", "keys": keys, "result": release.block_id(keys)}


def release_cases():
    text = "Blocks (section 11.3): what identifies one, sound and unsound partitions, whole sets, sizes, versions, answers, arrangements."
    return text, [*identities(), *partitions(), *sets(), *sizes(), *changes(), *admissions(), *arrangements()]
