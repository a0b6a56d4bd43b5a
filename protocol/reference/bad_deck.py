"""What must be refused while a deck is set up (spec section 8)."""

import frames
import kem
import party
from deviations import Cases, replaced, resigned
from layers import coefficient, flip
from suite import H


def bad_decks(drivers, written):
    c, p = Cases(drivers, written), drivers["session_5"]
    world, name = p.world, "session_5"
    opening, directory = p.find(0, "OpenDeck"), p.find(0, "Directory")
    certificate, delivery = p.find(0, "DirectoryCertificate"), p.find(0, "DeliverShares")
    data = p.frame(opening)

    # at a site: the opening
    for why, bytes_, rule in [
        ("version", flip(data, 1), "FRM-1"), ("kind", flip(data, 21), "FRM-6"), ("length", flip(data, 32), "FRM-3"),
        ("context", flip(data, 64), "FRM-4"), ("message", flip(data, 330), "FRM-4"),
        ("signature", flip(data, 8 * len(data) - 20), "FRM-4"),
    ]:  # fmt: skip
        c.add(f"a bit of an opening's {why}", rule, name, opening, (0, "frame", bytes_))
    c.change("an opening signed by a site", "FRM-4", name, opening, None, signer=3)
    c.change("an opening signed by the intermediary", "FRM-4", name, opening, None, signer=1)
    other = frames.make(world.identities[0], H("other"), "OpenDeck", data[8:40], data[40:-64])
    c.add("an opening replayed from another session", "FRM-4", name, opening, (0, "frame", other))
    c.change("an opening under another name", "KEX-1", name, opening, None, context=H("other"))
    c.change("an opening without slots", "KEX-1", name, opening, lambda o: {**o, "slots": 0}, context=frames.deck_id)
    c.change(
        "an opening of too many slots", "KEX-1", name, opening, lambda o: {**o, "slots": 9}, context=frames.deck_id
    )
    c.change("a deck of another run", "KEX-9", name, directory, lambda _: encode_opening(H("r"), 1, 8),
             kind="OpenDeck", context=frames.deck_id)  # fmt: skip
    run = frames.read("OpenDeck", data[40:-64])["run"]
    c.change("a deck a second time", "KEX-1", name, directory, lambda _: encode_opening(run, 0, 7),
             kind="OpenDeck", context=frames.deck_id)  # fmt: skip
    c.change("a kind that is a site's to send", "FRM-6", name, opening, lambda _: b"", kind="ShareAck")
    c.change("a message with a byte left over", "ENC-1", name, opening, lambda o: frames.message("OpenDeck", o) + b"\0")

    # the directory
    def entries(edit):
        return lambda d: {**d, "entries": edit(d["entries"])}

    none = party.nothing_stated()
    own = {"dh_key": H("a"), "kem_key": kem.public(bytes(64)), "commitments": H("c"), "standing": none}
    def by_the_coordinator(keys):
        message = frames.message("AdvertiseKeys", keys)
        forged = frames.make(world.identities[0], world.session, "AdvertiseKeys", data[8:40], message)
        return {"rest": frames.rest_hash(forged[40:-64]), "signature": forged[-64:]}

    proof, none_at_all = by_the_coordinator(own), {**own, "kem_key": bytes([255]) * 1184}
    for why, rule, edit in [
        ("with an entry twice", "KEX-5", entries(lambda e: [*e[:2], *e[1:]])),
        ("out of order", "KEX-5", entries(lambda e: [e[1], e[0], *e[2:]])),
        (
            "with a changed X25519 key",
            "KEX-3",
            entries(lambda e: replaced(e, 3, keys={**e[3]["keys"], "dh_key": H("x")})),
        ),
        (
            "with a changed ML-KEM key",
            "KEX-3",
            entries(lambda e: replaced(e, 3, keys={**e[3]["keys"], "kem_key": own["kem_key"]})),
        ),
        ("with another's proof", "KEX-3", entries(lambda e: replaced(e, 3, proof=e[2]["proof"]))),
        ("with keys signed by the coordinator", "KEX-3", entries(lambda e: replaced(e, 3, keys=own, proof=proof))),
        (
            "with an ML-KEM key that is none, signed by the coordinator",
            "KEX-3",
            entries(lambda e: replaced(e, 3, keys=none_at_all, proof=by_the_coordinator(none_at_all))),
        ),
        ("with a site that is not on the roster", "KEX-3", entries(lambda e: replaced(e, 4, site=90))),
        ("without its reader", "KEX-3", lambda d: {**d, "threshold": 3, "entries": d["entries"][1:]}),
        ("with too low a threshold", "THR-1", lambda d: {**d, "threshold": 3}),
        ("of two entries", "POL-1", entries(lambda e: e[:2])),
        (
            "with another account than a site stated",
            "KEX-3",
            entries(lambda e: replaced(e, 3, keys={**e[3]["keys"], "standing": {**none, "account": H("an account")}})),
        ),
        (
            "with more answers than a site stated",
            "KEX-3",
            entries(lambda e: replaced(e, 3, keys={**e[3]["keys"], "standing": {**none, "answered": {"number": 1, "link": H("l")}}})),
        ),
    ]:
        c.change(f"a directory {why}", rule, name, directory, edit)
    c.change("a directory for another deck", "FRM-7", name, directory, None, context=H("other"))
    c.change("a directory that drops site 4, sound in itself, which not all in it were shown", "KEX-7", name, directory,
             without_site_4, more=[dropped_certificate(p, directory)])  # fmt: skip
    twin = signed_keys(world, data[8:40], 3, lambda k: {**k, "dh_key": keys_of(p, directory, 2)["dh_key"]})
    c.change("a directory in which a key of one site is signed by another as its own", "KEX-5", name, directory,
             entries(lambda e: replaced(e, 3, **twin(keys_of(p, directory, 3)))))  # fmt: skip

    copied = signed_keys(world, data[8:40], 3, lambda k: {**k, "kem_key": keys_of(p, directory, 2)["kem_key"]})
    c.change("a directory in which a site signed another's ML-KEM key as its own", "KEX-5", name, directory,
             entries(lambda e: replaced(e, 3, **copied(keys_of(p, directory, 3)))))  # fmt: skip
    none = signed_keys(world, data[8:40], 3, lambda k: {**k, "kem_key": coefficient(k["kem_key"], 0, 3329)})
    c.change("a directory with an ML-KEM key that is none, signed by its site", "KEX-16", name, directory,
             entries(lambda e: replaced(e, 3, **none(keys_of(p, directory, 3)))))  # fmt: skip

    # accounts
    for why, account in [("the account of two sites", H("an account")), ("another's key as an account", world.roster["sites"][1]["key"])]:
        stating = signed_keys(world, data[8:40], 3, lambda k: {**k, "standing": {**k["standing"], "account": account}})
        also = signed_keys(world, data[8:40], 2, lambda k: {**k, "standing": {**k["standing"], "account": account}})

        def edit(e):
            e = replaced(e, 3, **stating(keys_of(p, directory, 3)))
            return replaced(e, 2, **also(keys_of(p, directory, 2))) if account == H("an account") else e

        c.change(f"a directory with {why}", "KEX-5", name, directory, entries(edit))

    # the certificate
    def proofs(edit):
        return lambda d: {**d, "proofs": edit(d["proofs"])}

    def ciphertexts(edit):
        return lambda d: {**d, "ciphertexts": edit(d["ciphertexts"])}

    def short(kind):
        """The message with one byte less in its first ciphertext."""

        def edit(d):
            whole = frames.message(kind, d)
            at = whole.index(d["ciphertexts"][0]["ciphertext"])
            return whole[:at] + whole[at + 1 :]

        return edit

    c.change("a certificate that lacks a signature", "KEX-7", name, certificate, proofs(lambda x: x[:4]))
    c.change("a certificate with one signature twice", "KEX-7", name, certificate, proofs(lambda x: [*x[:4], x[3]]))
    c.change("a certificate with a forged signature", "KEX-7", name, certificate,
             proofs(lambda x: replaced(x, 2, signature=flip(x[2]["signature"], 9))))  # fmt: skip
    c.change("a certificate of another directory", "FRM-7", name, certificate, None, context=H("other"))
    c.change("a certificate before the directory", "FRM-7", name, directory, lambda _: frames.message(
        "DirectoryCertificate", {"proofs": [], "ciphertexts": []}), kind="DirectoryCertificate")  # fmt: skip
    # Sites 2 and 4 encapsulate to site 0, and site 0 to 1 and 3.
    relayed = frames.read("DirectoryCertificate", p.frame(certificate)[40:-64])["ciphertexts"]
    for why, edit in [
        ("without ciphertexts", lambda x: []),
        ("that lacks a ciphertext", lambda x: x[:1]),
        ("with a ciphertext of a member that sends its reader none", lambda x: [x[0], {**x[1], "site": 3}, x[1]]),
        ("with a ciphertext in another member's name", lambda x: replaced(x, 1, site=3)),
        ("with a ciphertext of its reader", lambda x: [{**x[0], "site": 0}, *x]),
        ("with a ciphertext of nobody", lambda x: [*x, {**x[1], "site": 5}]),
        ("with one member's ciphertext twice", lambda x: [x[0], *x]),
        ("with its ciphertexts out of order", lambda x: x[::-1]),
    ]:
        c.change(f"a certificate {why}", "KEX-7", name, certificate, ciphertexts(edit))
    c.change("a certificate that lacks a signature and a ciphertext", "KEX-7", name, certificate,
             lambda d: {"proofs": d["proofs"][:4], "ciphertexts": d["ciphertexts"][:1]})  # fmt: skip
    c.change("a certificate with a ciphertext too short", "ENC-1", name, certificate, short("DirectoryCertificate"))
    small = signed_keys(world, data[8:40], 3, lambda k: {**k, "dh_key": bytes(32)})
    for why, rule, sent in [
        ("a key of small order, signed by its site and everybody", "KEX-8", relayed),
        ("a key of small order, and a ciphertext missing", "KEX-7", relayed[:1]),
    ]:
        c.change(why, rule, name, directory, entries(lambda e: replaced(e, 3, **small(keys_of(p, directory, 3)))),
                 more=[small_certificate(p, directory, small, sent)])  # fmt: skip

    # the delivery
    def boxes(edit):
        return lambda d: {**d, "boxes": edit(d["boxes"])}

    def lists(edit):
        return lambda d: {**d, "commitments": edit(d["commitments"])}

    c.change("a box that does not open", "SHR-4", name, delivery,
             boxes(lambda b: replaced(b, 2, sealed=flip(b[2]["sealed"], 77))))  # fmt: skip
    c.change("a box of another sender", "SHR-4", name, delivery, boxes(lambda b: replaced(b, 2, sealed=b[1]["sealed"])))
    foreign = kem.encapsulate(keys_of(p, directory, 0)["kem_key"], H("m"))[0]
    for why, edit in [
        ("a bit of a ciphertext changed", lambda x: replaced(x, 0, ciphertext=flip(x[0]["ciphertext"], 5000))),
        ("another's ciphertext to the same reader", lambda x: replaced(x, 0, ciphertext=foreign)),
        ("the ciphertext of another sender", lambda x: replaced(x, 0, ciphertext=x[1]["ciphertext"])),
        ("the ciphertexts of two senders swapped", lambda x: [{**x[0], "ciphertext": x[1]["ciphertext"]},
                                                             {**x[1], "ciphertext": x[0]["ciphertext"]}]),
    ]:  # fmt: skip
        c.add(f"a certificate with {why}: no box opens at either end", "SHR-4", name, certificate,
              *exchanged_on_the_way(p, edit))  # fmt: skip
        ends = [(s["at"], o["refused"]) for s in c.cases[-1]["steps"] for o in s["out"] if "refused" in o]
        assert ends == [(0, "SHR-4"), (2, "SHR-4")], ends
    for why, edit in [
        ("a changed commitment", lambda x: [*x[:2], [H("x"), *x[2][1:]], *x[3:]]),
        ("a changed commitment of its reader", lambda x: [[H("x"), *x[0][1:]], *x[1:]]),
        ("two slots' commitments swapped", lambda x: [*x[:4], [x[4][1], x[4][0], *x[4][2:]]]),
        ("two members' commitments swapped", lambda x: [x[0], x[2], x[1], *x[3:]]),
        ("a commitment too few", lambda x: [*x[:4], x[4][:-1]]),
        ("a member's commitments missing", lambda x: x[:4]),
    ]:
        c.change(f"a delivery with {why}", "SHR-8", name, delivery, lists(edit))
    c.change("a box cut short", "SHR-4", name, delivery, boxes(lambda b: replaced(b, 0, sealed=b[0]["sealed"][:-32])))
    c.change("a delivery that lacks a box", "SHR-8", name, delivery, boxes(lambda b: b[:3]))
    c.change("a delivery out of order", "SHR-8", name, delivery, boxes(lambda b: b[::-1]))

    # at the aggregator
    hub = "aggregator"
    keys = [p.find(hub, "AdvertiseKeys", sender=s) for s in range(5)]
    first = frames.read("AdvertiseKeys", p.frame(keys[0])[40:-64])
    c.change(
        "keys that another site advertised",
        "KEX-5",
        name,
        keys[1],
        lambda k: {**k, "dh_key": first["dh_key"]},
        signer=3,
    )
    c.change("a key of small order", "KEX-8", name, keys[1], lambda k: {**k, "dh_key": bytes(32)}, signer=3)
    c.change("an ML-KEM key that another site advertised", "KEX-5", name, keys[1],
             lambda k: {**k, "kem_key": first["kem_key"]}, signer=3)  # fmt: skip
    c.change("an ML-KEM key that is none", "KEX-16", name, keys[1],
             lambda k: {**k, "kem_key": coefficient(k["kem_key"], 1, 4095)}, signer=3)  # fmt: skip
    c.change("keys with another's account", "KEX-5", name, keys[1], lambda k: {
        **k, "standing": {**k["standing"], "account": world.roster["sites"][0]["key"]}}, signer=3)  # fmt: skip
    tag = frames.message("AdvertiseKeys", first)[:-41] + b"\2" + bytes(40)
    c.change("keys with an account that is neither there nor not", "ENC-1", name, keys[1], lambda _: tag, signer=3)
    c.change("keys signed by another", "FRM-4", name, keys[1], None, signer=4)
    again = resigned(p, keys[1], lambda k: {**k, "commitments": H("x")}, 3)
    c.add("keys twice, and different", "KEX-13", name, keys[2], (hub, "frame", 1, again))
    accept = p.find(hub, "AcceptDirectory", sender=1)
    c.change("an acceptance with a ciphertext too short", "ENC-1", name, accept, short("AcceptDirectory"), signer=3)
    # Site 1 encapsulates to sites 2 and 4.
    for why, edit in [
        ("without ciphertexts", lambda x: []),
        ("that lacks a ciphertext", lambda x: x[1:]),
        ("with a ciphertext for a member that sends its sender one", lambda x: [x[0], {**x[1], "site": 3}, x[1]]),
        ("with a ciphertext under another member", lambda x: replaced(x, 1, site=3)),
        ("with a ciphertext for its sender", lambda x: [{**x[0], "site": 1}, *x]),
        ("with a ciphertext for nobody", lambda x: [*x, {**x[1], "site": 6}]),
        ("with one member's ciphertext twice", lambda x: [x[0], *x]),
        ("with its ciphertexts out of order", lambda x: x[::-1]),
    ]:
        c.change(f"an acceptance {why}", "KEX-17", name, accept, ciphertexts(edit), signer=3)
    again = resigned(p, accept, ciphertexts(lambda x: replaced(x, 0, ciphertext=foreign)), 3)
    c.add("acceptances twice, and different", "KEX-13", name, p.find(hub, "AcceptDirectory", sender=2),
          (hub, "frame", 1, again))  # fmt: skip
    shares = p.find(hub, "ShareKeys", sender=1)
    for why, edit in [
        ("other commitments than advertised", lambda v: {**v, "commitments": v["commitments"][::-1]}),
        ("a box too few", lambda v: {**v, "boxes": v["boxes"][1:]}),
        ("a box cut short", lambda v: {**v, "boxes": replaced(v["boxes"], 0, sealed=v["boxes"][0]["sealed"][:-1])}),
    ]:
        c.change(f"shares with {why}", "SHR-3", name, shares, edit, signer=3)
    c.add("the same keys again are ignored", "KEX-13", name, keys[2], (hub, "frame", 1, p.frame(keys[1])), sound=True)
    c.add("the directory again: the same ciphertexts", "KEX-17", name, certificate,
          (0, "frame", p.frame(directory)), sound=True)  # fmt: skip
    c.add("the certificate again: the same shares", "SHR-3", name, delivery,
          (0, "frame", p.frame(certificate)), sound=True)  # fmt: skip
    c.add("an opening again: the same bytes", "RND-7", name, directory, (0, "frame", data), sound=True)
    ack = p.find(hub, "ShareAck", sender=1)
    for against, why in ((1, "itself"), (9, "nobody")):
        c.change(f"a complaint about {why}", "SHR-7", name, ack, lambda _: frames.message(
            "ShareComplaint", {"against": against}), signer=3, kind="ShareComplaint")  # fmt: skip
    c.change("a complaint about another: both are out", "SHR-7", name, ack, lambda _: frames.message(
        "ShareComplaint", {"against": 2}), signer=3, kind="ShareComplaint")  # fmt: skip
    c.change("a question from a site", "FRM-6", name, ack, lambda _: data[40:-64], signer=3, kind="OpenDeck")
    return c.cases


def encode_opening(run, index, slots):
    return frames.message("OpenDeck", {"run": run, "index": index, "slots": slots})


def keys_of(p, directory, site):
    return frames.read("Directory", p.frame(directory)[40:-64])["entries"][site]["keys"]


def signed_keys(world, deck, site, edit):
    """Keys and proof of a directory entry that this site itself signed."""

    def make(keys):
        rest = frames.message("AdvertiseKeys", edit(keys))
        data = frames.make(world.identities[site + 2], world.session, "AdvertiseKeys", deck, rest)
        return {"keys": edit(keys), "proof": {"rest": frames.rest_hash(rest), "signature": data[-64:]}}

    return make


def exchanged_on_the_way(p, edit):
    """The ciphertexts in site 0's certificate, and what comes of that: the deliveries to it and to site 2, whose was changed."""
    certificate = p.find(0, "DirectoryCertificate")
    changed = resigned(p, certificate, lambda d: {**d, "ciphertexts": edit(d["ciphertexts"])}, 0)
    shares = next(o["send"] for o in p.deviate(certificate, (0, "frame", changed))[0]["out"] if "send" in o)
    for_2 = next(b for b in frames.read("ShareKeys", shares[40:-64])["boxes"] if b["site"] == 2)
    theirs = resigned(p, p.find(2, "DeliverShares"), lambda d: {
        **d, "boxes": [{**for_2, "site": 0}, *d["boxes"][1:]]}, 0)  # fmt: skip
    return [
        (0, "frame", changed), (0, "frame", p.frame(p.find(0, "DeliverShares"))),
        (2, "frame", p.frame(p.find(2, "DirectoryCertificate"))), (2, "frame", theirs),
    ]  # fmt: skip


def certificate_for(p, directory, value, signers, ciphertexts):
    """Signatures of these identities on a directory, and ciphertexts, shown by the coordinator."""
    w, deck = p.world, p.frame(directory)[8:40]
    hash_ = frames.directory_hash(deck, value)
    said = frames.message("AcceptDirectory", {"ciphertexts": []})
    signed = [frames.make(w.identities[s], w.session, "AcceptDirectory", hash_, said) for s in signers]
    proofs = [{"rest": frames.rest_hash(said), "signature": f[-64:]} for f in signed]
    shown = frames.message("DirectoryCertificate", {"proofs": proofs, "ciphertexts": ciphertexts})
    data = frames.make(w.identities[0], w.session, "DirectoryCertificate", hash_, shown)
    return 0, "frame", data


def without_site_4(directory):
    return {"threshold": 3, "entries": directory["entries"][:4]}


def dropped_certificate(p, directory):
    """Site 3 signed the whole directory only: the coordinator puts site 2's signature in its place."""
    value = frames.read("Directory", p.frame(directory)[40:-64])
    return certificate_for(p, directory, without_site_4(value), [2, 3, 4, 4], [])


def small_certificate(p, directory, small, ciphertexts):
    value = frames.read("Directory", p.frame(directory)[40:-64])
    entries = replaced(value["entries"], 3, **small(value["entries"][3]["keys"]))
    return certificate_for(p, directory, {**value, "entries": entries}, range(2, 7), ciphertexts)
