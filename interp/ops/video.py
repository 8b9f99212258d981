"""Scalar video instructions (PTX ISA, 'Scalar Video Instructions'): integers of 8, 16 or 32 bits, and a second
operation.

    vadd.s32.u32.s32.sat.min  d, a.b1, b.h0, c;        two sources, clamped, and the smaller of that and c
    vadd.s32.u32.s32.sat      d.h1, a, b, c;           c with its upper half replaced

Sources are bytes, halves or all of a register, extended by their types; everything here is done in 64 bits. No hardware
since Kepler has these instructions: the assembler writes code for them, and what its code gives on an H200 is what is
meant (`gpuemu conform`, every form). It is not always what the manual says:

* `.sat` to all of an unsigned d clamps at 0 and not at the top; to a part of d it is one unsigned comparison with the
  largest number, so a negative result becomes that. Shifts clamp their lower 34 bits to the range of 32, whatever part
  of d is written.
* the second operations min and max compare numbers of 64 bits, signed or not as `dtype` (vset: `atype`). The first of
  them is extended from 32 bits by its sign, even where `dtype` is unsigned, for sums, differences and clamped shifts.
* vmad takes all of a register and c for signed, whatever their types are; of `.sat` with a scale the shift is logical
  where the result is unsigned. `dtype` says nothing.

ptxas up to 13.0 puts the upper half of a result into d.h1; that of 13.4 puts the lower half there, as the manual and
this module do. The assembler takes an operand c that nothing uses; that is refused here, as by the manual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.record import Vector
from ptx.types import is_signed

Fn = Callable[..., Any]

WORDS = (".u32", ".s32")
COMPARISONS = (".eq", ".ne", ".lt", ".le", ".gt", ".ge")
_WHOLE, _PARTS = ("",), ("", "b0", "b1", "b2", "b3", "h0", "h1")
_SOURCES = {"a": _PARTS, "b": _PARTS}
_TARGETS = {"d": _PARTS, **_SOURCES, "c": _WHOLE}
_SECOND = (".add", ".min", ".max")
_SINCE = ((2, 0), 20)
_REF = "scalar-video-instructions-"


def _place(part: str) -> tuple[int, int]:
    """Bits of a part of a register, and where they begin."""
    bits = {"b": 8, "h": 16}.get(part[:1], 32)
    return bits, bits * int(part[1:] or 0)


def _source(k: Kit, type: str, part: str) -> Fn:
    """A source as a signed number of 64 bits."""
    bits, at = _place(part.removeprefix("-"))
    narrow, shr = k.trunc(32, bits), k.shr_u(32)
    widen = (k.sext if is_signed(type) else k.zext)(bits, 64)
    return lambda word: widen(narrow(shr(word, k.const(32, at)) if at else word))


def limits(type: str, bits: int) -> tuple[int, int]:
    """The least and the largest number of so many bits."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(type) else (0, (1 << bits) - 1)


def clamp(k: Kit, n: int, least: int, largest: int) -> Fn:
    """A signed number of n bits, cut to a range."""
    less, select, low, high = k.lt_s(n), k.select(n), k.const(n, least), k.const(n, largest)

    def cut(value: Any) -> Any:
        value = select(less(high, value), high, value)
        return select(less(value, low), low, value)

    return cut


def _finish(k: Kit, cut: Fn, signed: bool, op2: str | None, part: str, sums: bool = False) -> Fn:
    """(result of 64 bits[, c]) -> d. `cut`: what `.sat` does; `signed`: for the second operation; `sums`: whether that
    takes 32 bits of the result."""
    bits, at = _place(part)
    narrow, add, select = k.trunc(64, 32), k.add(32), k.select(64)
    if op2 == "add":
        return lambda value, c: add(narrow(cut(value)), c)
    if op2 is not None:
        less, widen, extend = (k.lt_s if signed else k.lt_u)(64), (k.sext if signed else k.zext)(32, 64), k.sext(32, 64)

        def second(value: Any, c: Any) -> Any:
            value, other = cut(value), widen(c)
            value = extend(narrow(value)) if sums else value
            return narrow(select(less(value, other) if op2 == "min" else less(other, value), value, other))

        return second
    if bits == 32:
        return lambda value, *_: narrow(cut(value))
    mask = ((1 << bits) - 1) << at
    shl, and_, or_ = k.shl(32), k.and_(32), k.or_(32)
    kept, changed, up = k.const(32, ~mask), k.const(32, mask), k.const(32, at)
    return lambda value, c: or_(and_(c, kept), and_(shl(narrow(cut(value)), up), changed))


def as_it_is(value: Any) -> Any:
    return value


def _saturate(k: Kit, dtype: str, part: str) -> Fn:
    """What `.sat` makes of a result of 64 bits."""
    bits, select, less, zero = _place(part)[0], k.select(64), k.lt_u(64), k.const(64, 0)
    if bits == 32:
        if is_signed(dtype):
            return clamp(k, 64, *limits(dtype, bits))
        return lambda value: select(k.lt_s(64)(value, zero), zero, value)
    largest = k.const(64, limits(dtype, bits)[1])
    return lambda value: select(less(largest, value), largest, value)


def _uses_c(op2: str | None = None, **rest: Any) -> str | None:
    """Why operand c does not fit the modifiers, or None."""
    if "c_part" not in rest:
        return None  # only the opcode is known
    replaced = bool(rest["d_part"])
    if op2 and replaced:
        return "a part of d and a second operation exclude each other"
    if rest["c_part"] is None and (op2 or replaced):
        return "operand c is missing: " + ("the second operation takes it" if op2 else "the rest of d comes from it")
    if rest["c_part"] is not None and not (op2 or replaced):
        return "nothing uses operand c: give a second operation, or a part of d"
    return None


def _arithmetic(k: Kit, name: str) -> Fn:
    """The operation on numbers of 64 bits."""
    sub, less, select = k.sub(64), k.lt_s(64), k.select(64)
    if name == "vadd":
        return k.add(64)
    if name == "vsub":
        return sub
    if name == "vabsdiff":
        return lambda a, b: select(less(a, b), sub(b, a), sub(a, b))
    return lambda a, b: select(less(a, b) if name == "vmin" else less(b, a), a, b)


def _declare(name: str, doc: str, examples: list[Vector]) -> None:
    @isa.op(f"{name}.dtype.atype.btype{{.sat}}{{.op2}} d, a, b{{, c}}", dtype=WORDS, atype=WORDS, btype=WORDS,
            op2=_SECOND, types={"d": "dtype", "a": "atype", "b": "btype", "c": "dtype"}, parts=_TARGETS,
            constraint=_uses_c, cost=Cost.INT, ref=_REF + "vadd-vsub-vabsdiff-vmin-vmax", since=_SINCE,
            vectors=examples)
    def meaning(k: Kit, dtype: str, atype: str, btype: str, sat: bool, op2: str | None, d_part: str, a_part: str,
                b_part: str, **_: Any) -> Any:
        first, second, operation = _source(k, atype, a_part), _source(k, btype, b_part), _arithmetic(k, name)
        cut = _saturate(k, dtype, d_part) if sat else as_it_is
        finish = _finish(k, cut, is_signed(dtype), op2, d_part, sums=name in ("vadd", "vsub"))
        return lambda a, b, *c: finish(operation(first(a), second(b)), *c)

    meaning.__name__, meaning.__doc__ = name, doc


_declare("vadd", "d = a + b", [
    vec(".u32.u32.u32", 0xFFFF_FFFF, 1, d=0, why="wraps"),
    vec(".u32.u32.s32.sat", 3, 0xFFFF_FFFB, d=0, why="3 - 5 clamps at 0"),
    vec(".s32.s32.u32.sat.max a.b1 b.h1", 0x8000, 0x0005_0000, 7, d=7, why="max(-128 + 5, 7)"),
    vec(".s32.s32.s32.sat d.b2 a.b0 b.b0", 0x7F, 0x7F, 0xAABB_CCDD, d=0xAA7F_CCDD, why="clamps to a byte of c")])
_declare("vsub", "d = a - b", [
    vec(".u32.u32.u32", 0, 1, d=0xFFFF_FFFF, why="wraps"),
    vec(".s32.u32.u32.sat", 0, 0xFFFF_FFFF, d=0x8000_0000, why="clamps"),
    vec(".u32.u32.u32.add", 5, 7, 3, d=1, why="adds c to the difference")])
_declare("vabsdiff", "d = |a - b|", [
    vec(".u32.s32.u32", 0x8000_0000, 0xFFFF_FFFF, d=0x7FFF_FFFF, why="of 33 bits the lower 32"),
    vec(".s32.s32.u32.sat", 0x8000_0000, 0xFFFF_FFFF, d=0x7FFF_FFFF, why="clamps"),
    vec(".u32.u32.u32.min a.b3 b.b3", 0x0100_0000, 0x0900_0000, 5, d=5, why="min(8, 5)")])
_declare("vmin", "d = the smaller of a and b", [
    vec(".s32.s32.u32", 0xFFFF_FFFF, 1, d=0xFFFF_FFFF, why="-1 is below 1"),
    vec(".u32.s32.u32.sat", 0xFFFF_FFFF, 1, d=0, why="-1 clamps at 0")])
_declare("vmax", "d = the larger of a and b", [
    vec(".s32.s32.u32", 0xFFFF_FFFF, 1, d=1, why="1 is above -1"),
    vec(".u32.u32.u32 d.h1 a.b0 b.h0", 0xFF, 0x100, 0x1111_2222, d=0x0100_2222, why="into the upper half of c")])


# ---------------------------------------------------------------- shifts
def _declare_shift(name: str, doc: str, examples: list[Vector]) -> None:
    @isa.op(f"{name}.dtype.atype.u32{{.sat}}.mode{{.op2}} d, a, b{{, c}}", dtype=WORDS, atype=WORDS,
            mode=(".clamp", ".wrap"), op2=_SECOND, types={"d": "dtype", "a": "atype", "b": "u32", "c": "dtype"},
            parts=_TARGETS, constraint=_uses_c, cost=Cost.INT, ref=_REF + "vshl-vshr", since=_SINCE,
            vectors=examples)
    def meaning(k: Kit, dtype: str, atype: str, sat: bool, mode: str, op2: str | None, d_part: str, a_part: str,
                b_part: str, **_: Any) -> Any:
        first, second, less, select = _source(k, atype, a_part), _source(k, "u32", b_part), k.lt_u(64), k.select(64)
        and_, most, low = k.and_(64), k.const(64, 32), k.const(64, 31)
        shift, up, down = (k.shl if name == "vshl" else k.shr_s)(64), k.shl(64), k.shr_s(64)
        rest, in_range = k.const(64, 30), clamp(k, 64, *limits(dtype, 32))
        cut = (lambda value: in_range(down(up(value, rest), rest))) if sat else as_it_is
        finish = _finish(k, cut, is_signed(dtype), op2, d_part, sums=sat)

        def run(a: Any, b: Any, *c: Any) -> Any:
            by = second(b)
            by = select(less(most, by), most, by) if mode == "clamp" else and_(by, low)
            return finish(shift(first(a), by), *c)

        return run

    meaning.__name__, meaning.__doc__ = name, doc


_declare_shift("vshl", "d = a << b; b at most 32, or modulo 32", [
    vec(".u32.u32.u32.clamp", 1, 40, d=0, why="all bits leave"),
    vec(".u32.u32.u32.wrap", 1, 33, d=2, why="by 33 modulo 32"),
    vec(".s32.s32.u32.sat.clamp", 0xFFFF_FFFF, 40, d=0x8000_0000, why="-2^32 clamps"),
    vec(".u32.u32.u32.clamp d.b3 a.b1", 0x300, 4, 0x1234_5678, d=0x3034_5678, why="into the upper byte of c")])
_declare_shift("vshr", "d = a >> b; b at most 32, or modulo 32", [
    vec(".s32.s32.u32.clamp", 0x8000_0000, 40, d=0xFFFF_FFFF, why="only the sign stays"),
    vec(".u32.u32.u32.wrap.add", 0x80, 36, 1, d=9, why="by 36 modulo 32, and c"),
    vec(".u32.s32.u32.sat.clamp", 0x8000_0000, 4, d=0, why="a negative number clamps at 0")])


# ---------------------------------------------------------------- comparison
@isa.op("vset.atype.btype.cmp{.op2} d, a, b{, c}", atype=WORDS, btype=WORDS, cmp=COMPARISONS, op2=_SECOND,
        types={"d": "u32", "a": "atype", "b": "btype", "c": "u32"}, parts=_TARGETS, constraint=_uses_c, cost=Cost.INT,
        ref=_REF + "vset", since=_SINCE,
        vectors=[vec(".s32.u32.lt", 0xFFFF_FFFF, 0, d=1, why="-1 is below 0"),
                 vec(".u32.u32.lt", 0xFFFF_FFFF, 0, d=0, why="2^32 - 1 is not"),
                 vec(".u32.u32.eq.add a.b0 b.b1", 0x7, 0x700, 41, d=42, why="counts"),
                 vec(".s32.s32.ge d.h0 a.h0", 5, 5, 0xABCD_FFFF, d=0xABCD_0001, why="into the lower half of c")])
def vset(k: Kit, atype: str, btype: str, cmp: str, op2: str | None, d_part: str, a_part: str, b_part: str,
         **_: Any) -> Any:
    """d = 1 if the comparison holds, otherwise 0"""
    first, second, test = _source(k, atype, a_part), _source(k, btype, b_part), compare(k, 64, cmp)
    finish, widen = _finish(k, as_it_is, is_signed(atype), op2, d_part), k.zext(1, 64)
    return lambda a, b, *c: finish(widen(test(first(a), second(b))), *c)


def compare(k: Kit, n: int, cmp: str) -> Fn:
    """A comparison of signed numbers of n bits."""
    less, most, tests = k.lt_s(n), k.le_s(n), {"eq": k.eq(n), "ne": k.ne(n)}
    tests |= {"lt": less, "le": most, "gt": lambda a, b: less(b, a), "ge": lambda a, b: most(b, a)}
    return tests[cmp]


# ---------------------------------------------------------------- multiplication and addition
def _negations(po: bool = False, **rest: Any) -> str | None:
    if "c_part" not in rest:
        return None
    a, b, c = ((rest[f"{name}_part"] or "").startswith("-") for name in "abc")
    if po and (a or b or c):
        return "'.po' and negated operands exclude each other"
    return "either the product is negated, or c" if a != b and c else None


_NEGATED = tuple(f"-{p}" for p in _PARTS)


@isa.op("vmad.dtype.atype.btype{.po}{.sat}{.scale} d, a, b, c", dtype=WORDS, atype=WORDS, btype=WORDS,
        scale=(".shr7", ".shr15"), types={"d": "dtype", "a": "atype", "b": "btype", "c": "b32"},
        parts={"a": _PARTS + _NEGATED, "b": _PARTS + _NEGATED, "c": ("", "-")}, constraint=_negations, cost=Cost.INT,
        ref=_REF + "vmad", since=_SINCE,
        vectors=[vec(".u32.u32.u32", 0x1_0000, 0x1_0000, 5, d=5, why="of 33 bits the lower 32"),
                 vec(".s32.s32.s32.sat", 0x1_0000, 0x1_0000, 5, d=0x7FFF_FFFF, why="clamps"),
                 vec(".u32.u32.u32.sat", 0xFFFF_FFFF, 3, 5, d=2, why="-1 * 3 + 5, whatever the types"),
                 vec(".u32.u32.u32.sat.shr7", 0xFFFF_FFFF, 6, 5, d=0xFFFF_FFFF, why="-1 shifted logically clamps"),
                 vec(".s32.s32.s32.sat a.-b0", 2, 3, 1, d=0xFFFF_FFFB, why="-(2 * 3) + 1"),
                 vec(".u32.u32.u32.po.shr7 a.b0 b.b0", 0xFF, 0xFF, 0, d=508, why="65026 / 128, down"),
                 vec(".s32.u32.u32 c.-", 2, 3, 1, d=5, why="2 * 3 - 1")])
def vmad(k: Kit, dtype: str, atype: str, btype: str, po: bool, sat: bool, scale: str | None, a_part: str, b_part: str,
         c_part: str) -> Any:
    """d = a * b + c, or + 1 more, divided by 128 or 32768; a * b or c may be negated"""
    first, second = _source(k, _seen(atype, a_part), a_part), _source(k, _seen(btype, b_part), b_part)
    negated, minus = (a_part[:1] == "-") != (b_part[:1] == "-"), c_part == "-"
    signed = is_signed(atype) or is_signed(btype) or negated or minus
    mul, add, sub, one = k.mul(64), k.add(64), k.sub(64), k.const(64, 1)
    narrow, extend = k.trunc(64, 32), k.sext(32, 64)
    shift, by = (k.shr_s if signed else k.shr_u)(64), k.const(64, int(scale[3:]) if scale else 0)
    cut = clamp(k, 64, *limits("s32" if signed else "u32", 32)) if sat else as_it_is
    if sat and scale and not signed:
        less, select, most = k.lt_u(64), k.select(64), k.const(64, 0xFFFF_FFFF)
        cut = lambda value: select(less(most, value), most, value)  # noqa: E731

    def run(a: Any, b: Any, c: Any) -> Any:
        product, third = mul(first(a), second(b)), extend(c)
        out = sub(third, product) if negated else sub(product, third) if minus else add(product, third)
        out = add(out, one) if po else out
        return narrow(cut(shift(out, by) if scale else out))

    return run


def _seen(type: str, part: str) -> str:
    """The type that vmad takes a source for."""
    return type if part.removeprefix("-") else "s32"
