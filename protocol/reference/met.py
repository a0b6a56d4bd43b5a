"""What a site keeps of the ledgers of those that it meets in decks (spec section 11.2, [LED-11]), and vectors of it.

A talk is a dict of plan, session and run; what a member states is a pair of number and link.
"""

from codec import Refused
from suite import Draws, H, le16, le32, le64


def known_by(m):
    return m.get("account") or m["key"]


def set_of_sites(keys):
    """[LED-1]: what names the sites with these keys."""
    return H("cohort in a ledger", b"".join(sorted(keys)))


class Met:
    def __init__(self):
        self.said = {}  # by key: (talk, deck, stated), newest last
        self.decks = {}  # by session, run and deck: [digest of all members' keys, slots of totals over all of them]
        self.floor = {}  # by key: answers of plans that it has left, at least, and a link or None

    def totals(self, talk, deck):
        return len(self.decks[talk["session"], talk["run"], deck][1])

    def before(self, talk, key):
        """All that a statement in this talk must not fall short of."""
        found = [self.floor[key]] if key in self.floor else []
        for old, deck, (number, link) in self.said.get(key, []):
            if old["plan"] == talk["plan"] and old["session"] == talk["session"] and old["run"] == talk["run"]:
                found.append((number, link))
            elif old["plan"] != talk["plan"] or old["session"] == talk["session"]:
                more = self.totals(old, deck)
                found.append((min(number + more, 2**64 - 1), None if more else link))
        return found

    def check(self, talk, members):
        for m in members:
            now = m["answered"]
            bad = [
                number for number, link in self.before(talk, known_by(m))
                if now["number"] < number or (now["number"] == number and link not in (None, now["link"]))
            ]  # fmt: skip
            if bad:
                raise Refused("LED-11", f"{max(bad)} answers before, {now['number']} now", m["site"])

    def take(self, talk, deck, members):
        for m in members:
            key = known_by(m)
            left = [s for s in self.said.get(key, []) if s[0]["plan"] != talk["plan"]]
            if left:
                floors = [self.floor[key]] if key in self.floor else []
                for old, at, (number, link) in left:
                    more = self.totals(old, at)
                    floors.append((min(number + more, 2**64 - 1), None if more else link))
                self.floor[key] = max(floors, key=lambda x: (x[0], x[1] is not None))
            kept = [s for s in self.said.get(key, []) if s[0]["plan"] == talk["plan"]]
            kept = [s for s in kept if (s[0]["session"], s[0]["run"], s[1]) != (talk["session"], talk["run"], deck)]
            self.said[key] = [*kept, (talk, deck, (m["answered"]["number"], m["answered"]["link"]))]
        self.decks[talk["session"], talk["run"], deck] = [set_of_sites([m["key"] for m in members]), set()]

    def total(self, talk, deck, slot, cohort):
        entry = self.decks.get((talk["session"], talk["run"], deck))
        if entry and entry[0] == cohort:
            entry[1].add(slot)


def and_one(answered, session, run, deck, slot):
    """What a site states after one more answer."""
    link = H("answers given", answered["link"], session, run, le32(deck), le16(slot))
    return {"number": answered["number"] + 1, "link": link}


def met_cases():
    """Sites meet in talks of two plans, each with two aggregators and two runs. A step is `meet` or `total`."""
    return "What is kept of others' ledgers (section 11.2).", [course(f"course {n}", Draws(f"met/{n}")) for n in range(5)]


def course(name, draws):
    """A site's ledger in which members state what they like, and what must be refused of it."""
    met, steps = Met(), []

    def below(n):
        return int.from_bytes(draws.take(4), "little") % n

    keys = [H("a key", le16(s)) for s in range(4)]
    accounts = [H("an account", le16(s)) if s % 2 else None for s in range(4)]
    number = [below(5) for _ in keys]
    while len(steps) < 40:
        plan, aggregator, run, deck = below(2), below(2), below(2), below(2)
        talk = {"plan": H("plan", le16(plan)), "session": H("session", le16(2 * plan + aggregator)), "run": H("run", le16(run))}
        if below(3):
            sites = [s for s in range(4) if below(4)]
            if not sites:
                continue
            number = [n + below(3) for n in number]
            members = []
            for s in sites:
                stated = number[s] - (below(4) if below(3) == 0 else 0)
                stated = 2**64 - 1 if below(60) == 0 else max(stated, 0)
                link = bytes(32) if stated == 0 else H("ledger link", le64(stated), le16(below(12) == 0))
                members.append({"site": s, "key": keys[s], "account": accounts[s], "answered": {"number": stated, "link": link}})
            step = {"do": "meet", "talk": talk, "deck": deck, "members": members}
            try:
                met.check(talk, members)
                met.take(talk, deck, members)
            except Refused as bad:
                step |= {"rule": bad.rule, "site": bad.culprit}
        else:
            cohort = set_of_sites([k for k in keys if below(8)] or keys)
            slot = below(4)
            step = {"do": "total", "talk": talk, "deck": deck, "slot": slot, "cohort": cohort}
            met.total(talk, deck, slot, cohort)
        steps.append(step)
    return {"name": name, "steps": steps}
