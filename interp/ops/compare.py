"""Comparison and selection (PTX ISA, 'Comparison and Selection Instructions').

`setp` and `set` on f32 and f64 are here with the integers: comparing is the same for all of them. The 16-bit formats
are widened to f32 first, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interp.kit import Kit
from interp.ops.formats import flush16, flush32, widen16
from interp.ops.table import isa
from ptx import ir
from ptx.isa import Cost, vec
from ptx.targets import at
from ptx.types import width

INTEGERS = (".b16", ".b32", ".b64", ".u16", ".u32", ".u64", ".s16", ".s32", ".s64")
FLOATS = (".f16", ".bf16", ".f32", ".f64")
ORDERED = (".eq", ".ne", ".lt", ".le", ".gt", ".ge")
UNSIGNED_NAMES = (".lo", ".ls", ".hi", ".hs")
UNORDERED = (".equ", ".neu", ".ltu", ".leu", ".gtu", ".geu", ".num", ".nan")
BOOLEAN = (".and", ".or", ".xor")
_SWAP = {"gt": "lt", "ge": "le", "hi": "lt", "hs": "le", "lo": "lt", "ls": "le"}


def comparison(k: Kit, cmp: str, type: str, ftz: bool = False) -> Any:
    """The function (a, b) -> predicate of a comparison operator on a type."""
    if type in ("f16", "bf16"):
        widen, compare = widen16(k, type), comparison(k, cmp, "f32")
        flush16_ = flush16(k) if ftz else (lambda a: a)
        return lambda a, b: compare(widen(flush16_(a)), widen(flush16_(b)))
    n = width(type)
    if type in ("f32", "f64"):
        base = _float_comparison(k, cmp, n)
        if not ftz:
            return base
        flush = flush32(k)
        return lambda a, b: base(flush(a), flush(b))
    signed = type[0] == "s" and cmp not in ("lo", "ls", "hi", "hs")
    op = {"eq": "eq", "ne": "ne"}.get(cmp) or (_SWAP.get(cmp, cmp) + ("_s" if signed else "_u"))
    compare = getattr(k, op)(n)
    return (lambda a, b: compare(b, a)) if cmp in ("gt", "ge", "hi", "hs") else compare


def _float_comparison(k: Kit, cmp: str, n: int) -> Any:
    isnan, or_, not_ = k.isnan(n), k.or_(1), k.not_(1)
    if cmp == "nan":
        return lambda a, b: or_(isnan(a), isnan(b))
    if cmp == "num":
        return lambda a, b: not_(or_(isnan(a), isnan(b)))
    if cmp == "ne":  # ordered and unequal
        lt = k.flt(n)
        return lambda a, b: or_(lt(a, b), lt(b, a))
    if cmp == "neu":
        eq = k.feq(n)
        return lambda a, b: not_(eq(a, b))
    base = {"eq": k.feq, "lt": k.flt, "le": k.fle, "gt": k.flt, "ge": k.fle}[cmp[:2]](n)
    ordered: Callable[[Any, Any], Any] = (lambda a, b: base(b, a)) if cmp[:2] in ("gt", "ge") else base
    if len(cmp) == 2:
        return ordered
    return lambda a, b: or_(ordered(a, b), or_(isnan(a), isnan(b)))


def _legal(cmp: str, type: str, ftz: bool = False, **_: object) -> str | None:
    if type in ("f16", "bf16", "f32", "f64"):
        if "." + cmp in UNSIGNED_NAMES:
            return "unsigned comparison names need an integer type"
        return "'.ftz' needs f32" if ftz and type not in ("f32", "f16") else None
    if "." + cmp in UNORDERED or ftz:
        return "unordered comparisons and '.ftz' need a floating-point type"
    if type[0] == "b" and cmp not in ("eq", "ne"):
        return "untyped bits compare only for equality"
    if "." + cmp in UNSIGNED_NAMES and type[0] != "u":
        return "lo, ls, hi, hs need an unsigned type"
    return None


_BF16 = {".bf16,.bf16x2": at((7, 8), 90)}
_SET_NEEDS = {**_BF16, "dtype.u16,dtype.s16,dtype.u32,dtype.s32 type.f16,type.f16x2": at((6, 5))}


def _one_result(mods: Mapping[str, Any], operands: Mapping[str, ir.Operand]) -> str | None:
    """The manual gives comparisons of one half no second result."""
    if mods["type"] in ("f16", "bf16") and isinstance(operands["p"], ir.Pair):
        return f"a comparison of {mods['type']} has one result"
    return None


_CMP: dict[str, Any] = {"cmp": ORDERED + UNSIGNED_NAMES + UNORDERED, "type": INTEGERS + FLOATS}


@isa.op("setp.cmp{.ftz}.type p|q, a, b",
        needs=_BF16, rule=_one_result, **_CMP, writes=("p", "q"),
        discards=("p", "q"), types={"p": "pred", "q": "pred", "a": "type", "b": "type"}, constraint=_legal,
        cost=Cost.INT,
        ref="comparison-and-selection-instructions-setp",
        vectors=[vec(".lt.s32", 0xFFFF_FFFF, 0, d=(1, 0), why="signed"),
                 vec(".lt.u32", 0xFFFF_FFFF, 0, d=(0, 1), why="unsigned"),
                 vec(".ne.f32", 0x7FC0_0000, 0, d=(0, 1), why="ordered comparisons are false with a NaN"),
                 vec(".neu.f32", 0x7FC0_0000, 0, d=(1, 0), why="unordered ones are true"),
                 vec(".eq.f32", 0x8000_0000, 0, d=(1, 0), why="-0 equals +0")])
def setp(k: Kit, cmp: str, ftz: bool, type: str) -> Any:
    """p = a cmp b; q = !(a cmp b)"""
    compare, not_ = comparison(k, cmp, type, ftz), k.not_(1)

    def both(a: Any, b: Any) -> tuple[Any, Any]:
        p = compare(a, b)
        return p, not_(p)

    return both


def _halves(k: Kit, compare: Any) -> Any:
    """A comparison of 16-bit words on the lower and on the upper halves: (a, b) -> two predicates."""
    low, shr, sixteen = k.trunc(32, 16), k.shr_u(32), k.const(32, 16)
    return lambda a, b: (compare(low(a), low(b)), compare(low(shr(a, sixteen)), low(shr(b, sixteen))))


def _legal_pair(cmp: str, type: str, ftz: bool, **_: object) -> str | None:
    return _legal(cmp, type.removesuffix("x2"), ftz)


_PAIR: dict[str, Any] = {"cmp": ORDERED + UNORDERED, "type": (".f16x2", ".bf16x2")}


@isa.op("setp.cmp{.ftz}.type p|q, a, b",
        needs=_BF16, **_PAIR, writes=("p", "q"),
        discards=("p", "q"), types={"p": "pred", "q": "pred", "a": "type", "b": "type"}, constraint=_legal_pair,
        cost=Cost.FP16,
        ref="half-precision-comparison-instructions-setp", since=((4, 2), 53),
        vectors=[vec(".lt.f16x2", 0x3C00_0000, 0x0000_3C00, d=(1, 0), why="p for the lower half, q for the upper")])
def setp_pair(k: Kit, cmp: str, ftz: bool, type: str) -> Any:
    """p = lower halves of a cmp b; q = upper halves"""
    return _halves(k, comparison(k, cmp, type.removesuffix("x2"), ftz))


@isa.op("setp.cmp.bool{.ftz}.type p|q, a, b, c",
        needs=_BF16, **_PAIR, bool=BOOLEAN, writes=("p", "q"),
        discards=("p", "q"), types={"p": "pred", "q": "pred", "c": "pred", "a": "type", "b": "type"},
        constraint=_legal_pair,
        cost=Cost.FP16, ref="half-precision-comparison-instructions-setp", since=((4, 2), 53),
        vectors=[vec(".lt.or.f16x2", 0x3C00_0000, 0x0000_3C00, 1, d=(1, 1), why="both are combined with c")])
def setp_pair_bool(k: Kit, cmp: str, bool: str, ftz: bool, type: str) -> Any:
    """p = (lower halves of a cmp b) op c; q = (upper halves) op c"""
    both, combine = _halves(k, comparison(k, cmp, type.removesuffix("x2"), ftz)), _combine(k, bool)

    def run(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        p, q = both(a, b)
        return combine(p, c), combine(q, c)

    return run


def _combine(k: Kit, bool: str) -> Any:
    return {"and": k.and_, "or": k.or_, "xor": k.xor}[bool](1)


@isa.op("setp.cmp.bool{.ftz}.type p|q, a, b, c",
        needs=_BF16, rule=_one_result, **_CMP, bool=BOOLEAN, writes=("p", "q"),
        discards=("p", "q"), types={"p": "pred", "q": "pred", "c": "pred", "a": "type", "b": "type"},
        constraint=_legal, cost=Cost.INT,
        ref="comparison-and-selection-instructions-setp",
        vectors=[vec(".lt.and.s32", 1, 2, 0, d=(0, 0), why="both results are combined with c")])
def setp_bool(k: Kit, cmp: str, bool: str, ftz: bool, type: str) -> Any:
    """p = (a cmp b) op c; q = !(a cmp b) op c"""
    compare, not_ = comparison(k, cmp, type, ftz), k.not_(1)
    combine = _combine(k, bool)

    def both(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        p = compare(a, b)
        return combine(p, c), combine(not_(p), c)

    return both


def _set_value(k: Kit, dtype: str) -> Any:
    n = width(dtype)
    true = {"f32": 0x3F80_0000, "f16": 0x3C00, "bf16": 0x3F80}.get(dtype, -1)
    select, yes, no = k.select(n), k.const(n, true), k.const(n, 0)
    return lambda p: select(p, yes, no)


def _legal_set(dtype: str, type: str, ftz: bool, cmp: str, **_: object) -> str | None:
    """What ptxas accepts of the many combinations."""
    short = type in ("f16", "bf16")
    if dtype in ("u16", "s16") and not short:
        return "a 16-bit integer result needs a 16-bit floating-point comparison"
    if (dtype == "f32" and short) or (dtype == "f16" and type == "bf16") or (dtype == "bf16" and ftz):
        return "this floating-point result does not go with these operands"
    return _legal(cmp, type, ftz)


_SET_TYPES = {"d": "dtype", "a": "type", "b": "type", "c": "pred"}


@isa.op("set.cmp{.ftz}.dtype.type d, a, b",
        needs=_SET_NEEDS, **_CMP, dtype=(".u32", ".s32", ".f32", ".u16", ".s16", ".f16", ".bf16"),
        types=_SET_TYPES, constraint=_legal_set, cost=Cost.INT, ref="comparison-and-selection-instructions-set",
        vectors=[vec(".lt.u32.s32", 1, 2, d=0xFFFF_FFFF, why="integer true is all ones"),
                 vec(".lt.f32.s32", 1, 2, d=0x3F80_0000, why="float true is 1.0")])
def set_(k: Kit, cmp: str, ftz: bool, dtype: str, type: str) -> Any:
    """d = (a cmp b) ? all ones (or 1.0) : 0"""
    compare, value = comparison(k, cmp, type, ftz), _set_value(k, dtype)
    return lambda a, b: value(compare(a, b))


@isa.op("set.cmp.bool{.ftz}.dtype.type d, a, b, c",
        needs=_SET_NEEDS, **_CMP, bool=BOOLEAN,
        dtype=(".u32", ".s32", ".f32", ".u16", ".s16", ".f16", ".bf16"), types=_SET_TYPES, constraint=_legal_set,
        cost=Cost.INT, ref="comparison-and-selection-instructions-set",
        vectors=[vec(".lt.and.u32.s32", 1, 2, 0, d=0, why="combined with c"),
                 vec(".lt.xor.f32.f32", 0x7FC0_0000, 0, 1, d=0x3F80_0000, why="a NaN compares as false")])
def set_bool(k: Kit, cmp: str, bool: str, ftz: bool, dtype: str, type: str) -> Any:
    """d = ((a cmp b) op c) ? all ones (or 1.0) : 0"""
    compare, value, combine = comparison(k, cmp, type, ftz), _set_value(k, dtype), _combine(k, bool)
    return lambda a, b, c: value(combine(compare(a, b), c))


def _legal_set_pair(cmp: str, dtype: str, type: str, ftz: bool, **_: object) -> str | None:
    if dtype[-2:] == "x2" and dtype != type:
        return "a packed result is of the type that is compared"
    return _legal_pair(cmp, type, ftz)


_SET_PAIR: dict[str, Any] = {**_PAIR, "dtype": (".u32", ".s32", ".f16x2", ".bf16x2")}


def _set_halves(k: Kit, dtype: str, value: Any) -> Any:
    """The two predicates of `_halves` as a word: in each half all ones, or 1.0."""
    one = _set_value(k, dtype.removesuffix("x2") if dtype[-2:] == "x2" else "s16")
    up, or_, shl, sixteen = k.zext(16, 32), k.or_(32), k.shl(32), k.const(32, 16)

    def word(*words: Any) -> Any:
        p, q = value(*words)
        return or_(up(one(p)), shl(up(one(q)), sixteen))

    return word


@isa.op("set.cmp{.ftz}.dtype.type d, a, b",
        needs=_SET_NEEDS, **_SET_PAIR, types=_SET_TYPES, constraint=_legal_set_pair, cost=Cost.FP16,
        ref="half-precision-comparison-instructions-set", since=((4, 2), 53),
        vectors=[vec(".lt.u32.f16x2", 0x3C00_0000, 0x0000_3C00, d=0x0000_FFFF, why="half by half"),
                 vec(".ge.bf16x2.bf16x2", 0x3F80_0000, 0x0000_3F80, d=0x3F80_0000, why="1.0")])
def set_pair(k: Kit, cmp: str, ftz: bool, dtype: str, type: str) -> Any:
    """d = half by half (a cmp b) ? all ones (or 1.0) : 0"""
    return _set_halves(k, dtype, _halves(k, comparison(k, cmp, type.removesuffix("x2"), ftz)))


@isa.op("set.cmp.bool{.ftz}.dtype.type d, a, b, c",
        needs=_SET_NEEDS, **_SET_PAIR, bool=BOOLEAN, types=_SET_TYPES,
        constraint=_legal_set_pair, cost=Cost.FP16, ref="half-precision-comparison-instructions-set",
        since=((4, 2), 53),
        vectors=[vec(".lt.xor.f16x2.f16x2", 0x3C00_0000, 0x0000_3C00, 1, d=0x3C00_0000, why="combined with c")])
def set_pair_bool(k: Kit, cmp: str, bool: str, ftz: bool, dtype: str, type: str) -> Any:
    """d = half by half ((a cmp b) op c) ? all ones (or 1.0) : 0"""
    both, combine = _halves(k, comparison(k, cmp, type.removesuffix("x2"), ftz)), _combine(k, bool)

    def value(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        p, q = both(a, b)
        return combine(p, c), combine(q, c)

    return _set_halves(k, dtype, value)


@isa.op("selp.type d, a, b, c", type=INTEGERS + (".f32", ".f64"),
        types={"d": "type", "a": "type", "b": "type", "c": "pred"}, cost=Cost.INT,
        ref="comparison-and-selection-instructions-selp", vectors=[vec(".b32", 1, 2, 0, d=2, why="chooses")])
def selp(k: Kit, type: str) -> Any:
    """d = c ? a : b"""
    select = k.select(width(type))
    return lambda a, b, c: select(c, a, b)


@isa.op("slct.type.ctype d, a, b, c", type=INTEGERS + (".f32", ".f64"), ctype=(".s32",),
        types={"d": "type", "a": "type", "b": "type", "c": "ctype"}, cost=Cost.INT,
        ref="comparison-and-selection-instructions-slct",
        vectors=[vec(".b32.s32", 1, 2, 0xFFFF_FFFF, d=2, why="c < 0")])
def slct(k: Kit, type: str, ctype: str) -> Any:
    """d = (c >= 0) ? a : b"""
    select, lt, zero = k.select(width(type)), k.lt_s(32), k.const(32, 0)
    return lambda a, b, c: select(lt(c, zero), b, a)


@isa.op("slct{.ftz}.type.f32 d, a, b, c", type=INTEGERS + (".f32", ".f64"),
        types={"d": "type", "a": "type", "b": "type", "c": "f32"}, cost=Cost.INT,
        ref="comparison-and-selection-instructions-slct",
        vectors=[vec(".b32.f32", 1, 2, 0x8000_0000, d=1, why="-0 counts as >= 0"),
                 vec(".b32.f32", 1, 2, 0x7FFF_FFFF, d=2, why="NaN chooses b")])
def slct_f32(k: Kit, ftz: bool, type: str) -> Any:
    """d = (c >= 0) ? a : b, b for NaN"""
    select, le, zero = k.select(width(type)), k.fle(32), k.const(32, 0)
    flush = flush32(k) if ftz else (lambda c: c)
    return lambda a, b, c: select(le(zero, flush(c)), a, b)
