"""Scalar instructions of the hardware files -> the functions that must give the same words.

A function takes the case's input words (np.uint32) and returns the result as one integer, lower word first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from interp.formats import directed, doubles, halves, integers, small_floats
from interp.formats.rounding import MODES, RM, RN, RP, RZ
from interp.special import approx
from tests.numerics.hardware import packed

Function = Callable[..., int]
CASES: dict[str, Function] = {}
EDGES: dict[str, Function] = {}


def wide(lo: Any, hi: Any) -> np.uint64:
    """A 64-bit word from two."""
    return np.uint64(int(lo) | int(hi) << 32)


def signed(word: Any) -> np.uint64:
    """A 32-bit word sign-extended to 64 bits."""
    return np.uint64(int(np.uint32(word).view(np.int32)) & 0xFFFFFFFFFFFFFFFF)


def flush(word: Any) -> np.uint32:
    """f32 `.ftz` on an operand or an exact result."""
    return np.uint32(word & 0x80000000 if word & 0x7F800000 == 0 else word)


def lower_half(word: Any) -> np.uint16:
    return np.uint16(int(word) & 0xFFFF)


def _special() -> None:
    for name, function in approx.PTX.items():
        if name.endswith("16"):
            CASES[name + "x2"] = packed(function)
        elif name.endswith("f64"):
            CASES[name] = lambda a, b, c, d, f=function: int(f(b)) << 32
        else:
            CASES[name] = lambda *w, f=function: int(f(*w))


def _small_floats() -> None:
    s = small_floats
    for name, mode in (("rn", RN), ("rz", RZ), ("rm", RM), ("rp", RP)):
        CASES[f"cvt.{name}.f16.f32"] = lambda a, m=mode: int(s.f32_to_f16(a, m))
        CASES[f"cvt.{name}.bf16.f32"] = lambda a, m=mode: int(s.f32_to_bf16(a, m))
    for name in ("rna", "rn", "rz"):
        CASES[f"cvt.{name}.tf32.f32"] = lambda a, m=MODES[name]: int(s.f32_to_tf32(a, m))
    for kind, convert in (("f16", s.f32_to_f16), ("bf16", s.f32_to_bf16)):
        for name, mode in (("rn", RN), ("rz", RZ)):
            CASES[f"cvt.{name}.{kind}x2.f32"] = lambda a, b, f=convert, m=mode: int(f(b, m)) | int(f(a, m)) << 16
        CASES[f"cvt.rn.relu.{kind}x2.f32"] = lambda a, b, f=convert: (
            int(s.relu_half(f(b, RN))) | int(s.relu_half(f(a, RN))) << 16
        )
    CASES["cvt.rn.sat.f16.f32"] = lambda a: int(s.sat_f16(s.f32_to_f16(a, RN)))
    CASES["cvt.rn.relu.tf32.f32"] = lambda a: int(s.relu_f32(s.f32_to_tf32(a, RN)))
    CASES["cvt.sat.f32.f32"] = lambda a: int(s.sat_f32(a))
    for kind, narrow, from_half, to_half in (
        ("e4m3", s.f32_to_e4m3, s.f16_to_e4m3, s.e4m3_to_f16),
        ("e5m2", s.f32_to_e5m2, s.f16_to_e5m2, s.e5m2_to_f16),
    ):
        CASES[f"cvt.rn.satfinite.{kind}x2.f32"] = lambda a, b, f=narrow: int(f(b)) | int(f(a)) << 8
        CASES[f"cvt.rn.satfinite.{kind}x2.f16x2"] = lambda a, f=from_half: (
            int(f(np.uint16(a & 0xFFFF))) | int(f(np.uint16(a >> 16))) << 8
        )
        CASES[f"cvt.rn.f16x2.{kind}x2"] = lambda a, f=to_half: (
            int(f(np.uint8(a & 0xFF))) | int(f(np.uint8(a >> 8 & 0xFF))) << 16
        )
    CASES["cvt.rn.satfinite.relu.e4m3x2.f32"] = lambda a, b: (
        int(s.relu_fp8(s.f32_to_e4m3(b))) | int(s.relu_fp8(s.f32_to_e4m3(a))) << 8
    )
    CASES["cvt.rn.relu.f16x2.e4m3x2"] = lambda a: (
        int(s.relu_half(s.e4m3_to_f16(np.uint8(a & 0xFF))))
        | int(s.relu_half(s.e4m3_to_f16(np.uint8(a >> 8 & 0xFF)))) << 16
    )
    CASES["cvt.f32.f16"] = lambda a: int(s.f16_to_f32(lower_half(a)))
    CASES["cvt.f32.bf16"] = lambda a: int(s.bf16_to_f32(lower_half(a)))


def _integers() -> None:
    i, word = integers, 0xFFFFFFFF
    for name in ("rni", "rzi", "rmi", "rpi"):
        CASES[f"cvt.{name}.f32.f32"] = lambda a, m=MODES[name]: int(i.f32_to_integral(a, m))
        EDGES[f"cvt.{name}.f16.f16"] = lambda a, b, m=MODES[name]: int(i.f16_to_integral(lower_half(b), m))
    CASES["cvt.rni.s32.f32"] = lambda a: int(i.f32_to_integer(a, RN, 32, 1)) & word
    CASES["cvt.rzi.s32.f32"] = lambda a: int(i.f32_to_integer(a, RZ, 32, 1)) & word
    CASES["cvt.rzi.u32.f32"] = lambda a: int(i.f32_to_integer(a, RZ, 32, 0))
    CASES["cvt.rmi.ftz.s32.f32"] = lambda a: int(i.f32_to_integer(flush(a), RM, 32, 1)) & word
    CASES["cvt.rzi.s64.f32"] = lambda a: int(i.f32_to_integer(a, RZ, 64, 1))
    CASES["cvt.rn.f32.s32"] = lambda a: int(i.s64_to_f32(signed(a), RN))
    CASES["cvt.rn.f32.u32"] = lambda a: int(i.u64_to_f32(a, RN))
    CASES["cvt.rz.f32.u32"] = lambda a: int(i.u64_to_f32(a, RZ))
    CASES["cvt.rni.f64.f64"] = lambda a, b, c, d: int(i.f64_to_integral(wide(a, b), RN))
    for kind in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        bits, is_signed = int(kind[1:]), int(kind[0] == "s")
        mask = word if bits < 64 else 0xFFFFFFFFFFFFFFFF
        EDGES[f"cvt.rzi.{kind}.f64#edge"] = lambda a, b, *_, n=bits, s=is_signed, m=mask: (
            int(i.f64_to_integer(wide(a, b), RZ, n, s)) & m
        )
        EDGES[f"cvt.rzi.{kind}.f32#edge"] = lambda a, _b, n=bits, s=is_signed, m=mask: (
            int(i.f32_to_integer(a, RZ, n, s)) & m
        )
        if kind in ("s32", "u32", "s16", "u8"):
            EDGES[f"cvt.rni.{kind}.f16#edge"] = lambda a, b, n=bits, s=is_signed: (
                int(i.f16_to_integer(lower_half(b), RN, n, s)) & word
            )
        if kind in ("s32", "u32"):
            EDGES[f"cvt.rni.{kind}.bf16#edge"] = lambda a, b, n=bits, s=is_signed: (
                int(i.bf16_to_integer(lower_half(b), RN, n, s)) & word
            )
    EDGES["cvt.rzi.s64.f16#edge"] = lambda a, b: int(i.f16_to_integer(lower_half(b), RZ, 64, 1))
    for target, from_signed, from_unsigned in (
        ("f16", i.s64_to_f16, i.u64_to_f16),
        ("bf16", i.s64_to_bf16, i.u64_to_bf16),
    ):
        for name in ("rn", "rz", "rp"):
            EDGES[f"cvt.{name}.{target}.s32"] = lambda a, b, f=from_signed, m=MODES[name]: int(f(signed(a), m))
            EDGES[f"cvt.{name}.{target}.u32"] = lambda a, b, f=from_unsigned, m=MODES[name]: int(f(a, m))
        EDGES[f"cvt.rn.{target}.s64"] = lambda a, b, f=from_signed: int(f(wide(a, b), RN))
        EDGES[f"cvt.rn.{target}.u64"] = lambda a, b, f=from_unsigned: int(f(wide(a, b), RN))
    for name in ("rn", "rm"):
        for source, to_f32, to_f64 in (("s64", i.s64_to_f32, i.s64_to_f64), ("u64", i.u64_to_f32, i.u64_to_f64)):
            EDGES[f"cvt.{name}.f32.{source}"] = lambda a, b, f=to_f32, m=MODES[name]: int(f(wide(a, b), m))
            EDGES[f"cvt.{name}.f64.{source}"] = lambda a, b, f=to_f64, m=MODES[name]: int(f(wide(a, b), m))


def _doubles() -> None:
    d = doubles
    CASES["cvt.rn.f32.f64"] = lambda a, b, *_: int(d.f64_to_f32(wide(a, b), RN))
    CASES["cvt.rz.f32.f64"] = lambda a, b, *_: int(d.f64_to_f32(wide(a, b), RZ))
    EDGES["cvt.rn.f16.f64#nan"] = lambda a, b, *_: int(d.f64_to_f16(wide(a, b), RN))
    EDGES["cvt.rn.bf16.f64#nan"] = lambda a, b, *_: int(d.f64_to_bf16(wide(a, b), RN))
    EDGES["cvt.f64.f32#nan"] = lambda a, b: int(d.f32_to_f64(a))
    EDGES["cvt.f64.f16#nan"] = lambda a, b: int(d.f16_to_f64(lower_half(b)))
    EDGES["cvt.f64.bf16#nan"] = lambda a, b: int(d.f32_to_f64(small_floats.bf16_to_f32(lower_half(b))))


def _halves() -> None:
    h, s = halves, small_floats
    for kind, add, sub, mul, fma, least, most in (
        ("f16x2", h.f16_add, h.f16_sub, h.f16_mul, h.f16_fma, h.f16_min, h.f16_max),
        ("bf16x2", h.bf16_add, h.bf16_sub, h.bf16_mul, h.bf16_fma, h.bf16_min, h.bf16_max),
    ):
        CASES[f"add.rn.{kind}"] = packed(add)
        CASES[f"sub.rn.{kind}"] = packed(sub)
        CASES[f"mul.rn.{kind}"] = packed(mul)
        CASES[f"fma.rn.{kind}"] = packed(fma)
        CASES[f"fma.rn.relu.{kind}"] = packed(lambda a, b, c, f=fma: s.relu_half(f(a, b, c)))
        for name, choose in (("min", least), ("max", most)):
            CASES[f"{name}.{kind}"] = packed(lambda a, b, f=choose: f(a, b, 0))
            CASES[f"{name}.NaN.{kind}"] = packed(lambda a, b, f=choose: f(a, b, 1))
        CASES[f"max.xorsign.abs.{kind}"] = packed(
            lambda a, b, f=most: h.xorsign_abs(a, b, f(np.uint16(a & 0x7FFF), np.uint16(b & 0x7FFF), 0))
        )
    CASES["add.sat.f16x2"] = packed(lambda a, b: s.sat_f16(h.f16_add(a, b)))
    f = h.flush_f16
    CASES["fma.rn.ftz.f16x2"] = packed(lambda a, b, c: f(h.f16_fma(f(a), f(b), f(c))))


def _directed() -> None:
    d = directed
    for name, mode in (("rn", RN), ("rz", RZ), ("rm", RM)):
        CASES[f"add.{name}.f32"] = lambda a, b, m=mode: int(d.f32_add_directed(a, b, m))
    CASES["add.rp.ftz.f32"] = lambda a, b: int(flush(d.f32_add_directed(flush(a), flush(b), RP)))
    CASES["mul.rn.f32"] = EDGES["mul.rn.f32"] = lambda a, b, *_: int(d.f32_mul_directed(a, b, RN))
    CASES["mul.rp.f32"] = lambda a, b: int(d.f32_mul_directed(a, b, RP))
    CASES["mul.rz.ftz.f32"] = lambda a, b: int(d.f32_mul_ftz(a, b, RZ))
    for name, mode in (("rn", RN), ("rz", RZ), ("rp", RP)):
        EDGES[f"mul.{name}.ftz.f32"] = lambda a, b, c, m=mode: int(d.f32_mul_ftz(a, b, m))
    EDGES["div.approx.ftz.f32"] = lambda a, b, c: int(approx.div_approx_ftz(a, b))
    EDGES["add.rn.ftz.f32"] = lambda a, b, c: int(flush(d.f32_add_directed(flush(a), flush(b), RN)))
    for name, mode in (("rn", RN), ("rp", RP)):
        EDGES[f"fma.{name}.ftz.f32"] = lambda a, b, c, m=mode: int(d.f32_fma_ftz(a, b, c, m))
    CASES["fma.rn.f32"] = lambda a, b, c: int(d.f32_fma_directed(a, b, c, RN))
    CASES["fma.rz.f32"] = lambda a, b, c: int(d.f32_fma_directed(a, b, c, RZ))
    CASES["fma.rp.sat.f32"] = lambda a, b, c: int(small_floats.sat_f32(d.f32_fma_directed(a, b, c, RP)))
    CASES["fma.rm.ftz.f32"] = lambda a, b, c: int(d.f32_fma_ftz(a, b, c, RM))
    CASES["fma.rn.ftz.f32"] = lambda a, b, c: int(d.f32_fma_ftz(a, b, c, RN))
    CASES["add.rn.f64"] = lambda a, b, c, e: int(d.f64_add_directed(wide(a, b), wide(c, e), RN))
    CASES["mul.rn.f64"] = lambda a, b, c, e: int(d.f64_mul_directed(wide(a, b), wide(c, e), RN))
    for name, mode in (("rn", RN), ("rz", RZ)):
        EDGES[f"add.{name}.f64#nan"] = lambda a, b, c, e, *_, m=mode: int(d.f64_add_directed(wide(a, b), wide(c, e), m))
    EDGES["mul.rn.f64#nan"] = lambda a, b, c, e, *_: int(d.f64_mul_directed(wide(a, b), wide(c, e), RN))


for _fill in (_special, _small_floats, _integers, _doubles, _halves, _directed):
    _fill()
