"""Conversions to packed and short formats (PTX ISA: cvt to f16x2, bf16x2, tf32 and FP8, with `.relu` and `.satfinite`;
cvt.pack).

`.relu` turns negative results, -0 included, to +0; `.satfinite` turns infinities into the largest finite number. FP8
targets always saturate. The NaN of every target is the canonical one, except that `cvt.rna.tf32` only masks its
operand.

The formats that came with sm_100 are in `interp.ops.convert_tiny`, stochastic rounding in
`interp.ops.convert_stochastic`.
"""

from __future__ import annotations

from typing import Any

from interp.formats.rounding import MODES
from interp.kit import Kit
from interp.ops.convert import REF, chain, narrow32
from interp.ops.formats import INFINITY, widen16
from interp.ops.formats import relu as relu_word
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.targets import at
from ptx.types import width

CLAMPS = (".relu", ".satfinite", ".relu.satfinite", ".satfinite.relu")
"""`.relu` and `.satfinite` in any order, one at least."""
FINITE = CLAMPS[1:]
"""The same where `.satfinite` has to be there."""


def finite(k: Kit, type: str, unit: int = 1) -> Any:
    """Infinities to the largest finite number of their sign. unit: the last place, of tf32 in an f32 word 2**13."""
    n = width(type)
    and_, eq, sub, select = k.and_(n), k.eq(n), k.sub(n), k.select(n)
    rest, inf, one = k.const(n, (1 << (n - 1)) - 1), k.const(n, INFINITY[type]), k.const(n, unit)
    return lambda a: select(eq(and_(a, rest), inf), sub(a, one), a)


def each(split: Any, one: Any, pack: Any) -> Any:
    """`one` on both (upper, lower) elements that `split` gives, packed again."""

    def convert(a: Any) -> Any:
        high, low = split(a)
        return pack(one(high), one(low))

    return convert


@isa.op(
    "cvt.rnd.mode.dtype.f32 d, a",
    rnd=(".rn", ".rz"),
    mode=CLAMPS,
    dtype=(".f16", ".bf16"),
    types={"d": "dtype", "a": "f32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 0), 75),
    needs={
        ".relu,.relu.satfinite,.satfinite.relu": at((7, 0), 80),
        ".satfinite,.satfinite.relu,.relu.satfinite": at((8, 1), 75),
    },
    vectors=[
        vec(".rn.relu.f16.f32", 0xBF80_0000, d=0, why="negative to +0"),
        vec(".rn.relu.f16.f32", 0xFFC0_0000, d=0x7FFF, why="NaN stays"),
        vec(".rn.satfinite.bf16.f32", 0xFF80_0000, d=0xFF7F, why="Inf to the largest finite number"),
    ],
)
def cvt_narrow_clamped(k: Kit, rnd: str, mode: str, dtype: str) -> Any:
    """d = a rounded to 16 bits, with .relu negative to +0, with .satfinite finite"""
    return _narrow_clamped(k, rnd, dtype, "relu" in mode, "satfinite" in mode)


def _narrow_clamped(k: Kit, rnd: str, dtype: str, to_zero: bool, to_finite: bool) -> Any:
    return chain(
        narrow32(k, dtype, rnd), finite(k, dtype) if to_finite else None, relu_word(k, 16) if to_zero else None
    )


def pack_halves(k: Kit) -> Any:
    """(upper, lower) 16-bit words to a 32-bit word."""
    up, or_, shl, sixteen = k.zext(16, 32), k.or_(32), k.shl(32), k.const(32, 16)
    return lambda high, low: or_(shl(up(high), sixteen), up(low))


@isa.op(
    "cvt.rnd{.mode}.dtype.f32 d, a, b",
    needs={".satfinite,.satfinite.relu,.relu.satfinite": at((8, 1), 80)},
    rnd=(".rn", ".rz"),
    mode=CLAMPS,
    dtype=(".f16x2", ".bf16x2"),
    types={"d": "dtype", "a": "f32", "b": "f32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 0), 80),
    vectors=[
        vec(".rn.f16x2.f32", 0x3F80_0000, 0x4000_0000, d=0x3C00_4000, why="a goes to the upper half"),
        vec(".rn.relu.bf16x2.f32", 0xBF80_0000, 0x4000_0000, d=0x0000_4000, why="negative to +0"),
    ],
)
def cvt_pair(k: Kit, rnd: str, mode: str | None, dtype: str) -> Any:
    """d = a and b rounded to 16 bits each, a in the upper half"""
    relu, satfinite = "relu" in (mode or ""), "satfinite" in (mode or "")
    one, pack = _narrow_clamped(k, rnd, dtype[:-2], relu, satfinite), pack_halves(k)
    return lambda a, b: pack(one(a), one(b))


# ------------------------------------------------------------------------------------------------ tf32
@isa.op(
    "cvt.rna{.satfinite}.tf32.f32 d, a",
    needs={".satfinite": at((8, 1), 80)},
    types={"d": "b32", "a": "f32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 0), 80),
    vectors=[
        vec(".rna.tf32.f32", 0x3F80_1000, d=0x3F80_2000, why="ties go away from zero"),
        vec(".rna.tf32.f32", 0x7F80_0001, d=0x7F80_0000, why="a NaN is only masked", seen="sm_90"),
        vec(".rna.satfinite.tf32.f32", 0x7F80_0000, d=0x7F7F_E000, why="Inf to the largest finite number"),
    ],
)
def cvt_tf32_away(k: Kit, satfinite: bool) -> Any:
    """d = a rounded to tf32, ties away from zero, the low 13 bits 0"""
    add, and_, lt, eq, sub, select = k.add(32), k.and_(32), k.lt_u(32), k.eq(32), k.sub(32), k.select(32)
    c = {v: k.const(32, v) for v in (0x7FFF_FFFF, 0x7F80_0000, 0x1000, 0xFFFF_E000, 0x2000)}

    def convert(a: Any) -> Any:
        below = lt(and_(a, c[0x7FFF_FFFF]), c[0x7F80_0000])
        out = and_(select(below, add(a, c[0x1000]), a), c[0xFFFF_E000])
        if not satfinite:
            return out
        return select(eq(and_(out, c[0x7F80_0000]), c[0x7F80_0000]), sub(out, c[0x2000]), out)

    return convert


@isa.op(
    "cvt.rnd{.relu}.tf32.f32 d, a",
    rnd=(".rn", ".rz"),
    types={"d": "b32", "a": "f32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 8), 90),
    vectors=[
        vec(".rn.tf32.f32", 0x3F80_1000, d=0x3F80_0000, why="tie to even"),
        vec(".rn.relu.tf32.f32", 0xBF80_0000, d=0, why="negative to +0"),
    ],
)
def cvt_tf32(k: Kit, rnd: str, relu: bool) -> Any:
    """d = a rounded to tf32, the low 13 bits 0"""
    return chain(k.lane("f32_to_tf32", MODES[rnd]), relu_word(k, 32) if relu else None)


@isa.op(
    "cvt.rnd.mode.tf32.f32 d, a",
    rnd=(".rn", ".rz"),
    mode=FINITE,
    types={"d": "b32", "a": "f32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 6), 100),
    vectors=[
        vec(".rn.satfinite.tf32.f32", 0x7F7F_FFFF, d=0x7F7F_E000, why="overflow to the largest finite number"),
        vec(".rz.satfinite.tf32.f32", 0xFF80_0000, d=0xFF7F_E000, why="Inf too"),
        vec(".rn.satfinite.tf32.f32", 0xFF80_0001, d=0x7FFF_E000, why="NaN stays"),
        vec(".rn.satfinite.relu.tf32.f32", 0xFF80_0000, d=0, why="negative to +0"),
    ],
)
def cvt_tf32_finite(k: Kit, rnd: str, mode: str) -> Any:
    """d = a rounded to tf32 and finite, the low 13 bits 0; a NaN stays"""
    clamp = finite(k, "f32", unit=0x2000)
    return chain(k.lane("f32_to_tf32", MODES[rnd]), clamp, relu_word(k, 32) if "relu" in mode else None)


# ------------------------------------------------------------------------------------------------ FP8
_FP8 = (".e4m3x2", ".e5m2x2")


def pack_bytes(k: Kit) -> Any:
    """(upper, lower) bytes to a 16-bit word."""
    up, or_, shl, eight = k.zext(8, 16), k.or_(16), k.shl(16), k.const(16, 8)
    return lambda high, low: or_(shl(up(high), eight), up(low))


def unpack_bytes(k: Kit) -> Any:
    """16-bit word to its (upper, lower) bytes."""
    cut, shr, eight = k.trunc(16, 8), k.shr_u(16), k.const(16, 8)
    return lambda a: (cut(shr(a, eight)), cut(a))


def halves(k: Kit) -> Any:
    """32-bit word to its (upper, lower) 16-bit words."""
    low, shr, sixteen = k.trunc(32, 16), k.shr_u(32), k.const(32, 16)
    return lambda a: (low(shr(a, sixteen)), low(a))


def _to_fp8(k: Kit, dtype: str, to_zero: bool) -> Any:
    return chain(k.lane(f"f32_to_{dtype[:-2]}"), relu_word(k, 8) if to_zero else None)


@isa.op(
    "cvt.rn.mode.dtype.f32 d, a, b",
    mode=FINITE,
    dtype=_FP8,
    types={"d": "dtype", "a": "f32", "b": "f32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 8), 89),
    vectors=[
        vec(
            ".rn.satfinite.e4m3x2.f32",
            0x3F80_0000,
            0x43F0_0000,
            d=0x387E,
            why="a in the upper byte; 480 saturates to 448",
        ),
        vec(
            ".rn.satfinite.e5m2x2.f32", 0xFFC0_0000, 0xFF80_0000, d=0x7FFB, why="NaN, and -Inf saturates", seen="sm_90"
        ),
    ],
)
def cvt_fp8(k: Kit, mode: str, dtype: str) -> Any:
    """d = a and b rounded to FP8, a in the upper byte"""
    one, pack = _to_fp8(k, dtype, "relu" in mode), pack_bytes(k)
    return lambda a, b: pack(one(a), one(b))


@isa.op(
    "cvt.rn.mode.dtype.f16x2 d, a",
    mode=FINITE,
    dtype=_FP8,
    types={"d": "dtype", "a": "f16x2"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 8), 89),
    vectors=[vec(".rn.satfinite.e4m3x2.f16x2", 0x3C00_7C00, d=0x387E, why="half by half; Inf saturates")],
)
def cvt_fp8_from_f16(k: Kit, mode: str, dtype: str) -> Any:
    """d = the two f16 of a rounded to FP8"""
    return each(halves(k), chain(widen16(k, "f16"), _to_fp8(k, dtype, "relu" in mode)), pack_bytes(k))


@isa.op(
    "cvt.rn{.relu}.f16x2.atype d, a",
    atype=_FP8,
    types={"d": "f16x2", "a": "atype"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 8), 89),
    vectors=[
        vec(".rn.f16x2.e4m3x2", 0x387F, d=0x3C00_7FFF, why="exact; NaN is canonical"),
        vec(".rn.relu.f16x2.e5m2x2", 0xBC3C, d=0x0000_3C00, why="negative to +0"),
    ],
)
def cvt_from_fp8(k: Kit, relu: bool, atype: str) -> Any:
    """d = the two FP8 numbers of a as f16, exactly"""
    clamp = relu_word(k, 16) if relu else None
    return each(unpack_bytes(k), chain(k.lane(f"{atype[:-2]}_to_f16"), clamp), pack_halves(k))


# ------------------------------------------------------------------------------------------------ cvt.pack
def _narrow_integer(k: Kit, type: str) -> Any:
    """Signed 32-bit word clamped to an integer type of 2 to 16 bits, cut to those bits."""
    bits, signed = int(type[1:]), type[0] == "s"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    lt, select, and_ = k.lt_s(32), k.select(32), k.and_(32)
    lower, upper, mask = k.const(32, low), k.const(32, high), k.const(32, (1 << bits) - 1)

    def clamp(a: Any) -> Any:
        a = select(lt(a, lower), lower, a)
        return and_(select(lt(upper, a), upper, a), mask)

    return clamp


@isa.op(
    "cvt.pack.sat.ctype.s32 d, a, b",
    ctype=(".u16", ".s16"),
    types={"d": "u32", "a": "s32", "b": "s32"},
    cost=Cost.CONVERT,
    ref="data-movement-and-conversion-instructions-cvt-pack",
    since=((6, 5), 72),
    vectors=[vec(".pack.sat.s16.s32", 1, 0x7FFF_FFFF, d=0x0001_7FFF, why="a in the upper half; clamps")],
)
def cvt_pack16(k: Kit, ctype: str) -> Any:
    """d = a and b clamped to 16 bits, a in the upper half"""
    one, or_, shl, size = _narrow_integer(k, ctype), k.or_(32), k.shl(32), k.const(32, 16)
    return lambda a, b: or_(shl(one(a), size), one(b))


@isa.op(
    "cvt.pack.sat.ctype.s32.b32 d, a, b, c",
    ctype=(".u8", ".s8", ".u4", ".s4", ".u2", ".s2"),
    types={"d": "u32", "a": "s32", "b": "s32", "c": "b32"},
    cost=Cost.CONVERT,
    ref="data-movement-and-conversion-instructions-cvt-pack",
    since=((6, 5), 72),
    vectors=[
        vec(".pack.sat.u8.s32.b32", 300, 2, 0x1234, d=0x1234_FF02, why="c moves up by two elements"),
        vec(".pack.sat.s4.s32.b32", 0xFFFF_FFFF, 9, 1, d=0x1F7, why="four bits each"),
    ],
)
def cvt_pack(k: Kit, ctype: str) -> Any:
    """d = c shifted up by two elements, with a and b clamped to the element type below it"""
    one, or_, shl, bits = _narrow_integer(k, ctype), k.or_(32), k.shl(32), int(ctype[1:])
    size, two = k.const(32, bits), k.const(32, 2 * bits)
    return lambda a, b, c: or_(shl(c, two), or_(shl(one(a), size), one(b)))
