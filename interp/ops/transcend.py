"""Approximate functions of the special-function unit (PTX ISA: rcp, rsqrt, sqrt, ex2, lg2, sin, cos, tanh, div
`.approx`).

Bit for bit what an H200 returns, on all inputs (`interp.special`: provenance and evidence). A `.ftz` form is the bare
machine instruction; the others have the fix-up code that the assembler puts round it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.targets import at

_F32 = {"d": "f32", "a": "f32", "b": "f32"}
ONE, INF, NAN = 0x3F80_0000, 0x7F80_0000, 0x7FFF_FFFF


def _unary(name: str, vectors: list[Any]) -> None:
    @isa.op(f"{name}.approx{{.ftz}}.f32 d, a", types=_F32, cost=Cost.SFU, vectors=vectors,
            ref=f"floating-point-instructions-{name}")
    def meaning(k: Kit, ftz: bool) -> Any:
        """d = the function of a, approximately"""
        return k.lane(f"{name}_unit_f32" if ftz else f"{name}_approx_f32")


_unary("rcp",
       [vec(".approx.f32", ONE, d=ONE, why="1/1", seen="sm_90"),
        vec(".approx.ftz.f32", 1, d=INF, why="reads a subnormal as zero")])
_unary("rsqrt", [vec(".approx.f32", 0x4080_0000, d=0x3F00_0000, why="powers of four are exact", seen="sm_90")])
_unary("sqrt",
       [vec(".approx.f32", 0x8000_0000, d=0x8000_0000, why="-0"), vec(".approx.f32", 0xBF80_0000, d=NAN, why="of -1")])
_unary("ex2", [vec(".approx.f32", 0, d=ONE, why="2^0"), vec(".approx.f32", 0xFF80_0000, d=0, why="2^-Inf")])
_unary("lg2", [vec(".approx.f32", ONE, d=0, why="log 1"), vec(".approx.f32", 0, d=0xFF80_0000, why="log 0")])


@isa.op("sin.approx{.ftz}.f32 d, a", types=_F32, cost=Cost.SFU, ref="floating-point-instructions-sin",
        vectors=[vec(".approx.f32", 0x8000_0000, d=0x8000_0000, why="-0"),
                 vec(".approx.f32", INF, d=NAN, why="of Inf")])
def sin(k: Kit, ftz: bool) -> Any:
    """d = sine of a radians; both forms are the same code"""
    return k.lane("sin_approx_f32")


@isa.op("cos.approx{.ftz}.f32 d, a", types=_F32, cost=Cost.SFU, ref="floating-point-instructions-cos",
        vectors=[vec(".approx.f32", 0, d=ONE, why="cos 0")])
def cos(k: Kit, ftz: bool) -> Any:
    """d = cosine of a radians; both forms are the same code"""
    return k.lane("cos_approx_f32")


@isa.op("tanh.approx.f32 d, a", types=_F32, cost=Cost.SFU, ref="floating-point-instructions-tanh", since=((7, 0), 75),
        vectors=[vec(".approx.f32", INF, d=ONE, why="of Inf"), vec(".approx.f32", 1, d=1, why="subnormals pass")])
def tanh(k: Kit) -> Any:
    """d = hyperbolic tangent of a"""
    return k.lane("tanh_unit_f32")


def _factors(k: Kit, full: bool, ftz: bool = False) -> Any:
    """(a, b) -> a and rcp(b), both scaled: by 2^24 for a zero or subnormal b, but with `ftz`; by 0.25 (`full`) for |b|
    above 2^126."""
    mul, rcp, and_, lt, select = k.fmul(32), k.lane("rcp_unit_f32"), k.and_(32), k.lt_u(32), k.select(32)
    magnitude, smallest, huge, inf = (k.const(32, v) for v in (0x7FFF_FFFF, 0x0080_0000, 0x7E80_0000, INF + 1))
    one, up, down, both = k.const(32, ONE), k.const(32, 0x4B80_0000), k.const(32, 0x3E80_0000), k.and_(1)

    def factors(a: Any, b: Any) -> tuple[Any, Any]:
        m = and_(b, magnitude)
        scale = select(both(lt(huge, m), lt(m, inf)), down, one) if full else one
        if not ftz:
            scale = select(lt(m, smallest), up, scale)
        return mul(a, scale), rcp(mul(b, scale))

    return factors


def _divide(k: Kit, full: bool) -> Any:
    factors, mul = _factors(k, full), k.fmul(32)
    return lambda a, b: mul(*factors(a, b))


@isa.op("div.approx{.ftz}.f32 d, a, b", types=_F32, cost=Cost.SFU, ref="floating-point-instructions-div",
        vectors=[vec(".approx.f32", ONE, ONE, d=ONE, why="1/1")])
def div_approx(k: Kit, ftz: bool) -> Any:
    """d = a * rcp(b), scaled for subnormal b"""
    return k.lane("div_approx_ftz_f32") if ftz else _divide(k, full=False)


@isa.op("div.full{.ftz}.f32 d, a, b", types=_F32, cost=Cost.SFU, ref="floating-point-instructions-div",
        vectors=[vec(".full.f32", ONE, ONE, d=ONE, why="1/1")])
def div_full(k: Kit, ftz: bool) -> Any:
    """d = a * rcp(b), scaled over the full range of b"""
    return k.lane("div_full_ftz_f32") if ftz else _divide(k, full=True)


@isa.op("div.factors.mode{.ftz}.f32 d|e, a, b", internal=True, mode=(".approx", ".full"), types=_F32 | {"e": "f32"},
        writes=("d", "e"), cost=Cost.SFU, ref="floating-point-instructions-div",
        vectors=[vec(".factors.full.f32", ONE, 0x4000_0000, d=(ONE, 0x3F00_0000), why="1 and 1/2")])
def div_factors(k: Kit, mode: str, ftz: bool) -> Any:
    """d * e = a / b as the assembler's code has it: what is left of a division whose product an addition takes in
    (ptx.contraction)"""
    return _factors(k, mode == "full", ftz)


def _halves(k: Kit, name: str, type: str) -> Any:
    """A 16-bit function, on each half of a packed word."""
    one = k.lane(name)
    if not type.endswith("x2"):
        return one
    low, up, shr, shl, or_, c16 = k.trunc(32, 16), k.zext(16, 32), k.shr_u(32), k.shl(32), k.or_(32), k.const(32, 16)
    return lambda a: or_(up(one(low(a))), shl(up(one(low(shr(a, c16)))), c16))


@isa.op("ex2.approx.type d, a", type=(".f16", ".f16x2"), cost=Cost.SFU,
        ref="half-precision-floating-point-instructions-ex2",
        since=((7, 0), 75), vectors=[vec(".approx.f16", 0, d=0x3C00, why="2^0")])
def ex2_f16(k: Kit, type: str) -> Any:
    """d = 2^a"""
    return _halves(k, "ex2_f16", type)


@isa.op("ex2.approx.ftz.type d, a", type=(".bf16", ".bf16x2"), cost=Cost.SFU, since=((7, 8), 90),
        ref="half-precision-floating-point-instructions-ex2", vectors=[vec(".approx.ftz.bf16", 0, d=0x3F80, why="2^0")])
def ex2_bf16(k: Kit, type: str) -> Any:
    """d = 2^a"""
    return _halves(k, "ex2_bf16", type)


@isa.op("tanh.approx.type d, a",
        needs={".bf16,.bf16x2": at((7, 8), 90)}, type=(".f16", ".f16x2", ".bf16", ".bf16x2"), cost=Cost.SFU,
        since=((7, 0), 75),
        ref="half-precision-floating-point-instructions-tanh", vectors=[vec(".approx.f16", 0, d=0, why="tanh 0")])
def tanh_half(k: Kit, type: str) -> Any:
    """d = hyperbolic tangent of a"""
    return _halves(k, "tanh_" + type.removesuffix("x2"), type)


def _seed(k: Kit, name: str) -> Any:
    one, high, up, shl = k.lane(name), k.trunc(64, 32), k.zext(32, 64), k.shl(64)
    shr, c32 = k.shr_u(64), k.const(64, 32)
    return lambda a: shl(up(one(high(shr(a, c32)))), c32)


@isa.op("rcp.approx.ftz.f64 d, a", types={"d": "f64", "a": "f64"}, cost=Cost.SFU,
        ref="floating-point-instructions-rcp-approx-ftz-f64",
        vectors=[vec(".approx.ftz.f64", 0x3FF0_0000_0000_0000, d=0x3FF0_0000_0000_0000, why="1/1")])
def rcp_f64(k: Kit) -> Any:
    """d = a gross approximation of 1/a from its upper word"""
    return _seed(k, "rcp_seed_f64")


@isa.op("rsqrt.approx.ftz.f64 d, a", types={"d": "f64", "a": "f64"}, cost=Cost.SFU,
        ref="floating-point-instructions-rsqrt-approx-ftz-f64",
        vectors=[vec(".approx.ftz.f64", 0x4010_0000_0000_0000, d=0x3FE0_0000_0000_0000, why="1/sqrt 4")])
def rsqrt_f64(k: Kit) -> Any:
    """d = a gross approximation of 1/sqrt(a) from its upper word"""
    return _seed(k, "rsqrt_seed_f64")


@isa.op("rsqrt.approx.f64 d, a", types={"d": "f64", "a": "f64"}, cost=Cost.SFU, since=((4, 0), 20),
        ref="floating-point-instructions-rsqrt",
        vectors=[vec(".approx.f64", 0x4010_0000_0000_0000, d=0x3FE0_0000_0000_0000, why="1/sqrt 4"),
                 vec(".approx.f64", 1 << 63, d=0xFFF0_0000_0000_0000, why="minus infinity of minus zero"),
                 vec(".approx.f64", 1 << 62 | 1 << 63, d=0xFFF8_0000_0000_0000, why="no root of a negative number")])
def rsqrt_refined_f64(k: Kit) -> Any:
    """d = 1/sqrt(a): the seed and one step of third order, as the assembler's code for sm_75 to sm_120 has it"""
    seed, mul, fma, select = _seed(k, "rsqrt_seed_f64"), k.fmul(64), k.fma(64), k.select(64)
    number = partial(k.const, 64)
    neg, and_, or_, eq, lt = k.xor(64), k.and_(64), k.or_(64), k.eq(64), k.lt_u(64)
    sign, infinity = number(1 << 63), number(0x7FF << 52)

    def refine(a: Any) -> Any:
        y = seed(a)
        e = fma(a, neg(mul(y, y), sign), number(0x3FF0 << 48))  # 1 - a y^2
        h = fma(e, number(0x3FD8 << 48), number(0x3FE0 << 48))  # 1/2 + 3/8 e
        return fma(h, mul(y, e), y)

    def run(a: Any) -> Any:
        magnitude = and_(a, number((1 << 63) - 1))
        small = lt(magnitude, number(1 << 52))
        # subnormal: of 2^54 a, and the result by 2^27
        scaled = select(small, mul(a, number(0x4350 << 48)), a)
        d = refine(scaled)
        d = select(small, mul(d, number(0x41A0 << 48)), d)
        d = select(eq(a, infinity), number(0), d)
        d = select(lt(sign, a), number(0xFFF8 << 48), d)
        d = select(eq(magnitude, number(0)), or_(a, infinity), d)
        return select(lt(infinity, magnitude), or_(a, number(1 << 51)), d)

    return run
