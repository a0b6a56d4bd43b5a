"""What a site makes durable before it sends, and how it comes back from that (spec section 12)."""

import commit
import frames
import shamir
from codec import BLOB, HASH, U16, U32, Enum, List, Option, Refused, Struct, decode, encode
from deck import SiteDeck
from round import SiteRound, sorted_set
from suite import H, le16

ENTRY = Enum(
    chain=Struct(context=HASH, cohort=Option(List(U16)), rounds=U32, opened=Option(HASH)),
    deck=Struct(
        session=HASH, run=HASH, index=U32, directory=HASH, threshold=U16, members=List(U16), first=U16,
        pairs=List(Struct(site=U16, secret=HASH)), seeds=List(HASH), held=List(List(HASH)), slot_commitments=List(HASH),
    ),
    masked=Struct(deck=U32, slot=U16, cohort=List(U16), rounds=U32, frame=BLOB),
    checked=Struct(context=HASH, alive=List(U16), inputs=List(HASH)),
    released=Struct(context=HASH, alive=List(U16), inputs=List(HASH)),
)  # fmt: skip


def entry(name, **fields):
    return encode(ENTRY, (name, fields))


def deck_entry(deck):
    return entry(
        "deck", session=deck.env.session, run=deck.run, index=deck.index, directory=deck.hash,
        threshold=deck.threshold, members=deck.members, first=deck.first,
        pairs=[{"site": m, "secret": deck.pairs[m]} for m in deck.members if m != deck.env.me],
        seeds=[shamir.to_bytes(b) for b in deck.seeds[deck.first :]],
        held=[[shamir.to_bytes(deck.held[m][r]) for m in deck.members] for r in range(deck.first, len(deck.seeds))],
        slot_commitments=deck.slot_commitments,
    )  # fmt: skip


def restore(site, entries):
    """[JRN-2], [JRN-3]: a new site stands where the entries say."""
    for data in entries:
        try:
            name, fields = decode(ENTRY, data, 1 << 24)
        except Refused:
            raise Refused("JRN-2", "a damaged entry") from None
        globals()[name](site, fields)


def needs(holds, why):
    if not holds:
        raise Refused("JRN-2", why)


def chain(site, f):
    needs(site.round is None, "a summary after a round")
    site.last_context, site.last_cohort, site.rounds = f["context"], f["cohort"], f["rounds"]
    site.opened = f["opened"] and (f["context"], f["opened"])


def deck(site, f):
    n, first, slots = len(f["members"]), f["first"], f["first"] + len(f["seeds"])
    needs(f["session"] == site.env.session, "another session")
    others = [p["site"] for p in f["pairs"]]
    whole = len(others) == n - 1 and sorted_set(others) and set(others) <= set(f["members"])
    whole = whole and all(len(row) == n for row in f["held"])
    whole = whole and len(f["held"]) == len(f["seeds"]) and len(f["slot_commitments"]) == slots
    needs(whole, "inner lists of different lengths")
    needs(site.run in (None, f["run"]), "two runs")
    needs(f["index"] > site.highest, "a deck twice")
    d = SiteDeck.__new__(SiteDeck)
    d.env, d.run, d.index, d.hash, d.stage = site.env, f["run"], f["index"], f["directory"], "ready"
    d.id = frames.deck_id(site.env.session, {"run": d.run, "index": d.index, "slots": slots})
    d.threshold, d.members, d.pairs = f["threshold"], f["members"], {p["site"]: p["secret"] for p in f["pairs"]}
    d.first = first
    d.seeds = [None] * first + [shamir.from_bytes(b, "JRN-2") for b in f["seeds"]]
    columns = zip(*f["held"]) if f["held"] else [()] * n
    d.held = {m: [None] * first + [shamir.from_bytes(s, "JRN-2") for s in c] for m, c in zip(d.members, columns)}
    d.slot_commitments = f["slot_commitments"]
    site.run, site.highest, site.decks[d.index] = d.run, d.index, d


def masked(site, f):
    needs(f["deck"] in site.decks, "a round without its deck")
    needs(site.round is None, "two rounds")
    needs(site.decks[f["deck"]].holds(f["slot"]), "a slot that is closed or none")
    r = SiteRound.__new__(SiteRound)
    frame = f["frame"]
    words = frame[40 + len(commit.NONE) : -64]
    answers = frame[2:4] == le16(frames.KINDS["MaskedInput"][0])
    needs(answers and words and len(words) % 8 == 0, "a frame that is no answer")
    r.env, r.deck, r.ctx, r.stage, r.alive = site.env, site.decks[f["deck"]], frame[8:40], "masked", None
    r.inputs, r.certified = {}, {}
    r.cohort, r.slot, r.words, r.sent, r.frame = f["cohort"], f["slot"], len(words) // 8, H("masked", words), frame
    site.begin(r)
    site.rounds = f["rounds"]


def checked(site, f):
    r, alive = site.round, f["alive"]
    follows = r and r.ctx == f["context"] and r.stage in ("masked", "checked") and sorted_set(alive)
    needs(follows and set(alive) <= set(r.remaining()) and r.may_be_checked(alive), "a signature that does not follow")
    same_inputs(r, f)
    r.stage, r.alive = "checked", alive


def released(site, f):
    r, alive = site.round, f["alive"]
    follows = r and r.ctx == f["context"] and r.stage in ("masked", "checked")
    follows = follows and alive == r.remaining() and (r.stage == "checked" or not r.env.always_certified)
    needs(follows, "a release that does not follow")
    same_inputs(r, f)
    r.stage, r.alive = "released", alive


def same_inputs(r, f):
    """One for every survivor, and no other than before."""
    needs(len(f["inputs"]) == len(f["alive"]), "not one input for every survivor")
    now = dict(zip(f["alive"], f["inputs"]))
    needs(all(r.inputs.get(s, i) == i for s, i in now.items()), "another input than before")
    r.inputs = now
