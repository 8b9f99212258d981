"""The inner kernel of the fast path: sixteen rows of A against eight columns of B, emitted as vector code.

Four rows at a time, eight columns a vector. First the largest exponent of every output: exponents are bytes (or 16-bit
words), so one saturating addition and one maximum do 32 (16) products. Then four operations for eight products.

Why it equals the model. A product of two operands has at most 22 significant bits, so its f32 is exact, and so is its
product with 2**(F - X), unless that falls below the normal range, where the cut gives zero in any case; the conversion
to integer is the cut. The same holds for c. A term is below 2**(F + 2) <= 2**27 in magnitude, sixteen (for the 8-bit
types, whose significands have at most 4 bits, seventeen) and c stay below 2**31 + 2**26: the int32 sum is right modulo
2**32, and a sum that may have left the range looks larger than any other can be, which is looked for; such sums are
done again in f64, where they are exact (`_large`). Rounding toward zero: of a sum with more than 24 bits those
lower bits are cleared that the upper ones, shifted by 24, show as ones. The highest bit that has to go is always among
them, so what remains is less than half a place, which the conversion's rounding to nearest drops. f16 results get the
lost bits back as the last bit of the f32 (rounding to odd), and are rounded to nearest-even from that.

What it does not handle is reported row by row: NaN or Inf in c; where all products are so small that 2**FLOOR is
larger, a c that is not zero and smaller still.
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
from interp.tensorcore.operands import LOWERED, floats_of_halves, together

UNROLL = 4  # blocks are multiples of four products
CHUNK = 16  # products whose terms fit an int32 sum
ROWS = 4  # rows at once: they share the loads of B, and their chains of dependent operations overlap
FLOOR = {8: -48, 16: -101}
"""Least exponent X with an f32 result, by width of the exponents: below that of any product of two operands that are
not zero (`operands.MODERATE`), and such that 2**(X - 25) is a normal f32, and its inverse is one, too. Hardware's floors
are lower."""

_ALL, _FIELD, _SIGN = 0x7FFFFFFF, 0x7F800000, 0x80000000


def _c64(value: int) -> Value:
    return ir.Constant(I64, value)


def _pair(b: ir.IRBuilder, base: Value, pair: Value, half: bool) -> Value:
    """Address of two rows' accumulator words in the even register (f16: in the only one)."""
    upper = b.shl(b.lshr(pair, _c64(2)), _c64(7 if half else 8))
    return b.add(base, b.add(upper, b.shl(b.and_(pair, _c64(3)), _c64(5))))


def _load_pair(v: Lanes, base: Value, pair: Value, half: bool) -> list[Value]:
    """Two rows' accumulator words: of the even columns, of the odd ones."""
    place = _pair(v.b, base, pair, half)
    if half:
        words = v.load(place, INTS)
        return [v.bit_and(words, 0xFFFF), v.shr(words, 16)]
    return [v.load(place, INTS), v.load(v.at(place, 128), INTS)]


def _store_pair(v: Lanes, base: Value, pair: Value, words: list[Value], half: bool) -> None:
    """The inverse of `_load_pair`."""
    place = _pair(v.b, base, pair, half)
    if half:
        v.store(place, v.bit_or(words[0], v.shl(words[1], 16)))
    else:
        v.store(place, words[0])
        v.store(v.at(place, 128), words[1])


def _store_row(v: Lanes, base: Value, pair: Value, second: int, words: list[Value], half: bool) -> None:
    """One row of two."""
    place = v.at(_pair(v.b, base, pair, half), 16 * second)
    even, odd = (v.shuffle(w, w, list(range(4 * second, 4 * second + 4))) for w in words)
    if half:
        v.store(place, v.b.or_(even, v.b.shl(odd, ir.Constant(odd.type, [16] * 4))))
    else:
        v.store(place, even)
        v.store(v.at(place, 128), odd)


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

        def some(p: Value, largest: list[Value]) -> list[Value]:
            for j in range(UNROLL):
                place = b.add(p, _c64(j))
                column = v.load(b.add(exponents_b, b.mul(place, _c64(bits))), ir.VectorType(exponents.element, 8))
                column = v.shuffle(column, column, list(range(8)) * in_vector)
                for h in range(vectors):
                    row = v.load(b.add(exponents_a, b.shl(b.add(b.mul(k, _c64(h)), place), _c64(5))), exponents)
                    total = b.add(row, column)
                    greater = b.icmp_unsigned if bits == 8 else b.icmp_signed
                    largest[h] = b.select(greater(">", total, largest[h]), total, largest[h])
            return largest

        found = loop(b, start, stop, UNROLL, [least] * vectors, some)
        # from eight columns of a row to four columns of two rows
        lanes = [16 * p + 4 * q + 8 * r + j for p in range(in_vector // 2) for q in (0, 1) for r in (0, 1) for j in range(4)]
        for h in range(vectors):
            v.store(v.at(largest_at, 32 * h), v.shuffle(found[h], found[h], lanes))
        if half:
            return ir.Constant(I1, 0)
        smallest = _fold(lambda x, y: b.select(b.icmp_unsigned("<", x, y), x, y), found)
        whole = ir.IntType(exponents.count)
        bare = b.bitcast(b.icmp_unsigned("==", smallest, least), whole)
        return b.icmp_unsigned("!=", bare, ir.Constant(whole, 0))

    def sums(
        start: Value, stop: Value, first: list[Value], scales: list[Value], row_values: list[Value]
    ) -> list[Value]:
        """The cut products of four rows added to integers."""

        def terms(p: Value, partial: list[Value]) -> list[Value]:
            along = b.shl(p, _c64(5))
            for j in range(UNROLL):
                column = v.at(b.add(values_b, along), 32 * j)
                ys = [v.load(v.at(column, 16 * q), ir.VectorType(F32, 4)) for q in (0, 1)]
                ys = [v.shuffle(y, y, [0, 1, 2, 3] * 2) for y in ys]
                xs = [v.load(v.at(b.add(rows, along), 32 * j), FLOATS) for rows in row_values]
                for n in range(ROWS):
                    product = b.fmul(xs[n // 2], ys[n % 2])
                    if bits == 8:
                        product = v.floats(v.add(v.bits(product), scales[n]))
                    else:
                        product = b.fmul(product, scales[n])
                    partial[n] = v.add(partial[n], v.truncate(product))
            return partial

        return loop(b, start, stop, UNROLL, first, terms)

    def kept(index: Value, n: int) -> Value:
        return v.at(b.add(words_at, b.shl(index, _c64(7))), 32 * n)

    def accumulators(first: Value, index: Value) -> list[Value]:
        """Words of four rows; `first`: before the first block."""
        return either(
            b,
            first,
            lambda: [word for pair in pairs(index) for word in _load_pair(v, c, pair, half)],
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

    def multiply(start: Value, stop: Value, index: Value, part: list[Value], scales: list[Value]) -> list[Value]:
        """Sums of four rows, to which `part` is added."""
        row_values = [b.add(values_a, b.shl(b.mul(pair, k), _c64(5))) for pair in pairs(index)]
        return sums(start, stop, part, scales, row_values)

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
                    _store_row(v, out, pair, r, results[2 * p : 2 * p + 2], half)
        return []

    def put_all(index: Value, results: list[Value]) -> list[Value]:
        for p, pair in enumerate(pairs(index)):
            _store_pair(v, out, pair, results[2 * p : 2 * p + 2], half)
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
            operand = scales if bits == 8 else [v.floats(scale) for scale in scales]
            totals = multiply(start, stop, index, cut_words(words, tops), operand)
            sizes = [v.select(v.greater(0, total), v.sub(0, total), total) for total in totals]
            odd = b.icmp_unsigned(">", _fold(lambda x, y: b.select(b.icmp_unsigned(">", x, y), x, y), sizes), v.const(wrapped - 1))
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
