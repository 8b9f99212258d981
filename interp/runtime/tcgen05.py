"""tcgen05 operations of a CTA in the list of bulk copies: `mma`, `cp` and `commit`, and when they take effect.

Source: PTX ISA, 'Tensorcore 5th Generation Family Instructions', 'Memory Consistency Model'. The list is that of
`interp.runtime.bulk_list`; an operation has an entry without a barrier, so nothing but a commit completes it. A commit
has an entry with its mbarrier (with `.multicast`, one for each CTA): where a wait on that barrier would fail, it
happens, and before it all operations that the CTA has issued earlier, in order of issue, those of other threads too.
That order keeps every pair that the manual orders; the rest of the freedom it gives (other orders, parts of an
operation at different times) is not explored. An operation that no commit covers, or whose commit nobody waits for,
never happens.

Descriptors are checked when an operation is issued, allocation and data when it happens.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, put
from interp.runtime.bulk import barrier_at, destination, issue
from interp.runtime.bulk_list import COMMIT, E_BARRIER, TENSOR, new_entry
from interp.runtime.layout import FAULT_BAD_MBARRIER, FAULT_TENSOR_OPERATION, SPACE_CLUSTER, SPACE_GENERIC
from interp.runtime.mbarrier_word import ABSENT, load_barrier
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native, store_u32, u32
from interp.runtime.tcgen05_matrix import descriptor_reason, swizzle_mode
from interp.runtime.tcgen05_rules import MASKS_SHIFT, PAIR, STATIONARY, mask_reason, mma_reason
from interp.runtime.tensor_memory import one_group
from interp.runtime.tensor_reasons import ABSOLUTE_STRIDE, SWIZZLED_32

(
    T_OPERATION, T_FLAGS, T_D, T_A, _, T_IDESC, T_B, T_SCALE_A, T_SCALE_B, T_ENABLE, T_NUMBERS, T_FLOOR, T_FLOOR_HALF,
    T_MASKS, _, _, _, T_METADATA,
) = (8 * i for i in range(5, 23))  # fmt: skip
"""Fields of a TENSOR entry; the word between A and IDESC is E_SITE. T_MASKS: up to eight u32. T_SCALE_A is the
zero-column mask of `.ws`."""
MULTIPLY, COPY = range(2)
SPREAD_NONE, SPREAD_ALL, SPREAD_02_13, SPREAD_01_23 = range(4)
"""Multicast of `tcgen05.cp`: rows r to lane r; 32 rows to each quarter; 64 rows to warps 0, 1 and 2, 3; to 0, 2 and 1,
3."""


@native
def operation_fault(ctx: int, warp: int, site: int, lane: int, descriptor: int, reason: int) -> None:
    """Record an operation that hardware does not take, or that is not modelled."""
    fault(ctx, warp, site, lane, FAULT_TENSOR_OPERATION, descriptor, reason)


@symbol("async_tcgen05_mma")
def async_tcgen05_mma(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, flags: int, numbers: int, floor: int,
    floor_half: int,
) -> None:  # fmt: skip
    """Operands: D, A, B, scales of A and B (for .ws the first is the zero-column mask), metadata (64 bits each),
    instruction descriptor, words of disable-output-lane (32 bits each), enable-input-d. Each thread issues one."""
    masks = flags >> MASKS_SHIFT & 15
    enable = i64(load_u32(operands + 6 * 256 + 128 * (1 + masks)))
    for i in range(32):
        if not mask >> i & 1:
            continue
        a, b, idesc = get(operands + 256 + 8 * i), get(operands + 512 + 8 * i), i64(load_u32(operands + 1536 + 4 * i))
        if not one_group(ctx, warp, site, 2 if flags & PAIR else 1):
            return
        scale, metadata = get(operands + 768 + 8 * i), get(operands + 1280 + 8 * i)
        reason, about = mma_reason(flags, idesc, a, b, metadata), idesc
        if reason == 0 and flags & STATIONARY:
            reason, about = mask_reason(idesc, scale), scale
        if reason != 0:
            operation_fault(ctx, warp, site, i, about, reason)
            return
        entry = new_entry(ctx, warp, site, i, TENSOR)
        if entry == 0:
            return
        put(entry + T_OPERATION, i64(MULTIPLY))
        put(entry + T_FLAGS, flags)
        put(entry + T_D, get(operands + 8 * i))
        put(entry + T_A, a)
        put(entry + T_B, b)
        put(entry + T_IDESC, idesc)
        put(entry + T_SCALE_A, scale)
        put(entry + T_SCALE_B, get(operands + 1024 + 8 * i))
        put(entry + T_METADATA, metadata)
        put(entry + T_ENABLE, enable >> i & 1)
        put(entry + T_NUMBERS, numbers)
        put(entry + T_FLOOR, floor)
        put(entry + T_FLOOR_HALF, floor_half)
        for w in range(8):
            store_u32(entry + T_MASKS + 4 * w, load_u32(operands + 1664 + 128 * w + 4 * i) if w < masks else u32(0))
        issue(ctx, entry)


@symbol("async_tcgen05_cp")
def async_tcgen05_cp(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, shape: int, form: int, group: int, p3: int
) -> None:
    """Operands: tensor memory address, shared memory descriptor (64 bits each). shape: rows | chunks of 16 bytes << 8 |
    multicast << 16 (`interp.runtime.tcgen05_step`); form: bits of packed numbers, 0 none."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        descriptor = get(operands + 256 + 8 * i)
        if not one_group(ctx, warp, site, group):
            return
        reason = descriptor_reason(descriptor)
        if reason == 0 and swizzle_mode(descriptor) == 1:
            reason = i64(SWIZZLED_32)
        if reason == 0 and descriptor >> 52 & 1:
            reason = i64(ABSOLUTE_STRIDE)
        if reason != 0:
            operation_fault(ctx, warp, site, i, descriptor, reason)
            return
        entry = new_entry(ctx, warp, site, i, TENSOR)
        if entry == 0:
            return
        put(entry + T_OPERATION, i64(COPY))
        put(entry + T_FLAGS, shape | form << 24 | (i64(1) << 32 if group == 2 else i64(0)))
        put(entry + T_D, get(operands + 8 * i))
        put(entry + T_A, descriptor)
        issue(ctx, entry)


@symbol("async_tcgen05_commit")
def async_tcgen05_commit(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, many: int, group: int, p3: int
) -> None:
    """Operands: mbarrier (64 bits); `many`: the ranks of the CTAs whose barriers get an arrival, as a mask."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        if not one_group(ctx, warp, site, group):
            return
        address = get(operands + 8 * i)
        ranks = i64(load_u32(operands + 256 + 4 * i)) if many else i64(0)
        for rank in range(16 if many else 1):
            if many and not ranks >> rank & 1:
                continue
            at = destination(address, ranks, rank)
            barrier = barrier_at(ctx, warp, site, i, SPACE_CLUSTER if space == SPACE_CLUSTER else SPACE_GENERIC, at)
            if barrier == 0:
                return
            if load_barrier(barrier) == ABSENT:
                fault(ctx, warp, site, i, FAULT_BAD_MBARRIER, at, 8)
                return
            entry = new_entry(ctx, warp, site, i, COMMIT)
            if entry == 0:
                return
            put(entry + E_BARRIER, barrier)
            issue(ctx, entry)
