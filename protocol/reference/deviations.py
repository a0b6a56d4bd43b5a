"""Deviations from a session: a case takes the first steps of a recorded session, and then other inputs."""

import frames
from sessions import named


class Cases:
    """The cases that must be refused. Each names a session, how many of its steps come first, and the inputs after them."""

    def __init__(self, drivers, written):
        self.drivers, self.written, self.cases = drivers, written, []

    def add(self, name, rule, session, at, *inputs, sound=False):
        p, names = self.drivers[session], self.written[session]
        steps = p.deviate(at, *inputs)
        outcomes = [o for s in steps for o in s["out"]]
        found = {o.get("refused") or o.get("failed") or o.get("why") for o in outcomes} - {None}
        assert sound or rule in found, f"{name}: {rule} expected, {found or outcomes}"
        steps = [named(s, names) for s in steps]
        self.cases.append({"name": name, "rule": rule, "session": session, "after": at, "steps": steps})

    def change(self, name, rule, session, i, edit, signer=0, context=None, kind=None, more=(), sound=False):
        """Adds a case in which the frame of step i has its message changed by `edit` and is signed again."""
        p = self.drivers[session]
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
    """Returns the frame of step i with its message changed by `edit`, signed by the identity `signer`."""
    data = p.frame(i)
    kind = frames.NAMES[data[2]]
    rest = frames.message(kind, edit(frames.read(kind, data[40:-64])))
    return frames.make(p.world.identities[signer], p.world.session, kind, data[8:40], rest)
