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
from interp.runtime.tensor_memory import one_group
from interp.runtime.tensor_reasons import (
    BAD_SCALE,
    BAD_SCALE_ID,
    BAD_SHAPE,
    BAD_TRANSPOSE,
    BAD_TYPES,
    DEEP,
    MASKED,
    NEGATED,
    SPARSE,
    SWIZZLED_32,
)

(
    T_OPERATION, T_FLAGS, T_D, T_A, _, T_IDESC, T_B, T_SCALE_A, T_SCALE_B, T_ENABLE, T_NUMBERS, T_FLOOR, T_FLOOR_HALF,
    T_MASKS,
) = (8 * i for i in range(5, 19))  # fmt: skip
"""Fields of a TENSOR entry; the word between A and IDESC is E_SITE. T_MASKS: up to eight u32."""
MULTIPLY, COPY = range(2)
SPREAD_NONE, SPREAD_ALL, SPREAD_02_13, SPREAD_01_23 = range(4)
"""Multicast of `tcgen05.cp`: rows r to lane r; 32 rows to each quarter; 64 rows to warps 0, 1 and 2, 3; to 0, 2 and 1,
3."""

KIND_F16, KIND_TF32, KIND_F8F6F4, KIND_I8, KIND_MXF8F6F4, KIND_MXF4, KIND_MXF4NVF4 = range(7)
A_IN_TENSOR_MEMORY, PAIR, STATIONARY = 1 << 3, 1 << 4, 1 << 5
BLOCK_SHIFT, MASKS_SHIFT, SCALE_D_SHIFT = 8, 16, 20
"""Flags of `tcgen05.mma`: kind (3 bits), the bits above, then the block size of scales (16, 32 or 0), the number of
words of disable-output-lane and scale-input-d."""


@native
def operation_fault(ctx: int, warp: int, site: int, lane: int, descriptor: int, reason: int) -> None:
    """Record an operation that hardware does not take, or that is not modelled."""
    fault(ctx, warp, site, lane, FAULT_TENSOR_OPERATION, descriptor, reason)


@native
def rows_of(kind: int, idesc: int) -> int:
    """M of an instruction descriptor."""
    return (idesc >> 27 & 3) * 128 if kind >= KIND_MXF8F6F4 else (idesc >> 24 & 31) * 16


@native
def columns_of(idesc: int) -> int:
    """N of an instruction descriptor."""
    return (idesc >> 17 & 63) * 8


@native
def element_size(kind: int) -> int:
    """Bytes of an element in the rows that are gathered; 4-bit kinds count as bytes."""
    return i64(2 if kind == KIND_F16 else 4 if kind == KIND_TF32 else 1)


@native
def _types_are_good(kind: int, idesc: int) -> bool:
    out, a, b = idesc >> 4 & 3, idesc >> 7 & 7, idesc >> 10 & 7
    if kind == KIND_F16:
        return a < 2 and b < 2 and (out == 1 or (out == 0 and a == 0 and b == 0))
    if kind == KIND_TF32:
        return a == 2 and b == 2 and out == 1
    if kind == KIND_I8:
        return a < 2 and b < 2 and out == 2
    if kind in (KIND_F8F6F4, KIND_MXF8F6F4):
        good = a in (0, 1, 3, 4, 5) and b in (0, 1, 3, 4, 5)
        return good and (kind == KIND_MXF8F6F4 or out < 2)
    return a == 1 and b & 3 == 1


@native
def _shape_is_good(kind: int, flags: int, m: int, n: int) -> bool:
    if n < 8 or n > 256:
        return False
    if flags & STATIONARY:
        return (m == 32 or m == 64 or m == 128) and (n == 64 or n == 128 or n == 256)
    pair = flags & PAIR != 0
    step = i64(16 if pair else 8)
    if kind == KIND_I8:
        step = i64(32 if pair else 16 if n > 32 else 8)
    least = i64(128 if pair or kind >= KIND_MXF8F6F4 else 64)
    most = i64(256 if pair else 128)
    return n % step == 0 and m in (least, most)


@native
def _transpose_reason(kind: int, size: int, transpose: int, small: bool, mode: int) -> int:
    if mode == 1 and not (transpose and size == 4):
        return i64(SWIZZLED_32)
    if transpose and (kind >= KIND_MXF4 or small or (size == 4 and mode != 1)):
        return i64(BAD_TRANSPOSE)
    return i64(0)


@native
def _scale_reason(kind: int, block: int, idesc: int) -> int:
    ue8m0, id_a, id_b = idesc >> 23 & 1, idesc >> 29 & 3, idesc >> 4 & 3
    if not ue8m0 and not (kind == KIND_MXF4NVF4 and block == 16):
        return i64(BAD_SCALE)
    allowed = i64(3 if kind == KIND_MXF8F6F4 else 2 if block == 32 else 0)
    return i64(0) if (id_a | id_b) & ~allowed == 0 else i64(BAD_SCALE_ID)


@native
def _mma_reason(flags: int, idesc: int, a: int, b: int) -> int:
    """Why an instruction cannot be executed, or 0."""
    kind = flags & 7
    if idesc >> 2 & 1:
        return i64(SPARSE)
    if not _types_are_good(kind, idesc):
        return i64(BAD_TYPES)
    n = columns_of(idesc)
    if not _shape_is_good(kind, flags, rows_of(kind, idesc), n):
        return i64(BAD_SHAPE)
    if kind == KIND_I8 and idesc >> 13 & 3:
        return i64(NEGATED)
    if kind >= KIND_MXF4 and idesc >> 31 & 1:
        return i64(DEEP)
    if kind >= KIND_MXF8F6F4:
        reason = _scale_reason(kind, flags >> BLOCK_SHIFT & 255, idesc)
        if reason != 0:
            return reason
    size, eights = element_size(kind), kind in (KIND_F8F6F4, KIND_MXF8F6F4)
    reason = descriptor_reason(b)
    if reason == 0:
        transpose = idesc >> 16 & 1
        reason = _transpose_reason(kind, size, transpose, eights and idesc >> 10 & 7 > 2, swizzle_mode(b))
        if transpose and size == 1 and n % (32 if flags & PAIR else 16):
            reason = i64(BAD_TRANSPOSE)
    if reason == 0 and not flags & A_IN_TENSOR_MEMORY:
        reason = descriptor_reason(a)
        if reason == 0:
            small = eights and idesc >> 7 & 7 > 2
            reason = _transpose_reason(kind, size, idesc >> 15 & 1, small, swizzle_mode(a))
    return reason


@symbol("async_tcgen05_mma")
def async_tcgen05_mma(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, flags: int, numbers: int, floor: int,
    floor_half: int,
) -> None:  # fmt: skip
    """Operands: D, A, B, scales of A and B (64 bits each; for .ws the first is the zero-column mask), instruction
    descriptor, words of disable-output-lane (32 bits each), enable-input-d. Each thread issues one."""
    masks = flags >> MASKS_SHIFT & 15
    enable = i64(load_u32(operands + 5 * 256 + 128 * (1 + masks)))
    for i in range(32):
        if not mask >> i & 1:
            continue
        a, b, idesc = get(operands + 256 + 8 * i), get(operands + 512 + 8 * i), i64(load_u32(operands + 1280 + 4 * i))
        if not one_group(ctx, warp, site, 2 if flags & PAIR else 1):
            return
        reason, about = _mma_reason(flags, idesc, a, b), idesc
        scale = get(operands + 768 + 8 * i)
        if reason == 0 and flags & STATIONARY and (scale >> 39 & 1 or scale >> 56 & 63):
            reason, about = i64(MASKED), scale
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
        put(entry + T_ENABLE, enable >> i & 1)
        put(entry + T_NUMBERS, numbers)
        put(entry + T_FLOOR, floor)
        put(entry + T_FLOOR_HALF, floor_half)
        for w in range(8):
            store_u32(entry + T_MASKS + 4 * w, load_u32(operands + 1408 + 128 * w + 4 * i) if w < masks else u32(0))
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
