"""Accumulator fragments of an m16n8 instruction, one row at a time: columns in the order 0 2 4 6 1 3 5 7."""

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
