"""`wmma`: matrices held by a warp in fragments whose layout PTX leaves open.

What is laid out here is what the assembler makes of the instructions for sm_80 and later (SASS of sm_90 for m16n16k16
and m8n32k16; the other shapes by the same rule): a matrix is cut into the operands of `mma` (`elements.py`), A into
blocks of sixteen rows, B of eight columns, C and D of both, block after block of rows. m8n32k16 is computed as the
transposed product of m32n8k16. f16 operands have eight registers whatever their size: those behind the last are copies
of the first ones.

Arithmetic: that of the device's `mma` for every element of D, in blocks along k. With an f32 accumulator and an f16
result the f32 result is rounded once more; an f16 accumulator of an f32 result is widened first (SASS)."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.directed import f64_nan
from interp.formats.fma64 import f64_fma_directed
from interp.formats.rounding import RN
from interp.formats.small_floats import f16_to_f32, f32_to_f16
from interp.runtime.raw import load_u32, load_u64, native, native_inline, stack_scratch, store_u16, store_u32, store_u64
from interp.tensorcore.elements import put_element
from interp.tensorcore.model import F16, dot

Word = Any

A, B, C = 0, 1, 2


@native
def place(role: int, i: Word, j: Word, m: int, n: int, k: int, bits: int) -> Word:
    """Where element (i, j) of a matrix of role A, B or C is: 32 * register + lane, times the elements of a register,
    plus the part. m, n, k: the shape; bits: of an element (64: registers of 64 bits)."""
    if m == 8 and n == 32:
        role, i, j, m, n = (B if role == A else (A if role == B else C)), j, i, n, m
    per = 32 // bits if bits < 32 else 1
    if role == C:
        rows = 16 if m >= 16 else 8
        block = (i // rows) * (n >> 3) + (j >> 3)
        row, column = i % rows, j & 7
        lane = (row & 7) * 4 + (column >> 1)
        if bits == 16:
            return ((block * (rows >> 3) + (row >> 3)) * 32 + lane) * 2 + (column & 1)
        return (block * (rows >> 2) + 2 * (row >> 3) + (column & 1)) * 32 + lane
    along = j if role == A else i
    step, inside = along // (4 * per), along % (4 * per)
    if role == A:
        rows = 16 if m >= 16 else 8
        row = i % rows
        register = (i // rows) * (k // (4 * per)) * (rows >> 3) + (step << (rows >> 4)) + (row >> 3)
        lane = (row & 7) * 4
    else:
        register = (j >> 3) * (k // (4 * per)) + step
        lane = (j & 7) * 4
    return (register * 32 + lane + inside // per) * per + inside % per


@native_inline
def get_bits(base: int, at: Word, bits: int) -> Word:
    """The element of `bits` (at most 32) at a place of `place`, as uint32."""
    if bits == 32:
        return load_u32(base + 4 * at)
    per = 32 // bits
    return load_u32(base + 4 * (at // per)) >> np.uint32(at % per * bits) & np.uint32((1 << bits) - 1)


@native
def put_bits(base: int, at: Word, bits: int, word: Word) -> None:
    """Set an element of `bits` at a place of `place`."""
    if bits == 64:
        store_u64(base + 8 * at, np.uint64(word))
    elif bits == 32:
        store_u32(base + 4 * at, np.uint32(word))
    elif bits == 16:
        store_u16(base + 2 * at, np.uint16(word))
    else:
        per = 32 // bits
        down = np.uint32(at % per * bits)
        mask = np.uint32((1 << bits) - 1) << down
        old = load_u32(base + 4 * (at // per))
        store_u32(base + 4 * (at // per), old & ~mask | np.uint32(word) << down & mask)


@native
def wmma_float(
    out: int, a: int, b: int, c: int, m: int, n: int, k: int, bits: int, kind: int, half_c: int, half_d: int,
    block: int, fraction: int, floor: int, out_kind: int,
) -> None:  # fmt: skip
    """D = A * B + C of f16, bf16 (bits 16) or tf32 (32). out_kind: F16 where C and D both are, else F32."""
    left, right, results = stack_scratch(64), stack_scratch(64), stack_scratch(2048)
    size = bits >> 3
    for row in range(m):
        for i in range(k):
            put_element(left, i, get_bits(a, place(A, row, i, m, n, k, bits), bits), size)
        for column in range(n):
            for i in range(k):
                put_element(right, i, get_bits(b, place(B, i, column, m, n, k, bits), bits), size)
            word = get_bits(c, place(C, row, column, m, n, k, 16 if half_c else 32), 16 if half_c else 32)
            if half_c and out_kind != F16:
                word = f16_to_f32(word)
            word = dot(left, right, size, size, k, kind, kind, word, out_kind, block, fraction, floor, 23)
            if half_d and out_kind != F16:
                word = np.uint32(f32_to_f16(word, RN))
            put_bits(results, place(C, row, column, m, n, k, 16 if half_d else 32), 16 if half_d else 32, word)
    for i in range(m * n * (2 if half_d else 4) // 8):
        store_u64(out + 8 * i, load_u64(results + 8 * i))


@native
def _ones(word: Word) -> Word:
    count = np.int64(0)
    for i in range(32):
        count += np.int64(word) >> i & 1
    return count


@native
def wmma_integer(
    out: int, a: int, b: int, c: int, m: int, n: int, k: int, bits: int, signed_a: int, signed_b: int, popc: int,
    clamp: int,
) -> None:  # fmt: skip
    """s32 D = A * B + C of integers, or with `popc` (1: and, 2: xor) of one bits, whose `bits` are 32, `k` words."""
    results = stack_scratch(2048)
    for row in range(m):
        for column in range(n):
            total = np.int64(np.int32(get_bits(c, place(C, row, column, m, n, k, 32), 32)))
            for i in range(k):
                x = np.int64(get_bits(a, place(A, row, i, m, n, k, bits), bits))
                y = np.int64(get_bits(b, place(B, i, column, m, n, k, bits), bits))
                if popc:
                    total += _ones(x & y if popc == 1 else x ^ y)
                else:
                    x = x - (1 << bits) if signed_a and x >> (bits - 1) else x
                    y = y - (1 << bits) if signed_b and y >> (bits - 1) else y
                    total += x * y
            if clamp:
                total = min(max(total, np.int64(-0x80000000)), np.int64(0x7FFFFFFF))
            put_bits(results, place(C, row, column, m, n, k, 32), 32, total & 0xFFFFFFFF)
    for i in range(m * n // 2):
        store_u64(out + 8 * i, load_u64(results + 8 * i))


@native
def wmma_double(out: int, a: int, b: int, c: int, mode: int) -> None:
    """m8n8k4 of f64: a chain of fused multiply-adds over ascending k."""
    results = stack_scratch(512)
    for row in range(8):
        for column in range(8):
            total: Word = load_u64(c + 8 * place(C, row, column, 8, 8, 4, 64))
            for i in range(4):
                x = load_u64(a + 8 * place(A, row, i, 8, 8, 4, 64))
                y = load_u64(b + 8 * place(B, i, column, 8, 8, 4, 64))
                following = np.uint64(f64_fma_directed(x, y, total, mode))
                if following & np.uint64(0x7FFFFFFFFFFFFFFF) > np.uint64(0x7FF0000000000000):
                    following = np.uint64(f64_nan(x, y, total))
                total = following
            store_u64(results + 8 * place(C, row, column, 8, 8, 4, 64), total)
    for i in range(64):
        store_u64(out + 8 * i, load_u64(results + 8 * i))


