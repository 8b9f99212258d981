"""Extended-precision integer arithmetic (PTX ISA, chapter of that name): add, sub and mad with a carry flag.

The flag is an operand here (`ptx.carry`): the second destination of the forms with `.cc`, the last source of addc,
subc and madc. The manual calls it the borrow after a subtraction; hardware keeps the carry of a + ~b + 1, which is set
where nothing is borrowed (assembled code of sm_90; an H200). It shows where the two kinds are mixed: `sub.cc` then
`addc` adds 1 when nothing was borrowed, `add.cc` then `subc` takes 1 away when nothing was carried.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.types import is_signed, width

TYPES = (".u32", ".s32", ".u64", ".s64")
_REF = "extended-precision-arithmetic-instructions-"
_FLAGS = {"carry": "pred", "flag": "pred"}


def _widen(k: Kit, n: int) -> Any:
    """flag -> 1 or 0"""
    select, one, zero = k.select(n), k.const(n, 1), k.const(n, 0)
    return lambda flag: select(flag, one, zero)


def _adder(k: Kit, n: int) -> Any:
    """(a, b, carry in or None) -> (sum, carry out)"""
    add, lt, or_, widen = k.add(n), k.lt_u(n), k.or_(1), _widen(k, n)

    def total(a: Any, b: Any, flag: Any = None) -> tuple[Any, Any]:
        first = add(a, b)
        carry = lt(first, a)
        if flag is None:
            return first, carry
        second = add(first, widen(flag))
        return second, or_(carry, lt(second, first))

    return total


def _subtractor(k: Kit, n: int) -> Any:
    """(a, b, carry in or None) -> (difference, carry out): a carry is no borrow"""
    sub, lt, or_, not_, widen = k.sub(n), k.lt_u(n), k.or_(1), k.not_(1), _widen(k, n)

    def difference(a: Any, b: Any, flag: Any = None) -> tuple[Any, Any]:
        first = sub(a, b)
        borrow = lt(a, b)
        if flag is None:
            return first, not_(borrow)
        second = sub(first, widen(not_(flag)))
        return second, not_(or_(borrow, lt(first, second)))

    return difference


def _half(k: Kit, half: str, type: str) -> Any:
    n = width(type)
    return k.mul(n) if half == "lo" else (k.mulhi_s(n) if is_signed(type) else k.mulhi_u(n))


@isa.op(
    "add.cc.type d|carry, a, b",
    type=TYPES,
    types=_FLAGS,
    writes=("d", "carry"),
    cost=Cost.INT,
    ref=_REF + "add-cc",
    vectors=[
        vec(".cc.u32", 0xFFFFFFFF, 2, d=(1, 1), why="carries out"),
        vec(".cc.u64", 5, 6, d=(11, 0), why="does not"),
    ],
)
def add_cc(k: Kit, type: str) -> Any:
    """d = a + b, carry = it wrapped"""
    return _adder(k, width(type))


@isa.op(
    "addc.type d, a, b, flag",
    type=TYPES,
    types=_FLAGS,
    cost=Cost.INT,
    ref=_REF + "addc",
    vectors=[vec(".u32", 0xFFFFFFFF, 2, 1, d=2, why="adds the carry and wraps")],
)
def addc(k: Kit, type: str) -> Any:
    """d = a + b + flag"""
    total = _adder(k, width(type))
    return lambda a, b, flag: total(a, b, flag)[0]


@isa.op(
    "addc.cc.type d|carry, a, b, flag",
    type=TYPES,
    types=_FLAGS,
    writes=("d", "carry"),
    cost=Cost.INT,
    ref=_REF + "addc",
    vectors=[
        vec(".cc.u32", 0xFFFFFFFF, 0, 1, d=(0, 1), why="the carry alone may carry out"),
        vec(".cc.u32", 0xFFFFFFFF, 0xFFFFFFFF, 1, d=(0xFFFFFFFF, 1), why="at most once"),
    ],
)
def addc_cc(k: Kit, type: str) -> Any:
    """d = a + b + flag, carry = it wrapped"""
    return _adder(k, width(type))


@isa.op(
    "sub.cc.type d|carry, a, b",
    type=TYPES,
    types=_FLAGS,
    writes=("d", "carry"),
    cost=Cost.INT,
    ref=_REF + "sub-cc",
    vectors=[vec(".cc.u32", 1, 2, d=(0xFFFFFFFF, 0), why="borrows, so there is no carry")],
)
def sub_cc(k: Kit, type: str) -> Any:
    """d = a - b, carry = nothing was borrowed"""
    return _subtractor(k, width(type))


@isa.op(
    "subc.type d, a, b, flag",
    type=TYPES,
    types=_FLAGS,
    cost=Cost.INT,
    ref=_REF + "subc",
    vectors=[vec(".u32", 5, 2, 0, d=2, why="subtracts the borrow"), vec(".u32", 5, 2, 1, d=3, why="none")],
)
def subc(k: Kit, type: str) -> Any:
    """d = a - (b + 1 - flag)"""
    difference = _subtractor(k, width(type))
    return lambda a, b, flag: difference(a, b, flag)[0]


@isa.op(
    "subc.cc.type d|carry, a, b, flag",
    type=TYPES,
    types=_FLAGS,
    writes=("d", "carry"),
    cost=Cost.INT,
    ref=_REF + "subc",
    vectors=[vec(".cc.u32", 0, 0, 0, d=(0xFFFFFFFF, 0), why="the borrow alone may borrow")],
)
def subc_cc(k: Kit, type: str) -> Any:
    """d = a - (b + 1 - flag), carry = nothing was borrowed"""
    return _subtractor(k, width(type))


@isa.op(
    "mad.half.cc.type d|carry, a, b, c",
    half=(".lo", ".hi"),
    type=TYPES,
    types=_FLAGS,
    writes=("d", "carry"),
    cost=Cost.INT,
    ref=_REF + "mad-cc",
    vectors=[
        vec(".lo.cc.u32", 0x10000, 0x10000, 7, d=(7, 0), why="low half"),
        vec(".hi.cc.u32", 0x10000, 0x10000, 0xFFFFFFFF, d=(0, 1), why="high half"),
    ],
)
def mad_cc(k: Kit, half: str, type: str) -> Any:
    """d = half of a * b, + c; carry = the sum wrapped"""
    product, total = _half(k, half, type), _adder(k, width(type))
    return lambda a, b, c: total(product(a, b), c)


@isa.op(
    "madc.half.type d, a, b, c, flag",
    half=(".lo", ".hi"),
    type=TYPES,
    types=_FLAGS,
    cost=Cost.INT,
    ref=_REF + "madc",
    vectors=[vec(".hi.u32", 0x10000, 0x30000, 4, 1, d=8, why="high half, sum and carry")],
)
def madc(k: Kit, half: str, type: str) -> Any:
    """d = half of a * b, + c + flag"""
    product, total = _half(k, half, type), _adder(k, width(type))
    return lambda a, b, c, flag: total(product(a, b), c, flag)[0]


@isa.op(
    "madc.half.cc.type d|carry, a, b, c, flag",
    half=(".lo", ".hi"),
    type=TYPES,
    types=_FLAGS,
    writes=("d", "carry"),
    cost=Cost.INT,
    ref=_REF + "madc",
    vectors=[vec(".hi.cc.s32", 0xFFFFFFFF, 1, 0, 1, d=(0, 1), why="the high half of a signed product is signed")],
)
def madc_cc(k: Kit, half: str, type: str) -> Any:
    """d = half of a * b, + c + flag; carry = the sum wrapped"""
    product, total = _half(k, half, type), _adder(k, width(type))
    return lambda a, b, c, flag: total(product(a, b), c, flag)
