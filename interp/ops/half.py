"""Half precision (PTX ISA, 'Half Precision Floating-Point Instructions'): f16 and bf16, single and packed in pairs.

Operands are widened to f32 exactly, computed there, and rounded once more to 16 bits. Why that gives the correctly
rounded result:

* f16 add, sub: f32 has 24 >= 2 * 11 + 2 bits, a width at which rounding twice is the same as once (Figueroa 1995); what
  lies in the subnormal range of f16 is exact in f32. f16 mul: the product is exact in f32.
* f16 fma: the product is exact in f32; the sum is rounded to odd with the error of the addition, so the rounding to f16
  is the only one that shows (Boldo and Melquiond 2008).
* bf16 add, sub: 24 >= 2 * 8 + 2; sums in the subnormal range are exact, since operands are multiples of 2^-133.
* bf16 mul, fma: products can fall below f32's range, so these are integer code (`interp.formats.halves`).

Every NaN result is 0x7FFF, also that of `neg` and `abs` (H200). A subnormal stays, except with `.ftz`, which exists on
f16 only.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.convert import narrow32, saturate
from interp.ops.formats import each_half, extreme, flush16, nan_test, widen16
from interp.ops.formats import relu as relu_word
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.targets import at

F16, BF16 = (".f16", ".f16x2"), (".bf16", ".bf16x2")
REF = "half-precision-floating-point-instructions-"
NAN = 0x7FFF
OUTSIDE = 0x7FF7
"""The NaN that a tensor copy with NaN fill writes for elements outside the tensor, of either sign; of all 16-bit words
the only ones for which an H200's `.oob` forms give 0 (asked for all, f16 and bf16, as each operand)."""


def _wrapped(k: Kit, type: str, op: Any, ftz: bool = False, clamp: str | None = None) -> Any:
    """`op` on each 16-bit part of its operands, flushed before and after, clamped."""
    flush = flush16(k) if ftz else None
    last = None
    if clamp:
        last = relu_word(k, 16) if clamp == "relu" else saturate(k, type.removesuffix("x2"))

    def one(*words: Any) -> Any:
        out = flush(op(*(flush(w) for w in words))) if flush else op(*words)
        return last(out) if last else out

    return each_half(k, one) if type.endswith("x2") else one


def _without_tiny(k: Kit) -> Any:
    """Exact f32 result (or one rounded to odd) for f16, with what is tiny after rounding to 11 bits replaced by zero:
    f16's own subnormal grid would round the largest such numbers up to the smallest normal one."""
    and_, lt, select = k.and_(32), k.lt_u(32), k.select(32)
    rest, sign, limit = (
        k.const(32, 0x7FFF_FFFF),
        k.const(32, 0x8000_0000),
        k.const(32, 0x387F_F000),
    )  # 2^-14 * (1 - 2^-12)
    return lambda a: select(lt(and_(a, rest), limit), and_(a, sign), a)


def _binary(k: Kit, name: str, type: str, ftz: bool = False) -> Any:
    """add, sub or mul of 16-bit words."""
    base = type.removesuffix("x2")
    if name == "mul" and base == "bf16":
        return k.lane("mul_bf16")
    op, widen, narrow = getattr(k, "f" + name)(32), widen16(k, base), narrow32(k, base, "rn")
    tiny = _without_tiny(k) if ftz else (lambda a: a)
    return lambda a, b: narrow(tiny(op(widen(a), widen(b))))


def sum_to_odd(k: Kit) -> Any:
    """f32 sum rounded to odd: if inexact and its last bit even, the odd neighbour on the side of the exact sum."""
    fadd, fsub, flt, and_, eq, add = k.fadd(32), k.fsub(32), k.flt(32), k.and_(32), k.eq(32), k.add(32)
    lt, select, both, either, differ = k.lt_s(32), k.select(32), k.and_(1), k.or_(1), k.xor(1)
    zero, one, minus = k.const(32, 0), k.const(32, 1), k.const(32, -1)

    def total(x: Any, y: Any) -> Any:
        s = fadd(x, y)
        t = fsub(s, x)
        error = fadd(fsub(x, fsub(s, t)), fsub(y, t))  # exact (Knuth's two-sum); NaN where s is not finite
        inexact = either(flt(zero, error), flt(error, zero))
        step = select(differ(lt(error, zero), lt(s, zero)), minus, one)
        return select(both(inexact, eq(and_(s, one), zero)), add(s, step), s)

    return total


def _fma(k: Kit, type: str, ftz: bool = False) -> Any:
    base = type.removesuffix("x2")
    if base == "bf16":
        return k.lane("fma_bf16")
    widen, mul, total, narrow = widen16(k, base), k.fmul(32), sum_to_odd(k), narrow32(k, base, "rn")
    tiny = _without_tiny(k) if ftz else (lambda a: a)
    return lambda a, b, c: narrow(tiny(total(mul(widen(a), widen(b)), widen(c))))


def _declare(name: str, sign: str, f16: list[Any], bf16: list[Any]) -> None:
    @isa.op(
        f"{name}{{.rn}}{{.ftz}}{{.sat}}.type d, a, b",
        type=F16,
        cost=Cost.FP16,
        ref=REF + name,
        since=((4, 2), 53),
        vectors=f16,
    )
    def half(k: Kit, rn: bool, ftz: bool, sat: bool, type: str) -> Any:
        return _wrapped(k, type, _binary(k, name, type, ftz), ftz, "sat" if sat else None)

    @isa.op(f"{name}{{.rn}}.type d, a, b", type=BF16, cost=Cost.FP16, ref=REF + name, since=((7, 8), 90), vectors=bf16)
    def brain(k: Kit, rn: bool, type: str) -> Any:
        return _wrapped(k, type, _binary(k, name, type))

    half.__doc__ = f"d = a {sign} b in f16, each half of a packed operand by itself"
    brain.__doc__ = f"d = a {sign} b in bf16, each half of a packed operand by itself"


_declare(
    "add",
    "+",
    [
        vec(".f16", 0x3C00, 0x3C00, d=0x4000, why="1+1"),
        vec(".rn.f16", 0x3C00, 0x1000, d=0x3C00, why="tie to even"),
        vec(".f16x2", 0x3C00_7C00, 0x3C00_FC00, d=0x4000_7FFF, why="halves apart; Inf-Inf"),
        vec(".f16", 1, 1, d=2, why="subnormals are kept"),
        vec(".ftz.f16", 1, 1, d=0, why="or flushed"),
        vec(".sat.f16", 0x3C00, 0x3C00, d=0x3C00, why="clamps to 1"),
    ],
    [
        vec(".rn.bf16", 0x3F80, 0x3B80, d=0x3F80, why="tie to even"),
        vec(".bf16x2", 0x3F80_0001, 0x3F80_0001, d=0x4000_0002, why="subnormals are kept"),
    ],
)
_declare(
    "sub", "-", [vec(".f16", 0x3C00, 0x3C00, d=0, why="x-x is +0")], [vec(".bf16", 0x3F80, 0x4000, d=0xBF80, why="1-2")]
)
_declare(
    "mul",
    "*",
    [vec(".f16", 0x7BFF, 0x4000, d=0x7C00, why="overflows"), vec(".f16", 0x7C00, 0, d=NAN, why="Inf*0")],
    [
        vec(".bf16", 0x0080, 0x3F00, d=0x0040, why="a subnormal product"),
        vec(".bf16", 0x3F81, 0x3F81, d=0x3F82, why="rounds"),
    ],
)


@isa.op(
    "fma.rn{.ftz}{.clamp}.type d, a, b, c",
    needs={".relu": at((7, 0), 80)},
    type=F16,
    clamp=(".sat", ".relu"),
    cost=Cost.FP16,
    ref=REF + "fma",
    since=((4, 2), 53),
    vectors=[
        vec(".rn.f16", 0x3C01, 0x3C01, 0xBC02, d=0x0010, why="one rounding: 2^-20 remains"),
        vec(".rn.relu.f16", 0x3C00, 0xBC00, 0, d=0, why="negative to +0"),
        vec(".rn.sat.f16", 0x4000, 0x3C00, 0, d=0x3C00, why="clamps"),
        vec(".rn.f16", 0x3C00, 0x6801, 0x0001, d=0x6801, why="a small addend"),
    ],
)
def fma(k: Kit, ftz: bool, clamp: str | None, type: str) -> Any:
    """d = a * b + c in f16 with one rounding"""
    return _wrapped(k, type, _fma(k, type, ftz), ftz, clamp)


@isa.op(
    "fma.rn{.relu}.type d, a, b, c",
    type=BF16,
    cost=Cost.FP16,
    ref=REF + "fma",
    since=((7, 0), 80),
    vectors=[
        vec(".rn.bf16", 0x3F81, 0x3F81, 0xBF82, d=0x3880, why="one rounding: 2^-14 remains"),
        vec(".rn.relu.bf16x2", 0x3F80_3F80, 0xBF80_3F80, 0, d=0x0000_3F80, why="negative to +0"),
    ],
)
def fma_bf16(k: Kit, relu: bool, type: str) -> Any:
    """d = a * b + c in bf16 with one rounding"""
    return _wrapped(k, type, _fma(k, type), False, "relu" if relu else None)


@isa.op(
    "fma.rn.mode.type d, a, b, c",
    mode=(".oob", ".oob.relu", ".relu.oob"),
    type=F16 + BF16,
    cost=Cost.FP16,
    ref=REF + "fma",
    since=((8, 1), 90),
    vectors=[
        vec(".rn.oob.f16", OUTSIDE, 0x3C00, 0x3C00, d=0, why="the NaN that fills what is outside a tensor gives +0"),
        vec(".rn.oob.f16", 0x3C00, 0x3C00, OUTSIDE, d=NAN, why="as an addend it is any NaN", seen="sm_90"),
        vec(".rn.oob.bf16x2", 0x7FFF_FFF7, 0x3F80_3F80, 0, d=0x7FFF_0000, why="no other NaN does; half by half"),
        vec(".rn.oob.relu.f16", 0x3C00, 0xBC00, 0, d=0, why="negative to +0"),
    ],
)
def fma_oob(k: Kit, mode: str, type: str) -> Any:
    """d = a * b + c, +0 where a factor is the NaN that fills what is outside a tensor"""
    base, eq, either, select, and_ = _fma(k, type), k.eq(16), k.or_(1), k.select(16), k.and_(16)
    outside, zero, magnitude = k.const(16, OUTSIDE), k.const(16, 0), k.const(16, 0x7FFF)

    def one(a: Any, b: Any, c: Any) -> Any:
        found = either(eq(and_(a, magnitude), outside), eq(and_(b, magnitude), outside))
        return select(found, zero, base(a, b, c))

    return _wrapped(k, type, one, False, "relu" if "relu" in mode else None)


def _sign(k: Kit, type: str, op: Any, constant: int, ftz: bool) -> Any:
    """A change of the sign bit; a NaN becomes canonical."""
    isnan, select, nan, bits = (
        nan_test(k, type.removesuffix("x2")),
        k.select(16),
        k.const(16, NAN),
        k.const(16, constant),
    )
    return _wrapped(k, type, lambda a: select(isnan(a), nan, op(a, bits)), ftz)


def _legal(type: str, ftz: bool, **_: object) -> str | None:
    return "'.ftz' needs f16" if ftz and type.startswith("b") else None


@isa.op(
    "neg{.ftz}.type d, a",
    type=F16 + BF16,
    constraint=_legal,
    cost=Cost.FP16,
    ref=REF + "neg",
    since=((6, 0), 53),
    vectors=[
        vec(".f16", 0, d=0x8000, why="flips the sign"),
        vec(".bf16x2", 0x3F80_7FC0, d=0xBF80_7FFF, why="NaN is canonical", seen="sm_90"),
    ],
)
def neg(k: Kit, ftz: bool, type: str) -> Any:
    """d = -a"""
    return _sign(k, type, k.xor(16), 0x8000, ftz)


@isa.op(
    "abs{.ftz}.type d, a",
    type=F16 + BF16,
    constraint=_legal,
    cost=Cost.FP16,
    ref=REF + "abs",
    since=((6, 5), 53),
    vectors=[vec(".f16x2", 0x8000_BC00, d=0x0000_3C00, why="clears the sign")],
)
def abs_(k: Kit, ftz: bool, type: str) -> Any:
    """d = |a|"""
    return _sign(k, type, k.and_(16), 0x7FFF, ftz)


def _extreme(k: Kit, type: str, largest: bool, ftz: bool, nan: bool, xorsign: bool) -> Any:
    return _wrapped(k, type, extreme(k, type.removesuffix("x2"), largest, nan, xorsign), ftz)


@isa.op(
    "min{.ftz}{.NaN}{.xs}.type d, a, b",
    needs={".xorsign.abs": at((7, 2), 86)},
    xs=(".xorsign.abs",),
    type=F16 + BF16,
    constraint=_legal,
    cost=Cost.FP16,
    ref=REF + "min",
    since=((7, 0), 80),
    vectors=[
        vec(".f16", 0x8000, 0, d=0x8000, why="-0 is less than +0"),
        vec(".f16", 0x7E00, 0x3C00, d=0x3C00, why="NaN loses"),
        vec(".NaN.bf16", 0x7FC0, 0x3F80, d=NAN, why="NaN wins with .NaN"),
    ],
)
def min_(k: Kit, ftz: bool, NaN: bool, xs: str | None, type: str) -> Any:
    """d = the smaller of a and b; with .xorsign.abs of the magnitudes, signed by the exclusive or of the signs"""
    return _extreme(k, type, False, ftz, NaN, xs is not None)


@isa.op(
    "max{.ftz}{.NaN}{.xs}.type d, a, b",
    needs={".xorsign.abs": at((7, 2), 86)},
    xs=(".xorsign.abs",),
    type=F16 + BF16,
    constraint=_legal,
    cost=Cost.FP16,
    ref=REF + "max",
    since=((7, 0), 80),
    vectors=[
        vec(".bf16x2", 0x3F80_0000, 0x4000_8000, d=0x4000_0000, why="half by half"),
        vec(".xorsign.abs.f16", 0xC000, 0x3C00, d=0xC000, why="sign of the product"),
    ],
)
def max_(k: Kit, ftz: bool, NaN: bool, xs: str | None, type: str) -> Any:
    """d = the larger of a and b; with .xorsign.abs of the magnitudes, signed by the exclusive or of the signs"""
    return _extreme(k, type, True, ftz, NaN, xs is not None)
