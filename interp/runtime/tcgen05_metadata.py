"""Sparsity metadata in tensor memory: which columns of a sparse A the stored elements of a row have.

A nibble describes a chunk: of four elements the two that are stored (tf32: of two the one; 4-bit kinds: of four pairs
the two), by two indices as in `mma.sp` (`interp.tensorcore.elements`). Where a row's nibbles lie is shown by the
manual in figures only; here as CUTLASS has it (`tmem_e_frg`, `tmem_e_frg_ws` of
`cute/atom/mma_traits_sm100_frag.hpp`), which agrees with what JAX writes for 8, 16 and 4 bits:

    tf32, f16, bf16   one column. Row r, in sixteens s = r / 16: chunks 0 to 3 at lane 16 s + r mod 8, chunks 4 to 7 at
                      lane 16 s + 8 + r mod 8; in the lower half of the word for r mod 16 < 8, else in the upper half
    8 and 4 bits      two columns: chunk c of row r at lane r, nibble c mod 8 of column c / 8

The address names an even column; with types of the first line the selector of the instruction descriptor says which
column of the pair. Where D has its columns in two or four groups of lanes (`.ws`), each group has a copy of its own,
which is the one that its results use.

Indices that the manual gives no meaning are taken as they are, as an H200 does for `mma.sp` of all types but tf32.
"""

from __future__ import annotations

from interp.runtime.raw import i64, load_u32, native, store_u8, u8
from interp.runtime.tcgen05_rules import KIND_F16, KIND_MXF4, KIND_TF32
from interp.runtime.tensor_memory import cell


@native
def is_wide(kind: int) -> bool:
    """Whether an instruction's metadata is one column, of the pair that the address names."""
    return kind in (KIND_F16, KIND_TF32)


@native
def _nibble(cells: int, address: int, selector: int, wide: bool, row: int, offset: int, chunk: int) -> int:
    column = address & 0xFFFF
    if wide:
        lane = (row & ~15) + (row & 7) + (8 if chunk >= 4 else 0)
        word = i64(load_u32(cell(cells, lane + offset, column + selector)))
        return word >> (16 * (row >> 3 & 1) + 4 * (chunk & 3)) & 15
    return i64(load_u32(cell(cells, row + offset, column + (chunk >> 3)))) >> 4 * (chunk & 7) & 15


@native
def find_columns(
    cells: int, address: int, selector: int, kind: int, row: int, offset: int, count: int, out: int
) -> None:
    """The logical column of each of `count` stored elements of a row of A, a byte each. offset: lanes from the first
    copy of the metadata to that of the group of lanes in question."""
    wide = is_wide(kind)
    held = i64(1 if kind == KIND_TF32 else 4 if kind >= KIND_MXF4 else 2)
    for i in range(count):
        chunk, inside = i // held, i % held
        nibble = _nibble(cells, address, selector, wide, row, offset, chunk)
        if kind == KIND_TF32:
            at = 2 * chunk + (nibble >> 1 & 1)
        elif held == 4:
            at = 8 * chunk + 2 * (nibble >> 2 * (inside >> 1) & 3) + (inside & 1)
        else:
            at = 4 * chunk + (nibble >> 2 * inside & 3)
        store_u8(out + i, u8(at))
