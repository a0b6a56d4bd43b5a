"""Drives whole sessions in memory, records every input of every party with its outputs, and deviates from them."""

import copy

import frames
import masks
from documents import roster_hash
from identity import Identity
from party import Aggregator, Env, Site
from suite import Draws, H, le16, le64


def value(site, query, words):
    """The vector that a site answers in the test vectors. It depends on the site, the query and the place of the word."""
    return [int.from_bytes(H("value", le16(site), query, le64(j))[:8], "little") for j in range(words)]


def parties(name, n, **terms):
    """Makes the identities (coordinator, intermediary, sites), the roster and the terms."""
    draws = Draws(f"{name}/identities")
    identities = [Identity(draws.take(32)) for _ in range(n + 2)]

    def member(i, called, address=""):
        return {"name": called, "key": identities[i].public, "address": address}

    roster = {
        "name": "vectors",
        "coordinator": member(0, "hub", "hub.example:4433"),
        "intermediary": member(1, "counter", "counter.example:4433"),
        "sites": [member(i + 2, f"site-{i}") for i in range(n)],
    }
    usual = {
        "roster": roster_hash(roster), "min_cohort": 3, "threshold": 0, "colluders": 0, "sites": ("Any", {}), "slots": 8,
        "max_rows": 1000, "min_total_rows": 0, "application": b"",
    }  # fmt: skip
    return identities, roster, usual | terms


class World:
    """An aggregator, its sites, and the frames under way."""

    def __init__(self, name, n, role="Coordinator", standings=None, **terms):
        self.name, self.n, self.role = name, n, role
        self.identities, self.roster, self.terms = parties(name, n, **terms)
        self.hub = self.identities[0 if role == "Coordinator" else 1]
        hub = Env(self.hub, self.roster, self.terms, role=role)
        self.session = hub.session
        self.aggregator = Aggregator(hub, Draws(f"{name}/aggregator"), self.terms["slots"])
        self.sites = []
        for i in range(n):
            env = Env(self.identities[i + 2], self.roster, self.terms, i, role)
            self.sites.append(Site(env, Draws(f"{name}/site {i}")))
        # What each site states: its account.
        for i, account in (standings or {}).items():
            answered = {"number": 7 + i, "link": H("ledger link", bytes([i]))}
            self.sites[i].standing = {"account": account, "answered": answered}
        self.queue = []

    def give(self, at, what, *args):
        """Gives a party one input, queues the frames that it sends, and returns its outputs."""
        if at == "aggregator":
            out = self.aggregator.handle(what, *args)
            self.queue += [(o["to"], "frame", o["send"]) for o in out if "send" in o]
        else:
            out = self.sites[at].handle(what, *args)
            for o in out:
                if "send" in o:
                    self.queue.append(("aggregator", "frame", at, o["send"]))
                elif "asked" in o:
                    self.queue.append((at, "contribute", value(at, o["asked"]["query"], o["asked"]["words"])))
        return out


class Driver:
    """Drives a session and records it. `before[i]` is the world before step i."""

    def __init__(self, name, n, lose=lambda at, what, args: False, **setting):
        self.world, self.steps, self.before = World(name, n, **setting), [], []
        for i in range(n):
            self.do("aggregator", "attached", i)
        self.run(lose)

    def do(self, at, what, *args):
        self.before.append(copy.deepcopy(self.world))
        self.steps.append(step(at, what, args, self.world.give(at, what, *args)))

    def run(self, lose=lambda at, what, args: False):
        """Delivers everything in the queue, except for what `lose` selects."""
        while self.world.queue:
            at, what, *args = self.world.queue.pop(0)
            if not lose(at, what, args):
                self.do(at, what, *args)

    def ask(self, query, words, lose=lambda at, what, args: False):
        self.do("aggregator", "ask", query, words)
        self.run(lose)

    def close(self):
        """Ends the session: no question follows."""
        self.do("aggregator", "close")
        self.run()
        return self

    def find(self, at, kind, nth=0, sender=None):
        """Finds the index of the nth step at which this party receives a frame of this kind."""

        def matches(s):
            came = s["in"]
            is_kind = "frame" in came and frames.NAMES[came["frame"][2]] == kind
            return s["at"] == at and is_kind and (sender is None or came["from"] == sender)

        return [i for i, s in enumerate(self.steps) if matches(s)][nth]

    def frame(self, i):
        return self.steps[i]["in"]["frame"]

    def deviate(self, i, *inputs):
        """Returns the steps that follow if these inputs come in place of step i."""
        world = copy.deepcopy(self.before[i])
        return [step(at, what, args, world.give(at, what, *args)) for at, what, *args in inputs]


def step(at, what, args, out):
    given = {
        "attached": lambda: {"attached": args[0]},
        "gone": lambda: {"gone": args[0]},
        "ask": lambda: {"ask": {"query": args[0], "words": args[1]}},
        "frame": lambda: {"frame": args[-1], **({"from": args[0]} if at == "aggregator" else {})},
        "contribute": lambda: {"contribute": masks.raw(args[0])},
        "refuse": lambda: {"refuse": args[0]},
        "close": lambda: {"close": True},
    }
    return {"at": at, "in": given[what](), "out": copy.deepcopy(out)}
