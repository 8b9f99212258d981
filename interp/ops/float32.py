"""Single precision (PTX ISA, 'Floating-Point Instructions', f32 forms).

Round to nearest even through the host's IEEE operations; the other roundings are integer code (`interp.formats`).
`.ftz` flushes subnormal inputs and results to the zero of their sign; `.sat` clamps to [0, 1], NaN to +0. Every NaN
result is 0x7FFFFFFF, except from `neg`, `abs` and `copysign`, which only touch the sign bit of what an H200 returns
(measured).
"""

from __future__ import annotations

from typing import Any

from interp.formats.rounding import MODES
from interp.kit import CANONICAL_NAN, Kit
from interp.ops.formats import class_test, flush32
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.targets import at

ROUNDINGS = (".rn", ".rz", ".rm", ".rp")
ONE, TWO, MINUS_ZERO, NAN = 0x3F80_0000, 0x4000_0000, 0x8000_0000, CANONICAL_NAN[32]
_F32 = dict.fromkeys("dabc", "f32")


def saturate32(k: Kit) -> Any:
    """Clamp to [+0, 1]; NaN gives +0."""
    lt, le, select, one, zero = k.flt(32), k.fle(32), k.select(32), k.const(32, ONE), k.const(32, 0)
    return lambda a: select(lt(zero, a), select(le(a, one), a, one), zero)


def finish(k: Kit, op: Any, ftz: bool, sat: bool) -> Any:
    """`op` with its operands and result flushed, its result saturated."""
    flush = flush32(k) if ftz else None
    clamp = saturate32(k) if sat else None

    def wrapped(*words: Any) -> Any:
        out = op(*(flush(w) for w in words)) if flush else op(*words)
        if flush:
            out = flush(out)
        return clamp(out) if clamp else out

    return wrapped if ftz or sat else op


def _product_ftz(k: Kit, name: str) -> Any:
    """mul or fma to nearest even whose result is flushed as an H200 does: tiny is what is below the smallest normal
    number after rounding to 24 bits with an unbounded exponent. That is the result with operands scaled by 2^64; where
    scaling overflows, the result is not tiny. (2^-126 * (1 - 2^-24) would round up to the smallest normal number on the
    subnormal grid.)"""
    op, flush = getattr(k, {"mul": "fmul"}.get(name, name))(32), flush32(k)
    scale, up = k.fmul(32), k.const(32, 0x5F80_0000)
    and_, lt, select, rest = k.and_(32), k.flt(32), k.select(32), k.const(32, 0x7FFF_FFFF)
    sign, limit = k.const(32, MINUS_ZERO), k.const(32, 0x2080_0000)  # 2^-62

    def product(a: Any, b: Any, *c: Any) -> Any:
        a, b, c = flush(a), flush(b), tuple(flush(w) for w in c)
        out = op(a, b, *c)
        scaled = op(scale(a, up), b, *(scale(w, up) for w in c))
        return select(lt(and_(scaled, rest), limit), and_(out, sign), out)

    return product


def multiply(k: Kit, name: str, rnd: str | None, ftz: bool, sat: bool) -> Any:
    """mul or fma; flushing is part of the operation there."""
    if not ftz:
        return finish(k, arithmetic(k, name, rnd), False, sat)
    nearest = rnd in (None, "rn")
    return finish(k, _product_ftz(k, name) if nearest else k.lane(f"{name}_ftz_f32", MODES[str(rnd)]), False, sat)


def arithmetic(k: Kit, name: str, rnd: str | None) -> Any:
    if rnd in (None, "rn"):
        return {"add": k.fadd, "sub": k.fsub, "mul": k.fmul, "fma": k.fma, "div": k.fdiv, "sqrt": k.fsqrt}[name](32)
    return k.lane(f"{name}_directed_f32", MODES[rnd])


@isa.op("add{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=ROUNDINGS, types=_F32, cost=Cost.FP32,
        ref="floating-point-instructions-add",
        vectors=[vec(".f32", ONE, ONE, d=TWO, why="1+1"), vec(".f32", 0x7F80_0000, 0xFF80_0000, d=NAN, why="Inf-Inf"),
                 vec(".f32", 1, 1, d=2, why="subnormals are kept"), vec(".ftz.f32", 1, 1, d=0, why="or flushed"),
                 vec(".sat.f32", ONE, ONE, d=ONE, why="clamps to 1")])
def add(k: Kit, rnd: str | None, ftz: bool, sat: bool) -> Any:
    """d = a + b"""
    return finish(k, arithmetic(k, "add", rnd), ftz, sat)


@isa.op("sub{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=ROUNDINGS, types=_F32, cost=Cost.FP32,
        ref="floating-point-instructions-sub", vectors=[vec(".f32", ONE, ONE, d=0, why="x-x is +0")])
def sub(k: Kit, rnd: str | None, ftz: bool, sat: bool) -> Any:
    """d = a - b"""
    return finish(k, arithmetic(k, "sub", rnd), ftz, sat)


@isa.op("mul{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=ROUNDINGS, types=_F32, cost=Cost.FP32,
        ref="floating-point-instructions-mul",
        vectors=[vec(".f32", 0x7F80_0000, 0, d=NAN, why="Inf*0"),
                 vec(".f32", MINUS_ZERO, ONE, d=MINUS_ZERO, why="sign of zero"),
                 vec(".ftz.f32", 0x0080_0000, 0x3F7F_FFFF, d=0, why="tiny before the subnormal grid rounds it up",
                     seen="sm_90")])
def mul(k: Kit, rnd: str | None, ftz: bool, sat: bool) -> Any:
    """d = a * b"""
    return multiply(k, "mul", rnd, ftz, sat)


@isa.op("fma.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=ROUNDINGS, types=_F32, cost=Cost.FP32,
        ref="floating-point-instructions-fma",
        vectors=[vec(".rn.f32", 0x3F80_0001, 0x3F80_0001, 0xBF80_0002, d=0x2880_0000,
                     why="one rounding: 2^-46 remains")])
def fma(k: Kit, rnd: str, ftz: bool, sat: bool) -> Any:
    """d = a * b + c with one rounding"""
    return multiply(k, "fma", rnd, ftz, sat)


@isa.op("mad.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=ROUNDINGS, types=_F32, cost=Cost.FP32,
        ref="floating-point-instructions-mad", since=((2, 0), 20),
        vectors=[vec(".rn.f32", ONE, ONE, ONE, d=TWO, why="the same as fma from sm_20 on")])
def mad(k: Kit, rnd: str, ftz: bool, sat: bool) -> Any:
    """d = a * b + c with one rounding"""
    return multiply(k, "fma", rnd, ftz, sat)


def _quotient(k: Kit, rnd: str, ftz: bool) -> Any:
    """Division before its operands and result are flushed. No quotient rounds to nearest from the tiny range up to
    the smallest normal number; in directed modes that happens, and the judgement of what is tiny is part of the
    operation."""
    return k.lane("div_ftz_f32", MODES[rnd]) if ftz and rnd != "rn" else arithmetic(k, "div", rnd)


@isa.op("div.rnd{.ftz}.f32 d, a, b", rnd=ROUNDINGS, types=_F32, cost=Cost.SFU, ref="floating-point-instructions-div",
        vectors=[vec(".rn.f32", ONE, 0x4040_0000, d=0x3EAA_AAAB, why="1/3"), vec(".rn.f32", 0, 0, d=NAN, why="0/0"),
                 vec(".rm.ftz.f32", 0x8080_0000, 0x3F80_0001, d=MINUS_ZERO, why="tiny before it is rounded up",
                     seen="sm_90")])
def div(k: Kit, rnd: str, ftz: bool) -> Any:
    """d = a / b, correctly rounded"""
    return finish(k, _quotient(k, rnd, ftz), ftz, False)


@isa.op("sqrt.rnd{.ftz}.f32 d, a", rnd=ROUNDINGS, types=_F32, cost=Cost.SFU, ref="floating-point-instructions-sqrt",
        vectors=[vec(".rn.f32", 0x4000_0000, d=0x3FB5_04F3, why="square root of 2"),
                 vec(".rn.f32", 0xBF80_0000, d=NAN, why="of -1")])
def sqrt(k: Kit, rnd: str, ftz: bool) -> Any:
    """d = square root of a, correctly rounded"""
    return finish(k, arithmetic(k, "sqrt", rnd), ftz, False)


@isa.op("rcp.rnd{.ftz}.f32 d, a", rnd=ROUNDINGS, types=_F32, cost=Cost.SFU, ref="floating-point-instructions-rcp",
        vectors=[vec(".rn.f32", MINUS_ZERO, d=0xFF80_0000, why="1/-0")])
def rcp(k: Kit, rnd: str, ftz: bool) -> Any:
    """d = 1 / a, correctly rounded"""
    quotient, one = _quotient(k, rnd, ftz), k.const(32, ONE)
    return finish(k, lambda a: quotient(one, a), ftz, False)


@isa.op("neg{.ftz}.f32 d, a", types=_F32, cost=Cost.FP32, ref="floating-point-instructions-neg",
        vectors=[vec(".f32", 0, d=MINUS_ZERO, why="flips the sign"),
                 vec(".f32", 0xFFC0_0000, d=NAN, why="NaN is canonical")])
def neg(k: Kit, ftz: bool) -> Any:
    """d = -a"""
    return _sign_op(k, k.xor(32), k.const(32, MINUS_ZERO), ftz)


@isa.op("abs{.ftz}.f32 d, a", types=_F32, cost=Cost.FP32, ref="floating-point-instructions-abs",
        vectors=[vec(".f32", MINUS_ZERO, d=0, why="clears the sign")])
def abs_(k: Kit, ftz: bool) -> Any:
    """d = |a|"""
    return _sign_op(k, k.and_(32), k.const(32, 0x7FFF_FFFF), ftz)


def _sign_op(k: Kit, op: Any, constant: Any, ftz: bool) -> Any:
    isnan, select, nan = k.isnan(32), k.select(32), k.const(32, NAN)
    return finish(k, lambda a: select(isnan(a), nan, op(a, constant)), ftz, False)


@isa.op("copysign.f32 d, a, b", types=_F32, cost=Cost.FP32, ref="floating-point-instructions-copysign",
        vectors=[vec(".f32", MINUS_ZERO, ONE, d=0xBF80_0000, why="sign of a, magnitude of b")])
def copysign(k: Kit) -> Any:
    """d = magnitude of b with the sign of a"""
    and_, or_, sign, rest = k.and_(32), k.or_(32), k.const(32, MINUS_ZERO), k.const(32, 0x7FFF_FFFF)
    return lambda a, b: or_(and_(a, sign), and_(b, rest))


def extreme32(k: Kit, largest: bool, nan: bool) -> Any:
    """min or max of f32: -0 < +0; one NaN gives the other operand (with `nan`: NaN), two NaNs give NaN.

    Compared as integers after mapping the sign-magnitude order to two's complement, which also orders the zeros."""
    isnan, select, lt, xor, shr, and_ = k.isnan(32), k.select(32), k.lt_s(32), k.xor(32), k.shr_s(32), k.and_(32)
    canon, all31, rest = k.const(32, NAN), k.const(32, 31), k.const(32, 0x7FFF_FFFF)

    def key(a: Any) -> Any:
        return xor(a, and_(shr(a, all31), rest))

    def choose(a: Any, b: Any) -> Any:
        less = lt(key(a), key(b))
        out = select(less, b, a) if largest else select(less, a, b)
        na, nb = isnan(a), isnan(b)
        if nan:
            return select(na, canon, select(nb, canon, out))
        return select(na, select(nb, canon, b), select(nb, a, out))

    return choose


def _extreme(k: Kit, largest: bool, ftz: bool, nan: bool, xorsign: bool) -> Any:
    base = extreme32(k, largest, nan)
    if xorsign:
        and_, or_, xor, plain = k.and_(32), k.or_(32), k.xor(32), base
        sign, rest = k.const(32, MINUS_ZERO), k.const(32, 0x7FFF_FFFF)
        isnan, select, canon = k.isnan(32), k.select(32), k.const(32, NAN)

        def signed(a: Any, b: Any) -> Any:
            out = plain(and_(a, rest), and_(b, rest))
            return select(isnan(out), canon, or_(out, and_(xor(a, b), sign)))

        base = signed
    return finish(k, base, ftz, False)


_EXTREME_VECTORS = {
    "min": [vec(".f32", MINUS_ZERO, 0, d=MINUS_ZERO, why="-0 is less than +0"),
            vec(".f32", 0x7FC0_0000, ONE, d=ONE, why="NaN loses"),
            vec(".NaN.f32", 0x7FC0_0000, ONE, d=NAN, why="NaN wins with .NaN")],
    "max": [vec(".f32", MINUS_ZERO, 0, d=0, why="+0 is greater than -0"),
            vec(".f32", ONE, 0xFFC0_0000, d=ONE, why="NaN loses")],
}


@isa.op("min{.ftz}{.NaN}{.xs}.f32 d, a, b",
        needs={".NaN": at((7, 0), 80), ".xorsign.abs": at((7, 2), 86)}, xs=(".xorsign.abs",), types=_F32,
        cost=Cost.FP32, ref="floating-point-instructions-min", vectors=_EXTREME_VECTORS["min"])
def min_(k: Kit, ftz: bool, NaN: bool, xs: str | None) -> Any:
    """d = the smaller of a and b; with .xorsign.abs of the magnitudes, signed by the exclusive or of the signs"""
    return _extreme(k, False, ftz, NaN, xs is not None)


@isa.op("max{.ftz}{.NaN}{.xs}.f32 d, a, b",
        needs={".NaN": at((7, 0), 80), ".xorsign.abs": at((7, 2), 86)}, xs=(".xorsign.abs",), types=_F32,
        cost=Cost.FP32, ref="floating-point-instructions-max", vectors=_EXTREME_VECTORS["max"])
def max_(k: Kit, ftz: bool, NaN: bool, xs: str | None) -> Any:
    """d = the larger of a and b; with .xorsign.abs of the magnitudes, signed by the exclusive or of the signs"""
    return _extreme(k, True, ftz, NaN, xs is not None)


def _extreme_of_three(k: Kit, largest: bool, ftz: bool, nan: bool, magnitude: bool) -> Any:
    two = extreme32(k, largest, nan)
    if not magnitude:
        return finish(k, lambda a, b, c: two(two(a, b), c), ftz, False)
    and_, rest = k.and_(32), k.const(32, 0x7FFF_FFFF)
    return finish(k, lambda a, b, c: two(two(and_(a, rest), and_(b, rest)), and_(c, rest)), ftz, False)


@isa.op("min{.ftz}{.NaN}{.abs}.f32 d, a, b, c", types=_F32, cost=Cost.FP32, since=((8, 8), 100),
        ref="floating-point-instructions-min",
        vectors=[vec(".f32", TWO, 0x7FC0_0000, ONE, d=ONE, why="a NaN loses"),
                 vec(".abs.f32", 0xC000_0000, 0xBF80_0000, TWO, d=ONE, why="of the magnitudes"),
                 vec(".NaN.f32", ONE, TWO, 0x7FC0_0000, d=NAN, why="NaN wins with .NaN")])
def min_of_three(k: Kit, ftz: bool, NaN: bool, abs: bool) -> Any:
    """d = the smallest of a, b and c, or of their magnitudes"""
    return _extreme_of_three(k, False, ftz, NaN, abs)


@isa.op("max{.ftz}{.NaN}{.abs}.f32 d, a, b, c", types=_F32, cost=Cost.FP32, since=((8, 8), 100),
        ref="floating-point-instructions-max",
        vectors=[vec(".abs.f32", 0xC000_0000, ONE, MINUS_ZERO, d=TWO, why="of the magnitudes")])
def max_of_three(k: Kit, ftz: bool, NaN: bool, abs: bool) -> Any:
    """d = the largest of a, b and c, or of their magnitudes"""
    return _extreme_of_three(k, True, ftz, NaN, abs)


@isa.op("testp.op.f32 p, a", op=(".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"),
        writes=("p",), types={"p": "pred", "a": "f32"}, cost=Cost.INT, ref="floating-point-instructions-testp",
        vectors=[vec(".finite.f32", 0x7F80_0000, d=0, why="Inf is not finite"),
                 vec(".subnormal.f32", 1, d=1, why="subnormal")])
def testp(k: Kit, op: str) -> Any:
    """p = a is of the named class; a zero is normal"""
    return class_test(k, "f32", op)
