"""Joining by one line: what an invitation says, and what two people compare (spec section 18)."""

import re

from codec import Refused
from identity import Identity, usable
from suite import Draws, H, le64

ROLES = ["site", "intermediary"]
TOKEN, CHECKSUM, MAX_ADDRESS = 16, 4, 262


def is_name(data):
    return re.fullmatch(rb"[A-Za-z0-9._-]{1,64}", data) is not None


def with_checksum(body):
    return body + H("invitation line", body)[:CHECKSUM]


def line(i):
    """[JOI-2]: the bytes of an invitation."""
    names = [bytes([len(i[k])]) + i[k].encode() for k in ("federation", "party")]
    role = bytes([ROLES.index(i["role"])])
    return with_checksum(b"".join([i["coordinator"], i["token"], le64(i["expires"]), role, *names, i["address"].encode()]))


def read(data):
    """[JOI-2]."""
    body = data[:-CHECKSUM]
    if len(data) < CHECKSUM or with_checksum(body) != data:
        raise Refused("JOI-2", "the checksum does not fit")
    key, token, rest = body[:32], body[32:48], body[57:]
    found = {"coordinator": key, "token": token, "expires": int.from_bytes(body[48:56], "little")}
    if len(body) < 57 or body[56] >= len(ROLES) or not usable(key):
        raise Refused("JOI-2", "cut short, of another role, or with a key that is none")
    found["role"] = ROLES[body[56]]
    for name in ("federation", "party"):
        size = rest[0] if rest else 0
        text, rest = rest[1 : 1 + size], rest[1 + size :]
        if len(text) != size or not is_name(text):
            raise Refused("JOI-2", f"the {name} has no name")
        found[name] = text.decode()
    try:
        found["address"] = rest.decode()
    except UnicodeDecodeError:
        raise Refused("JOI-2", "an address that is no text") from None
    if not 1 <= len(rest) <= MAX_ADDRESS:
        raise Refused("JOI-2", "no address, or a long one")
    return found


def meeting(m):
    parts = [m["coordinator"], m["joiner"], m["invitation"], m["party"].encode(), bytes([ROLES.index(m["role"])])]
    return H("joining", *parts, m["address"].encode())


def commitment(m, joiners):
    """[JOI-4]."""
    return H("joining commitment", meeting(m), joiners)


def check_shown(m, committed, joiners):
    """[JOI-4]."""
    if commitment(m, joiners) != committed:
        raise Refused("JOI-4", "it does not fit the commitment")


def code(m, joiners, coordinators):
    """[JOI-5]."""
    number = int.from_bytes(H("joining code", meeting(m), joiners, coordinators)[:16], "little") % 10**12
    digits = f"{number:012}"
    return "-".join(digits[i : i + 4] for i in (0, 4, 8))


def check_said(m, joiners, coordinators, said):
    """[JOI-5]: what the coordinator types."""
    if said.replace("-", "").replace(" ", "") != code(m, joiners, coordinators).replace("-", ""):
        raise Refused("JOI-5", "other digits")


def refused(check, *args):
    try:
        check(*args)
    except Refused as bad:
        return bad.rule
    raise AssertionError("it must be refused")


def invitations(good):
    for role in ROLES:
        yield {"function": "invitation", **good, "role": role, "line": line({**good, "role": role})}
    whole = line(good)
    body = whole[:-CHECKSUM]
    odd = [
        ("the checksum", whole[:-1] + bytes([whole[-1] ^ 1])), ("cut short", whole[:-1]), ("empty", b""),
        ("a byte more", whole + b"x"), ("another role", with_checksum(body[:56] + b"\2" + body[57:])),
        ("no key", with_checksum(bytes(32) + body[32:])), ("only a key", with_checksum(body[:32])),
        ("a name that is longer than the line", with_checksum(body[:57] + b"\xff" + body[58:])),
        ("an address that is no text", with_checksum(body + b"\xff")),
    ]  # fmt: skip
    for name, change in [
        ("a space in a name", {"party": "hospital a"}), ("no federation", {"federation": ""}),
        ("no address", {"address": ""}), ("a long address", {"address": "h" * (MAX_ADDRESS + 1)}),
        ("a long name", {"party": "p" * 65}),
    ]:  # fmt: skip
        odd.append((name, line({**good, **change})))
    for name, data in odd:
        yield {"function": "invitation", "name": name, "line": data, "rule": refused(read, data)}


def joining_cases():
    draws = Draws("joining")
    keys = [Identity(draws.take(32)).public for _ in range(3)]
    good = {
        "federation": "three-hospitals", "party": "hospital-a", "role": "site", "address": "hub.example.org:443",
        "coordinator": keys[0], "expires": 1_800_000_000, "token": draws.take(TOKEN),
    }  # fmt: skip
    cases = list(invitations(good))
    assert all(read(c["line"])["role"] == c["role"] for c in cases if "rule" not in c)
    met = {"coordinator": keys[0], "joiner": keys[1], "invitation": H("invitation", good["token"])}
    met |= {"party": "hospital-a", "role": "site", "address": ""}
    for change in ({}, {"joiner": keys[2]}, {"role": "intermediary", "address": "counter.example.org:443"}):
        m, n_j, n_c = {**met, **change}, draws.take(32), draws.take(32)
        both = {**m, "joiners": n_j, "coordinators": n_c}
        found = commitment(m, n_j), code(m, n_j, n_c)
        cases.append({"function": "meeting", **both, "commitment": found[0], "code": found[1]})
        other = draws.take(32)
        for name, shown in [("another nonce", {"joiners": other}), ("under another name", {"party": "hospital-b"})]:
            case = {"function": "shown", "name": name, **both, **shown, "commitment": found[0]}
            cases.append({**case, "rule": refused(check_shown, case, found[0], case["joiners"])})
        for name, said in [
            ("another coordinator's nonce", code(m, n_j, other)), ("another key's", code({**m, "joiner": keys[0]}, n_j, n_c)),
            ("a digit less", found[1][:-1]), ("a digit more", found[1] + "0"), ("no digits", "yes"),
        ]:  # fmt: skip
            case = {"function": "said", "name": name, **both, "said": said}
            cases.append({**case, "rule": refused(check_said, m, n_j, n_c, said)})
    return "Joining (section 18): the bytes of invitations, commitments to a nonce, and the digits that are compared.", cases
