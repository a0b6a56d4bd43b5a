"""The history of a roster: signed changes, and new keys that both keys state (spec section 5)."""

from codec import HASH, TEXT, U32, List, Raw, Refused, Struct, encode
from documents import ROSTER, SIGNED_ROSTER, check_name, check_roster, roster_hash, verify_roster
from driver import parties
from identity import Identity, usable, verify
from suite import H

MAX_CHANGES, MAX_REKEYS = 1024, 1024

REKEY = Struct(federation=TEXT, party=TEXT, old=HASH, new=HASH, by_old=Raw(64), by_new=Raw(64))
CHANGE = Struct(number=U32, previous=HASH, roster=HASH, rekeys=List(REKEY))
SIGNED_CHANGE = Struct(change=CHANGE, signature=Raw(64))
DOCUMENT = Struct(signed=SIGNED_ROSTER, history=List(SIGNED_CHANGE))


def rekey_hash(r):
    return H("rekey", r["federation"].encode(), r["party"].encode(), r["old"], r["new"])


def change_hash(change):
    return H("roster change", encode(CHANGE, change))


def state(federation, party, old, new):
    """What a member with both keys states."""
    r = {"federation": federation, "party": party, "old": old.public, "new": new.public}
    return {**r, "by_old": old.sign(rekey_hash(r)), "by_new": new.sign(rekey_hash(r))}


def recovered(federation, party, old, new):
    """The same where the old key has named the new one beforehand, and is lost."""
    return {**state(federation, party, old, new), "by_old": old.sign(H("recovery", new.public))}


def is_recovered(r):
    return verify(r["old"], H("recovery", r["new"]), r["by_old"])


def verify_rekey(r):
    """[ROS-11]."""
    try:
        check_name(r["federation"])
        check_name(r["party"])
    except Refused as bad:
        raise Refused("ROS-11", str(bad)) from None
    if r["old"] == r["new"] or not usable(r["new"]):
        raise Refused("ROS-11", "the new key")
    for key, signature in (r["old"], r["by_old"]), (r["new"], r["by_new"]):
        if not verify(key, rekey_hash(r), signature) and not (key == r["old"] and is_recovered(r)):
            raise Refused("ROS-11", "a signature")


def members(roster):
    return [roster["coordinator"], roster["intermediary"], *roster["sites"]]


def verify_document(document):
    """[ROS-6], [ROS-12]."""
    roster, history = verify_roster(document["signed"]), document["history"]
    hub = roster["coordinator"]["key"]
    if len(history) > MAX_CHANGES or sum(len(s["change"]["rekeys"]) for s in history) > MAX_REKEYS:
        raise Refused("ROS-12", "too long")
    before, retired, taken = None, set(), {hub}
    for n, signed in enumerate(history):
        change = signed["change"]
        if change["number"] != n or change["previous"] == change["roster"] or before not in (None, change["previous"]):
            raise Refused("ROS-12", f"change {n} does not follow")
        if not verify(hub, change_hash(change), signed["signature"]):
            raise Refused("ROS-12", f"change {n} is not signed by the coordinator")
        for r in change["rekeys"]:
            verify_rekey(r)
            fresh = r["old"] not in retired and r["new"] not in retired | taken
            if r["federation"] != roster["name"] or r["old"] == hub or not fresh:
                raise Refused("ROS-12", f"a new key of {r['party']}")
            retired.add(r["old"])
            taken.add(r["new"])
        before = change["roster"]
    if before not in (None, roster_hash(roster)):
        raise Refused("ROS-12", "it ends elsewhere")
    if any(m["key"] in retired for m in members(roster)):
        raise Refused("ROS-12", "a key that was replaced")
    for r in history[-1]["change"]["rekeys"] if history else []:
        if not any((m["key"], m["name"]) == (r["new"], r["party"]) for m in members(roster)):
            raise Refused("ROS-12", "a key that nobody has")


def applied(roster, rekeys):
    """The roster with the keys that these statements name."""
    for r in rekeys:
        one = {"key": r["old"], "name": r["party"]}
        now = [{**m, "key": r["new"]} if {k: m[k] for k in one} == one else m for m in members(roster)[1:]]
        roster = {**roster, "intermediary": now[0], "sites": now[1:]}
    return roster


def step(last, document):
    """[ROS-13]."""
    roster, history = document["signed"]["roster"], document["history"]
    if last == roster:
        return "same"
    starts = [n for n, signed in enumerate(history) if signed["change"]["previous"] == roster_hash(last)]
    if not starts:
        return "other"
    rekeys = [r for s in history[starts[-1] :] for r in s["change"]["rekeys"]]
    now = applied(last, rekeys)
    for hub in "coordinator", "intermediary":
        now = {**now, hub: {**now[hub], "address": roster[hub]["address"]}}
    return "rekeyed" if now == roster and not any(map(is_recovered, rekeys)) else "other"


def history_cases():
    ids, roster, _ = parties("history", 3)
    hub, out = ids[0], []
    fresh = [Identity(H("a new key", bytes([n]))) for n in range(6)]

    def signed(roster):
        return {"roster": roster, "signature": hub.sign(roster_hash(roster))}

    def change(number, previous, now, rekeys=(), signer=hub):
        c = {"number": number, "previous": roster_hash(previous), "roster": roster_hash(now), "rekeys": list(rekeys)}
        return {"change": c, "signature": signer.sign(change_hash(c))}

    def rekey(member, old, new, federation=roster["name"]):
        return state(federation, members(roster)[member]["name"], old, new)

    def rule(check, value):
        try:
            check(value)
        except Refused as bad:
            return {"rule": bad.rule}
        return {}

    def a_rekey(name, r):
        out.append({"function": "rekey", "name": name, "encoded": encode(REKEY, r), **rule(verify_rekey, r)})

    def a_document(name, history, now):
        d = {"signed": signed(now), "history": history}
        out.append({"function": "document", "name": name, "encoded": encode(DOCUMENT, d), **rule(verify_document, d)})
        return d

    def a_step(name, last, document):
        encoded = {"from": encode(ROSTER, last), "encoded": encode(DOCUMENT, document)}
        out.append({"function": "step", "name": name, **encoded, "result": step(last, document)})

    good = rekey(3, ids[3], fresh[0])
    out.append({"function": "rekey", "name": "good", "value": good, "encoded": encode(REKEY, good)})
    a_rekey("the signatures in the other order", {**good, "by_old": good["by_new"], "by_new": good["by_old"]})
    a_rekey("another old key", {**good, "old": ids[2].public})
    a_rekey("another new key", {**good, "new": fresh[1].public})
    a_rekey("another party", {**good, "party": "site-2"})
    a_rekey("another federation", {**good, "federation": "others"})
    a_rekey("a name with a space", state("vectors", "site 1", ids[3], fresh[0]))
    a_rekey("the same key", rekey(3, ids[3], ids[3]))
    a_rekey("a new key of small order", {**good, "new": (1).to_bytes(32, "little")})

    name = members(roster)[3]["name"]
    lost = recovered(roster["name"], name, ids[3], fresh[0])
    out.append({"function": "rekey", "name": "recovered", "value": lost, "encoded": encode(REKEY, lost)})
    a_rekey("recovered, another new key", {**lost, "new": fresh[1].public})
    a_rekey("recovered, named by another", recovered(roster["name"], name, ids[2], fresh[0]) | {"old": ids[3].public})
    a_rekey("recovered, without the new key", {**lost, "by_new": lost["by_old"]})

    one = applied(roster, [good])
    second = [rekey(3, fresh[0], fresh[1]), rekey(1, ids[1], fresh[2])]
    two = applied(one, second)
    gone = {**two, "sites": [two["sites"][0], two["sites"][2], {"name": "late", "key": fresh[3].public, "address": ""}]}
    first_change, second_change = change(0, roster, one, [good]), change(1, one, two, second)
    whole = [first_change, second_change]
    check_roster(gone)
    first = a_document("a first roster", [], roster)
    a_document("one change", whole[:1], one)
    both = a_document("two changes", whole, two)
    other = a_document("a member leaves and one joins", [*whole, change(2, two, gone)], gone)
    back = [change(0, roster, gone), change(1, gone, roster), change(2, roster, gone)]
    a_document("there and back again", back, gone)
    a_document("the second change alone", whole[1:], two)
    a_document("the first change alone", whole[:1], two)
    a_document("the changes in the other order", whole[::-1], two)
    a_document("a change of nothing", [*whole, change(2, two, two)], two)
    a_document("signed by the intermediary", [change(0, roster, one, [good], signer=ids[1])], one)
    a_document("a statement left out after signing", [{**first_change, "change": {**first_change["change"], "rekeys": []}}], one)
    forged = {**rekey(3, fresh[4], fresh[0]), "old": ids[3].public}
    a_document("a statement that the member did not make", [change(0, roster, one, [forged])], one)
    a_document("another federation's statement", [change(0, roster, one, [rekey(3, ids[3], fresh[0], "others")])], one)
    a_document("a statement once more", [first_change, change(1, one, two, [good])], two)
    a_document("two new keys for one", [first_change, change(1, one, two, [rekey(3, ids[3], fresh[1])])], two)
    a_document("an old key again", [first_change, change(1, one, two, [rekey(3, fresh[0], ids[3])])], two)
    a_document("a new key that another has", [first_change, change(1, one, two, [rekey(2, ids[2], fresh[0])])], two)
    a_document("the coordinator's key", [change(0, roster, one, [rekey(0, hub, fresh[0])])], one)
    a_document("a new key that nobody has", [change(0, roster, one, [rekey(3, ids[3], fresh[5])])], one)
    a_document("a replaced key on the roster", [first_change, change(1, one, roster)], roster)

    a_step("the same", roster, first)
    a_step("two statements one after the other", roster, both)
    a_step("the last one", one, both)
    a_step("with another change behind it", roster, other)
    a_step("another change", two, other)
    a_step("back", two, first)
    round_trip = a_document("there and back, and a new key", [*back[:2], change(2, roster, one, [good])], one)
    a_step("there and back, and a new key", roster, round_trip)
    moved = {**roster, "intermediary": {**roster["intermediary"], "address": "elsewhere.example:1"}}
    a_step("from a roster that it does not know", moved, both)
    silent = {**one, "sites": [*one["sites"][:2], {**one["sites"][2], "key": fresh[5].public}]}
    sly = a_document("a key beside one that was stated", [change(0, roster, silent, [good])], silent)
    a_step("a key beside one that was stated", roster, sly)
    a_step("a recovered key", roster, a_document("a recovered key", [change(0, roster, one, [lost])], one))
    to = {hub: {**roster[hub], "address": "elsewhere.example:1"} for hub in ("coordinator", "intermediary")}
    a_step("other addresses", roster, a_document("other addresses", [change(0, roster, {**roster, **to})], {**roster, **to}))
    there = {**roster, "sites": [{**roster["sites"][0], "address": "elsewhere.example:1"}, *roster["sites"][1:]]}
    a_step("a site's address", roster, a_document("a site's address", [change(0, roster, there)], there))
    return "Histories of a roster and new keys (section 5). Bad ones are signed as they stand.", out
