"""A site and an aggregator: which frame goes where, and what follows (spec sections 8 to 12).

Both take one input and give back a list of outputs in order. Of a site: persist, rewrite, send, met, asked, deck_ready,
released, refused. Of an aggregator: send, deck_ready, total, wrong_share, lost, too_late, failed. There is no clock: that the
time of a site is up is an input.
"""

import frames
import journal
import opening
from codec import Refused
from deck import Setup, SiteDeck, enough
from documents import DEFAULT_FLOOR, MAX_SLOTS, opens, plan_least, session
from masks import raw
from round import AggregatorRound, SiteRound, without
from suite import H

ZERO = bytes(32)


def nothing_stated():
    """What a site states before its first answer ([LED-11])."""
    return {"account": None, "answered": {"number": 0, "link": ZERO}}


class Env:
    """What does not change while a run lasts."""

    def __init__(self, identity, roster, terms, me=None, role="Coordinator"):
        self.identity, self.roster, self.terms, self.me = identity, roster, terms, me
        self.floor = DEFAULT_FLOOR
        self.always_certified = role == "Intermediary"  # [UNM-1]
        self.session = session(terms, roster, role)
        self.aggregator_key, self.opening = roster[role.lower()]["key"], opens(terms, role)

    def key_of(self, site):
        sites = self.roster["sites"]
        return sites[site]["key"] if site < len(sites) else None

    def frame(self, kind, context, value):
        return frames.make(self.identity, self.session, kind, context, frames.message(kind, value))


class Site:
    def __init__(self, env, draws):
        self.env, self.draws, self.out = env, draws, []
        self.run, self.decks, self.highest = None, {}, -1
        self.round, self.last_slot, self.last_context, self.last_cohort = None, (-1, -1), ZERO, None
        self.rounds, self.opened = 0, None
        self.standing = nothing_stated()  # what it states of its account
        self.replies = {}  # (kind, deck) -> [frame, answer]: [RND-7]

    def handle(self, what, value):
        self.out = []
        try:
            getattr(self, what)(value)
        except Refused as bad:
            self.out.append({"refused": bad.rule})
        return self.out

    def send(self, to, kind, deck, answer, context, value):
        data = self.env.frame(answer, context, value)
        self.replies[kind, deck] = [to, data]
        self.out.append({"send": data})

    def frame(self, data):
        kind, context, rest, _ = frames.open_frame(data, self.env.session, self.env.aggregator_key)
        for to, answer in self.replies.values():
            if to == data:
                self.out += [{"send": answer}] if answer else []
                return
        if kind == "Opening":
            return self.opening(context, rest)
        takes = {
            "OpenDeck": self.open_deck, "Directory": self.directory, "DirectoryCertificate": self.certificate,
            "DeliverShares": self.shares, "Ask": self.ask, "Survivors": self.survivors,
            "Certificate": self.survivor_certificate,
        }  # fmt: skip
        if kind not in takes:
            raise Refused("FRM-6", f"a {kind}, which is not an aggregator's to send")
        takes[kind](data, context, frames.read(kind, rest))

    # decks

    def open_deck(self, data, context, opening):
        """[KEX-1], [KEX-9]."""
        index = opening["index"]
        if context != frames.deck_id(self.env.session, opening):
            raise Refused("KEX-1", "under another name than its own")
        if not 1 <= opening["slots"] <= min(MAX_SLOTS, self.env.terms["slots"]):
            raise Refused("KEX-1", "an impossible number of slots")
        if self.run not in (None, opening["run"]):
            raise Refused("KEX-9", "another run")
        if index <= self.highest:
            raise Refused("KEX-1", "a deck a second time")
        self.run, self.highest = opening["run"], index
        used = min((i for i, d in self.decks.items() if d.stage == "ready"), default=None)
        self.decks = {i: d for i, d in self.decks.items() if i == used}
        self.replies = {k: r for k, r in self.replies.items() if k[1] == used}
        deck = self.decks[index] = SiteDeck(self.env, opening, self.standing, self.draws)
        self.send(data, "OpenDeck", index, "AdvertiseKeys", deck.id, deck.own)

    def setup(self, context, *stages):
        for deck in self.decks.values():
            if deck.stage in stages and context == (deck.id if deck.stage == "directory" else deck.hash):
                return deck
        raise Refused("FRM-7", "of no deck this site is in")

    def step(self, deck, take, *args):
        """A set-up does not outlive what it refuses."""
        try:
            return take(*args)
        except Refused:
            del self.decks[deck.index]
            raise

    def directory(self, data, context, value):
        deck = self.setup(context, "directory")
        ciphertexts = self.step(deck, deck.take_directory, value, self.draws)
        self.send(data, "Directory", deck.index, "AcceptDirectory", deck.hash, ciphertexts)

    def certificate(self, data, context, value):
        deck = self.setup(context, "certificate")
        stated = [(e["site"], e["keys"]["standing"]["answered"]) for e in deck.entries]
        shares = self.step(deck, deck.take_certificate, value, self.draws)
        # The application goes on only if it was not refused by [LED-11].
        met = [[site, answered["number"], answered["link"]] for site, answered in stated]
        self.out.append({"met": {"deck": deck.index, "members": met}})
        self.send(data, "DirectoryCertificate", deck.index, "ShareKeys", deck.hash, shares)

    def shares(self, data, context, value):
        deck = self.setup(context, "shares", "ready")
        answer = (data, "DeliverShares", deck.index)
        if deck.stage == "ready":
            return self.send(*answer, "ShareAck", deck.hash, {})
        try:
            self.step(deck, deck.take_shares, value)
        except Refused as bad:
            self.send(*answer, "ShareComplaint", deck.hash, {"against": bad.culprit})
            raise
        self.out.append({"persist": journal.deck_entry(deck)})
        self.send(*answer, "ShareAck", deck.hash, {})
        ready = {"index": deck.index, "members": len(deck.members), "threshold": deck.threshold}
        self.out.append({"deck_ready": ready})

    # rounds

    def ask(self, data, ctx, ask):
        slot = (ask["deck"], ask["slot"])
        if self.round and self.round.ctx == ctx:
            if ctx != frames.round_context(self.env.session, self.round.deck.hash, ask):
                raise Refused("RND-1", "another question under its name")
            if self.round.frame is None:
                return self.asked(data, ctx, ask)
            self.out.append({"send": self.round.frame})
            return
        if slot <= self.last_slot:
            raise Refused("RND-2", "a slot again or out of order")
        deck = self.decks.get(ask["deck"])
        if deck is None or deck.stage != "ready":
            raise Refused("FRM-7", "of no deck this site holds")
        last = (self.round.remaining(), self.round.ctx) if self.round else (self.last_cohort, self.last_context)
        new = SiteRound(self.env, deck, ctx, ask, *last)
        self.follows_opening(ask, last[1])
        self.begin(new)
        self.rounds += 1
        self.asked(data, ctx, ask)

    def follows_opening(self, ask, last_context):
        """[OPN-7]."""
        if self.env.opening and last_context != ZERO and self.opened != (last_context, ask["previous_total"]):
            raise Refused("OPN-7", "a question before the total of the round before was opened, or as if of another")

    def opening(self, ctx, rest):
        """[OPN-2] to [OPN-8]."""
        called = opening.name(ctx, rest)
        if not self.env.opening:
            raise Refused("OPN-2", "a total opened where the plan opens none")
        if self.opened and self.opened[0] == ctx:
            if self.opened[1] != called:
                raise Refused("OPN-8", "one total opened in two ways")
            return
        if ctx == self.last_context:
            return  # asked on since then, or before a restart
        r = self.in_round(ctx)
        if not r.may_have_left():
            raise Refused("FRM-7", "of no round this site is in")
        value = frames.read("Opening", rest)
        words = opening.total(r, value)
        self.opened = ctx, called
        shown = {"deck": r.deck.index, "slot": r.slot, "directory": r.deck.hash, "words": raw(words)}
        self.out.append({"opened": {**shown, "cohort": value["alive"]}})

    def begin(self, new):
        """The round before ends; so do older slots and decks ([RND-8])."""
        if self.round:
            self.last_cohort, self.last_context = self.round.remaining(), self.round.ctx
        self.round, self.last_slot = new, (new.deck.index, new.slot)
        self.decks = {i: d for i, d in self.decks.items() if i >= new.deck.index}
        new.deck.close_before(new.slot)
        over = ("Survivors", "Certificate")
        self.replies = {k: r for k, r in self.replies.items() if k[1] >= new.deck.index and k[0] not in over}

    def asked(self, data, ctx, ask):
        self.replies["Ask", ask["deck"]] = [data, None]
        shown = {k: ask[k] for k in ("deck", "slot", "cohort", "words", "query")}
        self.out.append({"asked": {"context": ctx, **shown, "rounds": self.rounds}})

    def summary(self):
        """[JRN-4]: all before the open question."""
        decks = [journal.deck_entry(d) for _, d in sorted(self.decks.items()) if d.stage == "ready"]
        opened = self.opened[1] if self.opened and self.opened[0] == self.last_context else None
        chain = journal.entry(
            "chain", context=self.last_context, cohort=self.last_cohort, rounds=max(self.rounds - 1, 0), opened=opened
        )
        return [*decks, chain]

    def contribute(self, words):
        """[MSK-4]."""
        r = self.round
        r.frame = self.env.frame("MaskedInput", r.ctx, r.mask(words))
        masked = journal.entry(
            "masked", deck=r.deck.index, slot=r.slot, cohort=r.cohort, rounds=self.rounds, frame=r.frame
        )
        self.out.append({"rewrite": [*self.summary(), masked]})
        self.answer(r.frame)

    def refuse(self, rule):
        if not self.round.may_have_left():
            self.out.append({"rewrite": self.summary()})
        self.answer(self.env.frame("Refusal", self.round.ctx, {"rule": rule}))

    def answer(self, data):
        self.replies["Ask", self.round.deck.index][1] = data
        self.out.append({"send": data})

    def in_round(self, ctx):
        if not self.round or self.round.ctx != ctx:
            raise Refused("FRM-7", "of no round this site is in")
        return self.round

    def survivors(self, data, ctx, value):
        r, alive = self.in_round(ctx), value["alive"]
        if r.stage == "released" and alive == r.alive and [p["rest"] for p in value["inputs"]] == list(r.inputs.values()):
            return self.send(data, "Survivors", r.deck.index, "Unmask", r.agreed_context(), r.release())
        everybody, before = r.take_survivors(value), r.alive
        r.named(value)
        if everybody:
            return self.release(data, "Survivors")
        context, check = r.check()
        if alive != before:
            inputs = list(r.inputs.values())
            self.out.append({"persist": journal.entry("checked", context=ctx, alive=alive, inputs=inputs)})
        self.send(data, "Survivors", r.deck.index, "ConsistencyCheck", context, check)

    def survivor_certificate(self, data, ctx, value):
        r = self.in_round(ctx)
        if r.stage == "released" and value["alive"] == r.alive:
            return self.send(data, "Certificate", r.deck.index, "Unmask", r.agreed_context(), r.release())
        r.take_certificate(value)
        self.release(data, "Certificate")

    def release(self, data, kind):
        """[UNM-1], [UNM-3]."""
        r = self.round
        inputs = list(r.inputs.values())
        self.out.append({"persist": journal.entry("released", context=r.ctx, alive=r.alive, inputs=inputs)})
        self.send(data, kind, r.deck.index, "Unmask", r.agreed_context(), r.release())
        gone = without(r.cohort, r.alive)
        self.out.append({"released": {"deck": r.deck.index, "slot": r.slot, "missing": gone}})


class Aggregator:
    def __init__(self, env, draws, slots):
        self.env, self.run, self.slots = env, draws.take(32), slots
        self.attached_sites, self.lost, self.cohort = set(), set(), None
        self.setup = self.deck = self.spare = self.round = self.question = None
        self.next_deck, self.next_slot, self.previous, self.failed, self.out = 0, 0, (ZERO, ZERO), False, []
        self.opened = None  # the frame that opens the last total
        self.open_deck()

    def handle(self, what, *args):
        self.out = []
        try:
            if not self.failed:
                getattr(self, what)(*args)
        except Refused as bad:
            self.failed = True
            self.out.append({"failed": bad.rule})
        return self.out

    def send_all(self, waiting):
        self.out += [{"send": waiting[s], "to": s} for s in sorted(waiting) if s in self.attached_sites]

    def attached(self, site):
        self.attached_sites.add(site)
        if site in self.lost or self.cohort is not None and site not in self.cohort:
            self.out.append({"too_late": site})
            return
        self.send_all({site: self.setup.waiting[site]} if self.setup and site in self.setup.waiting else {})

    def ask(self, query, words):
        self.question = query, words
        self.start_round()

    def close(self):
        """No question follows."""
        if self.opened:
            self.send_all(dict.fromkeys(self.cohort, self.opened))

    def frame(self, sender, data):
        if sender in self.lost:
            return
        if data[2:4] == b"\x0f\0" and (self.round is None or data[8:40] != self.round.shares_for):
            return  # shares for a round that is over ([RND-10])
        try:
            key = self.env.key_of(sender)
            kind, context, rest, proof = frames.open_frame(data, self.env.session, key)
            self.dispatch(sender, kind, context, rest, proof)
        except Refused as bad:
            self.lose(sender, bad.rule)
            return

    def dispatch(self, sender, kind, context, rest, proof):
        if kind in (*Setup.PHASES, "ShareComplaint"):
            if self.setup:
                for site in self.setup.take(sender, kind, context, rest, proof):
                    self.lose(site, "SHR-7")
                self.guard(self.advance_setup)
        elif kind in ("MaskedInput", "ConsistencyCheck", "Unmask"):
            if self.round:
                self.round.take(sender, kind, context, rest, proof)
                self.guard(self.advance_round)
        elif kind == "Refusal":
            if self.round and self.round.ctx == context:
                self.lose(sender, "refused " + frames.read(kind, rest)["rule"])
        else:
            raise Refused("FRM-6", f"a {kind}, which is not a site's to send")

    def guard(self, advance):
        """What fails in going on is nobody's message: the run ends."""
        try:
            advance()
        except Refused as bad:
            self.failed, self.setup, self.round = True, None, None
            self.out.append({"failed": bad.rule})

    def gone(self, site):
        """Its connection broke or it was silent for too long."""
        self.attached_sites.discard(site)
        self.lose(site, "gone")

    def lose(self, site, why):
        self.lose_all([site], why)

    def lose_all(self, sites, why):
        """At once, before anything goes on."""
        sites = [s for s in sites if s not in self.lost]
        if not sites:
            return
        self.lost |= set(sites)
        self.cohort = self.cohort and without(self.cohort, sites)
        self.out += [{"lost": site, "why": why} for site in sites]
        for site in sites if self.setup else ():
            if self.setup:
                self.setup.waiting.pop(site, None)
                if self.setup.keys.pop(site, None) and self.setup.phase > 0:
                    self.guard(self.reopen)  # [KEX-11]
                else:
                    self.guard(self.advance_setup)
        if self.round:
            for site in sites:
                self.round.lost(site)
            self.guard(self.advance_round)

    # decks

    def reopen(self):
        self.setup = None
        if self.round:
            return  # with the next one another deck is made ready
        enough(self.env, len(self.candidates()))
        self.open_deck()

    def candidates(self):
        everybody = range(len(self.env.roster["sites"])) if self.cohort is None else self.cohort
        return [s for s in everybody if s not in self.lost]

    def open_deck(self):
        self.setup = Setup(self.env, self.run, self.next_deck, self.slots, self.candidates())
        self.next_deck += 1
        self.send_all(self.setup.waiting)

    def advance_setup(self):
        while self.setup and not self.setup.waiting:
            try:
                if self.setup.advance():
                    return self.deck_ready()
            except Refused:
                if not self.round:
                    raise
                self.setup = None
                return
            if self.cohort is None:
                self.cohort = self.setup.members
            self.send_all(self.setup.waiting)

    def deck_ready(self):
        deck, self.setup = self.setup, None
        ready = {"index": deck.index, "members": deck.members, "threshold": deck.threshold}
        self.out.append({"deck_ready": ready})
        if (self.deck is None or self.next_slot >= self.deck.slots) and not self.round:
            self.deck, self.next_slot = deck, 0
        else:
            self.spare = deck
        self.start_round()

    # rounds

    def start_round(self):
        if self.round or not self.question:
            return
        if self.spare and (self.deck is None or self.next_slot >= self.deck.slots):
            self.deck, self.spare, self.next_slot = self.spare, None, 0
        if self.deck is None or self.next_slot >= self.deck.slots:
            if self.setup is None:
                self.open_deck()
            return
        cohort = [m for m in self.deck.members if m in self.cohort]
        if len(cohort) < max(self.deck.threshold, plan_least(self.env.terms, len(self.env.roster["sites"]))):
            raise Refused("POL-1", "too few sites for a round")
        (query, words), self.question = self.question, None
        self.round = AggregatorRound(self.env, self.deck, self.next_slot, cohort, query, words, self.previous)
        self.next_slot += 1
        if self.opened:
            self.send_all(dict.fromkeys(cohort, self.opened))
        self.send_all(self.round.waiting)
        if self.deck.slots - self.next_slot <= self.deck.slots // 4 and not self.spare and not self.setup:
            self.open_deck()  # [KEX-12]

    def advance_round(self):
        while True:
            came = self.round.advance()
            if came == "wait":
                return
            if came == "sent":
                missing = self.round.missing()
                self.send_all(self.round.waiting)
                for site in missing:
                    self.out_of_run(site)
                continue
            if isinstance(came, list):
                return self.lose_all(came, "INP-4")
            ctx = self.round.ctx
            self.previous = ctx, H("total", raw(came["total"]))
            if came["opening"]:
                self.opened = self.env.frame("Opening", ctx, came["opening"])
                self.previous = ctx, opening.name(ctx, frames.message("Opening", came["opening"]))
            self.round = None
            self.out += [{"wrong_share": {"holder": h, "owner": o}} for h, o in came["wrong"]]
            total = {"words": raw(came["total"]), "cohort": came["cohort"], "missing": came["missing"]}
            self.out.append({"total": total})
            return

    def out_of_run(self, site):
        """It did not make it into the survivors."""
        self.cohort = without(self.cohort, [site])
        if site not in self.lost:
            self.lost.add(site)
            self.out.append({"lost": site, "why": "Silent"})
