"""Video instructions (PTX ISA, 'Video Instructions'): the two that nvcc makes of its SIMD intrinsics.

Absolute differences of the bytes or halves of two words, packed, or with `.add` summed up. The assembler makes code of
them on every target of today. Their masks and selectors (`.b0`, `.h10`), and the other video instructions, are not
offered: no compiler emits them, and the manual advises against them.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.types import is_signed

_TYPES = {"d": "dtype", "a": "atype", "b": "btype", "c": "dtype"}
_WORDS = (".u32", ".s32")


def _differences(k: Kit, bits: int, dtype: str, atype: str, btype: str, sat: bool) -> list[Any]:
    """The functions of a and b that give the absolute difference of each part, as a 32-bit number."""
    shl, sub, lt, select, zero = k.shl(32), k.sub(32), k.lt_s(32), k.select(32), k.const(32, 0)
    most = (1 << bits - (1 if is_signed(dtype) else 0)) - 1
    largest, down = k.const(32, most), k.const(32, 32 - bits)

    def part(type: str, up: Any) -> Any:
        shr = (k.shr_s if is_signed(type) else k.shr_u)(32)
        return lambda word: shr(shl(word, up), down)

    def one(index: int) -> Any:
        up = k.const(32, 32 - bits * (index + 1))
        first, second = part(atype, up), part(btype, up)

        def difference(a: Any, b: Any) -> Any:
            out = sub(first(a), second(b))
            out = select(lt(out, zero), sub(zero, out), out)
            return select(lt(largest, out), largest, out) if sat else out

        return difference

    return [one(i) for i in range(32 // bits)]


def _declare(count: int, examples: list[Any]) -> None:
    bits = 32 // count

    @isa.op(f"vabsdiff{count}.dtype.atype.btype{{.sat}}{{.add}} d, a, b, c", dtype=_WORDS, atype=_WORDS, btype=_WORDS,
            types=_TYPES, cost=Cost.INT, ref="video-instructions-vabsdiff", since=((3, 0), 30), vectors=examples,
            constraint=lambda sat, add, **_: "'.sat' and '.add' exclude each other" if sat and add else None)
    def vabsdiff(k: Kit, dtype: str, atype: str, btype: str, sat: bool, add: bool) -> Any:
        parts = _differences(k, bits, dtype, atype, btype, sat)
        plus, or_, shl, and_, mask = k.add(32), k.or_(32), k.shl(32), k.and_(32), k.const(32, (1 << bits) - 1)

        def total(a: Any, b: Any, c: Any) -> Any:
            for part in parts:
                c = plus(c, part(a, b))
            return c

        def packed(a: Any, b: Any, c: Any) -> Any:
            out = k.const(32, 0)
            for i, part in enumerate(parts):
                out = or_(out, shl(and_(part(a, b), mask), k.const(32, bits * i)))
            return out

        return total if add else packed

    vabsdiff.__doc__ = f"d = |a - b| of {count} parts, packed, or with .add their sum plus c"


_declare(4, [vec(".u32.u32.u32", 0x01FF_0310, 0x0200_0530, 7, d=0x01FF_0220, why="byte by byte"),
             vec(".u32.u32.u32.add", 0x01FF_0310, 0x0200_0530, 7, d=0x01 + 0xFF + 0x02 + 0x20 + 7, why="summed up"),
             vec(".s32.s32.s32.sat", 0x8000_0000, 0x7F00_0000, 0, d=0x7F00_0000, why="clamps")])
_declare(2, [vec(".u32.u32.u32", 0x0001_FFFF, 0x0002_0001, 0, d=0x0001_FFFE, why="half by half")])
