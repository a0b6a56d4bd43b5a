"""Numbers drawn from seeds that everybody knows, and who is drawn for a question (spec section 13.6)."""

import math

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from suite import le64

SAMPLING, UNIFORM = b"veilsum site sampling v1", b"veilsum start uniform v1"


class Stream:
    """[QRY-7]: ChaCha20 from block 0 under a zero nonce, read as integers of 64 bits."""

    def __init__(self, seed, label):
        assert len(label) == 24
        self.flow = Cipher(algorithms.ChaCha20(le64(seed) + label, bytes(16)), mode=None).encryptor()

    def word(self):
        return int.from_bytes(self.flow.update(bytes(8)), "little")

    def unit(self):
        """In [0, 1): the upper 53 bits."""
        return (self.word() >> 11) * 2.0**-53

    def below(self, bound):
        """In 0..bound without bias: words from the last multiple of the bound on are drawn again."""
        while True:
            word = self.word()
            if word < 2**64 - 2**64 % bound:
                return word % bound

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def drawn_count(share, sites):
    # Half away from zero, as the text has it; Python's own rounding takes halves to the even number.
    x = share * sites
    rounded = math.floor(x) + (x - math.floor(x) >= 0.5)
    return min(max(rounded, 1), max(sites, 1))


def drawn(share, seed, number, sites):
    """[QRY-8]: the sites that are drawn for question `number`, ascending."""
    order = list(range(sites))
    Stream(seed ^ (number << 32), SAMPLING).shuffle(order)
    return sorted(order[: drawn_count(share, sites)])


def uniform_centres(domain, k, seed):
    """First centres, coordinate by coordinate."""
    stream = Stream(seed, UNIFORM)
    ends = [domain.interval(j) for j in range(domain.columns)]
    return [[low + stream.unit() * (high - low) for low, high in ends] for _ in range(k)]
