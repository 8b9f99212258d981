"""`wgmma.mma_async`: queued by each warp of a warpgroup for its 16 rows, done at the wait that covers it.

Source: PTX ISA 'Asynchronous Warpgroup Level Matrix Instructions' (register fragments, matrix descriptors, groups).
Warp w of a warpgroup owns rows 16 (w mod 4) ... of the 64; its part needs no other warp, so warps run theirs one by
one.

**When.** Under `late` completion both shared operands are read, and the accumulators change, at the `wait_group` that
guarantees it: a kernel that overwrites an operand too early, or uses accumulators without waiting, gets other results
than with the wait. A from registers is taken at issue. **Where.** Accumulators stay in the slots that the kernel's
plan gave them in the warp frame, and are updated in place: an entry of the queue holds the slots' offsets, so a chain
of operations on the same accumulators costs no copies, and each operation reads what the one before left. Triton's
PTX allows this: it never touches an accumulator between a `wgmma` and its wait (it ties them through an empty asm at
the wait), which the manual demands.

Queue of a warp, behind that of `cp.async` (`async_copy`): in its header from byte 192 on the number of entries, the
first outstanding one and the number of committed groups; entries of ENTRY_BYTES: group, parameters, descriptors,
scale-d, site; then slots (u32), the registers of A and the metadata of a sparse A.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, put
from interp.runtime.async_copy import QUEUE_BYTES
from interp.runtime.indirect import STEP_SIGNATURE, call_by_address
from interp.runtime.layout import (
    CTX,
    FAULT_OUT_OF_BOUNDS,
    FAULT_QUEUE_FULL,
    FAULT_UNMODELLED,
    SHARED_BASE,
    WARP,
    WGMMA_ENTRIES,
)
from interp.runtime.native import symbol
from interp.runtime.raw import (
    i64,
    load_u16,
    load_u32,
    load_u64,
    native,
    stack_scratch,
    store_u16,
    store_u32,
    store_u64,
    u32,
    u64,
)
from interp.runtime.tensor_layout import swizzled
from interp.runtime.waiting import right_away
from interp.tensorcore.fast import element_bytes, mma_tiles
from interp.tensorcore.integers import mma_s8
from interp.tensorcore.model import F16

_COUNT, _FIRST, _COMMITTED = 192, 200, 208
E_GROUP, E_KINDS, E_SHAPE, E_FRACTIONS, E_FLOOR, E_A, E_B, E_SCALE, E_SITE, E_WARP = (8 * i for i in range(10))
E_SLOTS, E_REGISTERS = 128, 640
E_METADATA = 1152
ENTRY_BYTES = 1280
WGMMA_BYTES = WGMMA_ENTRIES * ENTRY_BYTES
_QUEUE, _WARP_ID = 8 * WARP["ASYNC"], 8 * WARP["ID"]
_MULTIPLY = 8 * CTX["MULTIPLY"]
_SHARED, _SHARED_SIZE = 8 * CTX["SHARED"], 8 * CTX["SHARED_SIZE"]

A_IN_REGISTERS, TRANSPOSE_A, TRANSPOSE_B, NEGATE_A, NEGATE_B = (1 << i for i in range(5))
INTEGER, SIGNED_A, SIGNED_B, CLAMP, SPARSE, SECOND_PAIR, BITS = (1 << i for i in range(5, 12))
"""Flags of an instruction, bits 16 ... of the shape parameter; below: block length (8 bits), column tiles (8 bits)."""


@symbol("async_wgmma")
def async_wgmma(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    kinds: int, shape: int, fractions: int, floor: int,
) -> None:  # fmt: skip
    """Operands: slots of the accumulators (32 a vector), A (descriptor or four registers), descriptor of B, scale-d."""
    if new_entry(ctx, warp, site, operands, kinds, shape, fractions, floor) != 0:
        issue(ctx, warp)


@native
def new_entry(
    ctx: int, warp: int, site: int, operands: int, kinds: int, shape: int, fractions: int, floor: int
) -> int:
    """Address of the entry of an instruction at the end of the queue, not issued yet, or 0 after a fault; operands as
    for `async_wgmma`."""
    queue = get(warp + _QUEUE)
    count = get(queue + _COUNT)
    if count == WGMMA_ENTRIES:
        _compact(queue)
        count = get(queue + _COUNT)
        if count == WGMMA_ENTRIES:
            fault(ctx, warp, site, 0, FAULT_QUEUE_FULL, i64(0), 0)
            return i64(0)
    entry = queue + QUEUE_BYTES + count * ENTRY_BYTES
    put(entry + E_GROUP, get(queue + _COMMITTED))
    put(entry + E_KINDS, kinds)
    put(entry + E_SHAPE, shape)
    put(entry + E_FRACTIONS, fractions)
    put(entry + E_FLOOR, floor)
    put(entry + E_SITE, site)
    put(entry + E_WARP, warp)
    slots = (shape >> 8 & 255) * (2 if kinds >> 24 == F16 else 4)
    for i in range(slots):
        store_u32(entry + E_SLOTS + 4 * i, load_u32(operands + 4 * i))
    at = operands + (slots + 31 >> 5) * 128
    if shape >> 16 & A_IN_REGISTERS:
        for i in range(0, 512, 8):
            store_u64(entry + E_REGISTERS + i, load_u64(at + i))
        at += 512
    else:
        put(entry + E_A, get(at))
        at += 256
    put(entry + E_B, get(at))
    put(entry + E_SCALE, i64(load_u32(at + 256) & u32(1)))
    return entry


@native
def issue(ctx: int, warp: int) -> None:
    """The new entry takes effect from now on."""
    queue = get(warp + _QUEUE)
    put(queue + _COUNT, get(queue + _COUNT) + 1)
    if right_away(ctx):
        _run_before(ctx, queue, get(queue + _COMMITTED) + 1)


@native
def _compact(queue: int) -> None:
    first, count = get(queue + _FIRST), get(queue + _COUNT)
    if first:
        target, source = queue + QUEUE_BYTES, queue + QUEUE_BYTES + first * ENTRY_BYTES
        for i in range(0, (count - first) * ENTRY_BYTES, 8):
            put(target + i, get(source + i))
        put(queue + _FIRST, i64(0))
        put(queue + _COUNT, count - first)


@symbol("async_wgmma_commit")
def async_wgmma_commit(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Close the open group."""
    queue = get(warp + _QUEUE)
    put(queue + _COMMITTED, get(queue + _COMMITTED) + 1)


@symbol("async_wgmma_wait")
def async_wgmma_wait(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, pending: int, p1: int, p2: int, p3: int
) -> None:
    """Do what belongs to any but the `pending` most recent groups."""
    queue = get(warp + _QUEUE)
    _run_before(ctx, queue, get(queue + _COMMITTED) - pending)


@native
def _run_before(ctx: int, queue: int, group: int) -> None:
    """Run the entries of groups below `group`, in order."""
    first, count = get(queue + _FIRST), get(queue + _COUNT)
    while first < count:
        entry = queue + QUEUE_BYTES + first * ENTRY_BYTES
        if get(entry + E_GROUP) >= group:
            break
        call_by_address(get(ctx + _MULTIPLY), ctx, entry)
        first += 1
    if first == count:
        first = i64(0)
        put(queue + _COUNT, first)
    put(queue + _FIRST, first)


@native
def _place(descriptor: int, transpose: bool, row: int, step: int) -> int:
    """Shared address of 16 bytes of a matrix.

    Not transposed: row `row`, bytes 16 * step of its k. Transposed (k-rows of 16-bit elements): eight elements from
    `row` on, a multiple of eight, of k-row `step`. Layouts: PTX ISA 'Shared Memory Matrix Layout', 'Strides'."""
    start = (descriptor & 0x3FFF) << 4
    leading, stride = (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4
    mode = descriptor >> 62 & 3
    if mode == 0:
        if transpose:
            return start + (row >> 3) * stride + (step & 7) * 16 + (step >> 3) * leading
        return start + (row >> 3) * stride + (row & 7) * 16 + step * leading
    width = i64(256) >> mode
    if transpose:
        line = width >> 1
        address = start + row // line * leading + row % line * 2 + (step & 7) * width + (step >> 3) * stride
    else:
        address = start + (row >> 3) * stride + (row & 7) * width + step * 16
    return swizzled(4 - mode, address)


@native
def _host(ctx: int, warp: int, site: int, address: int) -> int:
    """Host address of 16 bytes of shared memory, or 0 after a fault."""
    offset = address - SHARED_BASE
    if offset < 0 or offset + 16 > get(ctx + _SHARED_SIZE):
        fault(ctx, warp, site, 0, FAULT_OUT_OF_BOUNDS, address, 16)
        return i64(0)
    return get(ctx + _SHARED) + offset


@native
def gather(
    ctx: int, warp: int, site: int, descriptor: int, transpose: bool, row: int, target: int, step: int, groups: int
) -> bool:
    """Eight rows from `row` on as a fragment: group g of 16 bytes of k at target + g * step, 16 bytes a row."""
    if transpose:
        for k in range(8 * groups):
            source = _host(ctx, warp, site, _place(descriptor, True, row, k))
            if source == 0:
                return False
            at = target + (k >> 3) * step + (k & 7) * 2
            for r in range(8):
                store_u16(at + 16 * r, load_u16(source + 2 * r))
        return True
    for g in range(groups):
        for r in range(8):
            source = _host(ctx, warp, site, _place(descriptor, False, row + r, g))
            if source == 0:
                return False
            at = target + g * step + 16 * r
            store_u64(at, load_u64(source))
            store_u64(at + 8, load_u64(source + 8))
    return True


@native
def negate(fragment: int, count: int, width: int) -> None:
    """Flip the signs of `count` words of elements of `width` bytes."""
    flip = u32(0x80000000)
    if width == 2:
        flip = u32(0x80008000)
    elif width == 1:
        flip = u32(0x80808080)
    for i in range(count):
        store_u32(fragment + 4 * i, load_u32(fragment + 4 * i) ^ flip)


@native
def check_descriptor(ctx: int, warp: int, site: int, descriptor: int) -> None:
    """A base offset is not modelled; Triton and CUTLASS place tiles so that it is 0."""
    if descriptor >> 49 & 7:
        fault(ctx, warp, site, 0, FAULT_UNMODELLED, descriptor, 8)


@symbol("wgmma_multiply", STEP_SIGNATURE)
def wgmma_multiply(ctx: int, entry: int) -> int:
    """Compute a warp's rows of one instruction, accumulators in place."""
    multiply(ctx, get(entry + E_WARP), entry)
    return 0


@native
def multiply(ctx: int, warp: int, entry: int) -> None:
    """A dense product, of a warp's rows."""
    kinds, shape, site = get(entry + E_KINDS), get(entry + E_SHAPE), get(entry + E_SITE)
    tiles, flags = shape >> 8 & 255, shape >> 16
    half = kinds >> 24 == F16
    slots = i64(2 if half else 4)
    fragment_a, fragment_b = stack_scratch(512), stack_scratch(8192)
    if flags & A_IN_REGISTERS:
        for i in range(0, 512, 8):
            store_u64(fragment_a + i, load_u64(entry + E_REGISTERS + i))
    else:
        descriptor = get(entry + E_A)
        check_descriptor(ctx, warp, site, descriptor)
        row = (get(warp + _WARP_ID) & 3) * 16
        transpose = flags & TRANSPOSE_A != 0
        for h in range(2):
            if not gather(ctx, warp, site, descriptor, transpose, row + 8 * h, fragment_a + 128 * h, 256, 2):
                return
    descriptor = get(entry + E_B)
    check_descriptor(ctx, warp, site, descriptor)
    transpose = flags & TRANSPOSE_B != 0
    for t in range(tiles):
        if not gather(ctx, warp, site, descriptor, transpose, 8 * t, fragment_b + 256 * t, 128, 2):
            return
    if flags & (NEGATE_A | NEGATE_B):
        width = element_bytes(kinds >> 8 & 255)
        if flags & NEGATE_A:
            negate(fragment_a, 128, width)
        if flags & NEGATE_B:
            negate(fragment_b, 64 * tiles, width)
    scratch = stack_scratch(16384)
    base, in_place = i64(load_u32(entry + E_SLOTS)), True
    for i in range(slots * tiles):
        offset = i64(load_u32(entry + E_SLOTS + 4 * i))
        if offset == 0xFFFFFFFF:
            return  # nobody reads the result
        in_place = in_place and offset == base + 128 * i
    c = warp + base if in_place else scratch
    if not in_place:
        move_registers(warp, entry, scratch, slots * tiles, False)
    if get(entry + E_SCALE) == 0:
        for i in range(0, 128 * slots * tiles, 8):
            store_u64(c + i, u64(0))
    if flags & INTEGER:
        for t in range(tiles):
            signed_a, signed_b = flags // SIGNED_A & 1, flags // SIGNED_B & 1
            tile = c + 512 * t
            mma_s8(tile, fragment_a, fragment_b + 256 * t, tile, 2, signed_a, signed_b, flags // CLAMP & 1)
    else:
        fractions = get(entry + E_FRACTIONS)
        mma_tiles(
            c, fragment_a, fragment_b, c, tiles, 2, kinds >> 8 & 255, kinds >> 16 & 255, shape & 255, fractions & 255,
            get(entry + E_FLOOR), kinds >> 24, fractions >> 8,
        )  # fmt: skip
    if not in_place:
        move_registers(warp, entry, scratch, slots * tiles, True)


@native
def move_registers(warp: int, entry: int, scratch: int, count: int, back: bool) -> None:
    """Accumulators from their slots to consecutive vectors, or back."""
    for i in range(count):
        slot, vector = warp + i64(load_u32(entry + E_SLOTS + 4 * i)), scratch + 128 * i
        for b in range(0, 128, 8):
            if back:
                store_u64(slot + b, load_u64(vector + b))
            else:
                store_u64(vector + b, load_u64(slot + b))
