"""Cluster launch control: a running CTA takes over a cluster that has not started (PTX ISA, 'clusterlaunchcontrol').

The cluster that a request gets is the next one of the launch's list, at the moment when the request is issued; it never
runs. So the order is that of the launch, whatever runs when: hardware chooses by which CTAs are resident. Without a
cluster left the answer is that nothing was cancelled; with seeded asynchrony also by choice, as hardware may refuse.

The answer has the layout that the assembler's code for `query_cancel` reads on sm_100: x in the first word, y and z in
the halves of the second, whether it succeeded in the lowest bit of the third; the rest is 0. Like all that completes on
an mbarrier, it arrives under `late` when a wait would otherwise fail.
"""

from __future__ import annotations

from interp.runtime.access import get, locate, put
from interp.runtime.bulk import barrier_at, destination, issue
from interp.runtime.bulk_list import E_BARRIER, E_BYTES, E_HOST, E_MAP, WORDS, new_entry
from interp.runtime.layout import ASYNC_SEEDED, CTX, SPACE_CLUSTER, SPACE_GENERIC, SPACE_SHARED
from interp.runtime.native import symbol
from interp.runtime.raw import i64, native
from interp.runtime.scheduler import JOB
from interp.runtime.waiting import right_away

_JOB, _RANKS, _ASYNCHRONY = 8 * CTX["JOB"], 8 * CTX["CLUSTER_NCTARANK"], 8 * CTX["ASYNCHRONY"]
_STARTED, _NCTAS, _CTAS, _CANCELLED, _FUEL, _FUEL_FULL = (
    8 * JOB[n] for n in ("STARTED", "NCTAS", "CTAS", "CANCELLED", "FUEL", "FUEL_FULL")
)
SIZE = 16
SUCCEEDED = 1


@native
def _take(ctx: int) -> int:
    """Index of the first CTA of the cluster that is cancelled, or -1."""
    job, ranks = get(ctx + _JOB), get(ctx + _RANKS)
    started = get(job + _STARTED)
    if started >= get(job + _NCTAS):
        return i64(-1)
    # every CTA makes the same seeded choices: by the cluster, too, so that they do not all have the same luck
    if get(ctx + _ASYNCHRONY) == ASYNC_SEEDED and i64(right_away(ctx)) ^ started // ranks & 1:
        return i64(-1)
    put(job + _STARTED, started + ranks)
    put(job + _CANCELLED, get(job + _CANCELLED) + ranks)
    put(job + _FUEL, get(job + _FUEL_FULL))  # as when a CTA ends
    return started


@symbol("async_bulk_cancel")
def async_bulk_cancel(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, many: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: address of the answer, barrier (64 bits each); `many`: to every CTA of the cluster."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        to, bar = get(operands + 8 * i), get(operands + 256 + 8 * i)
        if locate(ctx, warp, site, i, i64(SPACE_GENERIC if to >> 32 else SPACE_SHARED), to, SIZE, True) == 0:
            return
        taken = _take(ctx)
        low, high = i64(0), i64(0)
        if taken >= 0:
            first = get(get(ctx + _JOB) + _CTAS) + 24 * taken
            low, high = get(first) | get(first + 8) << 32 | get(first + 16) << 48, i64(SUCCEEDED)
        ranks = get(ctx + _RANKS)
        for rank in range(ranks if many else 1):
            place = destination(to, ranks, rank) if many else to
            host = locate(ctx, warp, site, i, i64(SPACE_GENERIC if place >> 32 else SPACE_CLUSTER), place, SIZE, True)
            barrier = barrier_at(
                ctx, warp, site, i, i64(SPACE_CLUSTER), destination(bar, ranks, rank) if many else bar
            )
            if host == 0 or barrier == 0:
                return
            entry = new_entry(ctx, warp, site, i, WORDS)
            if entry == 0:
                return
            put(entry + E_MAP, low)
            put(entry + E_MAP + 8, high)
            put(entry + E_BARRIER, barrier)
            put(entry + E_HOST, host)
            put(entry + E_BYTES, i64(SIZE))
            issue(ctx, entry)

