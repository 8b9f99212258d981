"""Tensor memory of a CTA: 128 lanes of 512 columns of 32 bits, and its allocation.

Source: PTX ISA, 'Tensor Memory', 'Tensor Memory Allocation and Management Instructions'. An address is lane << 16 |
column. Here each CTA has the whole memory, as if it were alone on its multiprocessor: an allocation that would have to
wait for *another* CTA never does. One that would have to wait for other warps of its own CTA is reported. Allocations
take the lowest free columns. For `.cta_group::2` each CTA of a pair allocates for itself when its warp comes, which
gives both the same address if they allocate in the same order; that one waits for the other is not modelled.

What is not written yet is 0xFF bytes, as shared memory, from each allocation on.

Layout of the area, in bytes: a header (bitmap of allocated units of 32 columns, whether the permit is relinquished,
`.cta_group`, columns with pending stores a warp, and per unit: units of the allocation that begins there, its site, its
warp), then the cells, a column of 128 lanes after the other, then what stores have written that are not complete yet,
in the same order, and a byte a cell that names the warp whose store it is.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, locate, put
from interp.runtime.layout import CTX, FAULT_TENSOR_MEMORY, SPACE_GENERIC, SPACE_SHARED, WARP
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native, store_u8, store_u32, store_u64, u8, u32, u64
from interp.runtime.tensor_reasons import (
    BAD_COUNT,
    DIFFERENT_ADDRESSES,
    LEAK,
    MIXED_GROUPS,
    NO_PEER,
    NO_ROOM,
    NOT_ALLOCATED,
    NOT_AN_ALLOCATION,
    PARTIAL_WARP,
    RELINQUISHED,
)

COLUMNS, LANES, UNIT = 512, 128, 32
_UNITS = COLUMNS // UNIT
COLUMN_BYTES = 4 * LANES
_ALLOCATED, _RELINQUISHED, _GROUP, LOW, HIGH = 0, 8, 16, 64, 64 + 8 * 32
_SIZES = HIGH + 8 * 32
_SITES, _WARPS = _SIZES + 8 * _UNITS, _SIZES + 16 * _UNITS
_HEADER_WORDS = (_WARPS + 8 * _UNITS) // 8
CELLS = 4096
PENDING = CELLS + COLUMNS * COLUMN_BYTES
OWNERS = PENDING + COLUMNS * COLUMN_BYTES
TENSOR_MEMORY_BYTES = OWNERS + COLUMNS * LANES
_MEMORY, _RANKS = 8 * CTX["TENSOR_MEMORY"], 8 * CTX["CLUSTER_NCTARANK"]
_FULL = 0xFFFFFFFF
_WARP_SIZE = 8 * WARP["ID"]


@native
def memory_fault(ctx: int, warp: int, site: int, address: int, reason: int) -> None:
    """Record a wrong use of tensor memory."""
    fault(ctx, warp, site, 0, FAULT_TENSOR_MEMORY, address, reason)


@native
def reset_tensor_memory(ctx: int) -> None:
    """Nothing is allocated in a new CTA."""
    memory = get(ctx + _MEMORY)
    if memory != 0:
        for i in range(_HEADER_WORDS):
            put(memory + 8 * i, i64(0))


@native
def same_operand(ctx: int, warp: int, site: int, mask: int, operands: int) -> int:
    """The 64-bit address operand of a whole warp, or -1 after a fault."""
    address = get(operands)
    if mask != _FULL:
        memory_fault(ctx, warp, site, address, PARTIAL_WARP)
        return i64(-1)
    for i in range(1, 32):
        if get(operands + 8 * i) != address:
            memory_fault(ctx, warp, site, address, DIFFERENT_ADDRESSES)
            return i64(-1)
    return address


@native
def one_group(ctx: int, warp: int, site: int, group: int) -> bool:
    """Whether this `.cta_group` goes with those of the instructions before, and with the launch."""
    memory = get(ctx + _MEMORY)
    seen = get(memory + _GROUP)
    put(memory + _GROUP, group)
    if seen != 0 and seen != group:
        memory_fault(ctx, warp, site, i64(0), MIXED_GROUPS)
        return False
    if group == 2 and get(ctx + _RANKS) & 1:
        memory_fault(ctx, warp, site, i64(0), NO_PEER)
        return False
    return True


@native
def are_allocated(ctx: int, column: int, count: int) -> bool:
    """Whether all of `count` > 0 columns from `column` on are allocated."""
    if column < 0 or column + count > COLUMNS:
        return False
    first, last = column // UNIT, (column + count - 1) // UNIT
    units = (i64(1) << (last + 1)) - (i64(1) << first)
    return units & ~get(get(ctx + _MEMORY) + _ALLOCATED) == 0


@native
def check_columns(ctx: int, warp: int, site: int, address: int, column: int, count: int) -> bool:
    """As `are_allocated`, with a fault if not."""
    if are_allocated(ctx, column, count):
        return True
    memory_fault(ctx, warp, site, address, NOT_ALLOCATED)
    return False


@native
def _is_count(columns: int) -> bool:
    return columns in (32, 64, 128, 256, 512)


@native
def _run_of(columns: int) -> int:
    return (i64(1) << (columns // UNIT)) - 1


@symbol("async_tcgen05_alloc")
def async_tcgen05_alloc(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, group: int, p2: int, p3: int
) -> None:
    """Operands: where in shared memory the address goes (64 bits), columns (32 bits)."""
    if mask == 0:
        return
    to = same_operand(ctx, warp, site, mask, operands)
    if to == -1 or not one_group(ctx, warp, site, group):
        return
    memory, columns = get(ctx + _MEMORY), i64(load_u32(operands + 256))
    if not _is_count(columns):
        memory_fault(ctx, warp, site, columns, BAD_COUNT)
        return
    if get(memory + _RELINQUISHED):
        memory_fault(ctx, warp, site, columns, RELINQUISHED)
        return
    at = locate(ctx, warp, site, 0, SPACE_GENERIC if space == SPACE_GENERIC else SPACE_SHARED, to, 4, True)
    if at == 0:
        return
    allocated, run = get(memory + _ALLOCATED), _run_of(columns)
    unit = i64(0)
    while unit + columns // UNIT <= _UNITS and allocated >> unit & run:
        unit += 1
    if unit + columns // UNIT > _UNITS:
        memory_fault(ctx, warp, site, columns, NO_ROOM)
        return
    put(memory + _ALLOCATED, allocated | run << unit)
    put(memory + _SIZES + 8 * unit, columns // UNIT)
    put(memory + _SITES + 8 * unit, site)
    put(memory + _WARPS + 8 * unit, warp)
    first = unit * UNIT
    for i in range(columns * COLUMN_BYTES >> 3):
        store_u64(memory + CELLS + first * COLUMN_BYTES + 8 * i, u64(0xFFFFFFFFFFFFFFFF))
    for i in range(columns * LANES >> 3):
        store_u64(memory + OWNERS + first * LANES + 8 * i, u64(0))
    store_u32(at, u32(first))


@symbol("async_tcgen05_dealloc")
def async_tcgen05_dealloc(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, group: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: tensor memory address (64 bits), columns (32 bits)."""
    if mask == 0:
        return
    address = same_operand(ctx, warp, site, mask, operands)
    if address == -1 or not one_group(ctx, warp, site, group):
        return
    memory, columns = get(ctx + _MEMORY), i64(load_u32(operands + 256))
    if not _is_count(columns):
        memory_fault(ctx, warp, site, columns, BAD_COUNT)
        return
    unit = address // UNIT
    good = address >= 0 and address % UNIT == 0 and unit < _UNITS
    if not good or get(memory + _SIZES + 8 * unit) != columns // UNIT:
        memory_fault(ctx, warp, site, address, NOT_AN_ALLOCATION)
        return
    put(memory + _SIZES + 8 * unit, i64(0))
    put(memory + _ALLOCATED, get(memory + _ALLOCATED) & ~(_run_of(columns) << unit))


@symbol("async_tcgen05_relinquish")
def async_tcgen05_relinquish(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, group: int, p1: int, p2: int, p3: int
) -> None:
    """No allocation of this CTA may follow."""
    if mask != 0 and one_group(ctx, warp, site, group):
        put(get(ctx + _MEMORY) + _RELINQUISHED, i64(1))


@native
def check_leak(ctx: int) -> None:
    """A fault at the first allocation that a CTA leaves behind."""
    memory = get(ctx + _MEMORY)
    for unit in range(_UNITS):
        if get(memory + _SIZES + 8 * unit) != 0:
            site, warp = get(memory + _SITES + 8 * unit), get(memory + _WARPS + 8 * unit)
            memory_fault(ctx, warp, site, i64(unit * UNIT), LEAK)
            return


@native
def cell(memory: int, lane: int, column: int) -> int:
    """Host address of a cell, from the base of a region of the area (CELLS, PENDING)."""
    return memory + column * COLUMN_BYTES + 4 * lane


@native
def owner(memory: int, lane: int, column: int) -> int:
    """Host address of the byte that names the warp whose pending store a cell has, plus one."""
    return memory + OWNERS + column * LANES + lane


@native
def release_owner(memory: int, lane: int, column: int) -> None:
    """No store is pending any more."""
    store_u8(owner(memory, lane, column), u8(0))
