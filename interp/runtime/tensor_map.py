"""Tensor maps that a kernel makes itself: `tensormap.replace`, `tensormap.cp_fenceproxy` (layout: `tensor_layout`).

Source: PTX ISA 'tensormap.replace', 'tensormap.cp_fenceproxy'. The fields of one map are written by one thread, in
shared or global memory; the fenced copy moves it to global memory, where the copy unit reads it. The manual has the
instruction for tiled maps; on an H200 it replaces the address of a map in im2col mode, too.
"""

from __future__ import annotations

from interp.runtime.access import get, locate
from interp.runtime.copy_reasons import MAP_FIELDS, REPLACED_COLUMNS
from interp.runtime.layout import (
    FAULT_BAD_TENSOR_MAP,
    FAULT_UNMODELLED,
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_SHARED,
    TENSOR_MAP_BYTES,
)
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u8, load_u64, store_u8, store_u32, store_u64, u8, u32, u64
from interp.runtime.tensor_layout import (
    ADDRESS,
    ATOMICITY,
    BOX,
    FILL,
    INTERLEAVE,
    MODE,
    RANK,
    SIZES,
    STEPS,
    STRIDES,
    SWIZZLE,
    TILE,
    TYPE,
    refuse,
)

FIELDS = {
    "global_address": (ADDRESS, 8, 1), "rank": (RANK, 1, 1), "box_dim": (BOX, 4, 5), "global_dim": (SIZES, 4, 5),
    "global_stride": (STRIDES, 8, 4), "element_stride": (STEPS, 4, 5), "elemtype": (TYPE, 1, 1),
    "interleave_layout": (INTERLEAVE, 1, 1), "swizzle_mode": (SWIZZLE, 1, 1), "fill_mode": (FILL, 1, 1),
    "swizzle_atomicity": (ATOMICITY, 1, 1),
}  # fmt: skip
"""Field -> byte offset, bytes, and number of elements."""


@symbol("tensor_map_replace")
def tensor_map_replace(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, offset: int, size: int, space: int, p3: int
) -> None:
    """Operands: address of the map, new value (64 bits each). Parameters: byte offset and bytes of the field."""
    for i in range(32):
        if mask >> i & 1:
            address = get(operands + 8 * i)
            at = locate(ctx, warp, site, i, space, address, 64, True)
            if at == 0:
                return
            if load_u8(at + MODE) != TILE and offset != ADDRESS:
                refuse(ctx, warp, site, i, FAULT_UNMODELLED, address, REPLACED_COLUMNS)
                return
            value = load_u64(operands + 256 + 8 * i)
            if size == 1:
                if value > u64(255):
                    refuse(ctx, warp, site, i, FAULT_BAD_TENSOR_MAP, address, MAP_FIELDS)
                    return
                store_u8(at + offset, u8(value))
            elif size == 4:
                store_u32(at + offset, u32(value))
            else:
                store_u64(at + offset, value)


@symbol("tensor_map_copy")
def tensor_map_copy(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """cp_fenceproxy. Operands: global address, shared address (64 bits each). Once for the warp."""
    for i in range(32):
        if mask >> i & 1:
            for part in range(0, TENSOR_MAP_BYTES, 64):
                source = get(operands + 256 + 8 * i) + part
                space = i64(SPACE_GENERIC if source >> 32 else SPACE_SHARED)
                at = locate(ctx, warp, site, i, space, source, 64, False)
                target = locate(ctx, warp, site, i, SPACE_GLOBAL, get(operands + 8 * i) + part, 64, True)
                if at == 0 or target == 0:
                    return
                for b in range(0, 64, 8):
                    store_u64(target + b, load_u64(at + b))
            return
