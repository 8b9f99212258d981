"""`wmma.load`, `wmma.store`, `wmma.mma` (`interp.tensorcore.wmma`): whole matrices between memory and fragments.

Every lane has the same address and the same leading dimension, counted in elements; here the lane that holds an
element uses its own. An element of less than eight bits is read with its byte.
"""

from __future__ import annotations

from interp.runtime.access import get, in_shared, locate, note_write
from interp.runtime.layout import CTX
from interp.runtime.native import symbol
from interp.runtime.raw import (
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    native,
    store_u16,
    store_u32,
    store_u64,
    u64,
)
from interp.tensorcore.wmma import place, put_bits, wmma_double, wmma_float, wmma_integer

_WATCH_HI = 8 * CTX["WATCH_HI"]


def pack_matrix(role: int, m: int, n: int, k: int, bits: int, columns: bool, registers: int) -> int:
    """First parameter of load and store: the matrix, whether it stands by columns, registers of its fragment."""
    return role | m << 8 | n << 16 | k << 24 | bits << 40 | int(columns) << 48 | registers << 49


@native
def _lane_of(at: int, bits: int) -> int:
    """The lane of a place."""
    return at // (32 // bits) % 32 if bits < 32 else at % 32


@symbol("warp_wmma_load")
def warp_wmma_load(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, matrix: int, space: int, p2: int, p3: int
) -> None:
    """Operands: addresses (64 bits), leading dimensions (32 bits)."""
    role, m, n, k = matrix & 255, matrix >> 8 & 255, matrix >> 16 & 255, matrix >> 24 & 0xFFFF
    bits, columns, registers = matrix >> 40 & 255, matrix >> 48 & 1, matrix >> 49
    height, width = (k if role == 1 else m), (k if role == 0 else n)
    word_bytes = 8 if bits == 64 else 4
    for i in range(height):
        for j in range(width):
            at = place(role, i, j, m, n, k, bits)
            lane = _lane_of(at, bits)
            leading = load_u32(operands + 256 + 4 * lane)
            index = j * leading + i if columns else i * leading + j
            size = bits >> 3 if bits >= 8 else 1
            address = get(operands + 8 * lane) + index * bits // 8
            host = locate(ctx, warp, site, lane, space, address, size, False)
            if host == 0:
                return
            if bits == 64:
                word = load_u64(host)
            elif bits == 32:
                word = u64(load_u32(host))
            elif bits == 16:
                word = u64(load_u16(host))
            else:
                word = u64(load_u8(host)) >> u64(index * bits % 8) & u64((1 << bits) - 1)
            put_bits(results, at, bits, word)
    # copies of the registers that hold the matrix
    held = height * width * bits // (8 * 32 * word_bytes)
    for r in range(held, registers):
        for lane in range(16):
            store_u64(results + 128 * r + 8 * lane, load_u64(results + 128 * (r % held) + 8 * lane))


@symbol("warp_wmma_store")
def warp_wmma_store(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, matrix: int, space: int, p2: int, p3: int
) -> None:
    """Operands: addresses (64 bits), leading dimensions (32 bits), the registers of D."""
    m, n, k = matrix >> 8 & 255, matrix >> 16 & 255, matrix >> 24 & 0xFFFF
    bits, columns = matrix >> 40 & 255, matrix >> 48 & 1
    source = operands + 384
    for i in range(m):
        for j in range(n):
            at = place(2, i, j, m, n, k, bits)
            lane = _lane_of(at, bits)
            leading = load_u32(operands + 256 + 4 * lane)
            index = j * leading + i if columns else i * leading + j
            size = bits >> 3
            address = get(operands + 8 * lane) + index * size
            host = locate(ctx, warp, site, lane, space, address, size, True)
            if host == 0:
                return
            if bits == 64:
                store_u64(host, load_u64(source + 8 * at))
            elif bits == 32:
                store_u32(host, load_u32(source + 4 * at))
            else:
                store_u16(host, load_u16(source + 2 * at))
            if get(ctx + _WATCH_HI) and not in_shared(space, address):
                note_write(ctx, site, address, size)


def pack_product(m: int, n: int, k: int, bits: int, registers: tuple[int, int]) -> int:
    """First parameter of a product: shape, bits of an element of A and B, their registers."""
    return m | n << 8 | k << 16 | bits << 32 | registers[0] << 40 | registers[1] << 48


@symbol("warp_wmma_float")
def warp_wmma_float(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    shape: int, kinds: int, numbers: int, floor: int,
) -> None:  # fmt: skip
    """kinds: of A and B, of the accumulation, f16 C, f16 D, a byte each; numbers: block, fraction bits."""
    b = operands + 128 * (shape >> 40 & 255)
    wmma_float(
        results, operands, b, b + 128 * (shape >> 48), shape & 255, shape >> 8 & 255, shape >> 16 & 0xFFFF,
        shape >> 32 & 255, kinds & 255, kinds >> 16 & 255, kinds >> 24, numbers & 255, numbers >> 8, floor,
        kinds >> 8 & 255,
    )  # fmt: skip


@symbol("warp_wmma_integer")
def warp_wmma_integer(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, shape: int, flags: int, p2: int, p3: int
) -> None:
    """flags: signed a, signed b, clamped, a bit each, then the operation on one bits."""
    b = operands + 128 * (shape >> 40 & 255)
    wmma_integer(
        results, operands, b, b + 128 * (shape >> 48), shape & 255, shape >> 8 & 255, shape >> 16 & 0xFFFF,
        shape >> 32 & 255, flags & 1, flags >> 1 & 1, flags >> 3, flags >> 2 & 1,
    )  # fmt: skip


@symbol("warp_wmma_double")
def warp_wmma_double(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, mode: int, p1: int, p2: int, p3: int
) -> None:
    wmma_double(results, operands, operands + 256, operands + 512, mode)
