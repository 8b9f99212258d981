"""Logic and shifts (PTX ISA, 'Logic and Shift Instructions')."""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.types import is_signed, width

BITS = (".pred", ".b16", ".b32", ".b64")


@isa.op("and.type d, a, b", type=BITS, cost=Cost.INT, ref="logic-and-shift-instructions-and",
        vectors=[vec(".b32", 0xFF0, 0x0FF, d=0x0F0, why="bitwise")])
def and_(k: Kit, type: str) -> Any:
    """d = a & b"""
    return k.and_(width(type))


@isa.op("or.type d, a, b", type=BITS, cost=Cost.INT, ref="logic-and-shift-instructions-or",
        vectors=[vec(".b32", 0xF00, 0x00F, d=0xF0F, why="bitwise")])
def or_(k: Kit, type: str) -> Any:
    """d = a | b"""
    return k.or_(width(type))


@isa.op("xor.type d, a, b", type=BITS, cost=Cost.INT, ref="logic-and-shift-instructions-xor",
        vectors=[vec(".b32", 0xFF, 0x0F, d=0xF0, why="bitwise")])
def xor(k: Kit, type: str) -> Any:
    """d = a ^ b"""
    return k.xor(width(type))


@isa.op("not.type d, a", type=BITS, cost=Cost.INT, ref="logic-and-shift-instructions-not",
        vectors=[vec(".b32", 0, d=0xFFFF_FFFF, why="all bits"), vec(".pred", 1, d=0, why="a predicate has one bit")])
def not_(k: Kit, type: str) -> Any:
    """d = ~a"""
    return k.not_(width(type))


@isa.op("cnot.type d, a", type=(".b16", ".b32", ".b64"), cost=Cost.INT, ref="logic-and-shift-instructions-cnot",
        vectors=[vec(".b32", 0, d=1, why="logical negation"), vec(".b32", 7, d=0, why="logical negation")])
def cnot(k: Kit, type: str) -> Any:
    """d = (a == 0) ? 1 : 0"""
    n = width(type)
    eq, select, zero, one = k.eq(n), k.select(n), k.const(n, 0), k.const(n, 1)
    return lambda a: select(eq(a, zero), one, zero)


@isa.op("lop3.b32 d, a, b, c, #lut", types=dict.fromkeys("dabc", "b32"), cost=Cost.INT,
        ref="logic-and-shift-instructions-lop3", since=((4, 3), 50),
        vectors=[vec(".b32", 0b1100, 0b1010, 0b1001, 0xE8, d=0b1000, why="majority")])
def lop3(k: Kit, lut: int) -> Any:
    """d = the Boolean function of a, b, c whose truth table is the immediate"""
    and__, or__, not__ = k.and_(32), k.or_(32), k.not_(32)

    def function(a: Any, b: Any, c: Any) -> Any:
        out = k.const(32, 0)
        for row in range(8):
            if lut >> row & 1:
                x = a if row & 4 else not__(a)
                y = b if row & 2 else not__(b)
                z = c if row & 1 else not__(c)
                out = or__(out, and__(and__(x, y), z))
        return out

    return function


@isa.op("lop3.bool.b32 d|p, a, b, c, #lut, q", bool=(".and", ".or"), writes=("d", "p"),
        discards=("d",), types={**dict.fromkeys("dabc", "b32"), "p": "pred", "q": "pred"}, cost=Cost.INT,
        ref="logic-and-shift-instructions-lop3", since=((8, 2), 70),
        vectors=[vec(".and.b32", 0b1100, 0b1010, 0b1001, 1, 0xE8, d=(0b1000, 1), why="p says whether a bit is set"),
                 vec(".or.b32", 0, 0, 0, 1, 0x80, d=(0, 1), why="or whether q is"),
                 vec(".and.b32", 1, 1, 1, 0, 0x80, d=(1, 0), why="and q")])
def lop3_bool(k: Kit, bool: str, lut: int) -> Any:
    """d = the Boolean function of a, b, c; p = (d != 0) op q"""
    function, ne, zero = lop3(k, lut), k.ne(32), k.const(32, 0)
    combine = (k.and_ if bool == "and" else k.or_)(1)

    def run(a: Any, b: Any, c: Any, q: Any) -> tuple[Any, Any]:
        d = function(a, b, c)
        return d, combine(ne(d, zero), q)

    return run


def _shift_types(type: str) -> dict[str, str]:
    return {"d": type, "a": type, "b": "u32"}


def _amount(k: Kit, n: int) -> Any:
    """The 32-bit shift amount as a word of n bits, clamped so that no large amount wraps into a small one."""
    if n >= 32:
        return k.zext(32, n)
    lt, select, top, trunc = k.lt_u(32), k.select(32), k.const(32, n), k.trunc(32, n)
    return lambda b: trunc(select(lt(b, top), b, top))


@isa.op("shl.type d, a, b", type=(".b16", ".b32", ".b64"), types=_shift_types, cost=Cost.INT,
        ref="logic-and-shift-instructions-shl",
        vectors=[vec(".b32", 1, 31, d=0x8000_0000, why="shifts"),
                 vec(".b32", 1, 32, d=0, why="amounts above the width clamp")])
def shl(k: Kit, type: str) -> Any:
    """d = a << b, amounts above the width clamp to it"""
    n = width(type)
    op, amount = k.shl(n), _amount(k, n)
    return lambda a, b: op(a, amount(b))


@isa.op("shr.type d, a, b", type=(".b16", ".b32", ".b64", ".u16", ".u32", ".u64", ".s16", ".s32", ".s64"),
        types=_shift_types, cost=Cost.INT, ref="logic-and-shift-instructions-shr",
        vectors=[vec(".s32", 0x8000_0000, 40, d=0xFFFF_FFFF, why="signed, clamps"),
                 vec(".u32", 0x8000_0000, 31, d=1, why="zero fill")])
def shr(k: Kit, type: str) -> Any:
    """d = a >> b, sign fill for signed types, amounts above the width clamp to it"""
    n = width(type)
    op, amount = (k.shr_s if is_signed(type) else k.shr_u)(n), _amount(k, n)
    return lambda a, b: op(a, amount(b))


@isa.op("shf.dir.mode.b32 d, a, b, c", dir=(".l", ".r"), mode=(".clamp", ".wrap"),
        types={"d": "b32", "a": "b32", "b": "b32", "c": "u32"}, cost=Cost.INT,
        ref="logic-and-shift-instructions-shf", since=((3, 1), 32),
        vectors=[vec(".l.wrap.b32", 0x8000_0000, 1, 1, d=3, why="funnel left keeps the upper word"),
                 vec(".r.wrap.b32", 0x8000_0000, 1, 4, d=0x1800_0000, why="funnel right keeps the lower word")])
def shf(k: Kit, dir: str, mode: str) -> Any:
    """d = upper word of [b:a] << c, or lower word of [b:a] >> c; c modulo 32 or clamped to 32"""
    up, low = k.zext(32, 64), k.trunc(64, 32)
    shl_, shr_, or__, and__ = k.shl(64), k.shr_u(64), k.or_(64), k.and_(32)
    lt, select, size = k.lt_u(32), k.select(32), k.const(32, 32)
    n32 = k.const(64, 32)

    def funnel(a: Any, b: Any, c: Any) -> Any:
        amount = and__(c, k.const(32, 31)) if mode == "wrap" else select(lt(c, size), c, size)
        pair = or__(shl_(up(b), n32), up(a))
        return low(shr_(shl_(pair, up(amount)), n32)) if dir == "l" else low(shr_(pair, up(amount)))

    return funnel
