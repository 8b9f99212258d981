"""Lane functions of arithmetic that the host has no instruction for: directed roundings of f32 and f64, bf16 product
and fma.

One loop serves the three directed modes of an operation: the first parameter is the mode
(`interp.formats.rounding.MODES`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from interp.formats import directed, fma64, halves, quotients, quotients64
from interp.runtime.lane import lane
from interp.runtime.raw import load_u16, load_u32, load_u64, native_inline, store_u16, store_u32, store_u64

SIGN32 = np.uint32(0x80000000)
SIGN64 = np.uint64(0x8000000000000000)
_ADD32: Any = directed.f32_add_directed
_ADD64: Any = directed.f64_add_directed


@native_inline
def _pairs_32(function: Callable[..., Any], results: int, operands: int, flip: Any, mode: int) -> None:
    for i in range(32):
        b = load_u32(operands + 128 + 4 * i) ^ flip
        store_u32(results + 4 * i, np.uint32(function(load_u32(operands + 4 * i), b, mode)))


@native_inline
def _pairs_64(function: Callable[..., Any], results: int, operands: int, flip: Any, mode: int) -> None:
    for i in range(32):
        b = load_u64(operands + 256 + 8 * i) ^ flip
        store_u64(results + 8 * i, np.uint64(function(load_u64(operands + 8 * i), b, mode)))


def f32_sub_directed(a: int, b: int, mode: int) -> int:
    """sub.{rn,rz,rm,rp}.f32, uncompiled; the loop flips the sign itself."""
    return int(_ADD32.py_func(a, np.uint32(b) ^ SIGN32, mode))


def f64_sub_directed(a: int, b: int, mode: int) -> int:
    """sub.{rn,rz,rm,rp}.f64, uncompiled; the loop flips the sign itself."""
    return int(_ADD64.py_func(a, np.uint64(b) ^ SIGN64, mode))


@lane("add_directed_f32", (32, 32), 32, directed.f32_add_directed)
def add_directed_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_32(directed.f32_add_directed, results, operands, np.uint32(0), mode)


@lane("sub_directed_f32", (32, 32), 32, f32_sub_directed)
def sub_directed_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_32(directed.f32_add_directed, results, operands, SIGN32, mode)


@lane("mul_directed_f32", (32, 32), 32, directed.f32_mul_directed)
def mul_directed_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_32(directed.f32_mul_directed, results, operands, np.uint32(0), mode)


@lane("div_directed_f32", (32, 32), 32, quotients.f32_div_directed)
def div_directed_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_32(quotients.f32_div_directed, results, operands, np.uint32(0), mode)


@lane("div_ftz_f32", (32, 32), 32, quotients.f32_div_ftz)
def div_ftz_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_32(quotients.f32_div_ftz, results, operands, np.uint32(0), mode)


@lane("sqrt_directed_f32", (32,), 32, quotients.f32_sqrt_directed)
def sqrt_directed_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u32(results + 4 * i, quotients.f32_sqrt_directed(load_u32(operands + 4 * i), mode))


@lane("fma_directed_f32", (32, 32, 32), 32, directed.f32_fma_directed)
def fma_directed_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    for i in range(32):
        b, c = load_u32(operands + 128 + 4 * i), load_u32(operands + 256 + 4 * i)
        store_u32(results + 4 * i, directed.f32_fma_directed(load_u32(operands + 4 * i), b, c, mode))


@lane("mul_ftz_f32", (32, 32), 32, directed.f32_mul_ftz)
def mul_ftz_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_32(directed.f32_mul_ftz, results, operands, np.uint32(0), mode)


@lane("fma_ftz_f32", (32, 32, 32), 32, directed.f32_fma_ftz)
def fma_ftz_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    for i in range(32):
        b, c = load_u32(operands + 128 + 4 * i), load_u32(operands + 256 + 4 * i)
        store_u32(results + 4 * i, directed.f32_fma_ftz(load_u32(operands + 4 * i), b, c, mode))


@lane("add_directed_f64", (64, 64), 64, directed.f64_add_directed)
def add_directed_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_64(directed.f64_add_directed, results, operands, np.uint64(0), mode)


@lane("sub_directed_f64", (64, 64), 64, f64_sub_directed)
def sub_directed_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_64(directed.f64_add_directed, results, operands, SIGN64, mode)


@lane("mul_directed_f64", (64, 64), 64, directed.f64_mul_directed)
def mul_directed_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_64(directed.f64_mul_directed, results, operands, np.uint64(0), mode)


@lane("mul_bf16", (16, 16), 16, halves.bf16_mul)
def mul_bf16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, halves.bf16_mul(load_u16(operands + 2 * i), load_u16(operands + 64 + 2 * i)))


@lane("fma_bf16", (16, 16, 16), 16, halves.bf16_fma)
def fma_bf16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        b, c = load_u16(operands + 64 + 2 * i), load_u16(operands + 128 + 2 * i)
        store_u16(results + 2 * i, halves.bf16_fma(load_u16(operands + 2 * i), b, c))


@lane("fma_directed_f64", (64, 64, 64), 64, fma64.f64_fma_directed)
def fma_directed_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    for i in range(32):
        b, c = load_u64(operands + 256 + 8 * i), load_u64(operands + 512 + 8 * i)
        store_u64(results + 8 * i, fma64.f64_fma_directed(load_u64(operands + 8 * i), b, c, mode))


@lane("div_directed_f64", (64, 64), 64, quotients64.f64_div_directed)
def div_directed_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _pairs_64(quotients64.f64_div_directed, results, operands, np.uint64(0), mode)


@lane("sqrt_directed_f64", (64,), 64, quotients64.f64_sqrt_directed)
def sqrt_directed_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u64(results + 8 * i, quotients64.f64_sqrt_directed(load_u64(operands + 8 * i), mode))
