"""`tcgen05.ld`, `tcgen05.st` and their waits: registers of a warp and cells of its quarter of tensor memory.

Source: PTX ISA, 'Tensor Memory and Register Load/Store Instructions'. Which cell a register of a thread is, by shape
(the manual shows it in figures; CUTLASS writes the same as layouts, `cute/atom/copy_traits_sm100.hpp`); t is the
thread, r the register:

    .32x32b    lane t                         column r
    .16x64b    lane t / 4 + 8 (t mod 2)       column 2 r + t / 2 mod 2
    .16x128b   lane t / 4 + 8 (r mod 2)       column 4 (r / 2) + t mod 4
    .16x256b   lane t / 4 + 8 (r / 2 mod 2)   column 8 (r / 4) + 2 (t mod 4) + r mod 2
    .16x32bx2  lane t mod 16                  column r, threads 16 ... from the second address

With `.pack::16b` and `.unpack::16b` a register is the low halves of two neighbouring columns, so columns count double;
the upper halves are left out of a load and zero after a store.

**When.** A store under `late` completion is kept aside until `wait::st` of its warp: what reads the cells before sees
what they held. A load gives its registers at once, which the manual allows (reading a register waits for it); that a
product overwrites the cells before a forgotten `wait::ld` is not noticed.
"""

from __future__ import annotations

from interp.runtime.access import get, put
from interp.runtime.layout import CTX, WARP
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u8, load_u16, load_u32, native, store_u8, store_u32, u8, u32
from interp.runtime.tensor_memory import (
    CELLS,
    HIGH,
    LOW,
    PENDING,
    cell,
    check_columns,
    memory_fault,
    owner,
    release_owner,
    same_operand,
)
from interp.runtime.tensor_reasons import MISALIGNED_LANE, OTHER_QUARTER
from interp.runtime.waiting import right_away

SHAPES = {"32x32b": 0, "16x64b": 1, "16x128b": 2, "16x256b": 3, "16x32bx2": 4}
REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers of `.x1`."""
PACKED = 8
"""Added to the shape's number for `.pack::16b` and `.unpack::16b`."""
REDUCE, REDUCE_MAX, REDUCE_SIGNED, REDUCE_FLOAT, REDUCE_ABS, REDUCE_NAN = (1 << i for i in range(6))
_MEMORY, _ID = 8 * CTX["TENSOR_MEMORY"], 8 * WARP["ID"]


@native
def _base(ctx: int, warp: int, site: int, mask: int, operands: int, shape: int, count: int, split: int) -> int:
    """The address of an access of `count` registers whose lanes and columns are good, or -1 after a fault."""
    address = same_operand(ctx, warp, site, mask, operands)
    if address == -1:
        return address
    lane, column, kind = address >> 16, address & 0xFFFF, shape & 7
    if lane & (31 if kind == 0 else 15):
        memory_fault(ctx, warp, site, address, MISALIGNED_LANE)
        return i64(-1)
    if lane >> 5 != get(warp + _ID) & 3:
        memory_fault(ctx, warp, site, address, OTHER_QUARTER)
        return i64(-1)
    width = count if kind in (0, 4) else 2 * count
    if shape & PACKED:
        width *= 2
    if not check_columns(ctx, warp, site, address, column, width):
        return i64(-1)
    if kind == 4 and not check_columns(ctx, warp, site, address, column + split, width):
        return i64(-1)
    return address


@native
def _lane(kind: int, t: int, r: int) -> int:
    if kind == 0:
        return t
    if kind == 4:
        return t & 15
    upper = t & 1 if kind == 1 else r & 1 if kind == 2 else r >> 1 & 1
    return (t >> 2) + 8 * upper


@native
def _column(kind: int, t: int, r: int) -> int:
    """Without what the second address of `.16x32bx2` adds."""
    if kind == 0 or kind == 4:
        return r
    if kind == 1:
        return 2 * r + (t >> 1 & 1)
    if kind == 2:
        return 4 * (r >> 1) + (t & 3)
    return 8 * (r >> 2) + 2 * (t & 3) + (r & 1)


@symbol("async_tcgen05_ld")
def async_tcgen05_ld(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, shape: int, count: int, split: int,
    reduction: int,
) -> None:  # fmt: skip
    """Operand: address. Results: `count` registers, and with a reduction (REDUCE_*) what it gives. split: columns to
    the second address of `.16x32bx2`."""
    address = _base(ctx, warp, site, mask, operands, shape, count, split) if mask != 0 else i64(-1)
    if address == -1:
        for i in range(32 * (count + (1 if reduction else 0))):
            store_u32(results + 4 * i, u32(0))
        return
    cells, kind = get(ctx + _MEMORY) + CELLS, shape & 7
    first_lane, first = address >> 16, address & 0xFFFF
    for r in range(count):
        for t in range(32):
            lane, column = first_lane + _lane(kind, t, r), _column(kind, t, r)
            add = first + (split if kind == 4 and t >= 16 else 0)
            if shape & PACKED:
                low = load_u16(cell(cells, lane, add + 2 * column))
                high = load_u16(cell(cells, lane, add + 2 * column + 1))
                word = u32(low) | u32(high) << u32(16)
            else:
                word = load_u32(cell(cells, lane, add + column))
            store_u32(results + 128 * r + 4 * t, word)
    if reduction:
        for t in range(32):
            store_u32(results + 128 * count + 4 * t, _reduce(results + 4 * t, count, reduction))


@native
def _reduce(column: int, count: int, reduction: int) -> int:
    """The least or largest of a thread's `count` registers: integers, or f32 with -0 < +0, NaN as for min and max."""
    total, best, started, beyond = u32(0x7FFFFFFF), u32(0), False, False
    for r in range(count):
        v = load_u32(column + 128 * r)
        if reduction & REDUCE_ABS:
            v = v & u32(0x7FFFFFFF)
        key = v
        if reduction & REDUCE_FLOAT:
            if v & u32(0x7FFFFFFF) > u32(0x7F800000):
                beyond = True
                continue
            key = v ^ u32(0xFFFFFFFF) if v >> u32(31) else v | u32(0x80000000)
        elif reduction & REDUCE_SIGNED:
            key = v ^ u32(0x80000000)
        if not started or (key > best if reduction & REDUCE_MAX else key < best):
            total, best, started = v, key, True
    return u32(0x7FFFFFFF) if beyond and reduction & REDUCE_NAN else total


@native
def _store(ctx: int, warp: int, lane: int, column: int, word: int, late: bool) -> None:
    memory = get(ctx + _MEMORY)
    if not late:
        store_u32(cell(memory + CELLS, lane, column), word)
        release_owner(memory, lane, column)
        return
    store_u32(cell(memory + PENDING, lane, column), word)
    store_u8(owner(memory, lane, column), u8(get(warp + _ID) + 1))


@symbol("async_tcgen05_st")
def async_tcgen05_st(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, shape: int, count: int, split: int, p3: int
) -> None:
    """Operands: address (64 bits), `count` registers. split: columns to the second address of `.16x32bx2`."""
    if mask == 0:
        return
    address = _base(ctx, warp, site, mask, operands, shape, count, split)
    if address == -1:
        return
    memory, kind, late = get(ctx + _MEMORY), shape & 7, not right_away(ctx)
    first_lane, first = address >> 16, address & 0xFFFF
    for r in range(count):
        for t in range(32):
            lane, column = first_lane + _lane(kind, t, r), _column(kind, t, r)
            add = first + (split if kind == 4 and t >= 16 else 0)
            word = load_u32(operands + 256 + 128 * r + 4 * t)
            if shape & PACKED:
                _store(ctx, warp, lane, add + 2 * column, word & u32(0xFFFF), late)
                _store(ctx, warp, lane, add + 2 * column + 1, word >> u32(16), late)
            else:
                _store(ctx, warp, lane, add + column, word, late)
    if late:
        width = (count if kind in (0, 4) else 2 * count) * (2 if shape & PACKED else 1)
        low, high = first, first + width
        if kind == 4:
            low, high = min(low, low + split), max(high, high + split)
        at = memory + 8 * get(warp + _ID)
        if get(at + HIGH) != 0:
            low, high = min(low, get(at + LOW)), max(high, get(at + HIGH))
        put(at + LOW, low)
        put(at + HIGH, high)


@symbol("async_tcgen05_wait_st")
def async_tcgen05_wait_st(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """The warp's stores are complete."""
    if mask == 0:
        return
    memory, number = get(ctx + _MEMORY), get(warp + _ID)
    at, first_lane = memory + 8 * number, 32 * (number & 3)
    for column in range(get(at + LOW), get(at + HIGH)):
        for lane in range(first_lane, first_lane + 32):
            if i64(load_u8(owner(memory, lane, column))) == number + 1:
                store_u32(cell(memory + CELLS, lane, column), load_u32(cell(memory + PENDING, lane, column)))
                release_owner(memory, lane, column)
    put(at + HIGH, i64(0))
