"""How a session goes astray: a case plays the first steps of a session, then others in place of what came."""

import frames
from sessions import named


class Cases:
    """What must be refused: what comes after so many steps of a session, and what follows."""

    def __init__(self, plays, written):
        self.plays, self.written, self.cases = plays, written, []

    def add(self, name, rule, session, at, *inputs, sound=False):
        p, names = self.plays[session], self.written[session]
        steps = p.astray(at, *inputs)
        outcomes = [o for s in steps for o in s["out"]]
        found = {o.get("refused") or o.get("failed") or o.get("why") for o in outcomes} - {None}
        assert sound or rule in found, f"{name}: {rule} expected, {found or outcomes}"
        steps = [named(s, names) for s in steps]
        self.cases.append({"name": name, "rule": rule, "session": session, "after": at, "steps": steps})

    def change(self, name, rule, session, i, edit, signer=0, context=None, kind=None, more=(), sound=False):
        """In place of the frame of step i comes one with the message changed by `edit`, signed again."""
        p = self.plays[session]
        s, data = p.steps[i], p.frame(i)
        old = frames.NAMES[data[2]]
        kind = kind or old
        value = frames.read(old, data[40:-64]) if frames.KINDS[old][2] else data[40:-64]
        rest = edit(value) if edit else data[40:-64]
        rest = rest if isinstance(rest, bytes) else frames.message(kind, rest)
        context = context or data[8:40]
        if callable(context):
            context = context(p.world.session, frames.read(kind, rest))
        changed = frames.make(p.world.identities[signer], p.world.session, kind, context, rest)
        self.add(name, rule, session, i, self.input(s, changed), *more, sound=sound)

    def input(self, s, data):
        return (s["at"], "frame", *([s["in"]["from"]] if s["at"] == "aggregator" else []), data)


def replaced(items, i, **fields):
    return [{**x, **fields} if j == i else x for j, x in enumerate(items)]


def resigned(p, i, edit, signer):
    """The frame of step i with another message, signed by this identity."""
    data = p.frame(i)
    kind = frames.NAMES[data[2]]
    rest = frames.message(kind, edit(frames.read(kind, data[40:-64])))
    return frames.make(p.world.identities[signer], p.world.session, kind, data[8:40], rest)
