"""Recomputes a run from its folder alone (spec section 22): every signature, every total, and the centres that follow from the totals.

    recompute.py FOLDER

The folder holds result.json, model.json, openings.bin, and the signed roster and plan as the wire has them: roster.bin, plan.bin.
It prints what it found as JSON, and ends with an error where anything does not hold. It compares centres and
descriptions; indices and sizes it does not recompute. Under noise `apart` is null: there the totals are all.
"""

import json
import math
import sys
from pathlib import Path

import fixed
import frames
import masks
import shamir
from answers import FAMILIES, check_batch
from codec import BLOB, HASH, Reader, Refused, Struct, decode
from commit import are_sums
from anchors import clustered, features_of
from compared import apart, clusters
from described import describe
from documents import SIGNED_ROSTER, SIGNED_TERMS, plan_hash, roster_hash, session, threshold, verify_roster, verify_terms
from domain import Domain, scaled
from identity import verify
from questions import QUESTION, WORK
from steps import Steps, confined, named
from suite import H

NAMES = ["roster.bin", "plan.bin", "result.json", "model.json", "openings.bin"]
OWN = {"departures", "errors", "n_total", "n_total_from", "pooled", "says", "software", "traffic", "warnings"}
SAID = Struct(directory=HASH, frame=BLOB)
LIMIT, CLOSE = 1 << 26, 1e-9


def no(why):
    raise Refused("RES-8", why)


def members(text):
    """The members of a result as they stand in its text, each with its lines."""
    if not (text.startswith("{\n") and text.endswith("\n}\n")):
        no("it is not written as results are")
    each = ("\n" + text[2:-3]).split(",\n  \"")
    each[0] = each[0].removeprefix("\n  \"")
    return [(one.split('": ', 1)[0], one) for one in each]


def joined(each):
    return "{\n" + ",\n".join('  "' + one for one in each) + "\n}\n"


class Result:
    """[RES-1] to [RES-5]: a result's file, with every signature checked."""

    def __init__(self, data, roster, terms):
        each = members(data.decode())
        if each[-1][0] != "signatures":
            no("it carries no signatures")
        signed = json.loads("{\"" + each[-1][1] + "}")["signatures"]
        body = joined([one for _, one in each[:-1]])
        text = joined([one for key, one in each[:-1] if key not in OWN])
        self.fields, self.signers = json.loads(body), []
        within = session(terms, roster, "Coordinator")
        keys = {m["name"]: m["key"] for m in [roster["coordinator"], *roster["sites"]]}
        listed = json.dumps(signed["result"], separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()
        writer = signed["written_by"]
        whole = H("result file", within, writer.encode(), body.encode(), listed)
        if not verify(keys[writer], whole, bytes.fromhex(signed["file"])):
            no(f"{writer} did not write this file")
        for by in signed["result"]:
            ledger = bytes.fromhex(by.get("ledger", ""))
            if (by["party"] == roster["coordinator"]["name"]) == bool(ledger) or by["party"] in self.signers:
                no("a signature of another form")
            if not verify(keys[by["party"]], H("result", within, ledger, text.encode()), bytes.fromhex(by["signature"])):
                no(f"{by['party']} did not sign this result")
            self.signers.append(by["party"])
        for key, own in (("roster_hash", roster_hash(roster)), ("plan_hash", plan_hash(terms))):
            if self.fields[key] != own.hex():
                no(f"another {key}")


class Auditor:
    """Somebody who holds documents and openings, and no key."""

    def __init__(self, roster, terms):
        self.roster, self.terms, self.work = roster, terms, decode(WORK, terms["application"], 1 << 20)
        self.session, self.key = session(terms, roster, "Coordinator"), roster["coordinator"]["key"]
        self.domain, self.totals, self.asked, self.last, self.transform = Domain.of(self.work), 0, None, None, None
        recipe = self.work["recipe"]
        (self.method, self.spec), self.rounds = recipe["algorithm"], Steps(recipe)
        # A step under noise depends on how much noise there is, which the plan's accountant says.
        self.is_followed = recipe["noise"] is None and self.method not in ("ffcf", "describe")
        self.steps, self.anchors, self.described = [], [], []

    def follow(self, data):
        reader = Reader(data)
        while reader.at < len(data):
            size = int.from_bytes(reader.take(8), "little")
            said = decode(SAID, reader.take(size), LIMIT)
            kind, ctx, rest, _ = frames.open_frame(said["frame"], self.session, self.key)
            if kind == "Ask":
                self.ask(ctx, said["directory"], frames.read(kind, rest))
            elif kind == "Opening" and self.asked and (self.asked[0], self.directory) == (ctx, said["directory"]):
                self.opened(ctx, rest)
            else:
                no(f"a {kind} out of place")

    def ask(self, ctx, directory, ask):
        """[RND-1], [OPN-7], and where the method is followed [OPN-9]."""
        if ctx != frames.round_context(self.session, directory, ask):
            no("a question of another deck")
        if self.last and (ask["previous_context"], ask["previous_total"]) != self.last:
            raise Refused("OPN-7", "a question that does not follow the opening before it")
        kind, batch = decode(QUESTION, ask["query"], frames.QUERY)
        if kind == "Drawn":
            batch = batch["batch"]
        at = [self.rounds.stands(name, q) for name, q in batch["queries"] if self.is_followed]
        self.left = [step for one in at if one is not None for step in self.follows(one)]
        self.asked, self.directory = (ctx, ask, batch), directory

    def follows(self, at):
        """What is asked about is the start, or where a total before led to."""
        near = [step for step in self.steps if far(at, step.after, self.domain.units()) <= CLOSE]
        if self.steps and not near:
            raise Refused("OPN-9", "centres that do not follow from the totals")
        return near

    def opened(self, ctx, rest):
        _, ask, batch = self.asked
        words = self.total(ctx, ask, frames.read("Opening", rest))
        self.last, self.asked, self.totals = (ctx, H("opening", ctx, rest)), None, self.totals + 1
        for step in self.left:
            step.gone_on = True
        inner, at = check_batch(batch, self.domain), 0
        for name, q in batch["queries"]:
            blocks = FAMILIES[name][1](q, inner)
            scales = scaled(blocks, len(self.roster["sites"]), self.terms["max_rows"], self.work["step_bits"])
            values = []
            for _, length, _, bits, *_ in scales:
                values += [fixed.signed(w) * 2.0**-bits for w in words[at : at + length]]
                at += length
            self.told(name, q, named(blocks, values), inner)
        if at != len(words):
            no("a total of another length than its question has")
        if any(name == "features" or self.rounds.stands(name, q) is not None for name, q in batch["queries"]):
            self.transform = batch["transform"]

    def told(self, name, q, blocks, inner):
        """What a total says: where clusters go, feature vectors at anchors, or a part of a description."""
        if self.method == "describe":
            self.described.append((name, q, blocks))
        elif self.method == "ffcf" and name == "features":
            self.anchors.append(features_of(blocks))
        elif self.is_followed and self.rounds.stands(name, q) is not None:
            self.steps.append(self.rounds.of(name, q, blocks, inner))

    def total(self, ctx, ask, opening):
        """[OPN-2] to [OPN-6] as far as they show without the deck: signatures, sums and masks."""
        alive, cohort = opening["alive"], ask["cohort"]
        missing = [w for w in cohort if w not in alive]
        sizes = [len(opening[k]) for k in ("inputs", "seeds", "checks", "low", "high")]
        if alive != sorted(set(alive)) or not set(alive) <= set(cohort):
            raise Refused("OPN-2", "a total over sites that were not asked")
        if sizes != [len(alive), len(alive), len(alive) if missing else 0, ask["words"], ask["words"]]:
            raise Refused("OPN-2", "not everything, once for each survivor")
        agreed = [one["site"] for one in opening["agreed"]]
        try:
            enough = threshold(self.terms, len(alive) + len(opening["others"]), len(self.roster["sites"]))
        except Refused:
            raise Refused("OPN-2", "a total of a deck that no plan allows") from None
        if len(alive) < max(enough, self.terms["min_cohort"]):
            raise Refused("OPN-2", "a total over fewer sites than the plan allows")
        if agreed != sorted(set(agreed)) or not set(agreed) <= set(alive) or (not missing and len(agreed) < enough):
            raise Refused("OPN-2", "too few sites agreed to the inputs")
        sums = [low + high * masks.WRAP for low, high in zip(opening["low"], opening["high"])]
        if not are_sums(sums, [i["commitment"] for i in opening["inputs"]]):
            raise Refused("OPN-4", "sums that are not those of the inputs")
        rests = [frames.opened_rest(i) for i in opening["inputs"]]
        for site, rest, shown in zip(alive, rests, opening["inputs"]):
            self.signed(site, "MaskedInput", ctx, rest, shown, "OPN-5")
        context = frames.survivors_context(ctx, alive, frames.inputs_hash(rests))
        for one in opening["agreed"]:
            self.signed(one["site"], "Unmask", context, one["proof"]["rest"], one["proof"], "OPN-6")
        for site, shown in zip(alive, opening["checks"]):
            each = [{"missing": w, "seed": s} for w, s in zip(missing, shown["seeds"])]
            rest = frames.rest_hash(frames.message("ConsistencyCheck", {"round": ctx, "seeds": each}))
            self.signed(site, "ConsistencyCheck", context, rest, shown, "OPN-6")
        words = [s % masks.WRAP for s in sums]
        for at, site in enumerate(alive):
            seed = shamir.from_bytes(opening["seeds"][at], "OPN-3")
            words = masks.apply(words, masks.self_mask_key(seed, ctx), -1)
            for w, pair in zip(missing, opening["checks"][at]["seeds"] if missing else []):
                words = masks.apply(words, pair, -1 if site < w else 1)
        return words

    def signed(self, site, kind, context, rest, shown, rule):
        proof = {"rest": rest, "signature": shown["signature"]}
        if not frames.proves(proof, self.roster["sites"][site]["key"], self.session, kind, context):
            raise Refused(rule, f"a {kind} that site {site} did not sign")

    def ends(self, k):
        """Where a run of K clusters may have ended: what the last total of a start led to."""
        yield from (step.after for step in self.steps if not step.gone_on)
        seed = self.work["recipe"]["seeding"][1].get("seed", 0)
        for held in self.anchors:
            for restart in range(self.work["recipe"]["restarts"]):
                yield [confined(c, self.domain.moved(self.transform)) for c in clustered(held, k, self.spec, (seed + restart) % 2**64)]

    def apart(self, result):
        """How far a result is from the nearest that the totals lead to. Nothing where no question was one that is followed."""
        if self.described:
            return apart(describe(self.described, self.work, self.domain), result["description"])
        d, t = self.domain, self.transform
        if not (self.steps or self.anchors):
            return None
        k = len(result["centres"])
        known = (clusters(end, d, t) for end in self.ends(k) if len(end) == k)
        return min((apart(one, {"centres": result["centres"]}) for one in known), default=math.inf)


def far(x, y, units):
    """Of numbers behind the columns one counts as one."""
    return apart([list(zip(one, units + [1.0] * (len(one) - len(units)))) for one in x], y)


def audited(path):
    """Whoever followed the openings of a run, and its result; every signature and total holds."""
    files = {name: (Path(path) / name).read_bytes() for name in NAMES}
    roster = verify_roster(decode(SIGNED_ROSTER, files["roster.bin"], LIMIT))
    terms = verify_terms(decode(SIGNED_TERMS, files["plan.bin"], LIMIT), roster)
    result = Result(files["result.json"], roster, terms)
    if H("model file", files["model.json"]).hex() != result.fields["model_digest"]:
        no("another model than the result's")
    auditor = Auditor(roster, terms)
    auditor.follow(files["openings.bin"])
    return auditor, result


def recompute(path):
    auditor, result = audited(path)
    off = auditor.apart(result.fields)
    if off is not None and not off <= CLOSE:
        no(f"the result is {off} from what the totals lead to")
    return {"signed_by": result.signers, "totals": auditor.totals, "rounds_of_centres": len(auditor.steps), "apart": off}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    try:
        print(json.dumps(recompute(sys.argv[1])))
    except OSError as bad:
        raise SystemExit(f"{sys.argv[1]} cannot be read: {bad.strerror}; name the folder of a run") from None
    except (Refused, ArithmeticError, LookupError, TypeError, ValueError) as bad:
        raise SystemExit(f"refused: {bad}") from None
