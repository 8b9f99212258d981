"""Scalar functions applied to each lane: what is too bulky to emit in line, one native loop of 32 a function.

A lane function is a numba scalar function on unsigned words (`interp.special`, `interp.formats`) plus the widths of its
operands and results. The compiled engine calls the loop by its symbol; the exact kit calls the scalar as plain Python.
The last three arguments of a loop are parameters of the form, such as a rounding mode; a scalar takes those it needs.
Operand vectors stand one after the other, each 32 words of its width; so do results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from interp.runtime.native import LANE_SIGNATURE, symbol
from interp.runtime.raw import load_u16, load_u32, native_inline, store_u16, store_u32, u16, u32
from ptx.errors import InternalError


@dataclass(frozen=True, eq=False)
class LaneFunction:
    """`symbol`: name of the native loop. `operands`, `results`: widths in bits. `python`: the scalar, uncompiled."""

    symbol: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    python: Callable[..., Any]


LANE_FUNCTIONS: dict[str, LaneFunction] = {}


def lane(
    name: str, operands: tuple[int, ...], result: int, scalar: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a lane function; the decorated function is its loop."""

    def declare(loop: Callable[..., Any]) -> Callable[..., Any]:
        if name in LANE_FUNCTIONS:
            raise InternalError(f"lane function {name} is declared twice")
        LANE_FUNCTIONS[name] = LaneFunction(f"lane_{name}", operands, (result,), getattr(scalar, "py_func", scalar))
        return symbol(f"lane_{name}", LANE_SIGNATURE)(loop)

    return declare


@native_inline
def each_32(function: Callable[..., Any], results: int, operands: int) -> None:
    """results[lane] = function(operands[lane]), 32-bit words."""
    for i in range(32):
        store_u32(results + 4 * i, u32(function(load_u32(operands + 4 * i))))


@native_inline
def each_16(function: Callable[..., Any], results: int, operands: int) -> None:
    """results[lane] = function(operands[lane]), 16-bit words."""
    for i in range(32):
        store_u16(results + 2 * i, u16(function(load_u16(operands + 2 * i))))


@native_inline
def pairs_32(function: Callable[..., Any], results: int, operands: int) -> None:
    """results[lane] = function(first[lane], second[lane]), 32-bit words."""
    for i in range(32):
        store_u32(results + 4 * i, u32(function(load_u32(operands + 4 * i), load_u32(operands + 128 + 4 * i))))
