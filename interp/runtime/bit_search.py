"""Lane function of `fns`: the position of the n-th set bit of a word."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.runtime.lane import lane
from interp.runtime.raw import load_u32, native, store_u32

NONE = 0xFFFFFFFF


@native
def nth_set(mask: Any, base: Any, offset: Any) -> Any:
    """fns.b32: position of the |offset|-th set bit from `base` on (PTX ISA, `fns`); offset is signed, 0 asks for the
    base itself."""
    word, at = np.int64(mask), np.int64(base)
    step = np.int64(offset)
    step = step - 0x100000000 if step > 0x7FFFFFFF else step
    wanted = (step if step > 0 else -step) - 1
    found = np.int64(NONE)
    if step == 0:
        return np.uint32(at if (at < 32) & ((word >> (at & 31) & 1) == 1) else NONE)
    for _ in range(32):
        if (at >= 0) & (at < 32):
            if (word >> (at & 31) & 1) == 1:
                found = at if (wanted == 0) & (found == NONE) else found
                wanted = wanted - 1
            at = at + 1 if step > 0 else at - 1
    return np.uint32(found)


@lane("find_nth_set", (32, 32, 32), 32, nth_set)
def find_nth_set(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        base, offset = load_u32(operands + 128 + 4 * i), load_u32(operands + 256 + 4 * i)
        store_u32(results + 4 * i, nth_set(load_u32(operands + 4 * i), base, offset))
