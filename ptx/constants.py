"""Constant expressions (PTX ISA 4.5): integers of 64 bits, doubles, and addresses of variables plus a number.

An integer is signed unless it is written with `U` or has its top bit set; an operator with an unsigned operand
computes unsigned, a shift takes the type of its left operand, and comparisons give 0 or 1. Integers and doubles do not
mix. A symbol may only have a number added behind it, and `generic(...)` holds a symbol alone. So ptxas 13.4 has it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from ptx.errors import InvalidInput, Unsupported
from ptx.syntax import Expr, integer

_U64 = (1 << 64) - 1
_TOP = 1 << 63


class Unsigned(int):
    """An integer of the type `.u64`; a plain `int` here is `.s64`."""


class Address(NamedTuple):
    """The value of an expression that names a variable or function."""

    symbol: str
    addend: int
    generic: bool
    mask: int | None = None


def evaluate(e: Expr) -> int | float | Address:
    """A constant expression's value: an integer, a double, or an address plus a constant. Raises InvalidInput, and
    Unsupported for an expression that is nested too deeply for Python."""
    try:
        return _value(e)
    except RecursionError:
        raise Unsupported("a constant expression with hundreds of operations inside each other") from None


def _value(e: Expr) -> int | float | Address:
    match e.op:
        case "number":
            return number(str(e.args[0]))
        case "symbol":
            return 32 if e.args[0] == "WARP_SZ" else Address(str(e.args[0]), 0, False)
        case "generic":
            if e.args[0] != "generic":
                raise InvalidInput(f"`{e.args[0]}(…)` in an initialiser; only generic(…) is known")
            inner = _value(e.args[1])
            if not isinstance(inner, Address) or e.args[1].op != "symbol":
                raise InvalidInput("generic(…) takes the name of a variable")
            return inner._replace(generic=True)
        case "mask":
            inner = _value(e.args[1])
            if not isinstance(inner, Address):
                raise InvalidInput(f"{e.args[0]}(…) takes the name of a variable")
            return inner._replace(mask=integer(str(e.args[0])))
        case "cast":
            return _cast(str(e.args[0]), _value(e.args[1]))
        case "?":
            chosen = _value(e.args[0])
            if not isinstance(chosen, int):
                raise InvalidInput("the condition of `?:` is an integer")
            return _value(e.args[1] if chosen else e.args[2])
    args = [_value(a) for a in e.args]
    if any(isinstance(a, Address) for a in args):
        return _address_sum(e, args)
    if len(args) == 1:
        return _unary(e.op, args[0])  # type: ignore[arg-type]
    if isinstance(args[0], float) is not isinstance(args[1], float):
        raise InvalidInput(f"`{e.op}` between an integer and a floating-point number")
    return _binary(e.op, args[0], args[1])  # type: ignore[arg-type]


def number(text: str) -> int | float:
    """The value of a literal: an integer, or a double for a decimal fraction, `0f…` and `0d…`."""
    prefix = text[:2].lower()
    if prefix == "0f" or prefix == "0d":
        bits = bytes.fromhex(text[2:])
        return float(struct.unpack(">f" if prefix == "0f" else ">d", bits)[0])
    if "." in text or (prefix != "0x" and "e" in text.lower()):
        return float(text)
    value = integer(text)
    return Unsigned(value) if text[-1] in "uU" or value >= _TOP else value


def _wrapped(value: int, unsigned: bool) -> int:
    value &= _U64
    return Unsigned(value) if unsigned else value - (1 << 64) if value & _TOP else value


def _cast(word: str, value: Any) -> int:
    if not isinstance(value, int) or word not in (".s64", ".u64"):
        raise InvalidInput(f"cast ({word}) in a constant expression: an integer becomes .s64 or .u64")
    return _wrapped(value, word == ".u64")


def _address_sum(e: Expr, args: list[Any]) -> Address:
    if len(args) == 2 and isinstance(args[0], Address) and isinstance(args[1], int):
        base, sign = args[0], -1 if e.op == "-" else 1
        if e.op == "+" or (e.op == "-" and e.args[0].op == "+"):
            return base._replace(addend=_wrapped(base.addend + sign * args[1], False))
    raise InvalidInput(f"`{e.op}` on the address of a variable; only `symbol+number` is an address")


def _unary(op: str, a: int | float) -> int | float:
    if op == "+":
        return a
    if isinstance(a, float):
        if op != "-":
            raise InvalidInput(f"`{op}` of a floating-point number")
        return -a
    if op == "!":
        return int(not a)
    return _wrapped(-a if op == "-" else ~a, isinstance(a, Unsigned))


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
}  # fmt: skip
_FLOATING: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip
_INTEGER: dict[str, Callable[[int, int], int]] = {
    **_FLOATING, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip


def _binary(op: str, a: int | float, b: int | float) -> int | float:
    if isinstance(a, float) or isinstance(b, float):
        if op in _COMPARE and op not in ("&&", "||"):
            return int(_COMPARE[op](a, b))
        if op == "/":
            return a / b if b else a * float("inf")
        if op not in _FLOATING:
            raise InvalidInput(f"`{op}` between floating-point numbers")
        return float(_FLOATING[op](a, b))
    if op in ("<<", ">>"):
        shifted = int(a) << (int(b) & 63) if op == "<<" else int(a) >> (int(b) & 63)
        return _wrapped(shifted, isinstance(a, Unsigned))
    unsigned = isinstance(a, Unsigned) or isinstance(b, Unsigned)
    a, b = int(_wrapped(a, unsigned)), int(_wrapped(b, unsigned))
    if op in _COMPARE:
        return int(_COMPARE[op](a, b))
    if op in ("/", "%"):
        if b == 0:
            raise InvalidInput("division by zero in a constant expression")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # truncates, as C does
        return _wrapped(quotient if op == "/" else a - b * quotient, unsigned)
    return _wrapped(_INTEGER[op](a, b), unsigned)
