"""ML-KEM-768 (FIPS 203; spec section 4.5): keys and decapsulation by one library, encapsulation by another.

The first cannot be told which randomness to encapsulate with, and the vectors need to. So the second encapsulates, with
32 drawn bytes, and the first must get the same secret out wherever its key is known.
"""

import functools

from codec import Refused
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from kyber_py.ml_kem import ML_KEM_768

KEY, CIPHERTEXT = 1184, 1088


@functools.cache
def private(seed):
    """From d ‖ z."""
    return MLKEM768PrivateKey.from_seed_bytes(seed)


def public(seed):
    return private(seed).public_key().public_bytes_raw()


@functools.cache
def check_key(key):
    """[KEX-16]: the check of FIPS 203, section 7.2. Both libraries must find the same."""
    found = []
    for library in (MLKEM768PublicKey.from_public_bytes, lambda k: encapsulate(k, bytes(32))):
        try:
            library(key)
            found.append(True)
        except ValueError:
            found.append(False)
    assert found[0] == found[1], "two libraries differ on a key"
    if not found[0]:
        raise Refused("KEX-16", "no ML-KEM key")


@functools.cache
def encapsulate(key, m):
    """Ciphertext and secret, from the 32 bytes m."""
    ML_KEM_768.random_bytes = {32: m}.__getitem__
    secret, ciphertext = ML_KEM_768.encaps(key)
    return ciphertext, secret


@functools.cache
def decapsulate(seed, ciphertext):
    return private(seed).decapsulate(ciphertext)
