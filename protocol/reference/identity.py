"""Ed25519 identities with strict verification (spec section 5)."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from codec import Refused
from suite import ORDER

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


class Identity:
    def __init__(self, seed):
        self.seed = seed

    @property
    def public(self):
        key = Ed25519PrivateKey.from_private_bytes(self.seed).public_key()
        return key.public_bytes(Encoding.Raw, PublicFormat.Raw)

    def sign(self, digest):
        """What is signed is always a hash of section 4.1."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(digest)


def point(data):
    """The affine point of 32 bytes, or nothing where they are not the canonical encoding of one. Public values only."""
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return (P - x if x & 1 != sign else x), y


def add(p, q):
    k = D * p[0] * q[0] * p[1] * q[1] % P
    x, y = p[0] * q[1] + q[0] * p[1], p[1] * q[1] + p[0] * q[0]
    return x * pow(1 + k, -1, P) % P, y * pow(1 - k, -1, P) % P


def usable(data):
    """[KEY-2]: canonical, on the curve, and not of small order (eight times it is not the neutral point)."""
    p = point(data)
    for _ in range(3):
        p = p and add(p, p)
    return p is not None and p != (0, 1)


def must_be_usable(data):
    """[KEY-2]."""
    if not usable(data):
        raise Refused("KEY-2", "not the canonical encoding of a point, or one of small order")


def verify(key, digest, signature):
    """[KEY-2]. The library compares the encoding of [S]B - [k]A with R and checks S; the rest is checked here."""
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if s >= ORDER or not usable(key) or not usable(r):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, digest)
    except InvalidSignature:
        return False
    return True


def key_from_text(text):
    """[KEY-1]."""
    if len(text) != 64 or any(c not in "0123456789abcdefABCDEF" for c in text):
        raise Refused("KEY-1", "not 64 hexadecimal digits")
    return bytes.fromhex(text)
