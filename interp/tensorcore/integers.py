"""Integer matrix multiply-accumulate: s8/u8 m16n8k16 and m16n8k32, exact, wrapping or clamping to s32.

Products of bytes and sums of up to 64 of them are below 2**24, so they are computed in f32, exactly: an f32 multiply
and add are faster than an integer multiply on the hosts we run on. The sum with c is exact in 64 bits; without
`.satfinite` it wraps, with it it clamps (only the final sum: the unit's intermediate sums cannot overflow)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from interp.runtime.raw import native, stack_scratch
from interp.runtime.vector import F32, FLOATS, I64, INTS, LONGS, Lanes, Value, define, loop
from interp.tensorcore.accumulators import load_accumulator, store_accumulator


def _c64(value: int) -> Value:
    return ir.Constant(I64, value)


def _bytes(v: Lanes, words: Value, part: int, signed: Value) -> Value:
    """f32 of byte `part` of each word; `signed` is a mask."""
    b = v.b
    high = v.shl(words, 24 - 8 * part)
    return b.sitofp(b.select(signed, v.shr_signed(high, 24), v.shr(high, 24)), FLOATS)


def _signed_mask(v: Lanes, signed: Value) -> Value:
    return v.splat(v.b.icmp_signed("!=", signed, _c64(0)))


def integer_function(module: ir.Module) -> ir.Function:
    """i64 (out, a, b, c, groups, signed_a, signed_b, clamp, scratch)."""
    function, new = define(module, "gpuemu.tensorcore.integer", I64, [I64] * 9)
    if not new:
        return function
    v = Lanes(ir.IRBuilder(function.append_basic_block()))
    b = v.b
    out, a, b_address, c, groups, signed_a, signed_b, clamp, rows = function.args
    columns = v.at(rows, 2048)
    mask_a, mask_b, clamped = (_signed_mask(v, x) for x in (signed_a, signed_b, clamp))
    width = b.shl(groups, _c64(6))
    k = b.shl(groups, _c64(4))

    def spread_a(index: Value, nothing: list[Value]) -> list[Value]:
        words = v.load(b.add(a, b.shl(index, _c64(5))), INTS)
        place = b.mul(b.shl(b.and_(index, _c64(7)), _c64(1)), width)
        place = b.add(rows, b.add(place, b.shl(b.lshr(index, _c64(3)), _c64(6))))
        for part in range(4):
            values = v.bits(_bytes(v, words, part, mask_a))
            v.store_halves(v.at(place, 16 * part), v.at(b.add(place, width), 16 * part), values)
        return nothing

    def spread_b(index: Value, nothing: list[Value]) -> list[Value]:
        start = b.add(b_address, b.shl(index, _c64(7)))
        x = [v.load(v.at(start, 32 * j), INTS) for j in range(4)]
        low = [v.shuffle(x[j], x[j + 1], [0, 8, 1, 9, 4, 12, 5, 13]) for j in (0, 2)]
        high = [v.shuffle(x[j], x[j + 1], [2, 10, 3, 11, 6, 14, 7, 15]) for j in (0, 2)]
        orders = ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15])
        quarter = [v.shuffle(x0, x1, lanes) for x0, x1 in (low, high) for lanes in orders]
        place = b.add(columns, b.shl(index, _c64(9)))
        for part in range(4):
            for q, words in enumerate(quarter):
                v.store(v.at(place, (part * 4 + q) * 32), _bytes(v, words, part, mask_b))
        return nothing

    def one_row(row: Value, nothing: list[Value]) -> list[Value]:
        start = b.add(rows, b.mul(row, width))

        def term(p: Value, sums: list[Value]) -> list[Value]:
            total = sums[0]
            for j in range(4):
                x = v.splat(v.load(v.at(b.add(start, b.shl(p, _c64(2))), 4 * j), F32))
                y = v.load(v.at(b.add(columns, b.shl(p, _c64(5))), 32 * j), FLOATS)
                total = b.fadd(total, b.fmul(x, y))
            return [total]

        (products,) = loop(b, _c64(0), k, 4, [v.floats(v.const(0))], term)
        product = v.truncate(products)
        words = load_accumulator(v, c, row)
        wrapped = v.add(product, words)
        total = b.add(b.sext(product, LONGS), b.sext(words, LONGS))
        fits = b.icmp_signed("==", total, b.sext(wrapped, LONGS))
        limit = v.bit_xor(v.shr_signed(b.trunc(b.lshr(total, v.long_const(32)), INTS), 31), v.const(0x7FFFFFFF))
        result = b.select(b.or_(fits, b.not_(clamped)), wrapped, limit)
        store_accumulator(v, out, row, result)
        return nothing

    loop(b, _c64(0), b.shl(groups, _c64(3)), 1, [], spread_a)
    loop(b, _c64(0), groups, 1, [], spread_b)
    loop(b, _c64(0), _c64(16), 1, [], one_row)
    b.ret(_c64(0))
    return function


@intrinsic
def _run(
    typingctx: Any,
    out: Any,
    a: Any,
    b: Any,
    c: Any,
    groups: Any,
    signed_a: Any,
    signed_b: Any,
    clamp: Any,
    scratch: Any,
) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.call(integer_function(builder.module), args)

    return types.int64(*[types.int64] * 9), codegen


@native
def mma_s8(out: int, a: int, b: int, c: int, groups: int, signed_a: int, signed_b: int, clamp: int) -> None:
    """m16n8k16 (groups 1) and m16n8k32 (groups 2) of bytes: s32 out = c + a * b.

    signed_a, signed_b: 1 for s8, 0 for u8. clamp: 1 for `.satfinite`. Fragments as in `fast.mma`.
    """
    scratch = stack_scratch(3072)
    _run(out, a, b, c, groups, signed_a, signed_b, clamp, scratch)
