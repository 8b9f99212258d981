"""The inner kernel of the fast path: sixteen rows of A against eight columns of B, emitted as vector code.

Why it equals the model. A product of two operands has at most 22 significant bits, so its f32 (for widely spread
exponents: f64) product is exact; so is scaling by 2**(F - X), unless the result falls below the normal range, where
the cut gives zero in any case; the conversion to integer is the cut. A term is below 2**(F + 2) <= 2**27 in magnitude,
so sixteen fit an int32 sum; sums of such sums are exact in f64. Rounding toward zero clears low bits of the f64
significand, f16 rounding is one f64 addition.

What it does not handle is reported row by row: NaN or Inf in c, and f32 results below the normal range.
"""

from __future__ import annotations

from llvmlite import ir

from interp.runtime.vector import DOUBLES, F32, F64, FLOATS, I1, I32, I64, INTS, Lanes, Value, define, loop
from interp.tensorcore.operands import NOTHING

CHUNK = 16  # terms that fit an int32 sum
UNROLL = 4  # blocks are multiples of four products
ROWS = 2  # rows at once; four are no faster and take twice as long to compile


def _c64(value: int) -> Value:
    return ir.Constant(I64, value)


def _half_shift() -> Value:
    """Shift that puts an f16 into the lower or upper half: 0 in the even columns, 16 in the odd ones."""
    return ir.Constant(INTS, [0] * 4 + [16] * 4)


def _place(b: ir.IRBuilder, base: Value, row: Value, half: bool) -> Value:
    """Address of a row's accumulator words in the even register (f16: in the only one)."""
    upper = b.shl(b.lshr(row, _c64(3)), _c64(7 if half else 8))
    return b.add(base, b.add(upper, b.shl(b.and_(row, _c64(7)), _c64(4))))


def load_accumulator(v: Lanes, base: Value, row: Value, half: bool) -> Value:
    """A row's accumulator words, columns in the order 0 2 4 6 1 3 5 7."""
    place = _place(v.b, base, row, half)
    if half:
        return v.bit_and(v.shr(v.load_halves(place, place), _half_shift()), 0xFFFF)
    return v.load_halves(place, v.at(place, 128))


def store_accumulator(v: Lanes, base: Value, row: Value, words: Value, half: bool) -> None:
    """The inverse of `load_accumulator`."""
    place = _place(v.b, base, row, half)
    if half:
        even, odd = v.shuffle(words, words, [0, 1, 2, 3]), v.shuffle(words, words, [4, 5, 6, 7])
        v.store(place, v.b.or_(even, v.b.shl(odd, ir.Constant(odd.type, [16] * 4))))
    else:
        v.store_halves(place, v.at(place, 128), words)


def split_accumulator(v: Lanes, word: Value, half: bool) -> tuple[Value, Value, Value, Value]:
    """(exponent or NOTHING, significand in units of 2**(exponent - 25), sign as 0 or -1, mask of NaN and Inf)."""
    fraction, bias, finite = (10, 15, 0x7BFF) if half else (23, 127, 0x7F7FFFFF)
    a = v.bit_and(word, 0x7FFF if half else 0x7FFFFFFF)
    field = v.shr(a, fraction)
    hidden = v.select(v.equal(field, 0), 0, 0x2000000)
    significand = v.bit_or(v.shl(v.bit_and(a, (1 << fraction) - 1), 25 - fraction), hidden)
    exponent = v.select(v.equal(a, 0), NOTHING, v.sub(v.maximum(field, 1), bias))
    sign = v.sub(0, v.shr(word, 15 if half else 31))
    return exponent, significand, sign, v.greater(a, finite)


def round_f32(v: Lanes, total: Value, exponent: Value, keep: Value) -> tuple[Value, Value]:
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


def kernel(module: ir.Module, half: bool, wide: bool) -> ir.Function:
    """i64 (out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction).

    Writes every row that it can do and returns a bit for each of the others. half: c and out are f16. wide: products
    in f64."""
    name = f"gpuemu.tensorcore.kernel.{'f16' if half else 'f32'}.{'wide' if wide else 'moderate'}"
    function, new = define(module, name, I64, [I64] * 11)
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
        """ROWS rows at once: they share the loads of B, and their chains of dependent operations overlap."""
        rows = [b.add(first, _c64(r)) for r in range(ROWS)]
        offsets = [b.shl(b.mul(row, k), _c64(2)) for row in rows]
        row_values = [b.add(values_a, offset) for offset in offsets]
        row_exponents = [b.add(exponents_a, offset) for offset in offsets]

        def largest_exponents(p: Value, largest: list[Value]) -> list[Value]:
            along, across = b.shl(p, _c64(2)), b.shl(p, _c64(5))
            for j in range(UNROLL):
                column = v.load(v.at(b.add(exponents_b, across), 32 * j), INTS)
                for r in range(ROWS):
                    e = v.splat(v.load(v.at(b.add(row_exponents[r], along), 4 * j), I32))
                    largest[r] = v.maximum(largest[r], v.add(e, column))
            return largest

        def one_block(start: Value, state: list[Value]) -> list[Value]:
            words, redo = state[:ROWS], state[ROWS:]
            stop = b.add(start, block)
            stop = b.select(b.icmp_signed("<", stop, k), stop, k)
            parts = [split_accumulator(v, word, half) for word in words]
            floors = [v.maximum(part[0], floor_v) for part in parts]
            largest = loop(b, start, stop, UNROLL, floors, largest_exponents)
            ups = [v.sub(fraction_v, x) for x in largest]
            sums = []
            for (exponent, significand, sign, special), x, r in zip(parts, largest, range(ROWS), strict=True):
                drop = v.add(v.sub(x, exponent), v.sub(25, fraction_v))
                term = v.shr(significand, v.minimum(drop, 31))
                sums.append(v.exact_doubles(v.sub(v.bit_xor(term, sign), sign)))
                redo[r] = b.or_(redo[r], special)
            # with no product but zeros the scale may be out of range; any will do
            if wide:
                scales = [v.power_of_two(up) for up in ups]
            else:
                scales = [v.floats(v.shl(v.minimum(v.add(up, 127), 254), 23)) for up in ups]

            def terms(p: Value, partial: list[Value]) -> list[Value]:
                along, across = b.shl(p, _c64(2)), b.shl(p, _c64(5))
                for j in range(UNROLL):
                    y = v.load(v.at(b.add(values_b, across), 32 * j), FLOATS)
                    y = b.fpext(y, DOUBLES) if wide else y
                    for r in range(ROWS):
                        x = v.load(v.at(b.add(row_values[r], along), 4 * j), F32)
                        x = v.splat(b.fpext(x, F64) if wide else x)
                        term = v.truncate(b.fmul(b.fmul(x, y), scales[r]))
                        partial[r] = v.add(partial[r], term)
                return partial

            def chunk(begin: Value, totals: list[Value]) -> list[Value]:
                end = b.add(begin, _c64(CHUNK))
                end = b.select(b.icmp_signed("<", end, stop), end, stop)
                partial = loop(b, begin, end, UNROLL, [v.const(0)] * ROWS, terms)
                return [b.fadd(total, v.exact_doubles(x)) for total, x in zip(totals, partial, strict=True)]

            totals = loop(b, start, stop, CHUNK, sums, chunk)
            for r in range(ROWS):
                down = v.sub(0, ups[r])
                if half:
                    words[r] = round_f16(v, totals[r], down)
                else:
                    words[r], tiny = round_f32(v, totals[r], down, keep)
                    redo[r] = b.or_(redo[r], tiny)
            return words + redo

        # the step of the block loop is a run-time value: count in blocks
        state = [load_accumulator(v, c, row, half) for row in rows] + [no_lanes] * ROWS
        count = b.udiv(b.sub(b.add(k, block), _c64(1)), block)
        state = loop(b, _c64(0), count, 1, state, lambda i, s: one_block(b.mul(i, block), s))
        left = done[0]
        for row, word, redo in zip(rows, state[:ROWS], state[ROWS:], strict=True):
            bad = v.any(redo)
            with b.if_then(b.not_(bad)):
                store_accumulator(v, out, row, word, half)
            left = b.or_(left, b.shl(b.zext(bad, I64), row))
        return [left]

    (left,) = loop(b, _c64(0), _c64(16), ROWS, [_c64(0)], some_rows)
    b.ret(left)
    return function
