"""The group ristretto255 on plain integers (RFC 9496), for public values. Points are (X, Y, Z, T), x = X/Z, y = Y/Z.

The formulas and constants are those of the RFC's section 4. `check` compares with its appendix A, and runs whenever the
vectors are written.
"""

from identity import D, P

SQRT_M1 = 19681161376707505956807079304988542015446066515923890162744021073123829784752
SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235
INVSQRT_A_MINUS_D = 54469307008909316920995813868745141605393597292927456921205312896311721017578
ONE_MINUS_D_SQ = (1 - D * D) % P
D_MINUS_ONE_SQ = (D - 1) * (D - 1) % P
IDENTITY = (0, 1, 1, 0)


def negative(x):
    return x % P & 1


def absolute(x):
    return -x % P if negative(x) else x % P


def sqrt_ratio(u, v):
    """Whether u/v is a square, and the root of it, or of it times the root of -1 (RFC 9496, 4.2)."""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    square, flipped = check == u % P, check == -u % P
    if flipped or check == -u * SQRT_M1 % P:
        r = r * SQRT_M1 % P
    return square or flipped, absolute(r)


def decode(data):
    """The point of 32 bytes, or nothing where they are no canonical encoding of one (4.3.1)."""
    s = int.from_bytes(data, "little")
    if s >= P or negative(s):
        return None
    u1, u2 = 1 - s * s, 1 + s * s
    v = (-D * u1 * u1 - u2 * u2) % P
    square, invsqrt = sqrt_ratio(1, v * u2 * u2)
    den_x = invsqrt * u2
    x, y = absolute(2 * s * den_x), u1 * invsqrt * den_x * v % P
    t = x * y % P
    return (x, y, 1, t) if square and not negative(t) and y else None


def encode(p):
    """4.3.2."""
    x, y, z, t = p
    u1, u2 = (z + y) * (z - y), x * y
    _, invsqrt = sqrt_ratio(1, u1 * u2 * u2)
    den1, den2 = invsqrt * u1, invsqrt * u2
    z_inv = den1 * den2 * t
    den_inv = den2
    if negative(t * z_inv):
        x, y, den_inv = y * SQRT_M1, x * SQRT_M1, den1 * INVSQRT_A_MINUS_D
    if negative(x * z_inv):
        y = -y
    return absolute(den_inv * (z - y)).to_bytes(32, "little")


def mapped(t):
    """A point from a field element (4.3.4)."""
    r = SQRT_M1 * t * t % P
    u, v = (r + 1) * ONE_MINUS_D_SQ, (-1 - r * D) * (r + D) % P
    square, s = sqrt_ratio(u, v)
    s, c = (s, -1) if square else (-absolute(s * t), r)
    n = c * (r - 1) * D_MINUS_ONE_SQ - v
    w0, w1, w2, w3 = 2 * s * v, n * SQRT_AD_MINUS_ONE, 1 - s * s, 1 + s * s
    return w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P


def from_uniform(data):
    """A point from 64 uniform bytes."""
    halves = [int.from_bytes(data[i : i + 32], "little") % 2**255 for i in (0, 32)]
    return add(*(mapped(h % P) for h in halves))


def add(p, q):
    """Extended coordinates, a = -1; complete, so it doubles too."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * D * p[3] * q[3] % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar, p):
    total = IDENTITY
    while scalar:
        total = add(total, p) if scalar & 1 else total
        p, scalar = add(p, p), scalar >> 1
    return total


def check():
    """RFC 9496, appendix A: multiples of the generator, encodings that are none, points from uniform bytes."""
    multiples = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
        "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
        "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
        "da80862773358b466ffadfe0b3293ab3d9fd53c5ea6c955358f568322daf6a57",
        "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
        "f64746d3c92b13050ed8d80236a7f0007c3b3f962f5ba793d19a601ebb1df403",
        "44f53520926ec81fbd5a387845beb7df85a96a24ece18738bdcfa6a7822a176d",
        "903293d8f2287ebe10e2374dc1a53e0bc887e592699f02d077d5263cdd55601c",
        "02622ace8f7303a31cafc63f8fc48fdc16e1c8c8d234b2f0d6685282a9076031",
        "20706fd788b2720a1ed2a5dad4952b01f413bcf0e7564de8cdc816689e2db95f",
        "bce83f8ba5dd2fa572864c24ba1810f9522bc6004afe95877ac73241cafdab42",
        "e4549ee16b9aa03099ca208c67adafcafa4c3f3e4e5303de6026e3ca8ff84460",
        "aa52e000df2e16f55fb1032fc33bc42742dad6bd5a8fc0be0167436c5948501f",
        "46376b80f409b29dc2b5f6f0c52591990896e5716f41477cd30085ab7f10301e",
        "e0c418f7c8d9c4cdd7395b93ea124f3ad99021bb681dfc3302a9d99a2e53e64e",
    ]
    base = decode(bytes.fromhex(multiples[1]))
    for i, text in enumerate(multiples):
        assert encode(times(i, base)).hex() == text and encode(decode(bytes.fromhex(text))).hex() == text, text
    impossible = [
        "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20",
        "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
        "4eac077a713c57b4f4397629a4145982c661f48044dd3f96427d40b147d9742f",
        "3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e",
        "445425117cb8c90edcbc7c1cc0e74f747f2c1efa5630a967c64f287792a48a4b",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ]
    for text in impossible:
        assert decode(bytes.fromhex(text)) is None, text
    uniform = {
        "5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1"
        "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6":
        "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
        "f116b34b8f17ceb56e8732a60d913dd10cce47a6d53bee9204be8b44f6678b27"
        "0102a56902e2488c46120e9276cfe54638286b9e4b3cdb470b542d46c2068d38":
        "f26e5b6f7d362d2d2a94c5d0e7602cb4773c95a2e5c31a64f133189fa76ed61b",
        "8422e1bbdaab52938b81fd602effb6f89110e1e57208ad12d9ad767e2e25510c"
        "27140775f9337088b982d83d7fcf0b2fa1edffe51952cbe7365e95c86eaf325c":
        "006ccd2a9e6867e6a2c5cea83d3302cc9de128dd2a9a57dd8ee7b9d7ffe02826",
        "ac22415129b61427bf464e17baee8db65940c233b98afce8d17c57beeb7876c2"
        "150d15af1cb1fb824bbd14955f2b57d08d388aab431a391cfc33d5bafb5dbbaf":
        "f8f0c87cf237953c5890aec3998169005dae3eca1fbb04548c635953c817f92a",
    }  # fmt: skip
    for data, text in uniform.items():
        assert encode(from_uniform(bytes.fromhex(data))).hex() == text, data
