"""Packed integers (PTX ISA, 'Integer Arithmetic Instructions': dp4a, dp2a and the 16x2 forms), and integer min and max
with `.relu`."""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.formats import each_half
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.types import is_signed

WORD32 = (".u32", ".s32")
PAIRS = (".u16x2", ".s16x2")


def _dot_types(atype: str, btype: str, **_: str) -> dict[str, str]:
    signed = "s32" if "s32" in (atype, btype) else "u32"
    return {"d": signed, "a": "b32", "b": "b32", "c": signed}


def _part(k: Kit, type: str, index: int, bits: int) -> Any:
    """The `index`-th part of `bits` bits of a word, extended by the type's sign."""
    up, down = k.const(32, 32 - bits * (index + 1)), k.const(32, 32 - bits)
    shl, shr = k.shl(32), (k.shr_s if is_signed(type) else k.shr_u)(32)
    return lambda a: shr(shl(a, up), down)


@isa.op(
    "dp4a.atype.btype d, a, b, c",
    atype=WORD32,
    btype=WORD32,
    types=_dot_types,
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-dp4a",
    since=((5, 0), 61),
    vectors=[vec(".u32.u32", 0x01020304, 0x01010101, 5, d=15, why="four byte products plus c")],
)
def dp4a(k: Kit, atype: str, btype: str) -> Any:
    """d = c + sum of the products of four bytes"""
    mul, add_ = k.mul(32), k.add(32)
    xs = [_part(k, atype, i, 8) for i in range(4)]
    ys = [_part(k, btype, i, 8) for i in range(4)]

    def dot(a: Any, b: Any, c: Any) -> Any:
        for x, y in zip(xs, ys, strict=True):
            c = add_(c, mul(x(a), y(b)))
        return c

    return dot


@isa.op(
    "dp2a.half.atype.btype d, a, b, c",
    half=(".lo", ".hi"),
    atype=WORD32,
    btype=WORD32,
    types=_dot_types,
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-dp2a",
    since=((5, 0), 61),
    vectors=[vec(".lo.u32.u32", 0x00020003, 0x0101, 5, d=10, why="two products of 16 by 8 bits plus c")],
)
def dp2a(k: Kit, half: str, atype: str, btype: str) -> Any:
    """d = c + a.lo * byte + a.hi * byte of the chosen half of b"""
    mul, add_, base = k.mul(32), k.add(32), 0 if half == "lo" else 2
    x0, x1 = _part(k, atype, 0, 16), _part(k, atype, 1, 16)
    y0, y1 = _part(k, btype, base, 8), _part(k, btype, base + 1, 8)
    return lambda a, b, c: add_(add_(c, mul(x0(a), y0(b))), mul(x1(a), y1(b)))


@isa.op(
    "add.type d, a, b",
    type=PAIRS,
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-add",
    since=((8, 0), 90),
    vectors=[vec(".u16x2", 0x0001_FFFF, 0x0001_0001, d=0x0002_0000, why="no carry between the halves")],
)
def add_pair(k: Kit, type: str) -> Any:
    """d = a + b, half by half"""
    return each_half(k, k.add(16))


def _extreme(k: Kit, n: int, signed: bool, largest: bool, relu: bool = False) -> Any:
    lt, select, zero, negative = (k.lt_s if signed else k.lt_u)(n), k.select(n), k.const(n, 0), k.lt_s(n)

    def choose(a: Any, b: Any) -> Any:
        out = select(lt(a, b), b, a) if largest else select(lt(b, a), b, a)
        return select(negative(out, zero), zero, out) if relu else out

    return choose


@isa.op(
    "min.type d, a, b",
    type=PAIRS,
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-min",
    since=((8, 0), 90),
    vectors=[vec(".s16x2", 0x0001_FFFF, 0xFFFF_0001, d=0xFFFF_FFFF, why="signed halves")],
)
def min_pair(k: Kit, type: str) -> Any:
    """d = the smaller of a and b, half by half"""
    return each_half(k, _extreme(k, 16, type[0] == "s", False))


@isa.op(
    "max.type d, a, b",
    type=PAIRS,
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-max",
    since=((8, 0), 90),
    vectors=[vec(".u16x2", 0x0001_FFFF, 0xFFFF_0001, d=0xFFFF_FFFF, why="unsigned halves")],
)
def max_pair(k: Kit, type: str) -> Any:
    """d = the larger of a and b, half by half"""
    return each_half(k, _extreme(k, 16, type[0] == "s", True))


def _with_relu(k: Kit, type: str, largest: bool) -> Any:
    pair = type == "s16x2"
    one = _extreme(k, 16 if pair else 32, True, largest, True)
    return each_half(k, one) if pair else one


@isa.op(
    "min.relu.type d, a, b",
    type=(".s16x2", ".s32"),
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-min",
    since=((8, 0), 90),
    vectors=[
        vec(".relu.s32", 5, 0xFFFF_FFFF, d=0, why="negative to 0"),
        vec(".relu.s16x2", 0x0005_0005, 0x0003_FFFF, d=0x0003_0000, why="each half"),
    ],
)
def min_relu(k: Kit, type: str) -> Any:
    """d = the smaller of a and b, 0 if that is negative"""
    return _with_relu(k, type, False)


@isa.op(
    "max.relu.type d, a, b",
    type=(".s16x2", ".s32"),
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-max",
    since=((8, 0), 90),
    vectors=[vec(".relu.s32", 0xFFFF_FFFE, 0xFFFF_FFFF, d=0, why="negative to 0")],
)
def max_relu(k: Kit, type: str) -> Any:
    """d = the larger of a and b, 0 if that is negative"""
    return _with_relu(k, type, True)
