"""Powers of ten as the native kernel needs them to write numbers: g(k) = ceil(10^k 2^(127 - floor(log2 10^k))), 128 bits.

As bytes, the high half of each before the low one; k from `LEAST` to `MOST`.
"""

LEAST, MOST = -292, 324


def powers() -> bytes:
    """All of them, in order."""
    halves = [divmod(_power(k), 1 << 64) for k in range(LEAST, MOST + 1)]
    return b"".join([half.to_bytes(8, "little") for pair in halves for half in pair])


def _power(k: int) -> int:
    power: int = 10 ** abs(k)
    if k < 0:
        return -(-(1 << 127 + power.bit_length()) // power)
    beyond = power.bit_length() - 128
    return power << -beyond if beyond <= 0 else -(-power >> beyond)
