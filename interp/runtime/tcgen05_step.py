"""What a tcgen05 operation does when it takes effect: products into tensor memory, and copies to it.

With `.cta_group::2` each CTA of the pair multiplies its half of the rows of A, from its own memory at the same
descriptor, by all columns of B, the first half of which lies in the even CTA. A copy takes rows of 16 or 32 bytes from
each CTA's own shared memory. How rows are multiplied: `interp.runtime.tcgen05_rows`.
"""

from __future__ import annotations

from interp.runtime.access import get, peer, put
from interp.runtime.bulk_list import COUNT, DONE, E_KIND, E_SITE, E_WARP, ENTRY_BYTES, FIRST, HEADER_BYTES, TENSOR
from interp.runtime.indirect import STEP_SIGNATURE
from interp.runtime.layout import CTX
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native, stack_scratch, store_u32, store_u64, u64
from interp.runtime.tcgen05 import (
    MULTIPLY,
    SPREAD_02_13,
    SPREAD_ALL,
    SPREAD_NONE,
    T_A,
    T_B,
    T_D,
    T_ENABLE,
    T_FLAGS,
    T_IDESC,
    T_METADATA,
    T_OPERATION,
    T_SCALE_A,
    T_SCALE_B,
)
from interp.runtime.tcgen05_law import multiply_by_law, scale_columns
from interp.runtime.tcgen05_matrix import (
    FOUR,
    FULL,
    HALF,
    TWO,
    chunk_address,
    gather_lanes,
    gather_shared,
    shared_host,
    unpack_chunk,
)
from interp.runtime.tcgen05_metadata import is_wide
from interp.runtime.tcgen05_rows import element_kind, multiply_by_strips
from interp.runtime.tcgen05_rules import (
    A_IN_TENSOR_MEMORY,
    KIND_F8F6F4,
    KIND_I8,
    KIND_MXF4,
    KIND_MXF8F6F4,
    PAIR,
    SCALE_D_SHIFT,
    SPARSE,
    STATIONARY,
    column_chunks,
    column_shift,
    columns_of,
    element_size,
    is_masked,
    row_chunks,
    rows_of,
)
from interp.runtime.tensor_memory import CELLS, cell, check_columns, memory_fault
from interp.runtime.tensor_reasons import MISALIGNED_LANE

_BULK, _MEMORY, _RANK, _FAULT = (8 * CTX[n] for n in ("BULK", "TENSOR_MEMORY", "CLUSTER_CTARANK", "FAULT"))


@symbol("tcgen05_step", STEP_SIGNATURE)
def tcgen05_step(ctx: int, entry: int) -> int:
    """Do all operations of the CTA's list up to an entry, in order."""
    bulk = get(ctx + _BULK)
    for e in range(get(bulk + FIRST), get(bulk + COUNT)):
        at = bulk + HEADER_BYTES + e * ENTRY_BYTES
        if get(at + E_KIND) == TENSOR:
            put(at + E_KIND, i64(DONE))
            if get(ctx + _FAULT) == 0:
                if get(at + T_OPERATION) == MULTIPLY:
                    _multiply(ctx, at)
                else:
                    _copy(ctx, at)
        if at == entry:
            break
    return 0


@native
def _layout(flags: int, m: int) -> int:
    if flags & STATIONARY:
        return i64(FULL if m == 128 else TWO if m == 64 else FOUR)
    if flags & PAIR:
        return i64(FULL if m == 256 else TWO)
    return i64(FULL if m == 128 else HALF)


@native
def _multiply(ctx: int, entry: int) -> None:
    flags, idesc = get(entry + T_FLAGS), get(entry + T_IDESC)
    warp, site = get(entry + E_WARP), get(entry + E_SITE)
    kind, n = flags & 7, columns_of(idesc)
    integer = kind == KIND_I8
    b, chunks = stack_scratch(16384), column_chunks(flags, idesc)
    kind_b = i64(0) if integer or kind >= KIND_MXF4 else element_kind(kind, idesc >> 10 & 7)
    first, ctas = ctx, i64(1)
    if flags & PAIR:
        first, ctas = peer(ctx, get(ctx + _RANK) & ~i64(1)), i64(2)
    shift = column_shift(get(entry + T_SCALE_A)) if flags & STATIONARY else i64(0)
    for c in range(ctas):
        at = b + c * (n // ctas) * 16 * chunks
        owner = peer(first, get(first + _RANK) + c)
        transpose, size = idesc >> 16 & 1 != 0, element_size(kind)
        if not gather_shared(
            owner, warp, site, get(entry + T_B), transpose, size, kind_b, shift, n // ctas, chunks, at
        ):
            _pass_on(ctx, owner)
            return
    if flags & STATIONARY:
        _clear_columns(get(entry + T_SCALE_A), rows_of(kind, idesc), n, chunks, b)
    for c in range(ctas):
        owner = peer(first, get(first + _RANK) + c)
        _multiply_rows(owner, entry, b, c)
        _pass_on(ctx, owner)


@native
def _clear_columns(zeros: int, m: int, n: int, chunks: int, b: int) -> None:
    """Columns of B that a zero-column mask names become zero."""
    for column in range(n):
        if is_masked(zeros, m, n * m >> 7, column):
            for i in range(2 * chunks):
                store_u64(b + 16 * chunks * column + 8 * i, u64(0))


@native
def _pass_on(ctx: int, other: int) -> None:
    """A fault in the memory of the peer is one of the CTA that issued the operation."""
    if ctx != other and get(other + _FAULT) != 0 and get(ctx + _FAULT) == 0:
        for i in range(6):
            put(ctx + _FAULT + 8 * i, get(other + _FAULT + 8 * i))


@native
def _multiply_rows(ctx: int, entry: int, b: int, half: int) -> None:
    """The rows of one CTA: `b` has all columns of B, `half` is the number of the CTA in its pair."""
    flags, idesc = get(entry + T_FLAGS), get(entry + T_IDESC)
    warp, site = get(entry + E_WARP), get(entry + E_SITE)
    kind, n, m = flags & 7, columns_of(idesc), rows_of(flags & 7, idesc)
    layout = _layout(flags, m)
    rows = m // 2 if flags & PAIR else m
    d, a = get(entry + T_D), get(entry + T_A)
    if d >> 16 != 0 and not (layout == HALF and d >> 16 == 16):
        memory_fault(ctx, warp, site, d, MISALIGNED_LANE)
        return
    parts = i64(2 if layout == TWO else 4 if layout == FOUR else 1)
    width = n // parts
    if not check_columns(ctx, warp, site, d, d & 0xFFFF, width):
        return
    fragments, chunks = stack_scratch(8192), row_chunks(kind, idesc)
    kind_a = i64(0) if kind == KIND_I8 or kind >= KIND_MXF4 else element_kind(kind, idesc >> 7 & 7)
    if flags & A_IN_TENSOR_MEMORY:
        if a >> 16 != (d >> 16 if layout == HALF else 0):
            memory_fault(ctx, warp, site, a, MISALIGNED_LANE)
            return
        if not check_columns(ctx, warp, site, a, a & 0xFFFF, 4 * chunks):
            return
        gather_lanes(ctx, layout, a, rows, chunks, fragments)
    elif not gather_shared(
        ctx, warp, site, a, idesc >> 15 & 1 != 0, element_size(kind), kind_a, i64(0), rows, chunks, fragments
    ):
        return
    if kind >= KIND_MXF8F6F4:
        for at, count in ((get(entry + T_SCALE_A), rows), (get(entry + T_SCALE_B), width)):
            if not check_columns(ctx, warp, site, at, at & 0xFFFF, scale_columns(kind, idesc, count)):
                return
    sparse = flags & SPARSE != 0
    if sparse and not _metadata_is_good(ctx, warp, site, get(entry + T_METADATA), kind, idesc):
        return
    small = kind == KIND_F8F6F4 and (idesc >> 7 & 7 > 1 or idesc >> 10 & 7 > 1)
    lowered = flags >> SCALE_D_SHIFT & 15 != 0 and get(entry + T_ENABLE) != 0
    if kind >= KIND_MXF8F6F4 or small or lowered or sparse:
        multiply_by_law(ctx, entry, fragments, b, rows, layout, width, half)
    else:
        multiply_by_strips(ctx, entry, fragments, b, rows, layout, width, half)


@native
def _metadata_is_good(ctx: int, warp: int, site: int, address: int, kind: int, idesc: int) -> bool:
    """Whether sparsity metadata lies in allocated columns from lane 0 on, with a fault if not."""
    if address >> 16 != 0:
        memory_fault(ctx, warp, site, address, MISALIGNED_LANE)
        return False
    if is_wide(kind):
        return check_columns(ctx, warp, site, address, (address & 0xFFFF) + (idesc & 3), 1)
    return check_columns(ctx, warp, site, address, address & 0xFFFF, 2)


@native
def _copy(ctx: int, entry: int) -> None:
    """Rows of shared memory to lanes, in both CTAs of a pair for `.cta_group::2`."""
    if get(entry + T_FLAGS) >> 32 & 1:
        first = peer(ctx, get(ctx + _RANK) & ~i64(1))
        for c in range(2):
            owner = peer(first, get(first + _RANK) + c)
            _copy_rows(owner, entry)
            _pass_on(ctx, owner)
    else:
        _copy_rows(ctx, entry)


@native
def _copy_rows(ctx: int, entry: int) -> None:
    form, descriptor, to = get(entry + T_FLAGS), get(entry + T_A), get(entry + T_D)
    warp, site = get(entry + E_WARP), get(entry + E_SITE)
    rows, chunks, spread, bits = form & 255, form >> 8 & 255, form >> 16 & 255, form >> 24 & 255
    if to >> 16 != 0:
        memory_fault(ctx, warp, site, to, MISALIGNED_LANE)
        return
    if not check_columns(ctx, warp, site, to, to & 0xFFFF, 4 * chunks):
        return
    cells, room = get(ctx + _MEMORY) + CELLS, stack_scratch(64)
    for row in range(rows):
        for chunk in range(chunks):
            source = shared_host(ctx, warp, site, chunk_address(descriptor, row, chunk), 16)
            if source == 0:
                return
            if bits:
                unpack_chunk(source, bits, 2 if bits == 4 else 0, room)
                source = room
            for c in range(4):
                word, column = load_u32(source + 4 * c), (to & 0xFFFF) + 4 * chunk + c
                if spread == SPREAD_NONE:
                    store_u32(cell(cells, row, column), word)
                elif spread == SPREAD_ALL:
                    for quarter in range(4):
                        store_u32(cell(cells, row + 32 * quarter, column), word)
                elif spread == SPREAD_02_13:
                    store_u32(cell(cells, row, column), word)
                    store_u32(cell(cells, row + 64, column), word)
                else:
                    lane = (row >> 5) * 64 + (row & 31)
                    store_u32(cell(cells, lane, column), word)
                    store_u32(cell(cells, lane + 32, column), word)
