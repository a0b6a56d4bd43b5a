"""Frames, messages and what identifies them (spec sections 10 and 13, and the contexts of 8 and 9)."""

from codec import (
    BLOB,
    F64,
    HASH,
    I16,
    NOTHING,
    TEXT,
    U8,
    U16,
    U32,
    U64,
    List,
    Enum,
    Option,
    Raw,
    Refused,
    Struct,
    decode,
    encode,
)
from identity import verify
from suite import H, le16, le32

VERSION = 4
SMALL, LIST, QUERY, BODY, WORDS = 4096, 262_144, 9_437_184, 16_777_216, 8_388_608
OPENING = 18_874_368
DIRECTORY, DELIVERY = 1_572_864, 18_874_368

ANSWERED = Struct(number=U64, link=HASH)
STANDING = Struct(account=Option(HASH), answered=ANSWERED)
KEYS = Struct(dh_key=HASH, kem_key=Raw(1184), commitments=HASH, standing=STANDING)
PROOF = Struct(rest=HASH, signature=Raw(64))
DIRECTORY_ENTRY = Struct(site=U16, keys=KEYS, proof=PROOF)
CIPHERTEXT_FOR = Struct(site=U16, ciphertext=Raw(1088))
SEALED_FOR = Struct(site=U16, sealed=BLOB)
ROUND_SEED = Struct(missing=U16, seed=HASH)
OPENED_INPUT = Struct(commitment=HASH, digest=HASH, signature=Raw(64))
OPENED_CHECK = Struct(seeds=List(HASH), signature=Raw(64))
AGREED = Struct(site=U16, proof=PROOF)
DIGEST = Struct(digest=HASH)

# name: (number, body limit, message); None is a message that is not encoded as in section 3
KINDS = {
    "OpenDeck": (1, SMALL, Struct(run=HASH, index=U32, slots=U16)),
    "AdvertiseKeys": (2, SMALL, KEYS),
    "Directory": (3, DIRECTORY, Struct(threshold=U16, entries=List(DIRECTORY_ENTRY))),
    "AcceptDirectory": (4, DIRECTORY, Struct(ciphertexts=List(CIPHERTEXT_FOR))),
    "DirectoryCertificate": (5, DIRECTORY, Struct(proofs=List(PROOF), ciphertexts=List(CIPHERTEXT_FOR))),
    "ShareKeys": (6, BODY, Struct(commitments=List(HASH), boxes=List(SEALED_FOR))),
    "DeliverShares": (7, DELIVERY, Struct(commitments=List(List(HASH)), boxes=List(SEALED_FOR))),
    "ShareAck": (8, SMALL, NOTHING),
    "ShareComplaint": (9, SMALL, Struct(against=U16)),
    "Ask": (10, QUERY + SMALL, Struct(
        deck=U32, slot=U16, cohort=List(U16), words=U32, previous_context=HASH, previous_total=HASH, query=BLOB)),
    "MaskedInput": (11, WORDS + SMALL, None),
    "Survivors": (12, LIST, Struct(alive=List(U16), inputs=List(PROOF))),
    "ConsistencyCheck": (13, LIST, Struct(round=HASH, seeds=List(ROUND_SEED))),
    "Certificate": (14, LIST, Struct(alive=List(U16), inputs=HASH, signers=List(U16), proofs=List(PROOF))),
    "Unmask": (15, LIST, Struct(shares=List(HASH))),
    "Refusal": (16, SMALL, Struct(rule=TEXT)),
    "Opening": (17, OPENING, Struct(
        alive=List(U16), inputs=List(OPENED_INPUT), seeds=List(HASH), others=List(HASH), checks=List(OPENED_CHECK),
        agreed=List(AGREED), low=List(U64), high=List(U16))),
    "Hello": (64, SMALL, Struct(roster=HASH, plan=Option(HASH), software=TEXT)),
    "Welcome": (65, SMALL, Struct(software=TEXT)),
    "Denied": (66, SMALL, Enum(no_run=NOTHING, roster=HASH, plan=HASH, own=NOTHING, taken=NOTHING, unread=TEXT)),
    "Finished": (67, QUERY, Struct(model=BLOB, result=BLOB, signature=BLOB)),
    "CountReady": (68, LIST, Struct(run=HASH, cohort=List(U16))),
    "CountRequest": (69, LIST, Struct(cohort=List(U16))),
    "CountReply": (70, SMALL, Struct(total=Option(U64))),
    "Aborted": (71, SMALL, Struct(code=U8, why=TEXT)),
    "Held": (72, QUERY, None),
    "JudgeRequest": (73, LIST, Struct(digest=HASH, clusters=List(U32), exponents=List(I16))),
    "CentreDistances": (74, QUERY, Struct(digest=HASH, matrices=List(List(F64)))),
    "JudgeReply": (75, BODY, Struct(cohort=List(U16), verdicts=BLOB)),
    "Count": (76, LIST, Struct(run=HASH, cohort=List(U16))),
    "Knock": (77, SMALL, Struct(roster=HASH, plan=Option(HASH), software=TEXT)),
    "Countersigned": (78, SMALL, Struct(ledger=HASH, signature=Raw(64))),
}  # fmt: skip
NAMES = {number: name for name, (number, _, _) in KINDS.items()}


def message(kind, value):
    t = KINDS[kind][2]
    return value if t is None else encode(t, value)


def rest_hash(rest):
    return H("rest", rest)


def rest_of(kind, rest):
    """What is signed of a message ([FRM-4]): of a masked input, its commitment and the hash of its words."""
    if kind == "MaskedInput" and len(rest) >= 32:
        return opened_rest({"commitment": rest[:32], "digest": H("masked", rest[32:])})
    return rest_hash(rest)


def opened_rest(opened):
    return H("input", opened["commitment"], opened["digest"])


def signed_digest(session, kind, context, rest):
    """What a frame's signature signs ([FRM-4]); `rest` is the rest hash."""
    return H("frame", session, le16(KINDS[kind][0]), context, rest)


def make(identity, session, kind, context, rest):
    """A signed frame around an encoded message."""
    number = KINDS[kind][0]
    header = le16(VERSION) + le16(number) + le32(32 + len(rest) + 64)
    return header + context + rest + identity.sign(signed_digest(session, kind, context, rest_of(kind, rest)))


def parse_header(header):
    """[FRM-1], [FRM-3], [FRM-6]: kind and length of the body."""
    version, number = int.from_bytes(header[:2], "little"), int.from_bytes(header[2:4], "little")
    length = int.from_bytes(header[4:8], "little")
    if version != VERSION:
        raise Refused("FRM-1", f"wire version {version}, this side speaks {VERSION}")
    if number not in NAMES:
        raise Refused("FRM-6", f"unknown kind {number}")
    if length > KINDS[NAMES[number]][1]:
        raise Refused("FRM-3", "over the limit of its kind")
    return NAMES[number], length


def open_frame(data, session, key):
    """Takes a frame apart and checks its signature: kind, context, message bytes, proof ([FRM-5])."""
    if len(data) < 8:
        raise Refused("FRM-3", "shorter than its header")
    kind, length = parse_header(data[:8])
    if length != len(data) - 8 or length < 96:
        raise Refused("FRM-3", "another length than declared")
    context, rest = data[8:40], data[40:-64]
    proof = {"rest": rest_of(kind, rest), "signature": data[-64:]}
    if not proves(proof, key, session, kind, context):
        raise Refused("FRM-4", "not signed by its sender for this session")
    return kind, context, rest, proof


def proves(proof, key, session, kind, context):
    """[FRM-5]."""
    return verify(key, signed_digest(session, kind, context, proof["rest"]), proof["signature"])


def read(kind, rest):
    _, limit, t = KINDS[kind]
    return decode(t, rest, limit)


def deck_id(session, opening):
    """[KEX-1]."""
    return H("deck", session, message("OpenDeck", opening))


def directory_hash(deck, directory):
    """[KEX-3]."""
    return H("directory", deck, message("Directory", directory))


def round_context(session, directory, ask):
    """[RND-1]."""
    return H(
        "round", session, directory, le32(ask["deck"]), le16(ask["slot"]), encode(List(U16), ask["cohort"]),
        le32(ask["words"]), H("query", ask["query"]), ask["previous_context"], ask["previous_total"],
    )  # fmt: skip


def survivors_context(ctx, alive, inputs):
    """[CON-2], [UNM-3]; `inputs` is the hash of the survivors' inputs."""
    return H("survivors", ctx, encode(List(U16), alive), inputs)


def inputs_hash(inputs):
    """[CON-2]: stands for the rest hashes of the survivors' inputs."""
    return H("inputs", encode(List(HASH), inputs))
