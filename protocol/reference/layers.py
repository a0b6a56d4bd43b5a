"""Vectors of the single layers: a list of cases a file, each with its inputs, intermediates and result, or the rule
that must refuse it."""

import codec
import commit
import documents
import fixed
import kem
import masks
import ristretto
import shamir
import suite
from codec import Refused, encode
from deck import box_key, commitment, commitments_hash, pair_secret, receivers, slot_commitments
from driver import value
from suite import ORDER, Draws, H, le16, le32, le64

TYPES = {
    "u8": codec.U8, "u16": codec.U16, "u32": codec.U32, "u64": codec.U64, "i16": codec.I16, "bool": codec.BOOL,
    "f64": codec.F64, "text": codec.TEXT, "bytes": codec.BLOB, "hash": codec.HASH, "list of u16": codec.List(codec.U16),
    "list of hash": codec.List(codec.HASH), "option of u64": codec.Option(codec.U64), "party": documents.PARTY,
    "u16 and text": codec.Struct(number=codec.U16, name=codec.TEXT), "nothing": codec.NOTHING,
}  # fmt: skip


def refusal(function, *args):
    """The rule with which a call is refused; that it is refused is part of what these vectors say."""
    try:
        function(*args)
    except Refused as bad:
        return bad.rule
    raise AssertionError("it must be refused")


def flip(data, bit):
    out = bytearray(data)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


def codec_cases():
    good = [
        ("u8", 255), ("u16", 0x0102), ("u32", 1), ("u64", 2**64 - 1), ("i16", -2), ("bool", True), ("bool", False),
        ("f64", 0.1), ("f64", -1.5), ("text", ""), ("text", "Veilsum é"), ("bytes", b"\0\xff"), ("hash", H("c")),
        ("list of u16", []), ("list of u16", [1, 515]), ("list of hash", [H("a"), H("b")]), ("option of u64", None),
        ("option of u64", 7), ("party", ("Coordinator", {})), ("party", ("Intermediary", {})),
        ("party", ("Site", {"number": 258})), ("u16 and text", {"number": 3, "name": "ab"}), ("nothing", {}),
    ]  # fmt: skip
    bad = [
        ("u16", b"\1", 100, "ends early"), ("u16", b"\1\2\3", 100, "a byte is left over"), ("bool", b"\2", 100, "tag"),
        ("option of u64", b"\2" + bytes(8), 100, "tag"), ("option of u64", b"\0\0", 100, "a byte is left over"),
        ("party", le32(3), 100, "unknown variant"), ("text", le64(1) + b"\xff", 100, "not UTF-8"),
        ("list of u16", le64(2) + b"\1\0", 100, "ends early"), ("list of u16", le64(2**60), 100, "a hostile length"),
        ("list of hash", le64(2**64 - 1), 100, "a hostile length"), ("nothing", b"\0", 100, "a byte is left over"),
        ("bytes", le64(8) + bytes(8), 15, "longer than its limit"),
    ]  # fmt: skip
    cases = [{"type": t, "value": v, "encoded": encode(TYPES[t], v)} for t, v in good]
    for t, data, limit, why in bad:
        rule = refusal(codec.decode, TYPES[t], data, limit)
        cases.append({"name": why, "type": t, "encoded": data, "limit": limit, "rule": rule})
    return "Encoding (section 3).", cases


def suite_cases():
    draws, out = Draws("suite"), []
    for label, parts in [
        ("test", [b"abc"]),
        ("c", []),
        ("query", [b""]),
        ("frame", [bytes(32), le16(16), b"", b"x" * 100]),
        *((label, [b"abc"]) for label in sorted(suite.LASTING)),
    ]:
        pieces = [suite.salt(label), label.encode(), *parts]
        before = b"".join(le64(len(p)) + p for p in pieces)
        out.append({"function": "H", "label": label, "parts": parts, "hashed": before, "result": H(label, *parts)})
    for name in ("expand", "derive"):
        for label, parts in [("round seed", [H("c")]), ("pair", [H("d"), le16(1), le16(300)]), ("box", [])]:
            # One secret, or two or three in a row where that function takes them.
            key = draws.take(32 * {"round seed": 1, "pair": 3, "box": 2}[label] if name == "derive" else 32)
            result = getattr(suite, name)(key, label, *parts)
            case = {"function": name, "input": key, "label": label, "parts": parts, "info": H(label, *parts)}
            out.append({**case, "result": result})
    for n in (0, 1, 32, 96):
        key, a, plain = draws.take(32), draws.take(32), draws.take(n)
        sealed = suite.seal(key, a, plain)
        base = {"function": "seal", "key": key, "associated": a, "plain": plain, "sealed": sealed}
        out.append(base)
    for why, change in [
        ("ciphertext", {"sealed": flip(sealed, 5)}), ("tag", {"sealed": flip(sealed, 8 * len(sealed) - 1)}),
        ("cut short", {"sealed": sealed[:-1]}), ("empty", {"sealed": b""}), ("key", {"key": flip(key, 0)}),
        ("associated data", {"associated": flip(a, 255)}),
    ]:  # fmt: skip
        bad = {"name": why, **base, **change}
        del bad["plain"]
        out.append({**bad, "rule": refusal(suite.unseal, bad["key"], bad["associated"], bad["sealed"])})
    for key, words in [(bytes(range(32)), 2), (draws.take(32), 1), (draws.take(32), 5), (draws.take(32), 4100)]:
        result = masks.raw(suite.stream(key, words))
        shown = result if words < 100 else None
        out.append({"function": "stream", "key": key, "words": words, "result": shown, "hash": H("stream", result)})
    for _ in range(2):
        a, b = draws.take(32), draws.take(32)
        case = {"function": "x25519", "private": a, "public": suite.dh_public(b), "own public": suite.dh_public(a)}
        out.append({**case, "result": suite.dh(a, suite.dh_public(b))})
    for public in small_order_x25519():
        case = {"function": "x25519", "private": a, "public": public, "rule": refusal(suite.dh, a, public)}
        out.append({"name": "small order", **case})
    out += kem_cases(draws)
    first, later = Draws("suite/draws"), Draws("suite/draws")
    out.append({"function": "draws", "seed": "suite/draws", "takes": [first.take(n) for n in (5, 32, 64, 1)]})
    out[-1]["scalar"] = shamir.to_bytes(later.scalar())
    return "Hash, key derivation, sealing, streams, key agreement (section 4), and the draws of these vectors.", out


def kem_cases(draws):
    out = []
    for i in range(2):
        seed, name = draws.take(64), f"suite/ml-kem {i}"
        key = kem.public(seed)
        ciphertext, secret = kem.encapsulate(key, Draws(name).take(32))
        assert kem.decapsulate(seed, ciphertext) == secret, "two libraries differ"
        good = {"function": "ml-kem", "seed": seed, "public": key, "ciphertext": ciphertext, "secret": secret}
        out.append({**good, "draws": name})
    for why, changed in [("a bit of it changed", flip(ciphertext, 8 * 700)), ("zeros", bytes(kem.CIPHERTEXT))]:
        found = kem.decapsulate(seed, changed)
        assert found != secret
        # Implicit rejection: no error, but a secret that nobody else has.
        out.append({"name": f"a wrong ciphertext: {why}", **good, "ciphertext": changed, "secret": found})
    for at in (0, 1, kem.KEY - 33):
        for value in (3329, 4095):
            bad = coefficient(key, at, value)
            case = {"function": "ml-kem", "public": bad, "rule": refusal(kem.check_key, bad)}
            out.append({"name": f"coefficient {value}", **case})
    return out


def coefficient(key, at, value):
    """A key of which 12 bits around byte `at` are this number: the first of a pair of coefficients, or the second."""
    start = at - at % 3
    both = int.from_bytes(key[start : start + 3], "little")
    first, second = (value, both >> 12) if at % 3 == 0 else (both & 0xFFF, value)
    return key[:start] + (first | second << 12).to_bytes(3, "little") + key[start + 3 :]


def small_order_x25519():
    p = 2**255 - 19
    e = 325606250916557431795983626356110631294008115727848805560023387167927233504
    return [n.to_bytes(32, "little") for n in (0, 1, p - 1, e, p, p + 1)]


def fixed_cases():
    out = []
    for sites, rows, exp in [(3, 1, 0), (20, 150, 0), (20, 150, 3), (20, 150, -7), (1000, 1 << 30, 0), (5, 1, 40),
                             (1000, 2**64 - 1, 0), (20, 1 << 40, 0), (3, 2**64 - 1, 0), (1000, 8 * 10**9, 0),
                             (1000, 8_796_093_021, 0), (1000, 8_796_093_022, 0)]:  # fmt: skip
        case = {"function": "scale", "sites": sites, "max_rows": rows, "bound_exp": exp}
        try:
            case["fraction_bits"], case["limit"], _ = fixed.scale(sites, rows, exp)
        except Refused as bad:
            case["rule"] = bad.rule
        out.append(case)
    for layout in ([(6, 0), (3, 1)], [(1 << 20, 0)], [], [(0, 0)], [(1 << 20, 0), (1, 0)], [(2**32 - 1, 0)] * 2):
        case = {"function": "words", "layout": layout}
        try:
            case["words"] = fixed.words(layout)
        except Refused as bad:
            case["rule"] = bad.rule
        out.append(case)
    bits, limit, _ = fixed.scale(20, 150, 0)
    for x in (0.0, 1.0, -1.0, 0.1, -149.99, 2.0**-51, 2.0**-52, 3 * 2.0**-52, -(2.0**-52), -3 * 2.0**-52):
        word = fixed.carry(x, bits, limit, 0)
        case = {"function": "carry", "x": x, "fraction_bits": bits, "limit": limit, "integer": fixed.signed(word)}
        out.append({**case, "word": masks.raw([word])})
    return "Fixed point (section 7).", out


def above(draws, t):
    """The coefficients above the constant, as `split` draws them."""
    return [draws.scalar() for _ in range(t - 1)]


def shamir_cases():
    draws, out = Draws("shamir"), []
    for t, members in [(1, [0]), (2, [0, 1, 2]), (3, [0, 1, 2]), (4, [0, 1, 2, 3, 4]), (5, [0, 3, 4, 7, 9, 300, 999])]:
        secret, seed = draws.scalar(), f"shamir/{t}"
        polynomial = [secret] + above(Draws(seed), t)
        shares = shamir.split(secret, t, members, Draws(seed))
        some = dict(list(zip(members, shares))[-t:])
        assert shamir.recover(some) == secret
        case = {"function": "split", "secret": secret, "threshold": t, "members": members, "draws": seed}
        out.append({**case, "polynomial": polynomial, "shares": shares, "recover from": list(some)})
    t, members, secret = 4, list(range(10)), draws.scalar()
    right = dict(zip(members, shamir.split(secret, t, members, draws)))
    wrongs = [
        ("checked", 1, [0]), ("checked", 1, [4]), ("checked", 2, [2, 5]), ("checked", 1, [0, 1]), ("robust", 2, [3]),
        ("robust", 3, [0]), ("robust", 4, [1, 6]), ("robust", 6, [0, 4, 9]), ("robust", 6, []), ("robust", 1, [2]),
        ("robust", 4, [0, 1, 2]),
    ]  # fmt: skip
    for function, spare, wrong in wrongs:
        given = {m: s for m, s in right.items() if m < t + spare}
        for w in wrong:
            given[w] = (given[w] + draws.scalar()) % ORDER
        if function == "checked":
            found = shamir.recover_checked(given, t, lambda s: s == secret)
        else:
            found = shamir.recover_robust(given, t)
        result = {"result": found[0], "wrong": found[1]} if found else {"result": None}
        assert not found or found[1] == wrong
        case = {"function": function, "threshold": t, "members": list(given), "shares": list(given.values())}
        out.append({**case, "secret": secret, **result})
    for why, n in [
        ("l itself", ORDER),
        ("l - 1", ORDER - 1),
        ("all ones", 2**256 - 1),
        ("l + 5", ORDER + 5),
        ("zero", 0),
    ]:
        data = n.to_bytes(32, "little")
        case = {"function": "share", "name": why, "share": data}
        out.append(case if n < ORDER else {**case, "rule": refusal(shamir.from_bytes, data)})
    text = "Sharing (8.3), recovery, and recovery around wrong shares (9.7). Scalars are 32 bytes, little-endian."
    return text, scalars(out)


def scalars(cases):
    """Integers of these fields as their 32 bytes."""
    for c in cases:
        for k in ("secret", "result"):
            c |= {k: shamir.to_bytes(c[k])} if isinstance(c.get(k), int) else {}
        for k in ("shares", "polynomial"):
            c |= {k: [shamir.to_bytes(s) for s in c[k]]} if k in c else {}
    return cases


def key_cases():
    draws, deck, directory, sites, slots = Draws("keys"), H("a deck"), H("a directory"), [0, 1, 258], 3
    private = {s: (draws.take(32), draws.take(64)) for s in sites}
    seeds = {s: [draws.scalar() for _ in range(slots)] for s in sites}
    out = []
    for s in sites:
        commitments = [commitment(deck, s, r, b) for r, b in enumerate(seeds[s])]
        dh_private, kem_seed = private[s]
        out.append({
            "function": "advertise", "deck": deck, "site": s,
            "dh_private": dh_private, "kem_seed": kem_seed,
            "dh_key": suite.dh_public(dh_private), "kem_key": kem.public(kem_seed),
            "seeds": [shamir.to_bytes(b) for b in seeds[s]], "each": commitments,
            "commitments": commitments_hash(commitments),
        })  # fmt: skip
    lists = [c["each"] for c in out]
    out.append({"function": "slot commitments", "lists": lists, "result": slot_commitments(lists)})
    pairs = [(u, v) for u in sites for v in sites if u != v]
    sent = {(u, v): kem.encapsulate(kem.public(private[v][1]), draws.take(32)) for u in sites for v in receivers(u, sites)}
    for u, v in pairs:
        by, to = (u, v) if (u, v) in sent else (v, u)
        ciphertext, secret = sent[by, to]
        assert kem.decapsulate(private[to][1], ciphertext) == secret
        shared = suite.dh(private[u][0], suite.dh_public(private[v][0]))
        pair = pair_secret(shared + secret, directory, u, v, ciphertext)
        key, associated = box_key(shared + secret, directory, u, v, ciphertext)
        plain = b"".join(shamir.to_bytes(draws.scalar()) for _ in range(slots))
        out.append({
            "function": "agree", "directory": directory, "from": u, "to": v, "encapsulates": by, "shared": shared,
            "ciphertext": ciphertext, "secret": secret, "pair": pair, "key": key,
            "associated": associated, "plain": plain, "box": suite.seal(key, associated, plain),
        })  # fmt: skip
    return "The key schedule of a deck (8.1 to 8.3); the private keys of `agree` are those of `advertise`.", out


def mask_cases():
    draws, ctx, n, words, out = Draws("masks"), H("a round"), 4, 5, []
    pairs = {(u, v): draws.take(32) for v in range(n) for u in range(v)}
    seeds = [draws.scalar() for _ in range(n)]
    keys = {u: masks.self_mask_key(b, ctx) for u, b in enumerate(seeds)}
    k = {p: masks.round_seed(s, ctx) for p, s in pairs.items()}
    inputs = {}
    for u in range(n):
        x = [2**64 - 1, 0, *value(u, b"masks", words - 2)]
        own = {v: k[min(u, v), max(u, v)] for v in range(n) if v != u}
        inputs[u] = masks.mask(x, u, keys[u], own)
        out.append({
            "function": "mask", "site": u, "context": ctx, "seed": shamir.to_bytes(seeds[u]), "self_key": keys[u],
            "pairs": [{"site": v, "secret": pairs[min(u, v), max(u, v)], "seed": own[v]} for v in own],
            "x": masks.raw(x), "y": masks.raw(inputs[u]), "digest": H("masked", masks.raw(inputs[u])),
        })  # fmt: skip
    for alive in ([0, 1, 2, 3], [0, 1, 3], [1, 2, 3], [0, 2]):
        missing = [w for w in range(n) if w not in alive]
        gone = {(u, w): k[min(u, w), max(u, w)] for u in alive for w in missing}
        total = masks.raw(masks.unmask({u: inputs[u] for u in alive}, keys, gone))
        shown = [{"site": u, "missing": w, "seed": s} for (u, w), s in gone.items()]
        out.append({"function": "unmask", "alive": alive, "seeds": shown, "total": total, "hash": H("total", total)})
    return "Masks of a round (9.4) and the total of any survivors (9.7).", out


def commitment_cases():
    ristretto.check()
    some = (0, 1, 2, 255, 349_525)  # the last one of the longest vector
    out = [{"function": "generator", "index": i, "result": ristretto.encode(commit.generator(i))} for i in some]
    draws, top, vectors = Draws("commitments"), 2**64 - 1, []
    for words in ([0], [1], [0, 1], [0, 0, 1], [0, 0, 0, 1], [top] * 3, [top] * 4, [0] * 7):
        vectors.append(words)
    for n in (1, 5, 17):
        vectors += [[int.from_bytes(draws.take(8), "little") for _ in range(n)] for _ in range(3)]
    for words in vectors:
        scalars = [s.to_bytes(32, "little") for s in commit.scalars(words)]
        case = {"function": "commit", "words": masks.raw(words), "scalars": scalars, "commitment": commit.commit(words)}
        out.append(case)
    for group in ([[top] * 4] * 5, vectors[-6:-3], vectors[-3:], vectors[-1:], []):
        sums = [sum(column) for column in zip(*group)] if group else [0] * 4
        each = [commit.commit(v) for v in group]
        off = [sums[0] + 1, *sums[1:]]
        for name, words, commitments in [
            ("the sums", sums, each), ("a word one higher", off, each),
            ("a carry more", [sums[0] + 2**64, *sums[1:]], each),
            ("a commitment more", sums, [*each, commit.commit([1])]), ("a commitment twice", sums, [*each, *each[:1]]),
            ("a commitment that is no point", sums, [*each[1:], b"\xff" * 32]),
            ("a commitment that is a negative field element", sums, [*each[1:], (1).to_bytes(32, "little")]),
        ]:  # fmt: skip
            out.append({
                "function": "are sums", "name": name, "low": masks.raw([w % 2**64 for w in words]),
                "high": [w >> 64 for w in words], "commitments": commitments,
                "result": commit.are_sums(words, commitments),
            })  # fmt: skip
            assert out[-1]["result"] == (name == "the sums" or name == "a commitment twice" and not each)
    return "Commitments to masked vectors and to their sums (9.8). Scalars are 32 bytes, little-endian.", out
