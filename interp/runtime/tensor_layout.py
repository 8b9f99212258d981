"""The bytes of a tensor map, and the rules that the copies of all modes share.

Source: PTX ISA 'Tensors' and 'tensormap.replace'. The 128 bytes are opaque on hardware. Here, little endian:

    0 global address u64    8 element type, rank - 1, interleave, swizzle, fill mode, swizzle atomicity, mode (u8 each)
    16 sizes u32[5]   36 box u32[5]   56 traversal strides u32[5]   80 strides in bytes u64[4] (of dimensions 1 ...)

with the numbers of `tensormap.replace`; dimension 0 is the innermost. In im2col modes the words of the box are

    36 channels a pixel u32   40 pixels a column u32   44 lower corner i16[3]   50 upper corner i16[3] (W, H, D)

`interp.tensor_map` makes maps on the host. Rows of a box (columns: of channels of a pixel) lie behind one another in
shared memory, each `pitch` bytes: as long as the row is, but at least as the swizzle's pattern. So a box that is
narrower than its swizzle has holes, which a load leaves as they were (an H200 does so; the barrier counts the rows'
bytes only). Swizzling goes by the address: with chunks of 16 bytes, bits 4-6 (64-byte mode: 4-5, 32-byte mode: 4) are
xored with bits 7-9 (7-8, 7); with 32-byte chunks bits 5-6 with bits 7-8, with 64-byte chunks bit 6 with bit 7.

The traversal stride of dimension 0 is ignored, as the driver says and hardware does.
"""

from __future__ import annotations

from interp.runtime.access import fault, get
from interp.runtime.atomics import ADD, DEC, INC, MAX, MIN
from interp.runtime.copy_reasons import (
    INTERLEAVED,
    MAP_FIELDS,
    OTHER_MODE,
    OTHER_RANK,
    PACKED,
    REDUCED_TYPE,
    SWIZZLE_96,
    SWIZZLE_FLIP,
    UNALIGNED,
)
from interp.runtime.layout import FAULT_BAD_COORDINATE, FAULT_BAD_TENSOR_MAP, FAULT_MISALIGNED, FAULT_UNMODELLED
from interp.runtime.raw import i64, load_u8, load_u32, load_u64, native, u64

ADDRESS, TYPE, RANK, INTERLEAVE, SWIZZLE, FILL, ATOMICITY, MODE = 0, 8, 9, 10, 11, 12, 13, 14
SIZES, BOX, STEPS, STRIDES = 16, 36, 56, 80
CHANNELS, PIXELS, LOWER, UPPER = 36, 40, 44, 50
LOAD, STORE, REDUCE = 1, 2, 3
TILE, IM2COL, IM2COL_W, IM2COL_W128 = 0, 1, 2, 3

F32, F32_FTZ, TF32, TF32_FTZ = 7, 8, 11, 12


@native
def type_bytes(kind: int) -> int:
    """Bytes of an element, 0 for types that are not modelled."""
    if kind == 0:
        return 1
    if kind == 1 or kind == 6 or kind == 10:
        return 2
    if kind == 4 or kind == 5 or kind == 9:
        return 8
    return 4 if kind <= TF32_FTZ else 0


@native
def number_class(kind: int) -> int:
    """The atomics' class of an element type that reductions take, or -1."""
    if kind == 2 or kind == 4:
        return 0
    if kind == 3 or kind == 5:
        return 1
    if kind in (F32, F32_FTZ, 9, TF32, TF32_FTZ):
        return 2
    if kind == 6:
        return 5
    return 6 if kind == 10 else -1


@native
def _reduces(op: int, kind: int) -> bool:
    """Whether a reduction takes an element type; others are an illegal instruction on an H200."""
    class_ = number_class(kind)
    if op == ADD:
        return class_ >= 0 and kind != 5
    if op in (MIN, MAX):
        return class_ >= 0 and class_ != 2
    if op in (INC, DEC):
        return kind == 2
    return kind == 2 or kind == 3 or kind == 4


@native
def row_bytes(map_: int) -> int:
    """Bytes of a row of the box, or of a pixel's channels: the first word of either."""
    return i64(load_u32(map_ + BOX)) * type_bytes(i64(load_u8(map_ + TYPE)))


@native
def pitch(map_: int) -> int:
    """Bytes from one row to the next in shared memory."""
    mode = i64(load_u8(map_ + SWIZZLE))
    return max(row_bytes(map_), i64(16) << mode) if mode else row_bytes(map_)


@native
def footprint(map_: int, size: int) -> int:
    """Bytes of shared memory in which a copy of `size` bytes lies, holes included."""
    return size // row_bytes(map_) * pitch(map_)


@native
def extent(map_: int, d: int) -> int:
    """Elements of dimension `d` that a box has in shared memory."""
    box, step = i64(load_u32(map_ + BOX + 4 * d)), i64(load_u32(map_ + STEPS + 4 * d))
    return box if d == 0 else (box + step - 1) // step


@native
def swizzled(mode: int, address: int) -> int:
    """A shared address under a swizzling mode: 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes."""
    return address ^ (address >> 3 & ((16 << mode) - 16))


@native
def placed(map_: int, address: int) -> int:
    """A shared address under the swizzling of a map."""
    atom = i64(load_u8(map_ + ATOMICITY))
    if atom == 0:
        return swizzled(i64(load_u8(map_ + SWIZZLE)), address)
    return address ^ (address >> 2 & 96 if atom == 1 else address >> 1 & 64)


@native
def refuse(ctx: int, warp: int, site: int, lane: int, kind: int, about: int, reason: int) -> bool:
    """Record a fault with its reason (`copy_reasons`): False."""
    fault(ctx, warp, site, lane, kind, about, reason)
    return False


@native
def check_layout(
    ctx: int, warp: int, site: int, lane: int, map_: int, address: int, rank: int, mode: int, kind: int, op: int
) -> bool:
    """What is the same in all modes; False after a fault. `address`: the map's, for the report; `op`: of REDUCE."""
    element, swizzle = i64(load_u8(map_ + TYPE)), i64(load_u8(map_ + SWIZZLE))
    atom, reason = i64(load_u8(map_ + ATOMICITY)), i64(0)
    if load_u8(map_ + INTERLEAVE) != 0:
        reason = i64(INTERLEAVED)
    elif element > TF32_FTZ and element < 16:
        reason = i64(PACKED)
    elif swizzle == 4:
        reason = i64(SWIZZLE_96)
    elif atom == 2:
        reason = i64(SWIZZLE_FLIP)
    if reason != 0:
        return refuse(ctx, warp, site, lane, FAULT_UNMODELLED, address, reason)
    if element > TF32_FTZ or swizzle > 4 or atom > 3 or (atom != 0 and swizzle != 3):
        reason = i64(MAP_FIELDS)
    elif i64(load_u8(map_ + MODE)) != mode:
        reason = i64(OTHER_MODE)
    elif i64(load_u8(map_ + RANK)) + 1 != rank:
        reason = i64(OTHER_RANK)
    elif get(map_ + ADDRESS) & 15 != 0:
        reason = i64(MAP_FIELDS)
    elif kind == REDUCE and not _reduces(op, element):
        reason = i64(REDUCED_TYPE)
    for d in range(rank):
        if load_u32(map_ + SIZES + 4 * d) == 0 or (d > 0 and load_u64(map_ + STRIDES + 8 * (d - 1)) & u64(15) != 0):
            reason = i64(MAP_FIELDS)
    row = row_bytes(map_)
    if reason == 0 and (row == 0 or row & 15 != 0 or row > 256 * 8 or (swizzle != 0 and row > 16 << swizzle)):
        reason = i64(MAP_FIELDS)
    if reason != 0:
        return refuse(ctx, warp, site, lane, FAULT_BAD_TENSOR_MAP, address, reason)
    return True


@native
def check_place(ctx: int, warp: int, site: int, lane: int, map_: int, shared: int, first: int) -> bool:
    """Alignment in shared memory and of the innermost coordinate; False after a fault."""
    if shared & 127 != 0:
        return refuse(ctx, warp, site, lane, FAULT_MISALIGNED, shared, 128)
    if first * type_bytes(i64(load_u8(map_ + TYPE))) & 15 != 0:
        return refuse(ctx, warp, site, lane, FAULT_BAD_COORDINATE, first, UNALIGNED)
    return True
