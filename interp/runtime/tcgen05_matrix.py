"""Where the matrices of `tcgen05.mma` and `tcgen05.cp` lie: shared memory descriptors, and rows in tensor memory.

Source: PTX ISA, 'Matrix Descriptors', 'Canonical Layouts', 'Packing formats', 'Data Path Layout Organization' (the
figures of the last as CUTLASS writes them, `cute/atom/mma_traits_sm100_frag.hpp`).

A shared memory descriptor has the start address, leading and stride offsets in units of 16 bytes, and a swizzling mode
that is applied to the address, as for `wgmma`. An operand is gathered as rows of 32 bytes, one row of A or one column
of B each, with k ascending; all kinds have a K of 32 bytes, but K = 96 of 4 bits has 48, and of a sparse product B
has twice what is stored of A. 6- and 4-bit numbers of kind::f8f6f4 and mxf8f6f4 lie in
shared memory packed in the first 12 or 8 of each 16 bytes, and are put into a byte each (bits 5:0, e2m1: 5:2), as
tensor memory has them.

Lanes of tensor memory that the rows of D (and of A there) have, by layout; `local` rows are those of one CTA:

    FULL      M = 128, 256 with two CTAs     lane r                        columns n
    HALF      M = 64                         lane 32 (r / 16) + r mod 16   columns n; the address says lane 0 or 16
    TWO       M = 128 with two CTAs, .ws 64  lane r + 64 (2 n / N)         columns n mod N / 2
    FOUR      .ws M = 32                     lane r + 32 (4 n / N)         columns n mod N / 4
"""

from __future__ import annotations

from interp.runtime.access import fault, get
from interp.runtime.layout import CTX, FAULT_OUT_OF_BOUNDS, SHARED_BASE
from interp.runtime.raw import (
    i64,
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    native,
    store_u8,
    store_u16,
    store_u32,
    store_u64,
    u8,
)
from interp.runtime.tensor_layout import swizzled
from interp.runtime.tensor_memory import CELLS, cell
from interp.runtime.tensor_reasons import BAD_SWIZZLE, BAD_VERSION, BASE_OFFSET
from interp.tensorcore.blocks import E2M1, E2M3

ROW_BYTES = 32
FULL, HALF, TWO, FOUR = range(4)
_MEMORY, _SHARED, _SHARED_SIZE = 8 * CTX["TENSOR_MEMORY"], 8 * CTX["SHARED"], 8 * CTX["SHARED_SIZE"]


@native
def swizzle_mode(descriptor: int) -> int:
    """0 none, 1 128 bytes by 32-byte atoms, 2 128 bytes, 4 64 bytes, 6 32 bytes."""
    return descriptor >> 61 & 7


@native
def descriptor_reason(descriptor: int) -> int:
    """Why a shared memory descriptor is not good or not modelled, or 0."""
    mode = swizzle_mode(descriptor)
    if mode == 3 or mode == 5 or mode == 7:
        return i64(BAD_SWIZZLE)
    if descriptor >> 46 & 7 != 1:
        return i64(BAD_VERSION)
    return i64(BASE_OFFSET) if descriptor >> 49 & 7 else i64(0)


@native
def is_absolute(descriptor: int) -> bool:
    """Whether the leading offset is the address where rows go on behind their 128 bytes."""
    return descriptor >> 52 & 1 != 0


@native
def crosses_line(descriptor: int) -> bool:
    """Whether 48 bytes from the start address on go beyond 128 bytes."""
    return (descriptor & 7) > 5


@native
def _swizzle(mode: int, address: int) -> int:
    if mode == 1:
        return address ^ (address >> 2 & 0x60)
    return swizzled(0 if mode == 0 else 4 - (mode >> 1), address)


@native
def chunk_address(descriptor: int, row: int, chunk: int) -> int:
    """Shared address of 16 bytes of a K-major matrix: bytes 16 * chunk of the k of a row. With an absolute leading
    dimension (128-byte swizzling) a row goes on there behind the end of its 128 bytes."""
    start, mode = (descriptor & 0x3FFF) << 4, swizzle_mode(descriptor)
    leading, stride = (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4
    if mode == 0:
        return start + (row >> 3) * stride + (row & 7) * 16 + chunk * leading
    width = i64(256) >> (mode >> 1)
    if is_absolute(descriptor) and (descriptor & 7) + chunk >= 8:
        return _swizzle(mode, leading + (row >> 3) * stride + (row & 7) * width + ((descriptor & 7) + chunk - 8) * 16)
    return _swizzle(mode, start + (row >> 3) * stride + (row & 7) * width + chunk * 16)


@native
def element_address(descriptor: int, size: int, row: int, k: int) -> int:
    """Shared address of an element of `size` bytes of an MN-major matrix."""
    start, mode = (descriptor & 0x3FFF) << 4, swizzle_mode(descriptor)
    leading, stride = (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4
    if mode == 0:
        place = row * size
        return start + (place >> 4) * stride + (place & 15) + (k & 7) * 16 + (k >> 3) * leading
    width = i64(128) if mode == 1 else i64(256) >> (mode >> 1)
    deep = i64(2 if mode == 1 else 3)
    place = row * size
    line = start + place // width * leading + place % width
    return _swizzle(mode, line + (k & ((1 << deep) - 1)) * width + (k >> deep) * stride)


@native
def shared_host(ctx: int, warp: int, site: int, address: int, size: int) -> int:
    """Host address of bytes of the CTA's shared memory, or 0 after a fault."""
    offset = address - SHARED_BASE
    if offset < 0 or offset + size > get(ctx + _SHARED_SIZE):
        fault(ctx, warp, site, 0, FAULT_OUT_OF_BOUNDS, address, size)
        return i64(0)
    return get(ctx + _SHARED) + offset


@native
def unpack_chunk(source: int, bits: int, shift: int, target: int) -> None:
    """16 packed numbers of 4 or 6 bits to a byte each, shifted left."""
    for i in range(16):
        at = i * bits
        word = i64(load_u8(source + (at >> 3)))
        if (at & 7) + bits > 8:
            word |= i64(load_u8(source + (at >> 3) + 1)) << 8
        store_u8(target + i, u8((word >> (at & 7) & ((1 << bits) - 1)) << shift))


@native
def gather_shared(
    ctx: int, warp: int, site: int, descriptor: int, transpose: bool, size: int, kind: int, first: int, rows: int,
    chunks: int, target: int,
) -> bool:  # fmt: skip
    """`rows` rows from row `first` on to target, 16 * chunks bytes each; False after a fault. `kind`: unpacked if it
    is a small one."""
    width = 16 * chunks
    if transpose:
        for k in range(width // size):
            for row in range(rows):
                source = shared_host(ctx, warp, site, element_address(descriptor, size, first + row, k), size)
                if source == 0:
                    return False
                at = target + width * row + size * k
                if size == 1:
                    store_u8(at, load_u8(source))
                elif size == 2:
                    store_u16(at, load_u16(source))
                else:
                    store_u32(at, load_u32(source))
        return True
    for row in range(rows):
        for chunk in range(chunks):
            source = shared_host(ctx, warp, site, chunk_address(descriptor, first + row, chunk), 16)
            if source == 0:
                return False
            at = target + width * row + 16 * chunk
            if kind >= E2M3:
                unpack_chunk(source, 4 if kind == E2M1 else 6, 2 if kind == E2M1 else 0, at)
            else:
                store_u64(at, load_u64(source))
                store_u64(at + 8, load_u64(source + 8))
    return True


@native
def row_lane(layout: int, base: int, row: int) -> int:
    """The lane of a row, of its first part where the columns are split."""
    return base + (row >> 4) * 32 + (row & 15) if layout == HALF else row


@native
def gather_lanes(ctx: int, layout: int, address: int, rows: int, chunks: int, target: int) -> None:
    """Rows of A from allocated tensor memory, four columns a chunk."""
    cells = get(ctx + _MEMORY) + CELLS
    for row in range(rows):
        lane = row_lane(layout, address >> 16, row)
        for c in range(4 * chunks):
            store_u32(target + 16 * chunks * row + 4 * c, load_u32(cell(cells, lane, (address & 0xFFFF) + c)))
