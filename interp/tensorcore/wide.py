"""The kernel for exponents far from zero (bf16 and tf32), with f32 results: products in f64.

As `rows.py`, but a product and its scaled value are f64, which is exact for operands of the whole range of f32 unless
the cut gives zero; so is the sum of sums. Rounding toward zero clears low bits of the f64's significand. c is cut as
integers. Reported row by row: NaN or Inf in c, and results below the normal range.
"""

from __future__ import annotations

from llvmlite import ir

from interp.runtime.vector import (
    DOUBLES,
    F32,
    F64,
    FLOATS,
    I1,
    I16,
    I32,
    I64,
    INTS,
    Lanes,
    Value,
    define,
    lanes_of,
    loop,
)
from interp.tensorcore.accumulators import load_accumulator, store_accumulator
from interp.tensorcore.operands import BIAS_A, BIAS_B
from interp.tensorcore.rows import CHUNK, UNROLL

ROWS = 2  # of a vector of exponents
_EXPONENTS = ir.VectorType(I16, 8 * ROWS)
_ABSENT = -4096  # exponent of a c of zero


def _c64(value: int) -> Value:
    return ir.Constant(I64, value)


def _split(v: Lanes, word: Value) -> tuple[Value, Value, Value, Value]:
    """(exponent or _ABSENT, significand in units of 2**(exponent - 25), sign as 0 or -1, mask of NaN and Inf)."""
    a = v.bit_and(word, 0x7FFFFFFF)
    field = v.shr(a, 23)
    hidden = v.select(v.equal(field, 0), 0, 0x2000000)
    significand = v.bit_or(v.shl(v.bit_and(a, 0x7FFFFF), 2), hidden)
    exponent = v.select(v.equal(a, 0), _ABSENT, v.sub(v.maximum(field, 1), 127))
    return exponent, significand, v.sub(0, v.shr(word, 31)), v.greater(a, 0x7F7FFFFF)


def _round(v: Lanes, total: Value, exponent: Value, keep: Value) -> tuple[Value, Value]:
    """(words, mask of results below the normal range) of total * 2**exponent toward zero; `keep` masks the f64's
    fraction."""
    b = v.b
    cut = v.doubles(b.and_(v.long_bits(total), keep))
    bits = v.bits(b.fptrunc(cut, FLOATS))  # exact: at most 24 bits
    field = v.add(v.bit_and(v.shr(bits, 23), 0xFF), exponent)
    zero = v.equal(bits, 0)
    infinity = v.bit_or(v.bit_and(bits, 0x80000000), 0x7F800000)
    word = v.select(v.greater(field, 254), infinity, v.add(bits, v.shl(exponent, 23)))
    tiny = b.and_(v.greater(1, field), b.not_(zero))
    return v.select(zero, 0, word), tiny


def wide_kernel(module: ir.Module) -> ir.Function:
    """i64 (out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction), as
    `rows.kernel`; exponents of 16 bits."""
    function, new = define(module, "gpuemu.tensorcore.kernel.wide", I64, [I64] * 11)
    if not new:
        return function
    v = Lanes(ir.IRBuilder(function.append_basic_block()))
    b = v.b
    out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction = function.args
    fraction_v = v.splat(b.trunc(fraction, I32))
    floor_v = v.splat(b.trunc(floor, I32))
    keep = v.splat(b.shl(_c64(-1), b.sub(_c64(52), out_fraction)))
    no_lanes = ir.Constant(ir.VectorType(I1, 8), [0] * 8)

    def some_rows(first: Value, done: list[Value]) -> list[Value]:
        rows = [b.add(first, _c64(r)) for r in range(ROWS)]
        both = b.add(values_a, b.shl(b.mul(first, k), _c64(4)))  # a row's values are those of four lanes
        row_values = [v.at(both, 16 * r) for r in range(ROWS)]
        row_exponents = b.add(exponents_a, b.shl(b.mul(first, k), _c64(4)))

        def largest_exponents(p: Value, largest: list[Value]) -> list[Value]:
            across = b.shl(p, _c64(4))
            for j in range(UNROLL):
                column = v.load(v.at(b.add(exponents_b, across), 16 * j), ir.VectorType(I16, 8))
                row = v.load(v.at(b.add(row_exponents, b.shl(p, _c64(5))), 32 * j), _EXPONENTS)
                total = b.add(row, v.shuffle(column, column, list(range(8)) * ROWS))
                largest = [b.select(b.icmp_signed(">", total, largest[0]), total, largest[0])]
            return largest

        def one_block(start: Value, state: list[Value]) -> list[Value]:
            words, redo = state[:ROWS], state[ROWS:]
            stop = b.add(start, block)
            stop = b.select(b.icmp_signed("<", stop, k), stop, k)
            (found,) = loop(b, start, stop, UNROLL, [lanes_of(_EXPONENTS, -(1 << 15))], largest_exponents)
            ups, scales, sums = [], [], []
            for r in range(ROWS):
                exponent, significand, sign, special = _split(v, words[r])
                products = b.sext(v.shuffle(found, found, list(range(8 * r, 8 * r + 8))), INTS)
                products = v.sub(products, BIAS_A + BIAS_B)
                largest = v.maximum(v.maximum(products, exponent), floor_v)
                drop = v.add(v.sub(largest, exponent), v.sub(25, fraction_v))
                term = v.shr(significand, v.minimum(drop, 31))
                sums.append(v.exact_doubles(v.sub(v.bit_xor(term, sign), sign)))
                redo[r] = b.or_(redo[r], special)
                ups.append(v.sub(fraction_v, largest))
                scales.append(v.power_of_two(ups[r]))

            def terms(p: Value, partial: list[Value]) -> list[Value]:
                across = b.shl(p, _c64(5))
                for j in range(UNROLL):
                    y = b.fpext(v.load(v.at(b.add(values_b, across), 32 * j), FLOATS), DOUBLES)
                    for r in range(ROWS):
                        x = v.splat(b.fpext(v.load(v.at(b.add(row_values[r], across), 32 * j), F32), F64))
                        partial[r] = v.add(partial[r], v.truncate(b.fmul(b.fmul(x, y), scales[r])))
                return partial

            def chunk(begin: Value, totals: list[Value]) -> list[Value]:
                end = b.add(begin, _c64(CHUNK))
                end = b.select(b.icmp_signed("<", end, stop), end, stop)
                partial = loop(b, begin, end, UNROLL, [v.const(0)] * ROWS, terms)
                return [b.fadd(total, v.exact_doubles(x)) for total, x in zip(totals, partial, strict=True)]

            totals = loop(b, start, stop, CHUNK, sums, chunk)
            for r in range(ROWS):
                words[r], tiny = _round(v, totals[r], v.sub(0, ups[r]), keep)
                redo[r] = b.or_(redo[r], tiny)
            return words + redo

        # the step of the block loop is a run-time value: count in blocks
        state = [load_accumulator(v, c, row) for row in rows] + [no_lanes] * ROWS
        count = b.udiv(b.sub(b.add(k, block), _c64(1)), block)
        state = loop(b, _c64(0), count, 1, state, lambda i, s: one_block(b.mul(i, block), s))
        left = done[0]
        for row, word, redo in zip(rows, state[:ROWS], state[ROWS:], strict=True):
            bad = v.any(redo)
            with b.if_then(b.not_(bad)):
                store_accumulator(v, out, row, word)
            left = b.or_(left, b.shl(b.zext(bad, I64), row))
        return [left]

    (left,) = loop(b, _c64(0), _c64(16), ROWS, [_c64(0)], some_rows)
    b.ret(left)
    return function
