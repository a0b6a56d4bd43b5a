"""Recomputes a run from a bundle alone (spec section 22): every signature, every total, and the centres that follow from the totals.

    recompute.py BUNDLE.tar

It prints what it found as JSON, and ends with an error where anything does not hold. It follows fuzzy c-means and k-means; of other
methods it recomputes the totals, and says so.
"""

import io
import json
import sys
import tarfile

import fixed
import frames
import masks
import shamir
from answers import FAMILIES, check_batch
from codec import BLOB, HASH, Reader, Refused, Struct, decode
from commit import are_sums
from course import plain_means
from documents import SIGNED_ROSTER, SIGNED_TERMS, plan_hash, roster_hash, session, threshold, verify_roster, verify_terms
from domain import Domain, scaled
from identity import verify
from questions import QUESTION, WORK
from suite import H

NAMES = ["manifest.json", "roster.toml", "plan.toml", "roster.bin", "plan.bin", "result.json", "model.json", "openings.bin"]
OWN = {"errors", "n_total", "n_total_from", "pooled", "software", "traffic", "warnings"}
SAID = Struct(directory=HASH, frame=BLOB)
LIMIT, CLOSE = 1 << 26, 1e-9


def no(why):
    raise Refused("RES-8", why)


def unpack(path):
    """[RES-7]: the files of a bundle, by name. Nothing is written to a disk."""
    with open(path, "rb") as file:
        archive = tarfile.open(fileobj=io.BytesIO(file.read()), mode="r:")
    files = {}
    for member in archive:
        if not member.isreg() or member.name not in NAMES or member.name in files:
            no(f"it holds {member.name!r}")
        files[member.name] = archive.extractfile(member).read()
    for listed in json.loads(files[NAMES[0]])["files"]:
        content = files[listed["name"]]
        if len(content) != listed["bytes"] or H("bundled file", content).hex() != listed["digest"]:
            no(f"{listed['name']} was changed")
    return files


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
        self.domain, self.totals, self.computed, self.asked, self.last, self.transform, self.gone_on = Domain.of(self.work), 0, [], None, None, None, set()

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
        for name, q in batch["queries"]:
            if followed(name, q):
                self.follows(q["centres"])
        self.asked, self.directory = (ctx, ask, (kind, batch)), directory

    def follows(self, centres):
        """Centres that are asked about are the start, or what a total before led to; a frozen one stays where it was."""
        near = [i for i, (before, after) in enumerate(self.computed) if far(centres, nearest_of(before, after, centres)) <= CLOSE]
        if self.computed and not near:
            raise Refused("OPN-9", "centres that do not follow from the totals")
        self.gone_on |= set(near)

    def opened(self, ctx, rest):
        _, ask, (kind, batch) = self.asked
        words = self.total(ctx, ask, frames.read("Opening", rest))
        self.last, self.asked, self.totals = (ctx, H("opening", ctx, rest)), None, self.totals + 1
        inner, at = check_batch(batch, self.domain), 0
        for name, q in batch["queries"]:
            blocks = FAMILIES[name][1](q, inner)
            scales = scaled(blocks, len(self.roster["sites"]), self.terms["max_rows"], self.work["step_bits"])
            values = []
            for _, length, _, bits, *_ in scales:
                values += [fixed.signed(w) * 2.0**-bits for w in words[at : at + length]]
                at += length
            if followed(name, q):
                self.computed.append((q["centres"], self.next(name, q["centres"], values)))
                self.transform = batch["transform"]
        if at != len(words):
            no("a total of another length than its question has")

    def next(self, name, centres, values):
        k, d = len(centres), len(centres[0])
        if name == "fuzzy_sums":
            sums, weights = values[: k * d], values[k * d :]
        else:
            weights, sums = values[:k], values[k : k + k * d]
        return [[s / w for s in sums[d * i : d * i + d]] if w > 0 else c for i, (w, c) in enumerate(zip(weights, centres))]

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
        enough = threshold(self.terms, len(alive) + len(opening["others"]), len(self.roster["sites"]))
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

    def original(self, centres):
        """Centres of a question in original units."""
        t, d = self.transform, self.domain
        out = []
        for c in centres:
            if t is not None:
                c = [x / f + s for x, s, f in zip(c, t["shift"], t["factor"])]
            row = [x / one for x, one in zip(c[d.numbers :], d.indicators)]
            if d.scaling == "box":
                c = [low + x * (high - low) for x, low, high in zip(c, d.lower, d.upper)]
            out.append(list(c[: d.numbers]) + row)
        return out

    def apart(self, centres):
        """How far a result's centres are from the nearest that the last total of a start led to, in units of each column's range; nothing where no
        question was one that is followed, or where centres are not taken back by columns."""
        t, d = (self.transform if self.computed else None), self.domain
        if not self.computed or d.scaling == "direction" or (t is not None and len(t["factor"]) != d.columns):
            return None
        spans = [high - low for low, high in zip(d.lower, d.upper)]
        ended = [after for i, (_, after) in enumerate(self.computed) if i not in self.gone_on and len(after) == len(centres)]
        off = [
            max(abs(a - b) / s for x, y in zip(self.original(known), centres) for a, b, s in zip(x, y, spans))
            for known in ended
        ]
        return min(off, default=float("inf"))


def followed(name, q):
    return name == "fuzzy_sums" or (name == "local_means" and plain_means(q))


def nearest_of(before, after, centres):
    """Where clusters may be frozen, each centre is where it was or where the total leads it."""
    if len(centres) != len(after):
        return after
    return [min((a, b), key=lambda x: far([x], [c])) for a, b, c in zip(after, before, centres)]


def far(x, y):
    if len(x) != len(y):
        return float("inf")
    return max(abs(a - b) for u, v in zip(x, y) for a, b in zip(u, v))


def recompute(path):
    files = unpack(path)
    roster = verify_roster(decode(SIGNED_ROSTER, files["roster.bin"], LIMIT))
    terms = verify_terms(decode(SIGNED_TERMS, files["plan.bin"], LIMIT), roster)
    result = Result(files["result.json"], roster, terms)
    if H("model file", files["model.json"]).hex() != result.fields["model_digest"]:
        no("another model than the result's")
    auditor = Auditor(roster, terms)
    auditor.follow(files.get("openings.bin", b""))
    apart = auditor.apart(result.fields["centres"])
    if apart is not None and apart > CLOSE:
        no(f"the result's centres are {apart} from those that the totals lead to")
    return {"signed_by": result.signers, "totals": auditor.totals, "rounds_of_centres": len(auditor.computed), "apart": apart}


if __name__ == "__main__":
    try:
        print(json.dumps(recompute(sys.argv[1])))
    except (Refused, KeyError, ValueError, tarfile.TarError) as bad:
        raise SystemExit(f"refused: {bad}") from None
