"""Instructions that are not one tensor-core operation: FP8 `mma.sync` where the compiler expands it, m8n8k4 f16 from
sm_80 on, f64.

FP8 on sm_90, sm_100 and sm_103 (SASS; NVIDIA calls it emulated): every register of four FP8 is widened to two
registers of two f16, the lower half (k mod 4 in {0, 1}) and the upper half. One f16 operation takes the lower halves
with c = 0, one takes the upper halves with the first result as c, and a separate f32 (f16) addition, to nearest-even,
adds the real c.

f64: a chain of IEEE fused multiply-adds over ascending k. 64-bit registers are vectors of 32 64-bit words: register r
of lane l at address + (r * 32 + l) * 8."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from interp.formats.directed import f64_nan
from interp.formats.halves import f16_add
from interp.runtime.raw import (
    bits_from_f64,
    f32_add,
    f64_from_bits,
    fma_f64,
    load_f64,
    load_u16,
    load_u32,
    native,
    stack_scratch,
    store_f64,
    store_u16,
    store_u32,
    store_u64,
)
from interp.runtime.vector import I8, I64, INTS, Lanes, Value, define, loop
from interp.tensorcore.fast import mma
from interp.tensorcore.model import E4M3, E5M2, F16
from interp.tensorcore.operands import LAYOUT, NAMES, values


def _widen_part(v: Lanes, words: Value, part: int, kind: int) -> Value:
    """f16 words of FP8 element `part` of each word."""
    h = v.bit_and(v.shr(words, part * 8), 0xFF)
    a = v.bit_and(h, 0x7F)
    if kind == E5M2:
        return v.shl(h, 8)  # a NaN stays some NaN, which is all that matters to the unit
    bits = v.bits(values(v.b, v.b.trunc(h, ir.VectorType(I8, 8)), kind, False))
    half = v.shr(v.sub(v.bit_and(bits, 0x7FFFFFFF), 112 << 23), 13)
    half = v.select(v.greater(a, LAYOUT[kind][3]), 0x7FFF, v.select(v.equal(a, 0), 0, half))
    return v.bit_or(half, v.shl(v.shr(h, 7), 15))


def widen_function(module: ir.Module, kind: int) -> ir.Function:
    """i64 (source, registers, lower, upper): FP8 registers to f16x2 registers of both halves."""
    function, new = define(module, f"gpuemu.tensorcore.widen.{NAMES[kind]}", I64, [I64] * 4)
    if not new:
        return function
    v = Lanes(ir.IRBuilder(function.append_basic_block()))
    b = v.b
    source, registers, lower, upper = function.args

    def piece(index: Value, nothing: list[Value]) -> list[Value]:
        offset = b.shl(index, ir.Constant(I64, 5))
        words = v.load(b.add(source, offset), INTS)
        halves = [_widen_part(v, words, part, kind) for part in range(4)]
        v.store(b.add(lower, offset), v.bit_or(halves[0], v.shl(halves[1], 16)))
        v.store(b.add(upper, offset), v.bit_or(halves[2], v.shl(halves[3], 16)))
        return nothing

    loop(b, ir.Constant(I64, 0), b.shl(registers, ir.Constant(I64, 2)), 1, [], piece)
    b.ret(ir.Constant(I64, 0))
    return function


def _widen_call(kind: int) -> Any:
    def call(typingctx: Any, source: Any, registers: Any, lower: Any, upper: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return builder.call(widen_function(builder.module, kind), args)

        return types.int64(*[types.int64] * 4), codegen

    return intrinsic(call)


_widen_e4m3 = _widen_call(E4M3)
_widen_e5m2 = _widen_call(E5M2)


@native
def widen(source: int, registers: int, kind: int, lower: int, upper: int) -> None:
    """FP8 registers to f16x2 registers of their lower and upper halves."""
    if kind == E4M3:
        _widen_e4m3(source, registers, lower, upper)
    else:
        _widen_e5m2(source, registers, lower, upper)


@native
def mma_fp8_expanded(
    out: int,
    a: int,
    b: int,
    c: int,
    groups: int,
    kind_a: int,
    kind_b: int,
    block: int,
    fraction: int,
    floor: int,
    out_kind: int,
    out_fraction: int,
) -> None:
    """m16n8k16 (groups 1) and m16n8k32 (groups 2) of FP8 as two f16 operations and an addition; arguments as
    `fast.mma`.

    block, fraction, floor: those of the architecture's f16 operation with this result kind.
    """
    lower_a, upper_a = stack_scratch(512), stack_scratch(512)
    lower_b, upper_b = stack_scratch(256), stack_scratch(256)
    total = stack_scratch(512)
    widen(a, groups * 2, kind_a, lower_a, upper_a)
    widen(b, groups, kind_b, lower_b, upper_b)
    for i in range(64):
        store_u64(total + i * 8, np.uint64(0))
    mma(total, lower_a, lower_b, total, groups, F16, F16, block, fraction, floor, out_kind, out_fraction)
    mma(total, upper_a, upper_b, total, groups, F16, F16, block, fraction, floor, out_kind, out_fraction)
    if out_kind == F16:
        for i in range(128):
            store_u16(out + i * 2, f16_add(load_u16(total + i * 2), load_u16(c + i * 2)))
    else:
        for i in range(128):
            store_u32(out + i * 4, f32_add(load_u32(total + i * 4), load_u32(c + i * 4)))


@native
def mma_f64(out: int, a: int, b: int, c: int, rows: int, k: int) -> None:
    """f64 m8n8k4 (rows 8, k 4) and m16n8k4/8/16 (rows 16): out = c + a * b, a chain of fma over ascending k, to
    nearest-even.

    A: register (row >> 3) + 2 * (k >> 2) (rows 8: k >> 2), lane (row & 7) * 4 + (k & 3). B: register k >> 2, lane n *
    4 + (k & 3). C: register 2 * (row >> 3) + (n & 1), lane (row & 7) * 4 + (n >> 1)."""
    tall = rows >> 4
    results = stack_scratch(1024)
    for row in range(rows):
        for n in range(8):
            place = ((2 * (row >> 3) + (n & 1)) * 32 + (row & 7) * 4 + (n >> 1)) * 8
            total = load_f64(c + place)
            for i in range(k):
                register_a = (i >> 2 << tall) + (row >> 3)
                x = load_f64(a + (register_a * 32 + (row & 7) * 4 + (i & 3)) * 8)
                y = load_f64(b + ((i >> 2) * 32 + n * 4 + (i & 3)) * 8)
                following = fma_f64(x, y, total)
                if following != following:
                    following = f64_from_bits(f64_nan(bits_from_f64(x), bits_from_f64(y), bits_from_f64(total)))
                total = following
            store_f64(results + place, total)
    for i in range(rows * 8):
        store_f64(out + i * 8, load_f64(results + i * 8))
