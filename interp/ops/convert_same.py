"""Conversions that keep the type (PTX ISA, cvt): flush, clamp, round to an integral value.

What `.ftz`, `.sat` and NaN mean is as in `interp.ops.convert`.
"""

from __future__ import annotations

from typing import Any

from interp.formats.rounding import MODES
from interp.kit import Kit
from interp.ops.convert import REF, TO_INTEGRAL, chain, legal, narrow32, saturate
from interp.ops.formats import canonical_float, flush32, widen16
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.targets import at

SAME = (".f16.f16", ".bf16.bf16", ".f32.f32", ".f64.f64")


def _same_types(pair: str, **_: object) -> dict[str, str]:
    return dict.fromkeys("da", pair.split(".")[0])


def _same_ftz(pair: str, ftz: bool, sat: bool, **_: object) -> str | None:
    type = pair.split(".")[0]
    return legal(type, type, ftz, sat)


@isa.op(
    "cvt{.ftz}{.sat}.pair d, a",
    needs={"pair.bf16.bf16": at((7, 8), 90)},
    pair=SAME,
    types=_same_types,
    constraint=_same_ftz,
    cost=Cost.CONVERT,
    ref=REF,
    vectors=[
        vec(".f32.f32", 7, d=7, why="copies"),
        vec(".f16.f16", 0xFE00, d=0x7FFF, why="NaN is canonical", seen="sm_90"),
        vec(".ftz.f32.f32", 0x8000_0001, d=0x8000_0000, why="flushes"),
        vec(".sat.f32.f32", 0x7FC0_0000, d=0, why="NaN to +0", seen="sm_90"),
    ],
)
def cvt_same(k: Kit, ftz: bool, sat: bool, pair: str) -> Any:
    """d = a, with .sat clamped to [0, 1]; plain f32 and f64 are copied, otherwise a NaN becomes canonical (H200)"""
    type = pair.split(".")[0]
    clean = canonical_float(k, type) if ftz or type in ("f16", "bf16") else None
    return chain(flush32(k) if ftz else None, clean, saturate(k, type) if sat else None)


@isa.op(
    "cvt.rnd{.ftz}{.sat}.pair d, a",
    needs={"pair.bf16.bf16": at((7, 8), 90)},
    rnd=TO_INTEGRAL,
    pair=SAME,
    types=_same_types,
    constraint=_same_ftz,
    cost=Cost.CONVERT,
    ref=REF,
    vectors=[
        vec(".rni.f32.f32", 0x4020_0000, d=0x4000_0000, why="2.5 to even"),
        vec(".rmi.f32.f32", 0xBF00_0000, d=0xBF80_0000, why="-0.5 down"),
        vec(".rzi.f32.f32", 0xBF00_0000, d=0x8000_0000, why="the sign of zero stays"),
        vec(".rpi.f16.f16", 0x3801, d=0x3C00, why="up to 1"),
        vec(".rni.f64.f64", 0x4004_0000_0000_0000, d=0x4000_0000_0000_0000, why="2.5"),
    ],
)
def cvt_integral(k: Kit, rnd: str, ftz: bool, sat: bool, pair: str) -> Any:
    """d = a rounded to an integral value; the 16-bit formats hold every integral value that arises, so f32 code serves
    them"""
    type = pair.split(".")[0]
    whole = k.lane("f64_to_integral" if type == "f64" else "f32_to_integral", MODES[rnd])
    if type in ("f16", "bf16"):
        whole = chain(widen16(k, type), whole, narrow32(k, type, "rn"))
    return chain(flush32(k) if ftz else None, whole, saturate(k, type) if sat else None)
