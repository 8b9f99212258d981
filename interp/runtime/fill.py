"""Filling a piece of the CTA's own shared memory with zeros (PTX ISA, 'st.bulk')."""

from __future__ import annotations

from interp.runtime.access import fault, get, locate, put
from interp.runtime.layout import FAULT_MISALIGNED, FAULT_OUT_OF_BOUNDS, SHARED_WINDOW, SPACE_SHARED
from interp.runtime.native import symbol
from interp.runtime.raw import i64

_WINDOW = 1 << 32


@symbol("fill_zeros")
def fill_zeros(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, generic: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: address, bytes (64 bits each). Address and size are multiples of 8."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        address, size = get(operands + 8 * i), get(operands + 256 + 8 * i)
        at = address - SHARED_WINDOW if generic else address
        if generic and (at < 0 or at >= _WINDOW):
            fault(ctx, warp, site, i, FAULT_OUT_OF_BOUNDS, address, size)
            return
        if size & 7:
            fault(ctx, warp, site, i, FAULT_MISALIGNED, address + size, 8)
            return
        if size == 0:
            continue
        host = locate(ctx, warp, site, i, i64(SPACE_SHARED), at, 8, True)
        if size < 0 or size >= _WINDOW:
            fault(ctx, warp, site, i, FAULT_OUT_OF_BOUNDS, address, size)
            return
        if host == 0 or locate(ctx, warp, site, i, i64(SPACE_SHARED), at + size - 8, 8, True) == 0:
            return
        for b in range(size >> 3):
            put(host + 8 * b, i64(0))
