"""A site as a process of its own, for tests between implementations: see `../README.md`. Never run it on real data.

    take_part.py --key site.key --data rows.csv [--result model.json] [--vanish N]

Frames come and go on standard input and output as records: a channel (one byte), a length (u32, little-endian), bytes.
Channel 0 is the coordinator, 1 the intermediary. An empty record says here that the connection is up (again), there
that this site is done with it. First come, once, on channel 2 the signed roster and on channel 3 the signed plan.
Nothing is kept over a restart.
"""

import argparse
import csv
import json
import os
import struct
import sys
import tomllib

from answers import answer
from domain import carried
from codec import Refused, decode
from course import Course
from documents import SIGNED_ROSTER, SIGNED_TERMS, plan_hash, roster_hash, verify_roster, verify_terms
from frames import KINDS, make, message, open_frame, parse_header, read
from identity import Identity
from party import ZERO, Env, Site
from masks import words_of
from suite import ORDER, H

ROLES = ["Coordinator", "Intermediary"]
ROSTER, PLAN = 2, 3
GREETING = H("greeting")


class Random:
    """Fresh bytes, where the vectors have draws that can be repeated."""

    def take(self, n):
        return os.urandom(n)

    def scalar(self):
        return int.from_bytes(os.urandom(64), "little") % ORDER


class Conversation:
    """With one aggregator."""

    def __init__(self, channel, identity, roster, terms, me, args):
        self.channel, self.role, self.args, self.welcome, self.over = channel, ROLES[channel], args, False, False
        self.env = Env(identity, roster, terms, me, self.role)
        self.site, self.course, self.answered = Site(self.env, Random()), Course(self.env), 0
        self.floor, self.waiting = None, []  # [APP-2]: the intermediary's word, and what was asked before it
        self.rows = rows_of(args.data, self.course)
        if not 1 <= len(self.rows) <= terms["max_rows"]:
            raise SystemExit("no rows, or more than the plan allows")

    def up(self):
        """[APP-1]."""
        self.welcome = False
        hello = {"roster": roster_hash(self.env.roster), "plan": plan_hash(self.env.terms), "software": "reference"}
        put(self.channel, make(self.env.identity, GREETING, "Hello", ZERO, message("Hello", hello)))

    def frame(self, data):
        kind, _ = parse_header(data[:8])
        if not self.welcome:
            kind, _, rest, _ = open_frame(data, GREETING, self.env.aggregator_key)
            if kind != "Welcome":
                raise SystemExit(f"not let in: {read(kind, rest)}")
            self.welcome = True
        elif KINDS[kind][0] < 64:
            self.drain(self.site.handle("frame", data))
        else:
            self.control(*open_frame(data, self.env.session, self.env.aggregator_key)[:3])

    def control(self, kind, _, rest):
        if kind == "Finished":
            self.over = True
            if self.channel == 0 and self.args.result:
                with open(self.args.result, "w") as out:
                    json.dump(json.loads(read(kind, rest)["model"]), out)
            put(self.channel, b"")
        elif kind == "Aborted" and self.channel == 1:
            say("the intermediary ended its part")  # whether the run goes on is the coordinator's to say
            put(1, b"")
        elif kind == "Aborted":
            raise SystemExit(f"{self.role} ended the run: {read(kind, rest)}")
        elif kind == "CountReady" and self.channel == 1:
            self.floor = read(kind, rest)
        else:
            raise Refused("FRM-6", kind)

    def told(self, floor):
        """[APP-2]: the floor is reached in the coordinator's run."""
        self.floor = floor if floor and floor["run"] == self.site.run else None
        while self.floor and self.waiting:
            self.answer(self.waiting.pop(0))

    def drain(self, outputs):
        for o in outputs:
            if "send" in o:
                put(self.channel, o["send"])
            elif "asked" in o:
                self.answer(o["asked"])
            elif "opened" in o:
                self.course.opened(words_of(o["opened"]["words"]))
                say(f"{self.role}: a total over {len(o['opened']['cohort'])} sites, recomputed")
            elif "refused" in o and o["refused"] != "FRM-7":
                raise SystemExit(f"{self.role} breaks a rule: {o['refused']}")

    def answer(self, asked):
        if self.channel == 0 and not self.floor:
            self.waiting = [asked]
            return
        self.answered += self.channel == 0
        if self.channel == 0 and self.answered == self.args.vanish:
            say("vanishes")
            os._exit(0)
        try:
            if self.channel == 0 and not set(asked["cohort"]) <= set(self.floor["cohort"]):
                raise Refused("APP-2", "a site that was not counted is asked")
            question = self.course.take(asked, self.role)
        except Refused as bad:
            self.drain(self.site.handle("refuse", bad.rule))
            raise SystemExit(f"refused: {bad}") from None
        words = carried(answer(question, self.course.domain, self.rows), self.course.scales)
        self.drain(self.site.handle("contribute", words))


def rows_of(path, course):
    names = [c["name"] for c in course.work["columns"]]
    with open(path, newline="") as file:
        rows = [[float(row[name]) for name in names] for row in csv.DictReader(file)]
    return course.domain.working(rows, course.work["out_of_box"][0])


def put(channel, data):
    sys.stdout.buffer.write(struct.pack("<BI", channel, len(data)) + data)
    sys.stdout.buffer.flush()


def say(text):
    print(text, file=sys.stderr, flush=True)


def take():
    """The next record, or nothing at the end."""
    head = sys.stdin.buffer.read(5)
    if len(head) < 5:
        return None, b""
    channel, length = struct.unpack("<BI", head)
    return channel, sys.stdin.buffer.read(length)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--key", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--result")
    parser.add_argument("--vanish", type=int, default=0)
    args = parser.parse_args()
    with open(args.key, "rb") as file:
        identity = Identity(bytes.fromhex(tomllib.load(file)["seed"]))
    documents = {}
    while set(documents) != {ROSTER, PLAN}:
        channel, data = take()
        documents[channel] = data
    roster = verify_roster(decode(SIGNED_ROSTER, documents[ROSTER], 1 << 24))
    terms = verify_terms(decode(SIGNED_TERMS, documents[PLAN], 1 << 24), roster)
    me = [m["key"] for m in roster["sites"]].index(identity.public)  # [ROS-7]
    both = [Conversation(c, identity, roster, terms, me, args) for c in (0, 1)]
    while not both[0].over:
        channel, data = take()
        if channel is None:
            raise SystemExit("the relay is gone")
        both[channel].frame(data) if data else both[channel].up()
        both[0].told(both[1].floor)
    put(1, b"")


if __name__ == "__main__":
    main()
