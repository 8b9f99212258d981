"""Matrix instructions without a fast path: element by element through the model.

Float kinds of `model.py`, dense and sparse; integers of 8, 4 and 1 bits, dense and sparse, exact; f64 in the directed
roundings; block-scaled products. A sparse product is the dense one over the elements that are stored, in blocks of as
many as the unit takes (see `table.sparse`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.directed import f64_nan
from interp.formats.fma64 import f64_fma_directed
from interp.runtime.raw import load_u32, load_u64, native, stack_scratch, store_u64
from interp.tensorcore.elements import element_a, element_b, load_c, logical_k, put_element, store_d
from interp.tensorcore.model import F16, dot, dot_block
from interp.tensorcore.scaled import dot_groups, e2m1_doubled, scale_exponent

Word = Any

POPC_AND, POPC_XOR = 1, 2
MXF8F6F4, MXF4 = 1, 2


@native
def mma_float(
    out: int, a: int, b: int, c: int, metadata: int, rows: int, depth: int, bits: int, kind_a: int, kind_b: int,
    out_kind: int, block: int, fraction: int, floor: int, out_fraction: int, sparse: int, selector: int,
) -> None:  # fmt: skip
    """rows x 8 products of any float kinds. depth: logical columns; sparse: 1 where A holds half of them."""
    left, right = stack_scratch(512), stack_scratch(512)
    size, count, half = bits >> 3, depth >> sparse, 1 if out_kind == F16 else 0
    results = stack_scratch(512)
    for row in range(rows):
        for k in range(count):
            put_element(left, k, element_a(a, row, k, bits, rows), size)
        for column in range(8):
            for k in range(count):
                at = logical_k(metadata, selector, row, k, depth, bits) if sparse else k
                put_element(right, k, element_b(b, at, column, bits), size)
            word = dot(left, right, size, size, count, kind_a, kind_b, load_c(c, row, column, half), out_kind, block,
                       fraction, floor, out_fraction)  # fmt: skip
            store_d(results, row, column, half, word)
    for i in range(rows * (2 if half else 4)):
        store_u64(out + 8 * i, load_u64(results + 8 * i))


@native
def _signed(word: Word, bits: int, signed: int) -> Word:
    x = np.int64(word)
    return x - (1 << bits) if signed and (x >> (bits - 1)) & 1 else x


@native
def _ones(word: Word) -> Word:
    """Number of one bits."""
    x = np.int64(word)
    x = x - (x >> 1 & 0x55555555)
    x = (x & 0x33333333) + (x >> 2 & 0x33333333)
    x = x + (x >> 4) & 0x0F0F0F0F
    return (x * 0x01010101 & 0xFFFFFFFF) >> 24


@native
def mma_integer(
    out: int, a: int, b: int, c: int, metadata: int, rows: int, depth: int, bits: int, signed_a: int, signed_b: int,
    popc: int, clamp: int, sparse: int, selector: int,
) -> None:  # fmt: skip
    """rows x 8 sums of products of integers, or with `popc` of one bits; s32, wrapping or with `clamp` clamped.

    One-bit operands are taken 32 at a time: their `bits` are 32 and `depth` counts words."""
    results = stack_scratch(512)
    count = depth >> sparse
    for row in range(rows):
        for column in range(8):
            total = np.int64(np.int32(load_c(c, row, column, 0)))
            for k in range(count):
                at = logical_k(metadata, selector, row, k, depth, bits) if sparse else k
                x, y = element_a(a, row, k, bits, rows), element_b(b, at, column, bits)
                if popc:
                    total += _ones(x & y if popc == POPC_AND else x ^ y)
                else:
                    total += _signed(x, bits, signed_a) * _signed(y, bits, signed_b)
            if clamp:
                total = min(max(total, np.int64(-0x80000000)), np.int64(0x7FFFFFFF))
            store_d(results, row, column, 0, np.uint32(total & 0xFFFFFFFF))
    for i in range(rows * 4):
        store_u64(out + 8 * i, load_u64(results + 8 * i))


@native
def mma_f64_directed(out: int, a: int, b: int, c: int, rows: int, depth: int, mode: int) -> None:
    """`expanded.mma_f64` with a rounding mode of `rounding.MODES`."""
    tall = rows >> 4
    results = stack_scratch(1024)
    for row in range(rows):
        for n in range(8):
            place = ((2 * (row >> 3) + (n & 1)) * 32 + (row & 7) * 4 + (n >> 1)) * 8
            total: Word = load_u64(c + place)
            for i in range(depth):
                register_a = (i >> 2 << tall) + (row >> 3)
                x = load_u64(a + (register_a * 32 + (row & 7) * 4 + (i & 3)) * 8)
                y = load_u64(b + ((i >> 2) * 32 + n * 4 + (i & 3)) * 8)
                following = np.uint64(f64_fma_directed(x, y, total, mode))
                if following & np.uint64(0x7FFFFFFFFFFFFFFF) > np.uint64(0x7FF0000000000000):
                    following = np.uint64(f64_nan(x, y, total))
                total = following
            store_u64(results + place, total)
    for i in range(rows * 8):
        store_u64(out + i * 8, load_u64(results + i * 8))


@native
def mma_scaled(
    out: int, a: int, b: int, c: int, scales_a: int, scales_b: int, byte_a: int, thread_a: int, byte_b: int,
    thread_b: int, kind: int, kind_a: int, kind_b: int, vector: int, float_scale: int, metadata: int = 0,
    sparse: int = 0,
) -> None:  # fmt: skip
    """m16n8 block-scaled products: kind MXF8F6F4 (32 bytes of A) or MXF4 (64 nibbles), f32 results. sparse: 1 where
    these are half of the logical columns, of which B has twice as many.

    vector: scales a row, in the bytes of one word from `byte` on. The word of row r of A is that of lane 4 * (r % 8) +
    2 * thread + r / 8, that of column n of B of lane 4 * n + thread. float_scale: 1 for ue4m3."""
    left, right, results = stack_scratch(64), stack_scratch(64), stack_scratch(512)
    depth, bits = (32, 8) if kind == MXF8F6F4 else (64, 4)
    for row in range(16):
        for k in range(depth):
            x = element_a(a, row, k, bits, 16)
            put_element(left, k, e2m1_doubled(x) if kind == MXF4 else x, 1)
        scale_a = load_u32(scales_a + (4 * (row & 7) + 2 * thread_a + (row >> 3)) * 4) >> np.uint32(8 * byte_a)
        for column in range(8):
            for k in range(depth):
                at = logical_k(metadata, 0, row, k, 2 * depth, bits) if sparse else k
                y = element_b(b, at, column, bits)
                put_element(right, k, e2m1_doubled(y) if kind == MXF4 else y, 1)
            scale_b = load_u32(scales_b + (4 * column + thread_b) * 4) >> np.uint32(8 * byte_b)
            word = load_c(c, row, column, 0)
            if kind == MXF4:
                word = dot_groups(left, right, scale_a, scale_b, 4 // vector, float_scale != 0, word)
            else:
                e, f = scale_exponent(scale_a), scale_exponent(scale_b)
                nan = (e == 128) | (f == 128)
                word = np.uint32(0x7FFFFFFF) if nan else dot_block(
                    left, right, 1, 1, depth, kind_a, kind_b, word, 5, 25, -133, 23, e + f
                )  # fmt: skip
            store_d(results, row, column, 0, word)
    for i in range(64):
        store_u64(out + 8 * i, load_u64(results + 8 * i))
