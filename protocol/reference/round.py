"""A round at a site and at the aggregator (spec section 9)."""

import commit
import frames
import masks
import opening
import shamir
from codec import Refused
from deck import commitment
from documents import least, plan_least
from suite import H

MAX_WORDS = 1 << 20


def without(cohort, alive):
    return [s for s in cohort if s not in alive]


def sorted_set(sites):
    return sites == sorted(set(sites))


class SiteRound:
    """`stage` is one of asked, masked, checked, released, and only ever moves to the right (section 9.2)."""

    def __init__(self, env, deck, ctx, ask, last_cohort, last_context):
        """[RND-1], [RND-2], [RND-4] to [RND-6], [POL-1]."""
        self.env, self.deck, self.ctx, self.stage, self.alive, self.sent = env, deck, ctx, "asked", None, None
        self.cohort, self.slot, self.words = ask["cohort"], ask["slot"], ask["words"]
        self.frame = None  # the answer, once it may have left
        self.inputs, self.certified = {}, {}  # what the survivors signed when they were named; the checks of a certificate
        if ctx != frames.round_context(env.session, deck.hash, ask):
            raise Refused("RND-1", "a context that is not that of its question")
        if not deck.holds(self.slot):
            raise Refused("RND-2", "no such slot, or a closed one")
        if not 1 <= self.words <= MAX_WORDS:
            raise Refused("RND-4", "an impossible length")
        if not sorted_set(self.cohort) or env.me not in self.cohort or not set(self.cohort) <= set(deck.members):
            raise Refused("RND-4", "an impossible cohort")
        if len(self.cohort) < self.least():
            raise Refused("POL-1", "too few sites")
        if last_cohort is not None and not set(self.cohort) <= set(last_cohort):
            raise Refused("RND-5", "a site that had left is back")
        if ask["previous_context"] != last_context:
            raise Refused("RND-6", "another history")

    def least(self):
        return max(least(self.env.terms, self.env.floor, len(self.env.roster["sites"])), self.deck.threshold)

    def remaining(self):
        return self.cohort if self.alive is None else self.alive

    def seed(self, other):
        assert self.slot == self.deck.first
        return masks.round_seed(self.deck.pairs[other], self.ctx)

    def self_key(self):
        return masks.self_mask_key(self.deck.seeds[self.slot], self.ctx)

    def may_be_checked(self, alive):
        """Whether a signature on these may be asked for at all ([UNM-1])."""
        return alive != self.cohort or self.env.always_certified

    def may_have_left(self):
        """Whether a vector of this site may be out."""
        return self.stage != "asked"

    def mask(self, words):
        """[MSK-3]: the message with y."""
        assert self.stage == "asked" and len(words) == self.words
        seeds = {v: self.seed(v) for v in self.cohort if v != self.env.me}
        y = masks.mask(words, self.env.me, self.self_key(), seeds)
        self.stage, self.sent = "masked", H("masked", masks.raw(y))
        return (commit.commit(y) if self.env.opening else commit.NONE) + masks.raw(y)

    def take_survivors(self, message):
        """[SUR-2] to [SUR-5]. True where all of the cohort are there, so that the shares may leave at once."""
        env, alive, inputs = self.env, message["alive"], message["inputs"]
        if not self.may_have_left():
            raise Refused("SUR-2", "survivors before this site's answer")
        if self.stage == "released":
            raise Refused("SUR-4", "other survivors after the release")
        if not sorted_set(alive) or env.me not in alive or not set(alive) <= set(self.remaining()):
            raise Refused("SUR-2", "impossible survivors")
        if len(alive) < self.least():
            raise Refused("SUR-3", "too few survivors")
        if len(inputs) != len(alive):
            raise Refused("SUR-5", "not one proof for every survivor")
        for site, proof in zip(alive, inputs):
            if self.inputs:
                if self.inputs[site] != proof["rest"]:
                    raise Refused("SUR-5", f"another input of site {site} than before")
            elif not frames.proves(proof, env.key_of(site), env.session, "MaskedInput", self.ctx):
                raise Refused("SUR-5", f"no proof that site {site} answered this question")
        return alive == self.cohort and not env.always_certified

    def named(self, message):
        """These survivors were accepted."""
        self.alive = message["alive"]
        self.inputs = {s: proof["rest"] for s, proof in zip(self.alive, message["inputs"])}

    def agreed_context(self):
        """[CON-2], [UNM-3]."""
        return frames.survivors_context(self.ctx, self.alive, self.inputs_hash())

    def inputs_hash(self):
        return frames.inputs_hash([self.inputs[s] for s in self.alive])

    def check(self):
        """[CON-2], [CON-3]: context and message of the ConsistencyCheck."""
        assert self.stage != "released"
        self.stage = "checked"
        seeds = [{"missing": w, "seed": self.seed(w)} for w in without(self.cohort, self.alive)]
        return self.agreed_context(), {"round": self.ctx, "seeds": seeds}

    def take_certificate(self, message):
        """[UNM-2]."""
        if self.stage != "checked" or (message["alive"], message["inputs"]) != (self.alive, self.inputs_hash()):
            raise Refused("UNM-2", "a certificate for another set, or other inputs, than this site signed")
        if len(message["signers"]) < self.deck.threshold:
            raise Refused("UNM-2", "too few signatures")
        self.signed(message)
        self.certified = {site: proof["rest"] for site, proof in zip(message["signers"], message["proofs"])}

    def signed(self, message):
        """Distinct survivors, each with its signature."""
        env, signers, proofs = self.env, message["signers"], message["proofs"]
        if not sorted_set(signers) or not set(signers) <= set(self.alive) or len(proofs) != len(signers):
            raise Refused("UNM-2", "signers that are not distinct survivors")
        for site, proof in zip(signers, proofs):
            if not frames.proves(proof, env.key_of(site), env.session, "ConsistencyCheck", self.agreed_context()):
                raise Refused("UNM-2", f"site {site} did not sign")

    def release(self):
        """[UNM-3]."""
        self.stage = "released"
        return {"shares": [shamir.to_bytes(self.deck.held[u][self.slot]) for u in self.alive]}


class AggregatorRound:
    """`phase` is what is waited for: inputs, checks, shares; `waiting` holds the frames that have no answer yet."""

    def __init__(self, env, deck, slot, cohort, query, words, previous):
        self.env, self.deck, self.slot, self.cohort, self.words = env, deck, slot, cohort, words
        ask = {
            "deck": deck.index, "slot": slot, "cohort": cohort, "words": words,
            "previous_context": previous[0], "previous_total": previous[1], "query": query,
        }  # fmt: skip
        self.ctx, self.phase = frames.round_context(env.session, deck.hash, ask), "inputs"
        self.waiting = dict.fromkeys(cohort, env.frame("Ask", self.ctx, ask))
        self.inputs, self.opened, self.seeds, self.signed, self.shares, self.agreed = {}, {}, {}, {}, {}, {}
        self.shares_for = None  # the context of the shares that are waited for
        self.frames = {}  # of the inputs, as they came

    def lost(self, site):
        """A site that is out is not among the survivors, unless shares are collected."""
        self.waiting.pop(site, None)
        if self.phase in ("inputs", "checks"):
            self.inputs.pop(site, None)
        if self.phase == "checks":
            self.alive = [s for s in self.alive if s != site]
            self.signed.pop(site, None)

    def take(self, sender, kind, context, rest, proof):
        """[INP-1] to [INP-4], [CON-2], [CON-3], [UNM-3], and what [RND-10] says to ignore."""
        if kind == "MaskedInput" and context == self.ctx:
            if sender in self.inputs:
                if self.inputs[sender][0]["rest"] != proof["rest"]:
                    raise Refused("INP-2", "two different inputs")
            elif self.phase == "inputs" and self.waiting.pop(sender, None):
                if len(rest) != 32 + 8 * self.words:
                    raise Refused("INP-1", "another length than asked for")
                if not self.env.opening and rest[:32] != commit.NONE:
                    raise Refused("INP-4", "a commitment where nothing is opened")
                shown = {"commitment": rest[:32], "digest": H("masked", rest[32:])}
                if shown["digest"] in [self.opened[s]["digest"] for s in self.inputs]:
                    raise Refused("INP-3", "a copy of another site's input")
                self.inputs[sender], self.opened[sender] = (proof, masks.words_of(rest[32:])), shown
        elif kind == "ConsistencyCheck" and self.phase == "checks":
            if context == self.named_context() and self.waiting.pop(sender, None):
                value = frames.read(kind, rest)
                if value["round"] != self.ctx:
                    raise Refused("CON-2", "signed for another round")
                if [s["missing"] for s in value["seeds"]] != without(self.cohort, self.named):
                    raise Refused("CON-3", "not one seed for every missing site")
                self.signed[sender] = proof
                self.seeds.update({(sender, s["missing"]): s["seed"] for s in value["seeds"]})
        elif kind == "Unmask" and context == self.shares_for and self.waiting.pop(sender, None):
            shares = [shamir.from_bytes(s, "UNM-3") for s in frames.read(kind, rest)["shares"]]
            if len(shares) != len(self.alive):
                raise Refused("UNM-3", "not one share for every survivor")
            self.shares[sender], self.agreed[sender] = dict(zip(self.alive, shares)), proof

    def advance(self):
        """What follows now: "wait", "sent", the sites that are out ([INP-4]), or the total with the wrong
        shares that were corrected."""
        t = self.deck.threshold
        if self.phase == "shares":
            if len(self.shares) >= t:
                return self.open_total()
            if not self.waiting:
                raise Refused("UNM-5", "too few answers")
            return "wait"
        if self.waiting:
            return "wait"
        if self.phase == "inputs":
            return self.name(sorted(self.inputs))
        if self.alive != self.named:
            return self.name(self.alive)
        signers = sorted(self.signed)[:t]
        proofs = [self.signed[s] for s in signers]
        certificate = {"alive": self.alive, "inputs": self.inputs_hash(), "signers": signers, "proofs": proofs}
        self.collect("Certificate", certificate, "shares")
        return "sent"

    def needed(self):
        return max(self.deck.threshold, plan_least(self.env.terms, len(self.env.roster["sites"])))

    def missing(self):
        """Of the cohort, those who are not among the survivors named last."""
        return without(self.cohort, self.alive) if self.phase in ("checks", "shares") else []

    def guilty(self):
        """[INP-4]: who committed to another vector than it sent; one by one, which shows what random weights show."""
        if not self.env.opening:
            return []
        return [s for s, (_, y) in sorted(self.inputs.items()) if commit.commit(y) != self.opened[s]["commitment"]]

    def name(self, alive):
        if len(alive) < self.needed():
            raise Refused("SUR-3", "too few sites for a total")
        guilty = self.guilty()
        if guilty:
            self.phase = "inputs"
            return guilty
        self.alive = self.named = alive
        self.signed = {}
        proofs = [self.inputs[s][0] for s in alive]
        everybody = alive == self.cohort and not self.env.always_certified
        self.collect("Survivors", {"alive": alive, "inputs": proofs}, "shares" if everybody else "checks")
        return "sent"

    def named_context(self):
        return frames.survivors_context(self.ctx, self.named, self.inputs_hash())

    def inputs_hash(self):
        return frames.inputs_hash([self.inputs[s][0]["rest"] for s in self.named])

    def collect(self, kind, value, phase):
        self.shares_for = self.named_context() if phase == "shares" else None
        self.waiting = dict.fromkeys(self.alive, self.env.frame(kind, self.ctx, value))
        self.phase = phase

    def open_total(self):
        """[UNM-6]; whoever was wrong once is not asked again while the others are enough."""
        t, holders, found_seeds, keys, wrong = self.deck.threshold, sorted(self.shares), {}, {}, []
        for owner in self.alive:
            column = {h: self.shares[h][owner] for h in holders}
            expected = self.deck.commitments[owner][self.slot]

            def fits(seed):
                return commitment(self.deck.id, owner, self.slot, seed) == expected

            seed, liars = shamir.recover(dict(list(column.items())[:t])), []
            if not fits(seed):
                found = shamir.recover_checked(column, t, fits)
                if found is None and not self.waiting:
                    found = shamir.recover_robust(column, t)
                    found = found if found and fits(found[0]) else None
                if found is None:
                    if self.waiting:
                        return "wait"
                    raise Refused("UNM-6", f"the self-mask of site {owner} does not open")
                seed, liars = found
            if len(holders) - len(liars) >= t:
                holders = without(holders, liars)
            wrong += [(h, owner) for h in liars]
            found_seeds[owner], keys[owner] = seed, masks.self_mask_key(seed, self.ctx)
        missing = without(self.cohort, self.alive)
        seeds = {(u, w): self.seeds[u, w] for u in self.alive for w in missing}
        total = masks.unmask({u: self.inputs[u][1] for u in self.alive}, keys, seeds)
        shown = opening.make(self, found_seeds) if self.env.opening else None
        return {"total": total, "cohort": self.alive, "missing": missing, "wrong": wrong, "opening": shown}
