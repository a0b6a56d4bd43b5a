"""Vectors of what is signed: identities, documents, frames."""

import documents
import frames
import identity
from codec import Refused, encode
from identity import Identity
from layers import flip, refusal
from driver import parties
from suite import ORDER, Draws, H, le16, le32


def identity_cases():
    draws, out = Draws("identity"), []
    for i in range(3):
        who, label, parts = Identity(draws.take(32)), "frame", [draws.take(i), draws.take(40)]
        digest = H(label, *parts)
        case = {"public": who.public, "label": label, "parts": parts, "digest": digest, "signature": who.sign(digest)}
        out.append({"function": "sign", "seed": who.seed, **case})
    good, sig = case, case["signature"]
    r, s = sig[:32], int.from_bytes(sig[32:], "little")
    one, minus_one = (1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little")
    changes = [
        ("a bit of R", {"signature": flip(sig, 3)}), ("a bit of S", {"signature": flip(sig, 300)}),
        ("S + l", {"signature": r + (s + ORDER).to_bytes(32, "little")}),
        ("another digest", {"parts": [b"other"], "digest": H("frame", b"other")}),
        ("another label", {"label": "other", "digest": H("other", *good["parts"])}),
        ("another key", {"public": Identity(bytes(32)).public}),
        ("key of order one, R = [S]B", {"public": one, "signature": base_times(s) + s.to_bytes(32, "little")}),
        ("key of order two", {"public": minus_one}),
        ("R of order one, S = 0, key of order one", {"public": one, "signature": one + bytes(32)}),
        ("not a point", {"public": (2).to_bytes(32, "little")}),
    ]  # fmt: skip
    for why, change in changes:
        case = {**good, **change}
        assert not identity.verify(case["public"], case["digest"], case["signature"]), why
        out.append({"function": "verify", "name": why, **case, "valid": False})
    keys = [one, bytes(32), minus_one, b"\xff" * 32, (2).to_bytes(32, "little"), (2**255 - 18).to_bytes(32, "little")]
    keys += [
        (2**255 - 16).to_bytes(32, "little"),
        good["public"],
        Identity(bytes(32)).public,
        flip(good["public"], 255),
    ]
    for k in keys:
        case = {"function": "usable", "public": k, "usable": identity.usable(k)}
        out.append(case if case["usable"] else {**case, "rule": refusal(identity.must_be_usable, k)})
    for text in (good["public"].hex(), good["public"].hex().upper()):
        out.append({"function": "text", "text": text, "public": identity.key_from_text(text)})
    for text in (
        "",
        "00",
        good["public"].hex()[1:],
        good["public"].hex() + "0",
        "g" + good["public"].hex()[1:],
        "é" * 32,
    ):
        out.append({"function": "text", "text": text, "rule": refusal(identity.key_from_text, text)})
    return "Identities: strict Ed25519 (section 5).", out


def base_times(scalar):
    """[scalar]B on the curve, for one bad case only."""
    y = 4 * pow(5, -1, identity.P) % identity.P
    total, step = (0, 1), identity.point(y.to_bytes(32, "little"))
    while scalar:
        total = identity.add(total, step) if scalar & 1 else total
        step, scalar = identity.add(step, step), scalar >> 1
    x, y = total
    return (y | (x & 1) << 255).to_bytes(32, "little")


def document_cases():
    ids, roster, terms = parties("documents", 5, application=b"what to compute")
    hub, out = ids[0], []

    def signed_roster(r, signer=hub):
        return {"roster": r, "signature": signer.sign(documents.roster_hash(r))}

    def signed_terms(t, signer=hub):
        return {"terms": t, "signature": signer.sign(documents.plan_hash(t))}

    def case(document, value, verify, kind, /, **more):
        try:
            verify(value)
        except Refused as bad:
            more["rule"] = bad.rule
        out.append({"document": document, **more, "encoded": encode(kind, value)})

    def a_roster(why, change, signer=hub, value=None):
        r = {**roster, "sites": [dict(m) for m in roster["sites"]]}
        r = {**r, **change(r)}
        case("roster", value or signed_roster(r, signer), documents.verify_roster, documents.SIGNED_ROSTER, name=why)

    def a_plan(why, signer=hub, **change):
        t = signed_terms({**terms, **change}, signer)
        case("plan", t, lambda v: documents.verify_terms(v, roster), documents.SIGNED_TERMS, name=why)

    good = signed_roster(roster)
    case(
        "roster", good, documents.verify_roster, documents.SIGNED_ROSTER, value=good, hash=documents.roster_hash(roster)
    )
    for sites in ("Same", "Any"):
        t = {**terms, "sites": (sites, {})}
        sessions = {role: documents.session(t, roster, role) for role in ("Coordinator", "Intermediary")}
        more = {"value": signed_terms(t), "hash": documents.plan_hash(t), "sessions": sessions}
        case("plan", signed_terms(t), lambda v: documents.verify_terms(v, roster), documents.SIGNED_TERMS, **more)

    def site(i, **change):
        return lambda r: {"sites": [{**m, **(change if j == i else {})} for j, m in enumerate(r["sites"])]}

    a_roster("two sites", lambda r: {"sites": r["sites"][:2]})
    a_roster("no name", lambda r: {"name": ""})
    a_roster("a name with a space", site(1, name="a b"))
    a_roster("a name of 65 bytes", site(1, name="a" * 65))
    a_roster("an address of 263 bytes", lambda r: {"coordinator": {**r["coordinator"], "address": "a" * 263}})
    a_roster("a key of small order", site(2, key=(1).to_bytes(32, "little")))
    a_roster("a key that is no point", site(2, key=(2).to_bytes(32, "little")))
    a_roster("one key twice", site(2, key=roster["sites"][0]["key"]))
    a_roster("the coordinator's key as a site's", site(2, key=roster["coordinator"]["key"]))
    a_roster("one name twice", site(2, name="hub"))
    a_roster("signed by the intermediary", lambda r: {}, signer=ids[1])
    swapped = {**roster, "sites": roster["sites"][1:] + roster["sites"][:1]}
    a_roster("changed after it was signed", lambda r: {}, value={**signed_roster(roster), "roster": swapped})
    a_plan("another roster", roster=H("other"))
    a_plan("a cohort of two", min_cohort=2)
    a_plan("a cohort of more than all", min_cohort=6)
    a_plan("no slots", slots=0)
    a_plan("too many slots", slots=257)
    a_plan("no rows", max_rows=0)
    a_plan("a threshold of n/2", threshold=3)
    a_plan("a threshold above n", threshold=6)
    a_plan("t - c = 1 (THR-2)", threshold=5, colluders=4)
    a_plan("signed by a site", signer=ids[2])
    for n, sites, t, c in [(3, 3, 0, 0), (5, 5, 0, 0), (10, 10, 0, 0), (20, 20, 0, 0), (50, 50, 0, 0), (100, 100, 0, 0),
                           (16, 20, 0, 0), (3, 20, 0, 0), (20, 20, 11, 4), (20, 20, 14, 4), (4, 4, 2, 0), (5, 5, 0, 3),
                           (3, 3, 2, 1), (7, 7, 0, 1)]:  # fmt: skip
        case_ = {"document": "threshold", "members": n, "sites": sites, "threshold": t, "colluders": c}
        try:
            case_["result"] = documents.threshold({**terms, "threshold": t, "colluders": c}, n, sites)
        except Refused as bad:
            case_["rule"] = bad.rule
        out.append(case_)
    return "Roster, plan, session, threshold (sections 5 and 6). Bad documents are signed as they stand.", out


def frame_cases():
    who, other, session, context, draws = (
        Identity(bytes([1] * 32)),
        Identity(bytes([2] * 32)),
        H("s"),
        H("c"),
        Draws("frames"),
    )
    proof = {"rest": draws.take(32), "signature": draws.take(64)}
    keys = {name: draws.take(n) for name, n in [("dh_key", 32), ("kem_key", 1184), ("commitments", 32)]}
    keys["standing"] = {"account": draws.take(32), "answered": {"number": 2**40 + 5, "link": draws.take(32)}}
    hashes = [draws.take(32), draws.take(32)]
    ciphertexts = [{"site": s, "ciphertext": draws.take(1088)} for s in (1, 258)]
    sealed = [{"site": 1, "sealed": draws.take(48)}]
    ask = {"deck": 1, "slot": 2, "cohort": [0, 1, 4], "words": 9, "previous_context": hashes[0]}
    opened = {
        "alive": [0, 4],
        "inputs": [{"commitment": hashes[0], "digest": hashes[1], "signature": proof["signature"]}] * 2,
        "seeds": hashes, "others": hashes[:1], "checks": [{"seeds": hashes[1:], "signature": proof["signature"]}] * 2,
        "agreed": [{"site": 4, "proof": proof}], "low": [2**64 - 1, 7], "high": [1, 0],
    }  # fmt: skip
    values = {
        "OpenDeck": {"run": hashes[0], "index": 7, "slots": 256}, "AdvertiseKeys": keys,
        "Directory": {"threshold": 2, "entries": [{"site": 258, "keys": keys, "proof": proof}]},
        "AcceptDirectory": {"ciphertexts": ciphertexts},
        "DirectoryCertificate": {"proofs": [proof, proof], "ciphertexts": ciphertexts[:1]},
        "ShareKeys": {"commitments": hashes, "boxes": sealed},
        "DeliverShares": {"commitments": [hashes, hashes[:1]], "boxes": sealed}, "ShareAck": {},
        "ShareComplaint": {"against": 3},
        "Ask": {**ask, "previous_total": hashes[1], "query": b"a query"}, "MaskedInput": draws.take(32 + 24),
        "Survivors": {"alive": [0, 4], "inputs": [proof, proof]},
        "ConsistencyCheck": {"round": hashes[0], "seeds": [{"missing": 1, "seed": hashes[1]}]},
        "Certificate": {"alive": [0, 4], "inputs": hashes[0], "signers": [4], "proofs": [proof]}, "Unmask": {"shares": hashes},
        "Refusal": {"rule": "RND-4"}, "Opening": opened,
        "Hello": {"roster": hashes[0], "plan": hashes[1], "software": "veilsum 0.1.0"},
        "Welcome": {"software": "veilsum 0.1.0"}, "Denied": ("plan", hashes[1]), "Finished": {"model": b"{}", "result": b"{\n}\n", "signature": proof["signature"]},
        "CountReady": {"run": hashes[1], "cohort": [0, 1, 2]}, "CountRequest": {"cohort": [0, 1, 2]}, "CountReply": {"total": 150},
        "Aborted": {"code": 1, "why": "too few sites"}, "Held": draws.take(20),
        "JudgeRequest": {"digest": hashes[0], "clusters": [2, 3], "exponents": [-3, 0, 12]},
        "CentreDistances": {"digest": hashes[0], "matrices": [[0.0, 1.5], []]},
        "JudgeReply": {"cohort": [0, 1, 2], "verdicts": b"[]"}, "Count": {"run": hashes[1], "cohort": [0, 2]},
        "Knock": {"roster": hashes[1], "plan": hashes[0], "software": "veilsum 0.1.0"},
        "Countersigned": {"ledger": hashes[1], "signature": proof["signature"]},
    }  # fmt: skip
    out = []
    for kind, value_ in values.items():
        rest = frames.message(kind, value_)
        data = frames.make(who, session, kind, context, rest)
        digest = frames.signed_digest(session, kind, context, frames.rest_of(kind, rest))
        out.append({"kind": kind, "number": frames.KINDS[kind][0], "limit": frames.KINDS[kind][1], "value": value_,
                    "message": rest, "rest": frames.rest_of(kind, rest), "signed": digest, "frame": data})  # fmt: skip
    data = frames.make(who, session, "Refusal", context, frames.message("Refusal", {"rule": "RND-4"}))
    n = 8 * len(data)

    def header(version, kind, length):
        return le16(version) + le16(kind) + le32(length) + data[8:]

    now = frames.VERSION
    bad = [
        ("another version", header(now + 1, 16, 109)), ("the version before", header(now - 1, 16, 109)), ("kind 0", header(now, 0, 109)),
        ("kind 21", header(now, 21, 109)), ("kind 63", header(now, 63, 109)), ("kind 78", header(now, 78, 109)),
        ("length over the limit", header(now, 16, 4097)), ("length of another frame", header(now, 16, 108)),
        ("empty", b""), ("a header cut short", data[:7]), ("a header alone", header(now, 16, 0)[:8]),
        ("no room for a signature", header(now, 16, 95)[: 8 + 95]), ("cut short", data[:-1]),
        ("a byte more", data + b"\0"),
        ("a kind that is another's", header(now, 1, 109)), ("a bit of the context", flip(data, 64)),
        ("a bit of the message", flip(data, 8 * 48)), ("a bit of R", flip(data, n - 512)),
        ("a bit of S", flip(data, n - 10)),
        ("signed by another", frames.make(other, session, "Refusal", context, data[40:-64])),
        ("of another session", frames.make(who, H("other"), "Refusal", context, data[40:-64])),
        ("of another context", data[:8] + H("other") + data[40:]),
        ("a byte after the message", frames.make(who, session, "Refusal", context, data[40:-64] + b"\0")),
        ("a message cut short", frames.make(who, session, "Refusal", context, data[40:-65])),
        ("another kind than belongs here", frames.make(who, session, "ShareComplaint", context, le16(1))),
    ]  # fmt: skip

    def receive(bytes_):
        kind, _, rest, _ = frames.open_frame(bytes_, session, who.public)
        if kind != "Refusal":
            raise Refused("FRM-6", "another kind")
        frames.read(kind, rest)

    receive(data)
    for why, bytes_ in bad:
        out.append({"name": why, "expected": "Refusal", "frame": bytes_, "rule": refusal(receive, bytes_)})
    about = {"seed": who.seed, "public": who.public, "session": session, "context": context}
    return "Frames (sections 10 and 13): one of every kind, then bytes that must be refused.", out, about
