"""`mma.sync.m8n8k4` of f16: four independent products, each of eight lanes (lanes 4q ... and 16 + 4q ...).

Volta and Turing have the instruction: one block of four products (`model.py`). From sm_80 on it is code that the
assembler calls (SASS of sm_80 and sm_90): with f32 results a chain of fused multiply-adds over k from 0, then an
addition of c; with f16 results the sums of the products of k 0, 1 and of k 2, 3, each an f32 product and a fused
multiply-add, added to c one after the other in f32 and rounded once to f16.

Layouts: PTX ISA, 'Matrix fragments for mma.m8n8k4 with .f16'."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.directed import f32_fma_directed
from interp.formats.rounding import RN
from interp.formats.small_floats import f16_to_f32, f32_to_f16
from interp.runtime.raw import (
    f32_add,
    f32_multiply,
    load_u16,
    load_u32,
    load_u64,
    native,
    native_inline,
    stack_scratch,
    store_u16,
    store_u32,
    store_u64,
)
from interp.tensorcore.model import F16, dot_block

Word = Any


@native_inline
def _at(base: int, quad: int, lane: Word, index: Word, size: int) -> Word:
    """Address of part `index` (of `size` bytes) of what lane 0 ... 7 of a product holds."""
    place = quad * 4 + (lane & 3) + (lane >> 2) * 16
    return base + (index * size // 4) * 128 + place * 4 + (index * size & 3)


@native_inline
def _spread(quad: int, base: int, major: Word, minor: Word, crossed: int) -> Word:
    """Address of an element of A (major: row, minor: k) or B (major: column): held by the lane of its row (column), or
    crossed by the lane of its k."""
    if crossed:
        return _at(base, quad, minor + (major & 4), major & 3, 2)
    return _at(base, quad, major, minor, 2)


@native_inline
def _accumulator(quad: int, base: int, row: Word, column: Word, half: int) -> Word:
    if half:
        return _at(base, quad, row, column, 2)
    return _at(base, quad, (row & 1) | (column & 2) | (row & 4), (row & 2) | (column & 4) | (column & 1), 4)


@native
def _expanded(left: int, right: int, c: Word, out_kind: int) -> Word:
    """What the assembler's code computes; c and the result are f32 words."""
    x = [f16_to_f32(load_u16(left + 2 * i)) for i in range(4)]
    y = [f16_to_f32(load_u16(right + 2 * i)) for i in range(4)]
    if out_kind == F16:
        first = f32_fma_directed(x[1], y[1], f32_multiply(x[0], y[0]), RN)
        second = f32_fma_directed(x[3], y[3], f32_multiply(x[2], y[2]), RN)
        return f32_add(f32_add(c, first), second)
    total = np.uint32(0)
    for i in range(4):
        total = f32_fma_directed(x[i], y[i], total, RN)
    return f32_add(c, total)


@native
def mma_884(
    out: int, a: int, b: int, c: int, columns_a: int, rows_b: int, half_c: int, out_kind: int, unit: int
) -> None:
    """columns_a, rows_b: 1 for A by columns, B by rows. half_c: c is f16. unit: 1 for the machine's own instruction
    (Volta, Turing), 0 for the assembler's code."""
    left, right, results = stack_scratch(8), stack_scratch(8), stack_scratch(1024)
    half = 1 if out_kind == F16 else 0
    for quad in range(4):
        for row in range(8):
            for k in range(4):
                store_u16(left + 2 * k, load_u16(_spread(quad, a, row, k, columns_a)))
            for column in range(8):
                for k in range(4):
                    store_u16(right + 2 * k, load_u16(_spread(quad, b, column, k, rows_b)))
                place = _accumulator(quad, c, row, column, half_c)
                word = np.uint32(load_u16(place)) if half_c else load_u32(place)
                if unit:
                    word = f16_to_f32(word) if half_c and not half else word
                    floor = -19 if half else -131
                    word = dot_block(left, right, 2, 2, 4, F16, F16, word, out_kind, 23, floor, 23)
                else:
                    word = _expanded(left, right, f16_to_f32(word) if half_c else word, out_kind)
                    word = np.uint32(f32_to_f16(word, RN)) if half else word
                place = _accumulator(quad, results, row, column, half)
                if half:
                    store_u16(place, np.uint16(word))
                else:
                    store_u32(place, word)
    for i in range(64 if half else 128):
        store_u64(out + 8 * i, load_u64(results + 8 * i))
