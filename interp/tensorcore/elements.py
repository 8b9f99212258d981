"""Elements of register fragments, one at a time: for matrix instructions that have no fast path.

All shapes follow one rule (`fragments.py`), here for rows 8 or 16 and elements of 1 to 32 bits. A sparse A holds half
of its logical columns; its metadata says which. Source: PTX ISA, 'Matrix fragments for mma', 'Sparse matrix storage';
where the metadata lies, which the manual shows in figures only, is as CUTLASS and TileLang write it:

* f16, bf16, tf32: a lane's word has four nibbles of row g (its quad's number) in the lower half and of row g + 8 in
  the upper; with four nibbles a row the lane of the quad that the selector names, with eight the pair of lanes.
* 8 and 4 bits: the first lane of a pair has row g, the second row g + 8, eight nibbles each; with eight nibbles a row
  the pair that the selector names, with sixteen both pairs in order.

A nibble has two indices: of the two elements of four that are there (4 bits: of the two pairs of four pairs; tf32: one
element of two, its index twice)."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.runtime.raw import load_u16, load_u32, native, native_inline, store_u8, store_u16, store_u32

Word = Any


@native_inline
def _part(word: Word, index: Word, bits: int) -> Word:
    return word if bits == 32 else word >> np.uint32(index * bits) & np.uint32((1 << bits) - 1)


@native
def element_a(a: int, row: int, k: int, bits: int, rows: int) -> Word:
    """Element (row, k) of A, as uint32."""
    per = 32 // bits
    step, inside = k // (4 * per), k % (4 * per)
    register = (step << (rows >> 4)) + (row >> 3)
    return _part(load_u32(a + (register * 32 + (row & 7) * 4 + inside // per) * 4), inside % per, bits)


@native
def element_b(b: int, k: int, column: int, bits: int) -> Word:
    """Element (k, column) of B, as uint32."""
    per = 32 // bits
    step, inside = k // (4 * per), k % (4 * per)
    return _part(load_u32(b + (step * 32 + column * 4 + inside // per) * 4), inside % per, bits)


@native_inline
def place_c(row: Word, column: Word, half: int) -> Word:
    """Byte offset of element (row, column) of C or D: 32-bit words, or with `half` 16-bit ones."""
    if half:
        return (row >> 3) * 128 + (row & 7) * 16 + column * 2
    return (row >> 3) * 256 + (column & 1) * 128 + (row & 7) * 16 + (column >> 1) * 4


@native
def load_c(c: int, row: int, column: int, half: int) -> Word:
    """A word of C."""
    at = c + place_c(row, column, half)
    return np.uint32(load_u16(at)) if half else load_u32(at)


@native
def store_d(d: int, row: int, column: int, half: int, word: Word) -> None:
    """A word of D."""
    at = d + place_c(row, column, half)
    if half:
        store_u16(at, np.uint16(word))
    else:
        store_u32(at, np.uint32(word))


@native
def logical_k(metadata: int, selector: int, row: int, stored: int, depth: int, bits: int) -> Word:
    """The logical column of a stored one of a sparse A. depth: logical columns; bits: of an element."""
    # stored elements of a nibble, logical ones, and nibbles of a row
    held = 1 if bits == 32 else (4 if bits == 4 else 2)
    nibbles = depth // (2 * held)
    nibble, inside = stored // held, stored % held
    upper = row >> 3
    if bits >= 16:
        lane = selector if nibbles == 4 else 2 * selector + nibble // 4
        at = 16 * upper + 4 * (nibble % 4)
    else:
        pair = selector if nibbles == 8 else nibble // 8
        lane = 2 * pair + upper
        at = 4 * (nibble % 8)
    word = np.int64(load_u32(metadata + ((row & 7) * 4 + lane) * 4)) >> at & 15
    if bits == 32:
        return nibble * 2 + (word >> 1 & 1)
    if bits == 4:
        return nibble * 8 + 2 * (word >> 2 * (inside >> 1) & 3) + (inside & 1)
    return nibble * 4 + (word >> 2 * inside & 3)


@native_inline
def put_element(at: int, index: Word, word: Word, size: int) -> None:
    """Store an element of `size` bytes as number `index` of a row."""
    if size == 1:
        store_u8(at + index, np.uint8(word))
    elif size == 2:
        store_u16(at + 2 * index, np.uint16(word))
    else:
        store_u32(at + 4 * index, word)
