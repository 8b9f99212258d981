"""Philox 4x32-10 in numpy, and Triton's conversions from it (J. Salmon et al., 'Parallel random numbers', SC 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint32]]
_MASK = np.uint64(0xFFFFFFFF)


def philox(seed: int, counter: Words) -> Words:
    """First word of the block of each 32-bit counter, 10 rounds, as `tl.randint` gives it."""
    c = [counter.astype(np.uint64), *(np.zeros(counter.shape, np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [b >> np.uint64(32) ^ c[1] ^ key[0], b & _MASK, a >> np.uint64(32) ^ c[3] ^ key[1], a & _MASK]
        key = [key[0] + np.uint64(0x9E3779B9) & _MASK, key[1] + np.uint64(0xBB67AE85) & _MASK]
    return c[0].astype(np.uint32)


def uniform(words: Words) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Triton's `uint_to_uniform_float`: [0, 1), symmetric in the sign bit."""
    signed = words.view(np.int32)
    folded = np.where(signed < 0, -signed - 1, signed).astype(np.float32)
    return folded * np.float32(4.6566127342e-10)
