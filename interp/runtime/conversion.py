"""Lane functions of `cvt`: loops over the scalar conversions of `interp.formats`, one a pair of formats.

The first parameter of a loop is the rounding mode (`interp.formats.rounding.MODES`); float-to-integer conversions take
the destination's width in bits and whether it is signed after it. Only what `interp.ops.convert` does not emit in line
is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from interp.formats import doubles, integers, small_floats
from interp.runtime.lane import lane
from interp.runtime.raw import load_u8, load_u32, load_u64, native_inline, store_u8, store_u16, store_u32, store_u64


@native_inline
def _32_to_16(function: Callable[..., Any], results: int, operands: int, mode: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, np.uint16(function(load_u32(operands + 4 * i), mode)))


@native_inline
def _32_to_32(function: Callable[..., Any], results: int, operands: int, mode: int) -> None:
    for i in range(32):
        store_u32(results + 4 * i, np.uint32(function(load_u32(operands + 4 * i), mode)))


@native_inline
def _64_to_16(function: Callable[..., Any], results: int, operands: int, mode: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, np.uint16(function(load_u64(operands + 8 * i), mode)))


@native_inline
def _64_to_32(function: Callable[..., Any], results: int, operands: int, mode: int) -> None:
    for i in range(32):
        store_u32(results + 4 * i, np.uint32(function(load_u64(operands + 8 * i), mode)))


@native_inline
def _64_to_64(function: Callable[..., Any], results: int, operands: int, mode: int) -> None:
    for i in range(32):
        store_u64(results + 8 * i, np.uint64(function(load_u64(operands + 8 * i), mode)))


# ---------------------------------------------------------------- float to float
@lane("f32_to_f16", (32,), 16, small_floats.f32_to_f16)
def f32_to_f16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _32_to_16(small_floats.f32_to_f16, results, operands, mode)


@lane("f32_to_bf16", (32,), 16, small_floats.f32_to_bf16)
def f32_to_bf16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _32_to_16(small_floats.f32_to_bf16, results, operands, mode)


@lane("f32_to_tf32", (32,), 32, small_floats.f32_to_tf32)
def f32_to_tf32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _32_to_32(small_floats.f32_to_tf32, results, operands, mode)


@lane("f64_to_f32", (64,), 32, doubles.f64_to_f32)
def f64_to_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_32(doubles.f64_to_f32, results, operands, mode)


@lane("f64_to_f16", (64,), 16, doubles.f64_to_f16)
def f64_to_f16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_16(doubles.f64_to_f16, results, operands, mode)


@lane("f64_to_bf16", (64,), 16, doubles.f64_to_bf16)
def f64_to_bf16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_16(doubles.f64_to_bf16, results, operands, mode)


@lane("f32_to_f64", (32,), 64, doubles.f32_to_f64)
def f32_to_f64(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u64(results + 8 * i, doubles.f32_to_f64(load_u32(operands + 4 * i)))


@lane("f32_to_integral", (32,), 32, integers.f32_to_integral)
def f32_to_integral(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _32_to_32(integers.f32_to_integral, results, operands, mode)


@lane("f64_to_integral", (64,), 64, integers.f64_to_integral)
def f64_to_integral(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_64(integers.f64_to_integral, results, operands, mode)


# ---------------------------------------------------------------- FP8
@lane("f32_to_e4m3", (32,), 8, small_floats.f32_to_e4m3)
def f32_to_e4m3(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u8(results + i, small_floats.f32_to_e4m3(load_u32(operands + 4 * i)))


@lane("f32_to_e5m2", (32,), 8, small_floats.f32_to_e5m2)
def f32_to_e5m2(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u8(results + i, small_floats.f32_to_e5m2(load_u32(operands + 4 * i)))


@lane("e4m3_to_f16", (8,), 16, small_floats.e4m3_to_f16)
def e4m3_to_f16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, small_floats.e4m3_to_f16(load_u8(operands + i)))


@lane("e5m2_to_f16", (8,), 16, small_floats.e5m2_to_f16)
def e5m2_to_f16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, small_floats.e5m2_to_f16(load_u8(operands + i)))


# ---------------------------------------------------------------- integer to float, from a sign- or zero-extended word
@lane("s64_to_f32", (64,), 32, integers.s64_to_f32)
def s64_to_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_32(integers.s64_to_f32, results, operands, mode)


@lane("u64_to_f32", (64,), 32, integers.u64_to_f32)
def u64_to_f32(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_32(integers.u64_to_f32, results, operands, mode)


@lane("s64_to_f64", (64,), 64, integers.s64_to_f64)
def s64_to_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_64(integers.s64_to_f64, results, operands, mode)


@lane("u64_to_f64", (64,), 64, integers.u64_to_f64)
def u64_to_f64(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_64(integers.u64_to_f64, results, operands, mode)


@lane("s64_to_f16", (64,), 16, integers.s64_to_f16)
def s64_to_f16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_16(integers.s64_to_f16, results, operands, mode)


@lane("u64_to_f16", (64,), 16, integers.u64_to_f16)
def u64_to_f16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_16(integers.u64_to_f16, results, operands, mode)


@lane("s64_to_bf16", (64,), 16, integers.s64_to_bf16)
def s64_to_bf16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_16(integers.s64_to_bf16, results, operands, mode)


@lane("u64_to_bf16", (64,), 16, integers.u64_to_bf16)
def u64_to_bf16(results: int, operands: int, mode: int, p1: int, p2: int) -> None:
    _64_to_16(integers.u64_to_bf16, results, operands, mode)


# ---------------------------------------------------------------- float to integer, as a word of 64 bits
@lane("f32_to_integer", (32,), 64, integers.f32_to_integer)
def f32_to_integer(results: int, operands: int, mode: int, bits: int, signed: int) -> None:
    for i in range(32):
        store_u64(results + 8 * i, integers.f32_to_integer(load_u32(operands + 4 * i), mode, bits, signed))


@lane("f64_to_integer", (64,), 64, integers.f64_to_integer)
def f64_to_integer(results: int, operands: int, mode: int, bits: int, signed: int) -> None:
    for i in range(32):
        store_u64(results + 8 * i, integers.f64_to_integer(load_u64(operands + 8 * i), mode, bits, signed))
