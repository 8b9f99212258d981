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
QUADS = (".u8x4", ".s8x4")
RELU = (".relu.s16x2", ".relu.s32", ".s16x2.relu", ".s32.relu")
"""The headers of CUDA write `.relu` behind the type, and the assembler takes it."""


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


def _relu_types(type: str) -> dict[str, str]:
    return dict.fromkeys("dab", "s16x2" if "s16x2" in type else "s32")


def _with_relu(k: Kit, type: str, largest: bool) -> Any:
    pair = "s16x2" in type
    one = _extreme(k, 16 if pair else 32, True, largest, True)
    return each_half(k, one) if pair else one


@isa.op(
    "min.type d, a, b",
    type=RELU,
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-min",
    since=((8, 0), 90),
    types=_relu_types,
    vectors=[
        vec(".relu.s32", 5, 0xFFFF_FFFF, d=0, why="negative to 0"),
        vec(".relu.s16x2", 0x0005_0005, 0x0003_FFFF, d=0x0003_0000, why="each half"),
    ],
)
def min_relu(k: Kit, type: str) -> Any:
    """d = the smaller of a and b, 0 if that is negative"""
    return _with_relu(k, type, False)


@isa.op(
    "max.type d, a, b",
    type=RELU,
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-max",
    since=((8, 0), 90),
    types=_relu_types,
    vectors=[vec(".relu.s32", 0xFFFF_FFFE, 0xFFFF_FFFF, d=0, why="negative to 0")],
)
def max_relu(k: Kit, type: str) -> Any:
    """d = the larger of a and b, 0 if that is negative"""
    return _with_relu(k, type, True)


# ------------------------------------------------------------------------------------------------ sm_120
def _saturating(k: Kit, n: int, signed: bool, name: str) -> Any:
    """add or sub of n-bit words, clamped: through twice the width."""
    wide, cut, op = (k.sext if signed else k.zext)(n, 2 * n), k.trunc(2 * n, n), getattr(k, name)(2 * n)
    low, high = (-(1 << n - 1), (1 << n - 1) - 1) if signed else (0, (1 << n) - 1)
    lt, select, least, most = k.lt_s(2 * n), k.select(2 * n), k.const(2 * n, low), k.const(2 * n, high)

    def run(a: Any, b: Any) -> Any:
        out = op(wide(a), wide(b))
        out = select(lt(out, least), least, out)
        return cut(select(lt(most, out), most, out))

    return run


def _each_byte(k: Kit, op: Any) -> Any:
    """`op` on the four bytes of 32-bit words."""
    low, up, shr, shl, or_ = k.trunc(32, 8), k.zext(8, 32), k.shr_u(32), k.shl(32), k.or_(32)

    def run(*words: Any) -> Any:
        out = up(op(*(low(w) for w in words)))
        for i in (8, 16, 24):
            out = or_(out, shl(up(op(*(low(shr(w, k.const(32, i))) for w in words))), k.const(32, i)))
        return out

    return run


def _declare_quads(name: str, example: Any, saturated: Any) -> None:
    @isa.op(
        f"{name}{{.sat}}.type d, a, b",
        type=QUADS,
        cost=Cost.INT,
        ref=f"integer-arithmetic-instructions-{name}",
        since=((9, 2), 120),
        only=("120f",),
        vectors=[example, saturated],
    )
    def quad(k: Kit, sat: bool, type: str) -> Any:
        return _each_byte(k, _saturating(k, 8, type[0] == "s", name) if sat else getattr(k, name)(8))

    quad.__doc__ = f"d = a {'+' if name == 'add' else '-'} b, byte by byte, wrapping or clamped"


_declare_quads(
    "add",
    vec(".u8x4", 0x01FF_807F, 0x0101_8001, d=0x0200_0080, why="no carry between the bytes"),
    vec(".sat.s8x4", 0x7F80_01FF, 0x01FF_0101, d=0x7F80_0200, why="clamps"),
)
_declare_quads(
    "sub",
    vec(".u8x4", 0x0100_807F, 0x0101_8001, d=0x00FF_007E, why="no borrow between the bytes"),
    vec(".sat.u8x4", 0x0100_807F, 0x0201_8001, d=0x0000_007E, why="clamps at 0"),
)


@isa.op(
    "add.sat.type d, a, b",
    type=(*PAIRS, ".u32"),
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-add",
    since=((9, 2), 120),
        only=("120f",),
    vectors=[
        vec(".sat.u16x2", 0xFFFF_0001, 0x0001_0001, d=0xFFFF_0002, why="half by half"),
        vec(".sat.u32", 0xFFFF_FFFF, 2, d=0xFFFF_FFFF, why="clamps"),
    ],
)
def add_saturated(k: Kit, type: str) -> Any:
    """d = a + b, clamped to the range of the type"""
    if type == "u32":
        return _saturating(k, 32, False, "add")
    return each_half(k, _saturating(k, 16, type[0] == "s", "add"))


def _declare_quad_extreme(name: str, example: Any) -> None:
    @isa.op(
        f"{name}{{.relu}}.type d, a, b",
        type=QUADS,
        constraint=lambda relu, type: "'.relu' needs a signed type" if relu and type[0] == "u" else None,
        cost=Cost.INT,
        ref=f"integer-arithmetic-instructions-{name}",
        since=((9, 2), 120),
        only=("120f",),
        vectors=[example],
    )
    def quad(k: Kit, relu: bool, type: str) -> Any:
        return _each_byte(k, _extreme(k, 8, type[0] == "s", name == "max", relu))

    quad.__doc__ = f"d = the {'larger' if name == 'max' else 'smaller'} of a and b, byte by byte, with .relu at least 0"


_declare_quad_extreme("min", vec(".relu.s8x4", 0x01FF_057F, 0x02FF_FF01, d=0x0100_0001, why="negative to 0"))
_declare_quad_extreme("max", vec(".u8x4", 0x01FF_057F, 0x02FF_FF01, d=0x02FF_FF7F, why="unsigned bytes"))


@isa.op(
    "neg.s8x4 d, a",
    types=dict.fromkeys("da", "s8x4"),
    cost=Cost.INT,
    ref="integer-arithmetic-instructions-neg",
    since=((9, 2), 120),
        only=("120f",),
    vectors=[vec(".s8x4", 0x0180_00FF, d=0xFF80_0001, why="byte by byte")],
)
def neg_quad(k: Kit) -> Any:
    """d = -a, byte by byte"""
    sub, zero = k.sub(8), k.const(8, 0)
    return _each_byte(k, lambda a: sub(zero, a))
