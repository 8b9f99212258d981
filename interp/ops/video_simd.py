"""SIMD video instructions (PTX ISA, 'SIMD Video Instructions'): two halves or four bytes of a register at a time.

    vadd4.u32.s32.u32.sat  d.b10, a.b3210, b.b7654, c;      the lower two bytes of d are sums, the others those of c
    vabsdiff4.u32.u32.u32.add  d, a, b, c;                  d = c plus the four differences

A selector names a source for each element, the highest first, counted through both registers: `.b7` is the upper byte
of b, for either operand. Without one a gives its own elements, and b its own. nvcc makes `vabsdiff2/4` of its SIMD
intrinsics; the others come from inline assembly. Hardware since Maxwell has none of them but `vabsdiff4`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.ops.video import COMPARISONS, WORDS, as_it_is, clamp, compare, limits
from ptx.isa import Cost, vec
from ptx.record import Vector
from ptx.types import is_signed

Fn = Callable[..., Any]

_LETTER = {2: "h", 4: "b"}
_SINCE = ((3, 0), 30)


def _selectors(count: int) -> dict[str, tuple[str, ...]]:
    """The parts that d, a and b may name."""
    letter, numbers = _LETTER[count], [str(i) for i in range(count)]
    sources = ("", *(letter + "".join(p) for p in product([str(i) for i in range(2 * count)], repeat=count)))
    masks = tuple(letter + "".join(n for n in reversed(numbers) if m >> int(n) & 1) for m in range(1, 1 << count))
    return {"d": ("", *masks), "a": sources, "b": sources}


_PARTS = {count: _selectors(count) for count in (2, 4)}


def _indices(part: str, default: range) -> list[int]:
    """The elements that a selector names, the lowest first."""
    return [int(n) for n in reversed(part[1:])] or list(default)


def _elements(k: Kit, bits: int, type: str, indices: Sequence[int]) -> Fn:
    """(a, b) -> the chosen elements as signed numbers of 32 bits."""
    shl, shr, count = k.shl(32), (k.shr_s if is_signed(type) else k.shr_u)(32), 32 // bits
    down = k.const(32, 32 - bits)
    ups = [k.const(32, 32 - bits * (i % count + 1)) for i in indices]
    return lambda *words: [shr(shl(words[i // count], up), down) for i, up in zip(indices, ups, strict=True)]


def _gather(k: Kit, bits: int, chosen: Sequence[int], add: bool) -> Fn:
    """(results[, c]) -> d: the chosen ones in the place of those of c, or added to it."""
    plus, or_, shl, and_, mask = k.add(32), k.or_(32), k.shl(32), k.and_(32), (1 << bits) - 1
    kept = k.const(32, ~sum(mask << bits * i for i in chosen))

    def total(results: Sequence[Any], c: Any) -> Any:
        for i in chosen:
            c = plus(c, results[i])
        return c

    def packed(results: Sequence[Any], c: Any) -> Any:
        out = and_(c, kept)
        for i in chosen:
            out = or_(out, shl(and_(results[i], k.const(32, mask)), k.const(32, bits * i)))
        return out

    return total if add else packed


def _operation(k: Kit, name: str) -> Fn:
    """The operation on two elements, as signed numbers of 32 bits."""
    add, sub, less, select = k.add(32), k.sub(32), k.lt_s(32), k.select(32)
    zero, one, shr = k.const(32, 0), k.const(32, 1), k.shr_s(32)
    if name == "vadd":
        return add
    if name == "vsub":
        return sub
    if name == "vabsdiff":
        return lambda a, b: select(less(a, b), sub(b, a), sub(a, b))
    if name == "vmin":
        return lambda a, b: select(less(a, b), a, b)
    if name == "vmax":
        return lambda a, b: select(less(b, a), a, b)

    def average(a: Any, b: Any) -> Any:
        both = add(a, b)
        return shr(select(less(both, zero), both, add(both, one)), one)

    return average


def _declare(name: str, count: int, doc: str, examples: list[Vector]) -> None:
    bits = 32 // count

    @isa.op(f"{name}{count}.dtype.atype.btype{{.sat}}{{.add}} d, a, b, c", dtype=WORDS, atype=WORDS, btype=WORDS,
            types={"d": "dtype", "a": "atype", "b": "btype", "c": "dtype"}, parts=_PARTS[count], cost=Cost.INT,
            ref=f"simd-video-instructions-vadd{count}-vsub{count}-vavrg{count}-vabsdiff{count}-vmin{count}-vmax{count}",
            since=_SINCE, vectors=examples,
            constraint=lambda sat, add, **_: "'.sat' and '.add' exclude each other" if sat and add else None)
    def meaning(k: Kit, dtype: str, atype: str, btype: str, sat: bool, add: bool, d_part: str, a_part: str,
                b_part: str) -> Any:
        first = _elements(k, bits, atype, _indices(a_part, range(count)))
        second = _elements(k, bits, btype, _indices(b_part, range(count, 2 * count)))
        operation, gather = _operation(k, name), _gather(k, bits, _indices(d_part, range(count)), add)
        cut = clamp(k, 32, *limits(dtype, bits)) if sat else as_it_is

        def run(a: Any, b: Any, c: Any) -> Any:
            pairs = zip(first(a, b), second(a, b), strict=True)
            return gather([cut(operation(x, y)) for x, y in pairs], c)

        return run

    meaning.__name__, meaning.__doc__ = f"{name}{count}", f"d = {doc} of {count} elements, or with .add their sum and c"


_declare("vadd", 4, "a + b", [
    vec(".u32.u32.u32", 0x01FF_0310, 0x0202_0530, 7, d=0x0301_0840, why="wraps in its byte"),
    vec(".s32.s32.s32.sat d.b30", 0x7F00_0080, 0x0100_00FF, 0x1111_1111, d=0x7F11_1180, why="clamps; two are of c")])
_declare("vsub", 4, "a - b", [
    vec(".u32.u32.u32.sat", 0x0105_0010, 0x0204_0020, 0, d=0x0001_0000, why="clamps at 0"),
    vec(".s32.u32.u32.add", 0x0105_0010, 0x0204_0020, 100, d=100 - 1 + 1 - 16, why="adds the differences to c")])
_declare("vavrg", 4, "the average, rounded away from 0,", [
    vec(".u32.u32.u32", 0x0102_FF00, 0x0203_FF00, 0, d=0x0203_FF00, why="halves go up"),
    vec(".s32.s32.s32", 0xFF00_0000, 0x0000_0000, 0, d=0xFF00_0000, why="-1/2 is -1")])
_declare("vabsdiff", 4, "|a - b|", [
    vec(".u32.u32.u32", 0x01FF_0310, 0x0200_0530, 7, d=0x01FF_0220, why="byte by byte"),
    vec(".u32.u32.u32.add", 0x01FF_0310, 0x0200_0530, 7, d=0x01 + 0xFF + 0x02 + 0x20 + 7, why="summed up"),
    vec(".s32.s32.s32.sat", 0x8000_0000, 0x7F00_0000, 0, d=0x7F00_0000, why="clamps"),
    vec(".u32.u32.u32 a.b0000 b.b7776", 0x05, 0x0900_0000, 0, d=0x0404_0405, why="elements of either register")])
_declare("vmin", 4, "the smaller", [
    vec(".s32.s32.s32", 0xFF01_0203, 0x0100_0303, 0, d=0xFF00_0203, why="signed"),
    vec(".u32.u32.u32 d.b1", 0xFF01_0203, 0x0100_0103, 0xAAAA_AAAA, d=0xAAAA_01AA, why="one byte, the rest of c")])
_declare("vmax", 4, "the larger", [
    vec(".u32.u32.u32", 0xFF01_0203, 0x0100_0303, 0, d=0xFF01_0303, why="unsigned")])
_declare("vadd", 2, "a + b", [
    vec(".u32.u32.u32", 0x0001_FFFF, 0x0002_0001, 0, d=0x0003_0000, why="wraps in its half"),
    vec(".s32.s32.s32.sat a.h01", 0x7FFF_0001, 0x0002_0001, 0, d=0x0003_7FFF, why="exchanged, and clamps")])
_declare("vsub", 2, "a - b", [
    vec(".s32.u32.u32", 0x0001_0000, 0x0002_0001, 0, d=0xFFFF_FFFF, why="half by half")])
_declare("vavrg", 2, "the average, rounded away from 0,", [
    vec(".s32.s32.s32", 0x0001_FFFE, 0x0002_FFFF, 0, d=0x0002_FFFE, why="3/2 is 2, -3/2 is -2")])
_declare("vabsdiff", 2, "|a - b|", [
    vec(".u32.u32.u32", 0x0001_FFFF, 0x0002_0001, 0, d=0x0001_FFFE, why="half by half")])
_declare("vmin", 2, "the smaller", [
    vec(".s32.s32.s32 d.h0", 0x0001_FFFF, 0x0002_0001, 0x1234_5678, d=0x1234_FFFF, why="signed; the rest is of c")])
_declare("vmax", 2, "the larger", [
    vec(".s32.s32.s32.add", 0x0001_FFFF, 0x0002_0001, 10, d=13, why="2 + 1 + 10")])


def _declare_set(count: int, examples: list[Vector]) -> None:
    bits = 32 // count

    @isa.op(f"vset{count}.atype.btype.cmp{{.add}} d, a, b, c", atype=WORDS, btype=WORDS, cmp=COMPARISONS,
            types={"d": "u32", "a": "atype", "b": "btype", "c": "u32"}, parts=_PARTS[count], cost=Cost.INT,
            ref=f"simd-video-instructions-vset{count}", since=_SINCE, vectors=examples)
    def meaning(k: Kit, atype: str, btype: str, cmp: str, add: bool, d_part: str, a_part: str, b_part: str) -> Any:
        first = _elements(k, bits, atype, _indices(a_part, range(count)))
        second = _elements(k, bits, btype, _indices(b_part, range(count, 2 * count)))
        test, widen, gather = compare(k, 32, cmp), k.zext(1, 32), _gather(k, bits, _indices(d_part, range(count)), add)

        def run(a: Any, b: Any, c: Any) -> Any:
            pairs = zip(first(a, b), second(a, b), strict=True)
            return gather([widen(test(x, y)) for x, y in pairs], c)

        return run

    meaning.__name__ = f"vset{count}"
    meaning.__doc__ = f"d = 1 or 0 in each of {count} elements as the comparison holds, or with .add their sum and c"


_declare_set(4, [vec(".s32.u32.lt", 0xFF01_0203, 0x0000_0303, 0, d=0x0100_0100, why="byte by byte"),
                 vec(".u32.u32.eq.add", 0x0101_0101, 0x0101_0001, 40, d=43, why="counts")])
_declare_set(2, [vec(".u32.u32.ne d.h1", 0x0001_0001, 0x0002_0001, 0x7777_7777, d=0x0001_7777, why="one half")])
