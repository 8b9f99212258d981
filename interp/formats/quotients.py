"""f32 division and square root in every rounding mode, by integer arithmetic: scalar functions of uint32 words.

The quotient of two normalised significands, and the root of one, are computed to more than 24 bits with a sticky last
bit for the remainder, so that the one rounding in `round_pack` is exact. NaN results are 0x7FFFFFFF. Source: PTX ISA
9.0, `div`, `rcp`, `sqrt`; compared with an H200.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import exponent_of, normalise, round_pack, significand_of
from interp.runtime.raw import leading_bit, native, native_inline

Word = Any

NAN = 0x7FFFFFFF
INF = 0x7F800000
DEEP = -600  # an emin below every quotient of f32


@native_inline
def _f32_div(a: Word, b: Word, mode: int, flush: int) -> Word:
    xa, xb = np.int64(a) & 0x7FFFFFFF, np.int64(b) & 0x7FFFFFFF
    sign = (np.int64(a) ^ np.int64(b)) >> 31 & 1
    nan = (xa > INF) | (xb > INF) | ((xa == INF) & (xb == INF)) | ((xa == 0) & (xb == 0))
    # leading bits at 62 and 23: the quotient has 39 or 40 bits
    top = normalise(significand_of(xa, 24), 62)
    bottom = normalise(significand_of(xb, 24), 23) if xb != 0 else np.uint64(1)
    quotient = top // bottom
    sticky = np.uint64(1 if top != quotient * bottom else 0)
    up_a, up_b = leading_bit(significand_of(xa, 24)), leading_bit(significand_of(xb, 24))
    exponent = exponent_of(xa, 24, -126) + up_a - 62 - (exponent_of(xb, 24, -126) + up_b - 23)
    w = round_pack(sign, exponent, quotient | sticky, 24, DEEP if flush else -126, 127, mode)
    offset = np.uint64((-126 - DEEP) << 23 if flush else 0)
    least = offset + np.uint64(0x800000 if flush else 0)
    w = w - offset if w >= least else np.uint64(0)
    w = np.uint64(INF) if (xa == INF) | (xb == 0) else w
    w = np.uint64(0) if (xb == INF) | ((xa == 0) & (xb != 0)) else w
    return np.uint32(np.uint64(NAN) if nan else w | np.uint64(sign << 31))


@native
def f32_div_directed(a: Word, b: Word, mode: int) -> Word:
    """div.{rn,rz,rm,rp}.f32."""
    return _f32_div(a, b, mode, 0)


@native
def f32_div_ftz(a: Word, b: Word, mode: int) -> Word:
    """div.{rn,rz,rm,rp}.ftz.f32 of operands that are flushed already; tiny is judged as in
    `interp.formats.directed`."""
    return _f32_div(a, b, mode, 1)


@native
def f32_sqrt_directed(a: Word, mode: int) -> Word:
    """sqrt.{rn,rz,rm,rp}.f32."""
    x = np.int64(a) & 0x7FFFFFFF
    negative = (np.int64(a) >> 31 & 1) == 1
    sig = significand_of(x, 24)
    up = 60 - leading_bit(sig)
    exponent = exponent_of(x, 24, -126) - up
    odd = exponent & 1
    # leading bit at 60 or 61 with an even exponent: a root of 31 bits
    radicand = sig << np.uint64(up if up < 63 else 63) << np.uint64(odd)
    exponent = exponent - odd
    root = np.uint64(0)
    bit = np.uint64(1 << 30)
    for _ in range(31):
        trial = root | bit
        root = trial if trial * trial <= radicand else root
        bit = bit >> np.uint64(1)
    sticky = np.uint64(1 if root * root != radicand else 0)
    w = round_pack(0, (exponent >> 1) - 1, root << np.uint64(1) | sticky, 24, -126, 127, mode)
    w = np.uint64(INF) if x == INF else w
    w = np.uint64(NAN) if (x > INF) | (negative & (x != 0)) else w
    w = np.uint64(0x80000000) if (x == 0) & negative else w
    return np.uint32(w)
