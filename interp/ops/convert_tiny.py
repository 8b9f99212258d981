"""Conversions of the formats that came with sm_100 (PTX ISA, cvt): FP6, FP4, ue8m0 and s2f6 in both directions, FP8
from and to bf16, scaled conversions.

What the formats do with NaN, overflow and scales: `interp.formats.tiny_floats`. `.relu` turns negative results, -0
included, to +0. All of these need an architecture-specific or family-specific target (`sm_100a`, `sm_120f`), s2f6 the
former. None has been compared with hardware here: none runs on sm_90.

The manual's pseudocode names bits 15:8 and 7:0 of a bf16x2 operand of s2f6; its text, and two bf16 numbers, say the
upper and lower 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interp.formats.tiny_floats import CODES
from interp.kit import Kit
from interp.ops.convert import REF, chain
from interp.ops.convert_packed import CLAMPS, FINITE, each, finite, halves, pack_bytes, pack_halves, unpack_bytes
from interp.ops.formats import relu, widen16
from interp.ops.table import CONVERTING, isa
from ptx.isa import Cost, vec
from ptx.targets import at

FP8, FP6, FP4 = (".e4m3x2", ".e5m2x2"), (".e2m3x2", ".e3m2x2"), (".e2m1x2",)
HALVES = (".f16x2", ".bf16x2")
_TYPES = {"d": "dtype", "a": "atype", "s": "ue8m0x2"}
_F32 = {"d": "dtype", "a": "f32", "b": "f32", "s": "ue8m0x2"}
_FIXED = ("100a", "103a", "110a", "120a", "121a")
_FROM_SMALL = {"atype.s2f6x2": at((9, 1), 100, *_FIXED), ",".join(FP8 + FP6 + FP4): at((9, 2), 100)}
_SCALED = ".scaled::n2::ue8m0"


def relu_tiny(k: Kit, kind: str) -> Any:
    """`.relu` on a byte that holds a number of a float format: the sign is its highest bit."""
    sign = {"e2m1": 8, "e2m3": 0x20, "e3m2": 0x20}.get(kind, 0x80)
    and_, eq, select, bit, zero = k.and_(8), k.eq(8), k.select(8), k.const(8, sign), k.const(8, 0)
    return lambda a: select(eq(and_(a, bit), zero), a, zero)


def _pack(k: Kit, dtype: str) -> Any:
    """(upper, lower) elements to the packed word: bytes, and nibbles of e2m1."""
    if dtype != "e2m1x2":
        return pack_bytes(k)
    or_, shl, four = k.or_(8), k.shl(8), k.const(8, 4)
    return lambda high, low: or_(shl(high, four), low)


def _unpack(k: Kit, atype: str) -> Any:
    """The packed word to its (upper, lower) elements."""
    if atype == "e2m1x2":
        shr8, four, and_, mask = k.shr_u(8), k.const(8, 4), k.and_(8), k.const(8, 15)
        return lambda a: (shr8(a, four), and_(a, mask))
    return unpack_bytes(k)


def _to_tiny(k: Kit, dtype: str, mode: str) -> Any:
    """f32 word to an element of a packed type."""
    kind = dtype[:-2]
    return chain(k.lane("f32_to_tiny", CODES[kind]), relu_tiny(k, kind) if "relu" in mode else None)


@isa.op(
    "cvt.rn.mode.dtype.f32 d, a, b",
    only=CONVERTING,
    mode=FINITE,
    dtype=FP6 + FP4,
    types=_F32,
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 6), 100),
    vectors=[
        vec(".rn.satfinite.e2m1x2.f32", 0x3F80_0000, 0xC120_0000, d=0x2F, why="a in the upper nibble; -10 to -6"),
        vec(".rn.satfinite.e2m1x2.f32", 0x3E80_0000, 0x3F40_0000, d=0x02, why="ties to even: 0.25 to 0, 0.75 to 1"),
        vec(".rn.satfinite.e2m3x2.f32", 0xFFC0_0000, 0x3E00_0000, d=0x1F01, why="NaN to +7.5; the least subnormal"),
        vec(".rn.satfinite.e3m2x2.f32", 0xFF80_0000, 0x41E8_0000, d=0x3F1F, why="-Inf to -28; 29 saturates"),
        vec(".rn.satfinite.relu.e3m2x2.f32", 0xBF80_0000, 0x8000_0000, d=0, why="negative to +0, -0 too"),
    ],
)
def cvt_tiny(k: Kit, mode: str, dtype: str) -> Any:
    """d = a and b rounded to FP6 or FP4, a in the upper part"""
    one, pack = _to_tiny(k, dtype, mode), _pack(k, dtype)
    return lambda a, b: pack(one(a), one(b))


def _new_pair(dtype: str, atype: str, **_: object) -> str | None:
    return "FP8 from f16x2 is an older form" if dtype in ("e4m3x2", "e5m2x2") and atype == "f16x2" else None


@isa.op(
    "cvt.rn.mode.dtype.atype d, a",
    only=CONVERTING,
    mode=FINITE,
    dtype=FP8 + FP6 + FP4,
    atype=HALVES,
    types=_TYPES,
    constraint=_new_pair,
    cost=Cost.CONVERT,
    ref=REF,
    since=((9, 1), 100),
    vectors=[
        vec(".rn.satfinite.e4m3x2.bf16x2", 0x3F80_7F80, d=0x387E, why="half by half; Inf saturates"),
        vec(".rn.satfinite.e2m1x2.f16x2", 0x4200_C500, d=0x5E, why="3; -5 is a tie, to even"),
        vec(".rn.satfinite.e2m3x2.bf16x2", 0x7FC0_0001, d=0x1F00, why="NaN; a tiny number to 0"),
    ],
)
def cvt_tiny_from_half(k: Kit, mode: str, dtype: str, atype: str) -> Any:
    """d = the two 16-bit numbers of a rounded to FP8, FP6 or FP4"""
    return each(halves(k), chain(widen16(k, atype[:-2]), _to_tiny(k, dtype, mode)), _pack(k, dtype))


@isa.op(
    "cvt.rn{.relu}.f16x2.atype d, a",
    only=CONVERTING,
    atype=FP6 + FP4,
    types={"d": "f16x2", "a": "atype"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 6), 100),
    vectors=[
        vec(".rn.f16x2.e2m1x2", 0x7F, d=0x4600_C600, why="6 and -6"),
        vec(".rn.f16x2.e3m2x2", 0x0121, d=0x2C00_AC00, why="subnormals: 1/16 and -1/16"),
        vec(".rn.relu.f16x2.e2m3x2", 0x203F, d=0, why="-0 and negative numbers to +0"),
    ],
)
def cvt_from_tiny(k: Kit, relu: bool, atype: str) -> Any:
    """d = the two FP6 or FP4 numbers of a as f16, exactly"""
    one = chain(k.lane("tiny_to_f16", CODES[atype[:-2]]), _relu16(k, relu))
    return each(_unpack(k, atype), one, pack_halves(k))


def _relu16(k: Kit, wanted: bool) -> Any:
    return relu(k, 16) if wanted else None


def _each_scaled(k: Kit, atype: str, one: Callable[..., Any]) -> Any:
    """`one` on both elements of the first operand, each with its scale of the second, packed as 16-bit words."""
    split, pack, scales = _unpack(k, atype), pack_halves(k), unpack_bytes(k)

    def convert(a: Any, s: Any) -> Any:
        (high, low), (upper, lower) = split(a), scales(s)
        return pack(one(high, upper), one(low, lower))

    return convert


def _to_bf16(k: Kit, atype: str, mode: str | None) -> Any:
    """(element, scale) to bf16."""
    kind, mode = atype[:-2], mode or ""
    base = k.lane("s2f6_to_bf16") if kind == "s2f6" else k.lane("tiny_to_bf16", CODES[kind])
    last = chain(finite(k, "bf16") if "satfinite" in mode else None, _relu16(k, "relu" in mode))
    return lambda a, s: last(base(a, s))


@isa.op(
    "cvt.rn{.mode}.bf16x2.atype d, a",
    only=CONVERTING, needs=_FROM_SMALL,
    mode=CLAMPS,
    atype=(*FP8, *FP6, *FP4, ".s2f6x2"),
    types={"d": "bf16x2", "a": "atype"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((9, 1), 100),
    vectors=[
        vec(".rn.bf16x2.e4m3x2", 0x387F, d=0x3F80_7FFF, why="exact; NaN is canonical"),
        vec(".rn.bf16x2.e5m2x2", 0x7CFC, d=0x7F80_FF80, why="infinities"),
        vec(".rn.satfinite.relu.bf16x2.e5m2x2", 0x7CFC, d=0x7F7F_0000, why="finite; negative to +0"),
        vec(".rn.bf16x2.s2f6x2", 0x40C0, d=0x3F80_BF80, why="units of 1/64"),
    ],
)
def cvt_tiny_to_bf16(k: Kit, mode: str | None, atype: str) -> Any:
    """d = the two numbers of a as bf16, exactly"""
    base, one = _to_bf16(k, atype, mode), k.const(8, 127)
    return each(_unpack(k, atype), lambda x: base(x, one), pack_halves(k))


@isa.op(
    f"cvt.rn{{.mode}}{_SCALED}.bf16x2.atype d, a, s",
    only=CONVERTING, needs=_FROM_SMALL,
    mode=CLAMPS,
    atype=(*FP8, *FP6, *FP4, ".s2f6x2"),
    types={"d": "bf16x2", "a": "atype", "s": "ue8m0x2"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((9, 1), 100),
    vectors=[
        vec(".rn.scaled::n2::ue8m0.bf16x2.e2m1x2", 0x24, 0x807E, d=0x4000_3F80, why="1 * 2 and 2 / 2"),
        vec(".rn.scaled::n2::ue8m0.bf16x2.e4m3x2", 0x3838, 0xFF00, d=0x7FFF_0040, why="a NaN scale; 2^-127"),
        vec(".rn.scaled::n2::ue8m0.bf16x2.e5m2x2", 0x7B3C, 0xFEFE, d=0x7F80_7F00, why="overflows; 2^127"),
        vec(".rn.scaled::n2::ue8m0.bf16x2.e5m2x2", 0x0103, 0x0000, d=0, why="rounds to 0 below bf16's range"),
    ],
)
def cvt_tiny_to_bf16_scaled(k: Kit, mode: str | None, atype: str) -> Any:
    """d = the two numbers of a, each times its scale, rounded to bf16"""
    return _each_scaled(k, atype, _to_bf16(k, atype, mode))


# ------------------------------------------------------------------------------------------------ ue8m0
def _to_ue8m0(k: Kit, rnd: str, satfinite: bool) -> Any:
    return k.lane("f32_to_ue8m0", int(rnd == "rp"), int(satfinite))


@isa.op(
    "cvt.rnd{.satfinite}.ue8m0x2.f32 d, a, b",
    only=CONVERTING,
    rnd=(".rz", ".rp"),
    types={"d": "ue8m0x2", "a": "f32", "b": "f32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 6), 100),
    vectors=[
        vec(".rz.ue8m0x2.f32", 0xBFC0_0000, 0, d=0x7F00, why="the sign is dropped; zero is the least power"),
        vec(".rp.ue8m0x2.f32", 0x3FC0_0000, 0x0040_0000, d=0x8000, why="up; 2^-127 is exact"),
        vec(".rp.ue8m0x2.f32", 0x0040_0001, 0x7F80_0000, d=0x01FF, why="just above it; Inf"),
        vec(".rp.satfinite.ue8m0x2.f32", 0x7F7F_FFFF, 0x7FC0_0000, d=0xFEFF, why="saturates; NaN stays"),
    ],
)
def cvt_ue8m0(k: Kit, rnd: str, satfinite: bool) -> Any:
    """d = the exponents of |a| and |b|, toward zero or up, a in the upper byte"""
    one, pack = _to_ue8m0(k, rnd, satfinite), pack_bytes(k)
    return lambda a, b: pack(one(a), one(b))


@isa.op(
    "cvt.rnd{.satfinite}.ue8m0x2.bf16x2 d, a",
    only=CONVERTING,
    rnd=(".rz", ".rp"),
    types={"d": "ue8m0x2", "a": "bf16x2"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 6), 100),
    vectors=[vec(".rp.ue8m0x2.bf16x2", 0x3FC0_0041, d=0x8001, why="half by half, up")],
)
def cvt_ue8m0_from_bf16(k: Kit, rnd: str, satfinite: bool) -> Any:
    """d = the exponents of the magnitudes of two bf16"""
    return each(halves(k), chain(widen16(k, "bf16"), _to_ue8m0(k, rnd, satfinite)), pack_bytes(k))


@isa.op(
    "cvt.rn.bf16x2.ue8m0x2 d, a",
    only=CONVERTING,
    types={"d": "bf16x2", "a": "ue8m0x2"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 6), 100),
    vectors=[
        vec(".rn.bf16x2.ue8m0x2", 0x807F, d=0x4000_3F80, why="2 and 1"),
        vec(".rn.bf16x2.ue8m0x2", 0x00FF, d=0x0040_7FFF, why="2^-127 is subnormal; NaN"),
    ],
)
def cvt_from_ue8m0(k: Kit) -> Any:
    """d = the two powers of two as bf16, exactly"""
    return each(unpack_bytes(k), k.lane("ue8m0_to_bf16"), pack_halves(k))


# ------------------------------------------------------------------------------------------------ s2f6
def _to_s2f6(k: Kit, mode: str) -> Any:
    """(f32 word, scale) to s2f6."""
    base, last = k.lane("f32_to_s2f6"), relu(k, 8) if "relu" in mode else None
    return (lambda a, s: last(base(a, s))) if last else base


def _packed_s2f6(k: Kit, mode: str, from_bf16: bool, scaled: bool) -> Any:
    """The conversion of a pair to s2f6; without scales they are 1."""
    one, pack, split, scales = _to_s2f6(k, mode), pack_bytes(k), halves(k), unpack_bytes(k)
    widen, unit = widen16(k, "bf16"), k.const(8, 127)

    def convert(*words: Any) -> Any:
        high, low = (widen(w) for w in split(words[0])) if from_bf16 else words[:2]
        upper, lower = scales(words[-1]) if scaled else (unit, unit)
        return pack(one(high, upper), one(low, lower))

    return convert


def _declare_s2f6(source: str, operands: str, types: dict[str, str], vectors: list[Any], scaled: list[Any]) -> None:
    from_bf16 = source == "bf16x2"

    @isa.op(
        f"cvt.rn.mode.s2f6x2.{source} d, {operands}",
        only=_FIXED,
        mode=FINITE,
        types=types,
        cost=Cost.CONVERT,
        ref=REF,
        since=((9, 1), 100),
        vectors=vectors,
    )
    def plain(k: Kit, mode: str) -> Any:
        """d = a pair of numbers in units of 1/64, saturated"""
        return _packed_s2f6(k, mode, from_bf16, False)

    @isa.op(
        f"cvt.rn.mode{_SCALED}.s2f6x2.{source} d, {operands}, s",
        only=_FIXED,
        mode=FINITE,
        types=types,
        cost=Cost.CONVERT,
        ref=REF,
        since=((9, 1), 100),
        vectors=scaled,
    )
    def divided(k: Kit, mode: str) -> Any:
        """d = a pair of numbers, each divided by its scale, in units of 1/64, saturated"""
        return _packed_s2f6(k, mode, from_bf16, True)


_declare_s2f6(
    "f32",
    "a, b",
    {"d": "s2f6x2", "a": "f32", "b": "f32", "s": "ue8m0x2"},
    [
        vec(".rn.satfinite.s2f6x2.f32", 0x3F80_0000, 0xC040_0000, d=0x4080, why="1 is 64; -3 saturates at -128"),
        vec(".rn.satfinite.s2f6x2.f32", 0x7FC0_0000, 0x3CC0_0000, d=0x7F02, why="NaN; 1.5 units are a tie, to even"),
        vec(".rn.satfinite.relu.s2f6x2.f32", 0xBF80_0000, 0x3F80_0000, d=0x0040, why="negative to 0"),
    ],
    [
        vec(
            ".rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", 0x4000_0000, 0x3F80_0000, 0x80FF, d=0x407F,
            why="2 / 2; a NaN scale",
        )  # fmt: skip
    ],
)
_declare_s2f6(
    "bf16x2",
    "a",
    {"d": "s2f6x2", "a": "bf16x2", "s": "ue8m0x2"},
    [vec(".rn.satfinite.s2f6x2.bf16x2", 0x3F80_BF80, d=0x40C0, why="half by half")],
    [vec(".rn.satfinite.scaled::n2::ue8m0.s2f6x2.bf16x2", 0x4000_BF80, 0x807F, d=0x40C0, why="2 / 2 and -1 / 1")],
)
