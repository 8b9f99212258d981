"""Random bits by counter: the same words on every machine, in any order, from a 64-bit seed.

Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11), written in numpy's
integer arithmetic; the published known answers are in the tests. The key is the seed; the counter's low half counts
blocks, its high half names the stream (a hash of the argument's name), so that an input's values do not depend on the
order of the inputs.

`seed_of` derives every seed of the tool: SHA-256 over length-prefixed parts, cut to 64 bits.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def seed_of(*parts: str | int) -> int:
    """A 64-bit seed from the parts, in order. Parts are length-prefixed, so ('ab','c') and ('a','bc') differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return int.from_bytes(digest.digest()[:8], "little")


def philox(counter: tuple[U64, U64, U64, U64], key: tuple[int, int]) -> tuple[U64, U64, U64, U64]:
    """Ten rounds of Philox 4x32 on arrays of counters; each word is a uint64 that holds 32 bits."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (
            (p1 >> _32) ^ c1 ^ np.uint64(k0), p1 & _LOW,
            (p0 >> _32) ^ c3 ^ np.uint64(k1), p0 & _LOW,
        )  # fmt: skip
        k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
    return c0, c1, c2, c3


class Bits:
    """A stream of random bits: `Bits(seed, "x")`. Each call takes the next blocks of the counter."""

    __slots__ = ("_key", "_next", "_stream")

    def __init__(self, seed: int, stream: str) -> None:
        self._key = (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF)
        self._stream = seed_of("stream", stream)
        self._next = 0

    def words(self, n: int) -> U32:
        """`n` words of 32 random bits."""
        blocks = (n + 3) // 4
        index = np.arange(self._next, self._next + blocks, dtype=np.uint64)
        self._next += blocks
        high = np.full(blocks, self._stream & 0xFFFFFFFF, dtype=np.uint64)
        top = np.full(blocks, self._stream >> 32, dtype=np.uint64)
        out = philox((index & _LOW, index >> _32, high, top), self._key)
        return np.stack(out, axis=1).reshape(-1)[:n].astype(np.uint32)

    def below(self, bound: int, n: int) -> NDArray[np.int64]:
        """`n` integers in [0, bound), by multiply and shift (bias below bound / 2**32)."""
        return ((self.words(n).astype(np.uint64) * np.uint64(bound)) >> _32).astype(np.int64)

    def bell(self, n: int) -> NDArray[np.float64]:
        """`n` numbers with mean 0 and standard deviation 0.999, in (-3.47, 3.47): the sum of four 16-bit integers.

        No logarithm and no cosine: their last bits differ between machines. A uniform integer below 2**16 has variance
        2**32/12, so the exact scale would be sqrt(3)/2**16 = 443.4/2**24; 443/2**24 keeps every value a short fraction.
        """
        halves = self.words(2 * n).astype("<u4").view("<u2").reshape(n, 4).astype(np.int64)
        centred: NDArray[np.float64] = (halves.sum(axis=1) - 2 * 65535).astype(np.float64)
        return centred * (443.0 * 2.0**-24)
