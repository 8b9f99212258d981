"""The inner kernel of the fast path: sixteen rows of A against eight columns of B, emitted as vector code.

A vector is two rows by four columns, as the registers of an accumulator hold them, and four vectors are done together.
First the largest exponent of every output: exponents are bytes (bf16 and tf32: 16-bit words), so that one addition and
one maximum do 32 (16) products. Then four operations for eight products: multiply, scale by 2**(F - X), convert to
integer, add.

Why it equals the model. Operands come with f32 products that are exact, normal, and no smaller than 2**FLOOR
(`operands.py`). The conversion to integer is the cut, of scaled products and of c.

* Scaling multiplies, which is exact unless the result falls below the normal range, where the cut gives zero in any
  case. Where exponents are bytes it adds F - X + LOWERED to the exponent field, A being lowered by as much: that is at
  most 25 + 48 + 40, which makes of a zero no more than 2**-14, and it is positive, or set to 1. It would not be
  positive with X >= 52 only, where all products (they are below 2**32) are cut to nothing, and so they are with 1.
* A term is below 2**(F + 2) <= 2**27. Sixteen terms fit an int32, and so do c and sixteen of 8-bit types, whose
  significands have four bits; the whole sum is below 2**31 + 2**26 (`long`: 32 * 225 * 2**19 + 2**26), and right modulo
  2**32. A sum that may have left the range is told by its size, and made again as the f64 sum of two parts (`careful`).
* Rounding toward zero: of a sum with more than 24 bits those lower bits are cleared that the upper ones, shifted by 24,
  show as ones. The highest bit that has to go is always among them, so what remains is less than half a place, which
  the conversion's rounding to nearest drops. The result's scale 2**(X - F) is a normal f32, and the product with it
  is exact, or an overflow.
* f16 results: lost bits return as the last bit of the f32 (rounding to odd), which is then rounded to nearest-even.

What it does not handle is reported row by row: NaN or Inf in c; and where an output has no products but zeros, a c that
is not zero and below 2**FLOOR.

Measured on Zen 3 (3.2 GHz): eight products are four vector operations and a load, which takes 1.33 cycles
(1 is the limit of its four pipes); a tile of 2,048 products takes 340 cycles for these, 200 for the exponents, c and
the results, and 70 for decoding B.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from interp.runtime.vector import (
    F32,
    FLOATS,
    I1,
    I8,
    I16,
    I32,
    I64,
    INTS,
    Lanes,
    Value,
    define,
    either,
    lanes_of,
    loop,
    rarely,
)
from interp.tensorcore.accumulators import load_pair, store_pair, store_row
from interp.tensorcore.operands import LOWERED, floats_of_halves, together

UNROLL = 4  # blocks are multiples of four products
CHUNK = 16  # products whose terms fit an int32 sum
ROWS = 4  # rows at once, in as many vectors: they share loads, and their chains of dependent operations overlap
FLOOR = {8: -48, 16: -101}
"""Least exponent X with an f32 result, by width of the exponents: below that of any product of two operands that are
not zero, and such that 2**(X - 25) is a normal f32, and its inverse is one, too. Hardware's floors are lower still."""

_ALL, _FIELD, _SIGN = 0x7FFFFFFF, 0x7F800000, 0x80000000


def _c64(value: int) -> Value:
    return ir.Constant(I64, value)


def round_f16(v: Lanes, total: Value, exponent: Value) -> Value:
    """f16 words of total * 2**exponent to nearest-even; what rounds to zero is +0."""
    b = v.b
    y = b.fmul(total, v.power_of_two(exponent))
    field = b.and_(b.lshr(v.long_bits(y), v.long_const(52)), v.long_const(0x7FF))
    low = v.long_const(1023 - 14)
    field = b.select(b.icmp_signed(">", field, low), field, low)
    # adding 1.5 * 2**(e + 42) leaves ten fraction bits below 2**e, rounded
    magic = b.or_(b.shl(b.add(field, v.long_const(42)), v.long_const(52)), v.long_const(1 << 51))
    rounded = b.fsub(b.fadd(y, v.doubles(magic)), v.doubles(magic))
    bits = v.bits(b.fptrunc(rounded, FLOATS))
    a = v.bit_and(bits, 0x7FFFFFFF)
    normal = v.shr(v.sub(a, 112 << 23), 13)
    units = b.fmul(v.floats(v.minimum(a, 0x38800000)), v.floats(v.const((127 + 24) << 23)))
    word = v.select(v.greater(a, 0x387FFFFF), normal, v.truncate(units))
    word = v.select(v.greater(a, 0x477FFFFF), 0x7C00, word)
    return v.select(v.equal(word, 0), 0, v.bit_or(word, v.shl(v.shr(bits, 31), 15)))


def _room(b: ir.IRBuilder, size: int) -> Value:
    """Address of `size` bytes of the stack, 32-byte aligned."""
    room = b.alloca(ir.ArrayType(ir.IntType(8), size))
    room.align = 32
    return b.ptrtoint(room, I64)


def _splat(b: ir.IRBuilder, value: Value, vector: ir.VectorType) -> Value:
    undefined = ir.Constant(vector, ir.Undefined)
    one = b.insert_element(undefined, value, ir.Constant(I32, 0))
    return b.shuffle_vector(one, undefined, lanes_of(ir.VectorType(I32, vector.count), 0))


def _fold(function: Callable[[Value, Value], Value], values: list[Value]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def _round_f32(v: Lanes, total: Value, exponent: Value) -> Value:
    """Words of total * 2**exponent toward zero, for results in the normal range and above."""
    b = v.b
    cut = v.doubles(b.and_(v.long_bits(total), v.long_const(-1 << 29)))
    bits = v.bits(b.fptrunc(cut, FLOATS))  # exact: at most 24 bits
    field = v.add(v.shr(v.bit_and(bits, _ALL), 23), exponent)
    sign = v.bit_and(bits, _SIGN)
    word = v.select(v.greater(field, 254), v.bit_or(sign, _FIELD), v.add(bits, v.shl(exponent, 23)))
    return v.select(v.equal(bits, 0), 0, word)


def kernel(module: ir.Module, half: bool, bits: int, long: bool, converts: bool) -> ir.Function:
    """i64 (out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction).

    Writes every row that it can do and returns a bit for each of the others. half: c and out are f16. bits: width of
    the exponents. long: blocks are of 2 * CHUNK products of 8-bit types, with F above 13. converts: see
    `operands.floats_of_halves`."""
    name = f"gpuemu.tensorcore.kernel.{'f16' if half else 'f32'}.e{bits}{'.long' if long else ''}"
    function, new = define(module, name, I64, [I64] * 11)
    if not new:
        return function
    v = Lanes(ir.IRBuilder(function.append_basic_block()))
    b = v.b
    out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction = function.args
    in_vector = together(bits)
    exponents = ir.VectorType(ir.IntType(bits), 8 * in_vector)
    # of all rows: words of the accumulators between blocks, and the fields of a block's largest exponents
    words_at, largest_at = _room(b, 512), _room(b, 16 * bits)
    fraction_field = b.shl(b.trunc(fraction, I32), ir.Constant(I32, 23))
    upward = v.splat(b.add(ir.Constant(I32, 254 << 23), fraction_field))  # less X: 2**(F - X)
    raised = v.splat(b.add(ir.Constant(I32, (127 + LOWERED) << 23), fraction_field))  # less X: F - X + LOWERED
    downward = v.splat(fraction_field)  # taken from X: 2**(X - F)
    keep = v.splat(b.shl(ir.Constant(I32, -1), b.trunc(b.sub(_c64(23), out_fraction), I32)))
    lowest = FLOOR[bits] + 127
    least = lanes_of(exponents, lowest)
    if half:
        least = _splat(b, b.trunc(b.add(floor, _c64(127)), exponents.element), exponents)
    # a wrapped sum is at least 2**32 less the largest one in magnitude
    wrapped = (1 << 32) - (1 << 26) - (32 * 225 << 19 if long else 16 << 27)

    def pairs(index: Value) -> list[Value]:
        return [b.add(b.mul(index, _c64(ROWS // 2)), _c64(p)) for p in range(ROWS // 2)]

    def own_values(word: Value) -> Value:
        """f32 of accumulator words."""
        if half:
            return floats_of_halves(b, b.trunc(word, ir.VectorType(I16, 8)), converts)
        return v.floats(word)

    def largest_exponents(start: Value, stop: Value) -> Value:
        """Of every output, as fields of f32, to `largest_at`; i1: whether there is one without any products."""
        vectors = 16 // in_vector
        greater = b.icmp_unsigned if bits == 8 else b.icmp_signed

        def some(p: Value, largest: list[Value]) -> list[Value]:
            for j in range(UNROLL):
                place = b.add(p, _c64(j))
                column = v.load(b.add(exponents_b, b.mul(place, _c64(bits))), ir.VectorType(exponents.element, 8))
                column = v.shuffle(column, column, list(range(8)) * in_vector)
                for h in range(vectors):
                    row = v.load(b.add(exponents_a, b.shl(b.add(b.mul(k, _c64(h)), place), _c64(5))), exponents)
                    total = b.add(row, column)
                    largest[h] = b.select(greater(">", total, largest[h]), total, largest[h])
            return largest

        found = loop(b, start, stop, UNROLL, [least] * vectors, some)
        # from eight columns of a row to four columns of two rows
        starts = [16 * p + 4 * q + 8 * r for p in range(in_vector // 2) for q in (0, 1) for r in (0, 1)]
        lanes = [start + j for start in starts for j in range(4)]
        for h in range(vectors):
            v.store(v.at(largest_at, 32 * h), v.shuffle(found[h], found[h], lanes))
        if half:
            return ir.Constant(I1, 0)
        smallest = _fold(lambda x, y: b.select(b.icmp_unsigned("<", x, y), x, y), found)
        whole = ir.IntType(exponents.count)
        bare = b.bitcast(b.icmp_unsigned("==", smallest, least), whole)
        return b.icmp_unsigned("!=", bare, ir.Constant(whole, 0))

    def multiply(start: Value, stop: Value, index: Value, part: list[Value], scales: list[Value]) -> list[Value]:
        """Sums of four vectors, to which `part` is added."""
        row_values = [b.add(values_a, b.shl(b.mul(pair, k), _c64(5))) for pair in pairs(index)]

        def terms(p: Value, partial: list[Value]) -> list[Value]:
            along = b.shl(p, _c64(5))
            for j in range(UNROLL):
                column = v.at(b.add(values_b, along), 32 * j)
                ys = [v.load(v.at(column, 16 * q), ir.VectorType(F32, 4)) for q in (0, 1)]
                ys = [v.shuffle(y, y, [0, 1, 2, 3] * 2) for y in ys]
                xs = [v.load(v.at(b.add(rows, along), 32 * j), FLOATS) for rows in row_values]
                for n in range(ROWS):
                    x = b.fmul(xs[n // 2], ys[n % 2])
                    x = v.floats(v.add(v.bits(x), scales[n])) if bits == 8 else b.fmul(x, v.floats(scales[n]))
                    partial[n] = v.add(partial[n], v.truncate(x))
            return partial

        return loop(b, start, stop, UNROLL, part, terms)

    def kept(index: Value, n: int) -> Value:
        return v.at(b.add(words_at, b.shl(index, _c64(7))), 32 * n)

    def accumulators(first: Value, index: Value) -> list[Value]:
        """Words of four rows; `first`: before the first block."""
        return either(
            b,
            first,
            lambda: [word for pair in pairs(index) for word in load_pair(v, c, pair, half)],
            lambda: [v.load(kept(index, n), INTS) for n in range(ROWS)],
        )

    def begin(first: Value, index: Value) -> tuple[list[Value], list[Value]]:
        """c, and fields of 2**X, of four rows."""
        words, tops = accumulators(first, index), []
        for n, word in enumerate(words):
            place = v.at(b.add(largest_at, b.mul(index, _c64(bits * ROWS))), bits * n)
            top = v.shl(b.zext(v.load(place, ir.VectorType(exponents.element, 8)), INTS), 23)
            own = v.bit_and(v.bits(own_values(word)), _FIELD)
            if half:
                own = v.select(v.equal(v.bit_and(word, 0x7FFF), 0), 0, v.maximum(own, (127 - 14) << 23))
            tops.append(v.maximum(top, own))
        return words, tops

    def mark(index: Value, n: int, mask: Value, left: Value) -> Value:
        """`left` with the rows that have a lane of the mask in vector n."""
        lanes = b.zext(b.bitcast(mask, I8), I64)
        for r, of in enumerate((0x0F, 0xF0)):
            found = b.icmp_unsigned("!=", b.and_(lanes, _c64(of)), _c64(0))
            row = b.add(b.shl(pairs(index)[n // 2], _c64(1)), _c64(r))
            left = b.or_(left, b.shl(b.zext(found, I64), row))
        return left

    def without_products(index: Value, words: list[Value], tops: list[Value], left: Value) -> Value:
        """Leave a row where c lies below the floor to the model."""
        for n, (word, top) in enumerate(zip(words, tops, strict=True)):
            a = v.bit_and(word, _ALL)
            lost = b.and_(v.greater(lowest << 23, a), b.not_(v.equal(a, 0)))
            left = mark(index, n, b.and_(lost, v.equal(top, lowest << 23)), left)
        return left

    def cut_words(words: list[Value], tops: list[Value]) -> list[Value]:
        scaled = [b.fmul(own_values(w), v.floats(v.sub(upward, t))) for w, t in zip(words, tops, strict=True)]
        return [v.freeze(v.truncate(x)) for x in scaled]

    def scale_bits(tops: list[Value]) -> list[Value]:
        if bits == 8:
            return [v.maximum(v.sub(raised, top), 1 << 23) for top in tops]
        return [v.sub(upward, top) for top in tops]

    def quick(totals: list[Value], sizes: list[Value], scales: list[Value]) -> list[Value]:
        """Results of four rows, of sums in the range of int32."""
        results = []
        for total, size, scale in zip(totals, sizes, scales, strict=True):
            down = v.sub((254 if bits == 16 else 127 + LOWERED) << 23, scale)  # field of 2**(X - F)
            if half and not converts:
                results.append(round_f16(v, v.exact_doubles(total), v.sub(v.shr(down, 23), 127)))
                continue
            exact = v.bit_and(size, v.bit_xor(v.shr(size, 24), v.const(-1)))
            number = b.sitofp(exact, FLOATS)
            if half:
                number = v.floats(v.bit_or(v.bits(number), v.select(v.equal(exact, size), 0, 1)))
            number = b.fmul(number, v.floats(down))
            if half:
                word = v.floats(v.bit_or(v.bits(number), v.bit_and(total, _SIGN)))
                word = b.bitcast(b.fptrunc(word, ir.VectorType(ir.HalfType(), 8)), ir.VectorType(I16, 8))
                word = b.zext(word, INTS)
                results.append(v.select(v.equal(v.bit_and(word, 0x7FFF), 0), 0, word))
            else:
                results.append(v.bit_or(v.bit_and(v.bits(number), keep), v.bit_and(total, _SIGN)))
        return results

    def careful(first: Value, start: Value, index: Value, totals: list[Value], left: Value) -> list[Value]:
        """Results of four rows from sums in f64, and `left` with the rows whose c is an infinity or NaN. What it needs
        is made again, so that nothing has to be kept for it."""
        words, tops = begin(first, index)
        part, results = cut_words(words, tops), []
        if long:
            part = multiply(start, b.add(start, _c64(CHUNK)), index, part, scale_bits(tops))
        for n, (word, top) in enumerate(zip(words, tops, strict=True)):
            total = b.fadd(v.exact_doubles(part[n]), v.exact_doubles(v.sub(totals[n], part[n])))
            exponent = v.sub(v.shr(v.sub(top, downward), 23), 127)
            result = round_f16(v, total, exponent) if half else v.bit_and(_round_f32(v, total, exponent), keep)
            results.append(result)
            magnitude = v.bit_and(word, 0x7FFF if half else _ALL)
            left = mark(index, n, v.greater(magnitude, (0x7C00 if half else _FIELD) - 1), left)
        return [*results, left]

    def put(index: Value, results: list[Value], left: Value) -> list[Value]:
        for p, pair in enumerate(pairs(index)):
            for r in range(2):
                bit = b.and_(b.lshr(left, b.add(b.shl(pair, _c64(1)), _c64(r))), _c64(1))
                with b.if_then(b.icmp_unsigned("==", bit, _c64(0))):
                    store_row(v, out, pair, r, results[2 * p : 2 * p + 2], half)
        return []

    def put_all(index: Value, results: list[Value]) -> list[Value]:
        for p, pair in enumerate(pairs(index)):
            store_pair(v, out, pair, results[2 * p : 2 * p + 2], half)
        return []

    def keep_words(index: Value, results: list[Value]) -> list[Value]:
        for n, word in enumerate(results):
            v.store(kept(index, n), word)
        return []

    def one_block(block_index: Value, done: list[Value]) -> list[Value]:
        start = b.mul(block_index, block)
        stop = b.add(start, block)
        stop = b.select(b.icmp_signed("<", stop, k), stop, k)
        bare = largest_exponents(start, stop)
        first, last = b.icmp_signed("==", start, _c64(0)), b.icmp_signed("==", stop, k)

        def some_rows(index: Value, state: list[Value]) -> list[Value]:
            words, tops = begin(first, index)
            (left,) = rarely(b, bare, state, lambda old: [without_products(index, words, tops, old[0])])
            scales = scale_bits(tops)
            totals = multiply(start, stop, index, cut_words(words, tops), scales)
            sizes = [v.select(v.greater(0, total), v.sub(0, total), total) for total in totals]
            odd = b.icmp_unsigned(">", _fold(v.maximum_unsigned, sizes), v.const(wrapped - 1))
            # the scale of an infinite c, or of one so large that all products are cut to nothing
            end = v.const(1 << 23) if bits == 8 else v.sub(upward, _FIELD)
            odd = v.any(b.or_(odd, v.equal(_fold(v.minimum, scales), end)))
            *results, left = either(
                b,
                odd,
                lambda: careful(first, start, index, totals, left),
                lambda: [*quick(totals, sizes, scales), left],
                rare=True,
            )

            def store() -> list[Value]:
                return either(
                    b,
                    b.icmp_unsigned("==", left, _c64(0)),
                    lambda: put_all(index, results),
                    lambda: put(index, results, left),
                )

            either(b, last, store, lambda: keep_words(index, results))
            return [left]

        return loop(b, _c64(0), _c64(16 // ROWS), 1, done, some_rows)

    # the step of the block loop is a run-time value: count in blocks
    count = b.udiv(b.sub(b.add(k, block), _c64(1)), block)
    (left,) = loop(b, _c64(0), count, 1, [_c64(0)], one_block)
    b.ret(left)
    return function
