"""Writes the vectors: `python3 write_vectors.py FOLDER`."""

import json
import pathlib
import sys

import joining
import layers
import ledger
import met
import noise
import policy
import question_cases
import signed_layers
from bad_deck import bad_decks
from bad_journal import journals
from bad_opening import bad_openings
from bad_round import bad_rounds
from sessions import SESSIONS, write_session

LAYERS = {
    "codec": layers.codec_cases,
    "suite": layers.suite_cases,
    "identity": signed_layers.identity_cases,
    "documents": signed_layers.document_cases,
    "fixed": layers.fixed_cases,
    "shamir": layers.shamir_cases,
    "keys": layers.key_cases,
    "masks": layers.mask_cases,
    "commitments": layers.commitment_cases,
    "frames": signed_layers.frame_cases,
    "questions": question_cases.question_cases,
    "noise": noise.noise_cases,
    "ledger": ledger.ledger_cases,
    "met": met.met_cases,
    "policy": policy.policy_cases,
    "joining": joining.joining_cases,
}


def plain(x):
    """Bytes as hexadecimal digits, pairs as lists."""
    if isinstance(x, bytes):
        return x.hex()
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x


def lines(x, depth, margin=""):
    """JSON with one line for everything that lies deeper than `depth`."""
    if depth == 0 or not isinstance(x, (dict, list)) or not x:
        return json.dumps(x, ensure_ascii=True)
    inner = margin + " "
    if isinstance(x, dict):
        items = [f"{inner}{json.dumps(k)}: {lines(v, depth - 1, inner)}" for k, v in x.items()]
    else:
        items = [inner + lines(v, depth - 1, inner) for v in x]
    ends = "{}" if isinstance(x, dict) else "[]"
    return ends[0] + "\n" + ",\n".join(items) + "\n" + margin + ends[1]


def layer_files():
    for name, make in LAYERS.items():
        description, cases, *about = make()
        yield name, {"description": description, **(about[0] if about else {}), "cases": cases}


def session_files():
    drivers, names = {name: make() for name, make in SESSIONS.items()}, {}
    for name, p in drivers.items():
        content, names[name] = write_session(p, SESSIONS[name].__doc__)
        yield name, content
    text = "After `after` steps of the session these steps come, one of which is refused under `rule`."
    yield "bad_deck", {"description": f"Deck. {text}", "cases": bad_decks(drivers, names)}
    yield "bad_round", {"description": f"Round. {text}", "cases": bad_rounds(drivers, names)}
    yield "bad_opening", {"description": f"Opening. {text}", "cases": bad_openings(drivers, names)}
    text = "Journal (section 12). A site of the session comes back from these entries, and then gets these steps."
    yield "journal", {"description": text, "cases": journals(drivers, names)}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    files = {**dict(layer_files()), **dict(session_files())}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(lines(plain(content), 2) + "\n")


if __name__ == "__main__":
    main()
