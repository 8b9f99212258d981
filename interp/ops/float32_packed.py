"""Pairs of f32, and f32 with 16-bit operands (PTX ISA, 'Floating-Point Instructions', f32x2 forms; 'Mixed Precision
Floating-Point Instructions'), which came with sm_100.

A pair is a 64-bit word, its first element in the lower half; each half is the operation of `interp.ops.float32`. A
16-bit operand is widened exactly, then the operation is that of f32.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.float32 import ROUNDINGS, arithmetic, finish, multiply
from interp.ops.formats import widen16
from interp.ops.table import isa
from ptx.isa import Cost, vec

REF = "floating-point-instructions-"
MIXED = "mixed-precision-floating-point-instructions-"
ONE, TWO, THREE, NAN = 0x3F80_0000, 0x4000_0000, 0x4040_0000, 0x7FFF_FFFF
_PAIR = dict.fromkeys("dabc", "f32x2")
_SINCE = ((8, 6), 100)


def _each(k: Kit, op: Any) -> Any:
    """`op` on the lower and on the upper halves of 64-bit words."""
    low, up, shr, shl, or_, n32 = k.trunc(64, 32), k.zext(32, 64), k.shr_u(64), k.shl(64), k.or_(64), k.const(64, 32)

    def both(*words: Any) -> Any:
        lower = op(*(low(w) for w in words))
        upper = op(*(low(shr(w, n32)) for w in words))
        return or_(up(lower), shl(up(upper), n32))

    return both


def _pair(low: int, high: int) -> int:
    return high << 32 | low


@isa.op("add{.rnd}{.ftz}.f32x2 d, a, b", rnd=ROUNDINGS, types=_PAIR, cost=Cost.FP32, ref=REF + "add", since=_SINCE,
        vectors=[vec(".f32x2", _pair(ONE, 0x7F80_0000), _pair(ONE, 0xFF80_0000), d=_pair(TWO, NAN), why="half by half"),
                 vec(".ftz.f32x2", _pair(1, 1), _pair(1, ONE), d=_pair(0, ONE), why="flushes")])
def add_pair(k: Kit, rnd: str | None, ftz: bool) -> Any:
    """d = a + b, half by half"""
    return _each(k, finish(k, arithmetic(k, "add", rnd), ftz, False))


@isa.op("sub{.rnd}{.ftz}.f32x2 d, a, b", rnd=ROUNDINGS, types=_PAIR, cost=Cost.FP32, ref=REF + "sub", since=_SINCE,
        vectors=[vec(".rm.f32x2", _pair(ONE, TWO), _pair(ONE, ONE), d=_pair(0x8000_0000, ONE), why="x-x down is -0")])
def sub_pair(k: Kit, rnd: str | None, ftz: bool) -> Any:
    """d = a - b, half by half"""
    return _each(k, finish(k, arithmetic(k, "sub", rnd), ftz, False))


@isa.op("mul{.rnd}{.ftz}.f32x2 d, a, b", rnd=ROUNDINGS, types=_PAIR, cost=Cost.FP32, ref=REF + "mul", since=_SINCE,
        vectors=[vec(".f32x2", _pair(TWO, ONE), _pair(ONE, THREE), d=_pair(TWO, THREE), why="half by half")])
def mul_pair(k: Kit, rnd: str | None, ftz: bool) -> Any:
    """d = a * b, half by half"""
    return _each(k, multiply(k, "mul", rnd, ftz, False))


@isa.op("fma.rnd{.ftz}.f32x2 d, a, b, c", rnd=ROUNDINGS, types=_PAIR, cost=Cost.FP32, ref=REF + "fma", since=_SINCE,
        vectors=[vec(".rn.f32x2", _pair(0x3F80_0001, ONE), _pair(0x3F80_0001, TWO), _pair(0xBF80_0002, ONE),
                     d=_pair(0x2880_0000, THREE), why="one rounding")])
def fma_pair(k: Kit, rnd: str, ftz: bool) -> Any:
    """d = a * b + c with one rounding, half by half"""
    return _each(k, multiply(k, "fma", rnd, ftz, False))


# ------------------------------------------------------------------------------------------------ mixed precision
_HALF = (".f16", ".bf16")
_MIXED = {"d": "f32", "a": "atype", "b": "f32"}


@isa.op("add{.rnd}{.sat}.f32.atype d, a, b", rnd=ROUNDINGS, atype=_HALF, types=_MIXED, cost=Cost.FP32,
        ref=MIXED + "add", since=_SINCE,
        vectors=[vec(".f32.f16", 0x3C00, ONE, d=TWO, why="1+1"), vec(".f32.bf16", 0x7FC1, ONE, d=NAN, why="NaN"),
                 vec(".rz.sat.f32.bf16", 0x3F80, ONE, d=ONE, why="clamps to 1")])
def add_mixed(k: Kit, rnd: str | None, sat: bool, atype: str) -> Any:
    """d = a + b, a of 16 bits"""
    op, widen = finish(k, arithmetic(k, "add", rnd), False, sat), widen16(k, atype)
    return lambda a, b: op(widen(a), b)


@isa.op("sub{.rnd}{.sat}.f32.atype d, a, b", rnd=ROUNDINGS, atype=_HALF, types=_MIXED, cost=Cost.FP32,
        ref=MIXED + "sub", since=_SINCE, vectors=[vec(".f32.f16", 0x3C00, TWO, d=0xBF80_0000, why="1-2")])
def sub_mixed(k: Kit, rnd: str | None, sat: bool, atype: str) -> Any:
    """d = a - b, a of 16 bits"""
    op, widen = finish(k, arithmetic(k, "sub", rnd), False, sat), widen16(k, atype)
    return lambda a, b: op(widen(a), b)


@isa.op("fma.rnd{.sat}.f32.atype d, a, b, c", rnd=ROUNDINGS, atype=_HALF,
        types={"d": "f32", "a": "atype", "b": "atype", "c": "f32"}, cost=Cost.FP32, ref=MIXED + "fma", since=_SINCE,
        vectors=[vec(".rn.f32.bf16", 0x3F81, 0x3F81, 0xBF82_0000, d=0x3880_0000, why="an exact product"),
                 vec(".rp.f32.f16", 1, 1, ONE, d=ONE + 1, why="rounds up")])
def fma_mixed(k: Kit, rnd: str, sat: bool, atype: str) -> Any:
    """d = a * b + c, a and b of 16 bits"""
    op, widen = multiply(k, "fma", rnd, False, sat), widen16(k, atype)
    return lambda a, b, c: op(widen(a), widen(b), c)
