"""Conversions with stochastic rounding (PTX ISA, cvt `.rs`), which sm_100a and sm_103a have.

The random bits are an operand, so these are ordinary functions. How the bits meet the discarded ones, and how well that
is known: `interp.formats.tiny_floats`. On another architecture the assembler refuses them, and so does this.
"""

from __future__ import annotations

from typing import Any

from interp.formats.tiny_floats import CODES
from interp.kit import Kit
from interp.ops.convert import REF, chain
from interp.ops.convert_packed import CLAMPS, FINITE, finite, pack_halves
from interp.ops.convert_tiny import relu_tiny
from interp.ops.formats import relu
from interp.ops.table import isa
from ptx.errors import Unsupported
from ptx.isa import Cost, vec


def _check(k: Kit) -> None:
    if k.device >= 110:
        raise Unsupported(
            f"stochastic rounding on sm_{k.device}",
            notes=("only sm_100a and sm_103a have `cvt.rs`",),
            help="compile the kernel for one of these, or round in software",
        )


@isa.op(
    "cvt.rs{.mode}.dtype.f32 d, a, b, r",
    only=("100a", "103a"),
    mode=CLAMPS,
    dtype=(".f16x2", ".bf16x2"),
    types={"d": "dtype", "a": "f32", "b": "f32", "r": "b32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 7), 100),
    vectors=[
        vec(".rs.bf16x2.f32", 0x3F80_8000, 0x3F80_8000, 0x8000_7FFF, d=0x3F81_3F80, why="carries, and just does not"),
        vec(".rs.f16x2.f32", 0x3F80_1000, 0x3F80_1000, 0x1000_0FFF, d=0x3C01_3C00, why="13 random bits"),
        vec(".rs.f16x2.f32", 0x3F80_1000, 0x3300_0000, 0xE000_1000, d=0x3C00_0001, why="upper bits are ignored; 2^-25"),
        vec(".rs.satfinite.f16x2.f32", 0x477F_F000, 0x7F80_0000, 0x1000_0000, d=0x7BFF_7BFF, why="finite"),
        vec(".rs.relu.bf16x2.f32", 0xBF80_0000, 0x7FC0_0000, 0, d=0x0000_7FFF, why="negative to +0; NaN"),
    ],
)
def cvt_half_stochastic(k: Kit, mode: str | None, dtype: str) -> Any:
    """d = a and b rounded to 16 bits each by random bits: the upper half of r for a, the lower for b"""
    _check(k)
    base, mode = dtype[:-2], mode or ""
    convert, pack = k.lane("f32_to_half_stochastic", int(base == "bf16")), pack_halves(k)
    shr, sixteen = k.shr_u(32), k.const(32, 16)
    last = chain(finite(k, base) if "satfinite" in mode else None, relu(k, 16) if "relu" in mode else None)
    return lambda a, b, r: pack(last(convert(a, shr(r, sixteen))), last(convert(b, r)))


def _packed(k: Kit, mode: str, dtype: str) -> Any:
    """The four elements, the first one on top, of bits each as wide as the type has them, as a 32-bit word."""
    kind = dtype[:-2]
    size, clamp = 4 if kind == "e2m1" else 8, relu_tiny(k, kind) if "relu" in mode else (lambda x: x)
    ones = [k.lane("f32_to_tiny_stochastic", CODES[kind], i) for i in range(4)]
    up, shl, or_ = k.zext(8, 32), k.shl(32), k.or_(32)

    def pack(values: Any, r: Any) -> Any:
        out = k.const(32, 0)
        for i, (one, value) in enumerate(zip(ones, values, strict=True)):
            out = or_(out, shl(up(clamp(one(value, r))), k.const(32, size * (3 - i))))
        return out

    return pack


@isa.op(
    "cvt.rs.mode.dtype.f32 d, {a}, r",
    only=("100a", "103a"),
    mode=FINITE,
    dtype=(".e4m3x4", ".e5m2x4", ".e2m3x4", ".e3m2x4"),
    types={"d": "dtype", "a": ("f32", 4), "r": "b32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 7), 100),
    vectors=[
        vec(
            ".rs.satfinite.e4m3x4.f32", 0x3F88_0000, 0x3F88_0000, 0x3F88_0000, 0x3F88_0000, 0x0001_0001, d=0x3938_3938,
            why="half of a last place: the first of a pair reads its random bits in reverse",
        ),
        vec(
            ".rs.satfinite.e2m3x4.f32", 0x40F8_0000, 0xFFC0_0000, 0xFF80_0000, 0, 0xFFFF_FFFF, d=0x1F1F_3F00,
            why="saturates; NaN to +7.5; zero stays",
        ),
    ],
)
def cvt_tiny_stochastic(k: Kit, mode: str, dtype: str) -> Any:
    """d = four numbers rounded to FP8 or FP6 by random bits, the first in the upper byte"""
    _check(k)
    return _packed(k, mode, dtype)


@isa.op(
    "cvt.rs.mode.e2m1x4.f32 d, {a}, r",
    only=("100a", "103a"),
    mode=FINITE,
    types={"d": "e2m1x4", "a": ("f32", 4), "r": "b32"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((8, 7), 100),
    vectors=[
        vec(
            ".rs.satfinite.e2m1x4.f32", 0x3FA0_0000, 0x3FA0_0000, 0x3FA0_0000, 0x3FA0_0000, 0x8080_0180, d=0x3323,
            why="1.25: bytes 3 and 1 serve a and b, 2 and 0 serve e and f",
        ),
    ],
)
def cvt_fp4_stochastic(k: Kit, mode: str) -> Any:
    """d = four numbers rounded to FP4 by random bits, the first in the upper nibble"""
    _check(k)
    pack, low = _packed(k, mode, "e2m1x4"), k.trunc(32, 16)
    return lambda a, r: low(pack(a, r))
