"""Accumulator fragments of an m16n8 instruction in memory: registers of 32 words, rows 0-7 before rows 8-15.

An f32 accumulator has a register of the even columns and one of the odd ones for each half of the rows, four words a
row: one row is two times four words, columns in the order 0 2 4 6 1 3 5 7; two rows are two vectors of eight words. An
f16 accumulator has one register for both, the odd column in the upper half of a word."""

from __future__ import annotations

from llvmlite import ir

from interp.runtime.vector import I64, INTS, Lanes, Value


def _c64(value: int) -> Value:
    return ir.Constant(I64, value)


def _place(b: ir.IRBuilder, base: Value, row: Value) -> Value:
    """Address of a row's words in the even register."""
    return b.add(base, b.add(b.shl(b.lshr(row, _c64(3)), _c64(8)), b.shl(b.and_(row, _c64(7)), _c64(4))))


def load_accumulator(v: Lanes, base: Value, row: Value) -> Value:
    """A row's words."""
    place = _place(v.b, base, row)
    return v.load_halves(place, v.at(place, 128))


def store_accumulator(v: Lanes, base: Value, row: Value, words: Value) -> None:
    """The inverse of `load_accumulator`."""
    place = _place(v.b, base, row)
    v.store_halves(place, v.at(place, 128), words)


def _pair(b: ir.IRBuilder, base: Value, pair: Value, half: bool) -> Value:
    """Address of two rows' accumulator words in the even register (f16: in the only one)."""
    upper = b.shl(b.lshr(pair, _c64(2)), _c64(7 if half else 8))
    return b.add(base, b.add(upper, b.shl(b.and_(pair, _c64(3)), _c64(5))))


def load_pair(v: Lanes, base: Value, pair: Value, half: bool) -> list[Value]:
    """Two rows' accumulator words: of the even columns, of the odd ones."""
    place = _pair(v.b, base, pair, half)
    if half:
        words = v.load(place, INTS)
        return [v.bit_and(words, 0xFFFF), v.shr(words, 16)]
    return [v.load(place, INTS), v.load(v.at(place, 128), INTS)]


def store_pair(v: Lanes, base: Value, pair: Value, words: list[Value], half: bool) -> None:
    """The inverse of `load_pair`."""
    place = _pair(v.b, base, pair, half)
    if half:
        v.store(place, v.bit_or(words[0], v.shl(words[1], 16)))
    else:
        v.store(place, words[0])
        v.store(v.at(place, 128), words[1])


def store_row(v: Lanes, base: Value, pair: Value, second: int, words: list[Value], half: bool) -> None:
    """One row of two."""
    place = v.at(_pair(v.b, base, pair, half), 16 * second)
    even, odd = (v.shuffle(w, w, list(range(4 * second, 4 * second + 4))) for w in words)
    if half:
        v.store(place, v.b.or_(even, v.b.shl(odd, ir.Constant(odd.type, [16] * 4))))
    else:
        v.store(place, even)
        v.store(v.at(place, 128), odd)
