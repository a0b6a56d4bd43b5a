"""The ciphersuite: hashes, key derivation, sealing, streams, key agreement, and the drawn numbers (spec section 4)."""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from codec import Refused

SALT, LASTING_SALT = b"veilsum/4", b"veilsum/1"
# Labels of what stands in files that outlive a wire version (section 4.1).
LASTING = {
    "roster", "cohort in a ledger", "ledger entry", "ledger link", "ledger head", "answers given",
    "ledger frame",
    "question in a ledger", "rows in a ledger", "row of a site", "rows of a site", "model file", "result", "result file",
}  # fmt: skip
ORDER = 2**252 + 27742317777372353535851937790883648493  # the scalars' modulus, l in the text


def le16(n):
    return n.to_bytes(2, "little")


def le32(n):
    return n.to_bytes(4, "little")


def le64(n):
    return n.to_bytes(8, "little")


def salt(label):
    return LASTING_SALT if label in LASTING else SALT


def H(label, *parts):
    """Section 4.1."""
    pieces = [salt(label), label.encode("ascii"), *parts]
    return hashlib.sha256(b"".join(le64(len(p)) + p for p in pieces)).digest()


def expand(prk, label, *parts):
    """Section 4.2, for a secret that is uniform."""
    return hmac.digest(prk, H(label, *parts) + b"\x01", "sha256")


def derive(secret, label, *parts):
    """Section 4.2, for a secret that is not uniform."""
    return expand(hmac.digest(SALT, secret, "sha256"), label, *parts)


def seal(key, associated, plain):
    """Section 4.3."""
    return AESGCM(key).encrypt(bytes(12), plain, associated)


def unseal(key, associated, sealed):
    try:
        return AESGCM(key).decrypt(bytes(12), sealed, associated)
    except (InvalidTag, ValueError):
        raise Refused("SHR-4", "a box does not open") from None


def stream(key, words):
    """Section 4.4: `words` integers of 64 bits."""
    blocks = b"".join(le64(i) + bytes(8) for i in range((words + 1) // 2))
    # The counter of this stream is not the one of the library's counter mode, so the blocks are written out.
    out = Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(blocks)
    return [int.from_bytes(out[8 * j : 8 * j + 8], "little") for j in range(words)]


def dh_public(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def dh(private, public):
    """Section 4.5: 32 bytes that are not all zero."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise Refused("KEX-8", "a key of small order") from None


class Draws:
    """The vectors' "random" bytes: SHA-256(name, 0, le64(0)), SHA-256(name, 0, le64(1)), … one after the other."""

    def __init__(self, name):
        self.name, self.block, self.rest = name, 0, b""

    def take(self, n):
        while len(self.rest) < n:
            self.rest += hashlib.sha256(self.name.encode("ascii") + b"\0" + le64(self.block)).digest()
            self.block += 1
        out, self.rest = self.rest[:n], self.rest[n:]
        return out

    def scalar(self):
        """Uniform modulo l: 64 bytes, reduced."""
        return int.from_bytes(self.take(64), "little") % ORDER
