"""SipHash-2-4 with a 64-bit result (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).

Proxidor's authentication type 1 uses it; the standard library has no keyed SipHash.
"""

_MASK = 0xFFFF_FFFF_FFFF_FFFF


def _rotate(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _MASK


def siphash24(key: bytes, message: bytes) -> int:
    """The 64-bit tag of ``message`` under a 16-byte ``key``."""
    if len(key) != 16:
        raise ValueError(f"a SipHash key has 16 bytes, this one has {len(key)}")
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    a, b = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    c, d = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rounds(count: int) -> None:
        nonlocal a, b, c, d
        for _ in range(count):
            a = (a + b) & _MASK
            b = _rotate(b, 13) ^ a
            a = _rotate(a, 32)
            c = (c + d) & _MASK
            d = _rotate(d, 16) ^ c
            a = (a + d) & _MASK
            d = _rotate(d, 21) ^ a
            c = (c + b) & _MASK
            b = _rotate(b, 17) ^ c
            c = _rotate(c, 32)

    # The last word holds what is left over and, in its top byte, the length modulo 256.
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        d ^= word
        rounds(2)
        a ^= word
    c ^= 0xFF
    rounds(4)
    return a ^ b ^ c ^ d
