"""Waiting in memory: a poll that fails gives up the warp's turn, and a state change counts as an event.

Warps that wait at a named barrier are parked and let go by the scheduler. A warp that waits for an mbarrier runs a loop
round `mbarrier.try_wait`; nothing but the loop's own branch says so. So the failed poll ends the slice of fuel: the
next back edge yields, the scheduler sees the flag and comes back in the next round instead of after 100,000 iterations.
What a warp waited for stays in its frame, for the report when no warp can continue.
"""

from __future__ import annotations

from interp.runtime.access import get, put
from interp.runtime.layout import CTX, WARP
from interp.runtime.native import symbol
from interp.runtime.raw import i64, native, u64

_FUEL, _WAITING, _EVENTS, _RANDOM, _ASYNCHRONY = (
    8 * CTX[n] for n in ("FUEL", "WAITING", "EVENTS", "RANDOM", "ASYNCHRONY")
)
_WAIT_SITE, _WAIT_ADDRESS, _WAIT_PARITY = (8 * WARP[n] for n in ("WAIT_SITE", "WAIT_ADDRESS", "WAIT_PARITY"))
POLLED, YIELDED = 1, 2
"""Kinds of giving up a turn: waits for this CTA's own memory, or only lets others run (`nanosleep`)."""


@native
def give_up_turn(ctx: int, kind: int) -> None:
    """End the warp's slice at the next back edge. WAITING = kind + 4 * (fuel that was left)."""
    if get(ctx + _WAITING) == 0:
        left = get(ctx + _FUEL)
        if left < 0:
            left = i64(0)
        put(ctx + _WAITING, kind + 4 * left)
        put(ctx + _FUEL, i64(0))


@native
def wait_for(ctx: int, warp: int, site: int, address: int, parity: int) -> None:
    """Note what the warp polled in vain, and give up its turn."""
    put(warp + _WAIT_SITE, site)
    put(warp + _WAIT_ADDRESS, address)
    put(warp + _WAIT_PARITY, parity)
    give_up_turn(ctx, i64(POLLED))


@native
def note_event(ctx: int) -> None:
    """Something happened that another warp may wait for."""
    put(ctx + _EVENTS, get(ctx + _EVENTS) + 1)


@native
def right_away(ctx: int) -> bool:
    """Whether an asynchronous operation that is issued now takes effect at once (launch option `asynchrony`)."""
    mode = get(ctx + _ASYNCHRONY)
    if mode < 2:
        return mode == 1
    state = u64(get(ctx + _RANDOM)) * u64(6364136223846793005) + u64(1442695040888963407)
    put(ctx + _RANDOM, i64(state))
    return (state >> u64(40)) & u64(1) != u64(0)


@symbol("yield_turn")
def yield_turn(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """nanosleep: others run first."""
    give_up_turn(ctx, i64(YIELDED))
