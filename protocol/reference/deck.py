"""A deck at a site and at the aggregator (spec section 8).

The order of a site's draws, which no other party can see: at the opening the X25519 key (32 bytes), the seed of the
ML-KEM key (64) and the seeds by slot (64 each); at the directory, for each member to which this site encapsulates,
ascending, what its ciphertext is made from (32 each); at the certificate, slot by slot, the coefficients from degree 1
up (64 each).
"""

import frames
import kem
import masks
import shamir
from codec import HASH, List, Refused, encode
from documents import plan_least, site_threshold, threshold
from suite import H, derive, dh, dh_public, le16, seal, unseal


def commitment(deck, site, slot, seed):
    """[KEX-2]; the seed as an integer."""
    return H("self-mask commitment", deck, le16(site), le16(slot), shamir.to_bytes(seed))


def commitments_hash(commitments):
    return H("commitments", encode(List(HASH), commitments))


def slot_commitments(lists):
    """[SHR-8]: one digest a slot over all members' commitments."""
    return [H("slot commitments", encode(List(HASH), list(of_slot))) for of_slot in zip(*lists)]


def encapsulates(sender, receiver):
    """Of two members, the lower where their difference is odd, and the higher where it is even."""
    return (sender < receiver) == ((receiver - sender) % 2 == 1)


def receivers(sender, members):
    """[KEX-17]: the members to which one of them encapsulates."""
    return [m for m in members if m != sender and encapsulates(sender, m)]


def pair_secret(agreed, directory, u, v, ciphertext):
    """[KEX-8]."""
    return derive(agreed, "pair", directory, le16(min(u, v)), le16(max(u, v)), ciphertext)


def box_key(agreed, directory, sender, receiver, ciphertext):
    """[SHR-2]: key and associated data."""
    parts = directory, le16(sender), le16(receiver), ciphertext
    return derive(agreed, "box", *parts), H("box", *parts)


def no_twins(keys):
    """[KEX-5]."""
    every = [k for e in keys for k in (e["dh_key"], e["kem_key"])]
    return len(set(every)) == len(every)


def known_by(env, site, keys):
    """What a member is known by: its account, else its key."""
    return keys["standing"]["account"] or env.key_of(site)


class SiteDeck:
    """From the opening to the last round. `stage` is what it waits for: directory, certificate, shares; then ready."""

    def __init__(self, env, opening, standing, draws):
        self.env, self.run, self.index, self.stage = env, opening["run"], opening["index"], "directory"
        self.id = frames.deck_id(env.session, opening)
        self.dh_private, self.kem_seed = draws.take(32), draws.take(64)
        self.seeds = [draws.scalar() for _ in range(opening["slots"])]
        self.pairs, self.first = {}, 0
        self.commitments = [commitment(self.id, env.me, r, b) for r, b in enumerate(self.seeds)]
        self.own = {
            "dh_key": dh_public(self.dh_private), "kem_key": kem.public(self.kem_seed),
            "commitments": commitments_hash(self.commitments), "standing": standing,
        }  # fmt: skip

    def take_directory(self, directory, draws):
        """[KEX-3], [KEX-5], [THR-1], [KEX-16], then [KEX-17]: the message AcceptDirectory."""
        env, entries = self.env, directory["entries"]
        sites = [e["site"] for e in entries]
        if sites != sorted(set(sites)):
            raise Refused("KEX-5", "not sorted, or a site twice")
        self.threshold = site_threshold(env.terms, env.floor, len(entries), len(env.roster["sites"]))
        if directory["threshold"] != self.threshold:
            raise Refused("THR-1", "another threshold than the plan's")
        for e in entries:
            key = env.key_of(e["site"])
            same = e["proof"]["rest"] == frames.rest_hash(frames.message("AdvertiseKeys", e["keys"]))
            if key is None or not same or not frames.proves(e["proof"], key, env.session, "AdvertiseKeys", self.id):
                raise Refused("KEX-3", f"keys that site {e['site']} did not sign")
            kem.check_key(e["keys"]["kem_key"])
        if not no_twins([e["keys"] for e in entries]):
            raise Refused("KEX-5", "one key stands twice")
        if len({known_by(env, e["site"], e["keys"]) for e in entries}) < len(entries):
            raise Refused("KEX-5", "one account at two sites")
        if {e["site"]: e["keys"] for e in entries}.get(env.me) != self.own:
            raise Refused("KEX-3", "this site's entry is missing or changed")
        self.hash = frames.directory_hash(self.id, directory)
        self.members, self.entries = sites, entries
        keys = {e["site"]: e["keys"]["kem_key"] for e in entries}
        self.sent = {m: kem.encapsulate(keys[m], draws.take(32)) for m in receivers(env.me, sites)}
        self.stage = "certificate"
        return {"ciphertexts": [{"site": m, "ciphertext": c} for m, (c, _) in self.sent.items()]}

    def take_certificate(self, certificate, draws):
        """[KEX-7], [KEX-8], then [SHR-1] to [SHR-3]: the message ShareKeys."""
        env, proofs = self.env, certificate["proofs"]
        if len(proofs) != len(self.entries):
            raise Refused("KEX-7", "a certificate of another length")
        for site, proof in zip(self.members, proofs):
            if not frames.proves(proof, env.key_of(site), env.session, "AcceptDirectory", self.hash):
                raise Refused("KEX-7", f"no signature of site {site}")
        received = [(c["site"], c["ciphertext"]) for c in certificate["ciphertexts"]]
        if [m for m, _ in received] != [m for m in self.members if m != env.me and m not in self.sent]:
            raise Refused("KEX-7", "not one ciphertext of every member that encapsulates to this site")
        exchanged = self.sent | {m: (c, kem.decapsulate(self.kem_seed, c)) for m, c in received}
        # With every other member: what both agreed on, and the ciphertext.
        self.agreed = {}
        for e in self.entries:
            m = e["site"]
            if m != env.me:
                ciphertext, secret = exchanged[m]
                agreed = dh(self.dh_private, e["keys"]["dh_key"]) + secret
                self.agreed[m] = agreed, ciphertext
                self.pairs[m] = pair_secret(agreed, self.hash, env.me, m, ciphertext)
        rows = [shamir.split(b, self.threshold, self.members, draws) for b in self.seeds]
        columns = {m: [row[i] for row in rows] for i, m in enumerate(self.members)}
        self.held = {env.me: columns[env.me]}
        boxes = []
        for m, (agreed, ciphertext) in self.agreed.items():
            plain = b"".join(shamir.to_bytes(s) for s in columns[m])
            key = box_key(agreed, self.hash, env.me, m, ciphertext)
            boxes.append({"site": m, "sealed": seal(*key, plain)})
        self.stage = "shares"
        return {"commitments": self.commitments, "boxes": boxes}

    def take_shares(self, delivery):
        """[SHR-4], [SHR-8]; the culprit of a refusal is the one to complain about."""
        me, slots = self.env.me, len(self.seeds)
        if [b["site"] for b in delivery["boxes"]] != [m for m in self.members if m != me]:
            raise Refused("SHR-8", "not one box of every other member", me)
        lists = delivery["commitments"]
        if len(lists) != len(self.members):
            raise Refused("SHR-8", "not one list of commitments of every member", me)
        for e, commitments in zip(self.entries, lists):
            if len(commitments) != slots or commitments_hash(commitments) != e["keys"]["commitments"]:
                raise Refused("SHR-8", f"other commitments of site {e['site']} than it advertised", me)
        self.slot_commitments = slot_commitments(lists)
        for box in delivery["boxes"]:
            sender = box["site"]
            agreed, ciphertext = self.agreed[sender]
            try:
                key = box_key(agreed, self.hash, sender, me, ciphertext)
                plain = unseal(*key, box["sealed"])
                if len(plain) != 32 * slots:
                    raise Refused("SHR-4", "another number of shares")
                chunks = [plain[32 * r : 32 * r + 32] for r in range(slots)]
                self.held[sender] = [shamir.from_bytes(c, "SHR-4") for c in chunks]
            except Refused as bad:
                raise Refused("SHR-4", str(bad), sender) from None
        self.stage = "ready"

    def holds(self, slot):
        return self.first <= slot < len(self.seeds)

    def close_before(self, slot):
        """[RND-8]: nothing secret is left of earlier slots, and nobody comes back from a later pair secret."""
        for closed in range(self.first, slot):
            self.seeds[closed] = None
            for column in self.held.values():
                column[closed] = None
            self.pairs = {m: masks.next_slot(s) for m, s in self.pairs.items()}
            self.first = closed + 1


def enough(env, n):
    """The threshold of a deck of n members, if they are enough."""
    try:
        if n < plan_least(env.terms, len(env.roster["sites"])):
            raise Refused("POL-1", "too few sites")
        return threshold(env.terms, n, len(env.roster["sites"]))
    except Refused:
        raise Refused("POL-1", "too few sites for a deck") from None


class Setup:
    """A deck being set up at the aggregator: one phase after another, each waiting for all."""

    PHASES = ["AdvertiseKeys", "AcceptDirectory", "ShareKeys", "ShareAck"]

    def __init__(self, env, run, index, slots, candidates):
        self.env, self.index, self.slots = env, index, slots
        opening = {"run": run, "index": index, "slots": slots}
        self.id = self.context = frames.deck_id(env.session, opening)
        self.keys, self.answers, self.proofs, self.phase = {}, {}, {}, 0
        self.waiting = dict.fromkeys(candidates, env.frame("OpenDeck", self.id, opening))

    @property
    def members(self):
        return sorted(self.keys)

    def take(self, sender, kind, context, rest, proof):
        """[KEX-13], [KEX-5], [KEX-17], [SHR-3], [SHR-7]. A complaint comes back as the sites that are out."""
        if context != (self.id if kind == "AdvertiseKeys" else self.context):
            return []
        before = self.answers.get((sender, kind))
        if before is not None and before != rest:
            raise Refused("KEX-13", "two different answers to one step")
        expected = self.PHASES[self.phase]
        complaint = kind == "ShareComplaint" and expected == "ShareAck"
        if before is not None or sender not in self.waiting or not (complaint or kind == expected):
            return []
        value = frames.read(kind, rest)
        if complaint:
            if value["against"] == sender or value["against"] not in self.keys:
                raise Refused("SHR-7", "a complaint about nobody")
            return [value["against"], sender]
        if kind == "AdvertiseKeys":
            self.check_keys(sender, value)
            self.keys[sender] = value, proof
        elif kind == "AcceptDirectory":
            if [c["site"] for c in value["ciphertexts"]] != receivers(sender, self.members):
                raise Refused("KEX-17", "not one ciphertext for every member that it encapsulates to")
        elif kind == "ShareKeys":
            self.check_shares(sender, value)
        self.answers[sender, kind], self.proofs[sender, kind] = rest, proof
        del self.waiting[sender]
        return []

    def check_keys(self, sender, keys):
        """[KEX-5]."""
        if not no_twins([keys, *(k for k, _ in self.keys.values())]):
            raise Refused("KEX-5", "a key that stands in the directory already")
        if known_by(self.env, sender, keys) in [known_by(self.env, s, k) for s, (k, _) in self.keys.items()]:
            raise Refused("KEX-5", "another's account")
        dh((1).to_bytes(32, "little"), keys["dh_key"])
        kem.check_key(keys["kem_key"])

    def check_shares(self, sender, value):
        """[SHR-3]."""
        known = commitments_hash(value["commitments"]) == self.keys[sender][0]["commitments"]
        others = [b["site"] for b in value["boxes"]] == [m for m in self.members if m != sender]
        sized = all(len(b["sealed"]) == 32 * self.slots + 16 for b in value["boxes"])
        if len(value["commitments"]) != self.slots or not known or not others or not sized:
            raise Refused("SHR-3", "other commitments, or not one box for every other member")

    def entries(self):
        return [{"site": m, "keys": self.keys[m][0], "proof": self.keys[m][1]} for m in self.members]

    def advance(self):
        """Everybody answered: the next frames. True where the deck is ready."""
        env, kind = self.env, self.PHASES[self.phase]
        if kind == "ShareAck":
            return True
        self.phase += 1
        if kind == "AdvertiseKeys":
            self.threshold = enough(env, len(self.keys))
            entries = self.entries()
            directory = {"threshold": self.threshold, "entries": entries}
            self.waiting = dict.fromkeys(self.members, env.frame("Directory", self.id, directory))
            self.hash = self.context = frames.directory_hash(self.id, directory)
        elif kind == "AcceptDirectory":
            proofs = [self.proofs[m, kind] for m in self.members]
            sent = {m: frames.read(kind, self.answers[m, kind])["ciphertexts"] for m in self.members}
            for to in self.members:
                own = [{**c, "site": m} for m in self.members for c in sent[m] if c["site"] == to]
                certificate = {"proofs": proofs, "ciphertexts": own}
                self.waiting[to] = env.frame("DirectoryCertificate", self.hash, certificate)
        else:
            sent = {m: frames.read("ShareKeys", self.answers[m, "ShareKeys"]) for m in self.members}
            self.commitments = {m: sent[m]["commitments"] for m in sent}
            boxes = {m: {b["site"]: b for b in sent[m]["boxes"]} for m in sent}
            lists = [self.commitments[m] for m in self.members]
            for to in self.members:
                own = [{**boxes[m][to], "site": m} for m in self.members if m != to]
                delivery = {"commitments": lists, "boxes": own}
                self.waiting[to] = env.frame("DeliverShares", self.hash, delivery)
        return False
