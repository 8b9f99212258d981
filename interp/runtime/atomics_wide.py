"""Atomic exchange, and comparison and exchange, of 16 bytes, lane after lane in ascending order (PTX ISA, 'atom')."""

from __future__ import annotations

from interp.runtime.access import get, in_shared, locate, note_write, put
from interp.runtime.layout import CTX
from interp.runtime.native import symbol
from interp.runtime.raw import i64

_WATCH_HI = 8 * CTX["WATCH_HI"]


@symbol("atomic_b128")
def atomic_b128(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, compares: int, p2: int, p3: int
) -> None:
    """Operands: address, halves of b, halves of c where it compares. Results: halves of the old word."""
    for i in range(32):
        low, high = results + 8 * i, results + 256 + 8 * i
        put(low, i64(0))
        put(high, i64(0))
        if not mask >> i & 1:
            continue
        address = get(operands + 8 * i)
        at = locate(ctx, warp, site, i, space, address, 16, True)
        if at == 0:
            return
        put(low, get(at))
        put(high, get(at + 8))
        b, new = operands + 256 + 8 * i, operands + 256 + 8 * i
        if compares:
            new = operands + 768 + 8 * i
            if get(b) != get(at) or get(b + 256) != get(at + 8):
                continue
        put(at, get(new))
        put(at + 8, get(new + 256))
        if get(ctx + _WATCH_HI) and not in_shared(space, address):
            note_write(ctx, site, address, 16)
