"""Clusters: CTAs that are resident together, their barrier, and the scheduler that runs them.

Source: PTX ISA 'Cluster of Cooperative Thread Arrays', 'barrier.cluster'. The CTAs of a cluster start together and take
turns, a round of the warps of each, in the order of their ranks; a slot is free again when the whole cluster has ended.

The cluster barrier has phases. A lane that arrives is marked in its warp (CLUSTER_ARRIVED); a phase is complete when
every live lane of the cluster has arrived, and then the marks move to CLUSTER_READY, which lets a lane pass its wait.
So a lane may wait for its phase although others have arrived in the next one already. Arriving twice without a wait
between is undefined by the manual and a fault here; a wait without an arrival never ends, so it is reported as the
deadlock that it is.

All of a cluster waits for good when in a whole round no warp of any of its CTAs does anything but poll in vain: only
the cluster itself can change its shared memory and its barrier.
"""

from __future__ import annotations

from interp.runtime import layout as L
from interp.runtime.access import fault, get, peer, put
from interp.runtime.layout import CTX, WARP, WARP_WORDS
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native, store_u32, u32
from interp.runtime.scheduler import (
    ALIVE,
    FAULTED,
    JOB,
    POLLING,
    RAN,
    SPENT,
    TIRED,
    count_idle,
    end_cta,
    keep_written,
    release_barriers,
    run_round,
    start_cta,
)
from interp.runtime.waiting import note_event

_ARRIVED, _READY, _LIVE, _STATUS = (8 * WARP[n] for n in ("CLUSTER_ARRIVED", "CLUSTER_READY", "LIVE", "STATUS"))
_STATE, _FAULT, _EVENTS, _IDLE, _RANKS = (
    8 * CTX[n] for n in ("STATE", "FAULT", "EVENTS", "IDLE_ROUNDS", "CLUSTER_NCTARANK")
)
_NWARPS, _WARPS, _STRIDE, _NREGIONS = (8 * CTX[n] for n in ("NWARPS", "WARPS", "WARP_STRIDE", "NREGIONS"))
_PENDING = 8 * WARP_WORDS
_J_SLOTS, _J_SLOT_BYTES, _J_NSLOTS, _J_SLOT = (8 * JOB[n] for n in ("SLOTS", "SLOT_BYTES", "NSLOTS", "SLOT"))
_J_NCTAS, _J_CLUSTER, _J_DONE, _J_RESIDENT = (8 * JOB[n] for n in ("NCTAS", "CLUSTER", "DONE", "RESIDENT"))
_J_STARTED = 8 * JOB["STARTED"]
_J_FUEL, _J_FUEL_SLICE, _J_FUEL_FULL = (8 * JOB[n] for n in ("FUEL", "FUEL_SLICE", "FUEL_FULL"))


@symbol("cluster_arrive")
def cluster_arrive(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Each executing lane arrives at the barrier of the cluster."""
    again = mask & (get(warp + _ARRIVED) | get(warp + _READY))
    if again:
        lane = i64(0)
        while not again >> lane & 1:
            lane += 1
        fault(ctx, warp, site, lane, L.FAULT_BAD_CLUSTER_BARRIER, i64(0), 0)
        return
    put(warp + _ARRIVED, get(warp + _ARRIVED) | mask)
    note_event(ctx)


@native
def complete_phase(first: int) -> None:
    """End the phase of the cluster's barrier if every live lane has arrived. `first`: context of the CTA of rank 0."""
    some = i64(0)
    for rank in range(get(first + _RANKS)):
        ctx = peer(first, rank)
        for w in range(get(ctx + _NWARPS)):
            warp = get(ctx + _WARPS) + w * get(ctx + _STRIDE)
            live, arrived = get(warp + _LIVE), get(warp + _ARRIVED)
            if live & ~arrived:
                return
            some |= arrived
    if some == 0:
        return
    for rank in range(get(first + _RANKS)):
        ctx = peer(first, rank)
        for w in range(get(ctx + _NWARPS)):
            warp = get(ctx + _WARPS) + w * get(ctx + _STRIDE)
            put(warp + _READY, get(warp + _READY) | get(warp + _ARRIVED))
            put(warp + _ARRIVED, 0)


@native
def let_pass(ctx: int) -> bool:
    """Let the lanes of a CTA go on that wait at the cluster barrier for a phase that is complete."""
    passed = False
    regions = get(ctx + _NREGIONS)
    for w in range(get(ctx + _NWARPS)):
        warp = get(ctx + _WARPS) + w * get(ctx + _STRIDE)
        ready = get(warp + _READY)
        if ready == 0:
            continue
        for r in range(regions):
            parked = warp + _PENDING + 4 * (regions + r)
            lanes = i64(load_u32(parked)) & ready
            if lanes == 0 or load_u32(parked + 4 * regions) != u32(L.CLUSTER_BARRIER):
                continue
            store_u32(parked, u32(i64(load_u32(parked)) & ~lanes))
            pending = warp + _PENDING + 4 * r
            store_u32(pending, load_u32(pending) | u32(lanes))
            ready &= ~lanes
            put(warp + _STATUS, L.STATUS_READY)
            passed = True
        put(warp + _READY, ready)
    return passed


@native
def _ended_by(job: int, ctx: int, state: int) -> int:
    """Note which CTA ends the launch."""
    put(job + _J_SLOT, (ctx - get(job + _J_SLOTS)) // get(job + _J_SLOT_BYTES))
    return state


@native
def _running(first: int) -> int:
    """Context of the first CTA of the cluster that has not ended, or 0."""
    for rank in range(get(first + _RANKS)):
        ctx = peer(first, rank)
        if get(ctx + _STATE) == L.CTA_RUNNING:
            return ctx
    return i64(0)


@native
def _events(first: int) -> int:
    total = i64(0)
    for rank in range(get(first + _RANKS)):
        total += get(peer(first, rank) + _EVENTS)
    return total


@native
def run_cluster(job: int, first: int) -> int:
    """Run the CTAs of a cluster in turn; as `run_cta`."""
    enough = get(job + _J_FUEL) - get(job + _J_FUEL_SLICE)
    while True:
        seen, moved, events = i64(0), False, _events(first)
        for rank in range(get(first + _RANKS)):
            ctx = peer(first, rank)
            if get(ctx + _STATE) != L.CTA_RUNNING:
                continue
            now = run_round(job, ctx)
            seen |= now
            if not now & ALIVE:
                put(ctx + _STATE, end_cta(ctx))
                put(job + _J_DONE, get(job + _J_DONE) + 1)
                put(job + _J_FUEL, get(job + _J_FUEL_FULL))
                enough = get(job + _J_FUEL) - get(job + _J_FUEL_SLICE)
                moved = True
            keep_written(job, ctx)
            for other in range(get(first + _RANKS)):  # a wait may complete a copy that another CTA has issued
                if get(peer(first, other) + _FAULT):
                    return _ended_by(job, peer(first, other), i64(L.CTA_FAULT))
            if now & FAULTED:
                return _ended_by(job, ctx, i64(L.CTA_FAULT))
            if now & SPENT:
                return _ended_by(job, ctx, i64(L.CTA_OUT_OF_FUEL))
            if release_barriers(ctx):
                moved = True
            complete_phase(first)
        for rank in range(get(first + _RANKS)):
            if let_pass(peer(first, rank)):
                moved = True
        waiting = _running(first)
        if waiting == 0:
            return i64(L.CTA_DONE)
        if seen & TIRED or get(job + _J_FUEL) < enough:
            return i64(L.CTA_RUNNING)
        if seen & RAN or moved or _events(first) != events:
            put(first + _IDLE, 0)
        elif not seen & POLLING:
            return _ended_by(job, waiting, i64(L.CTA_DEADLOCK))
        else:
            state = count_idle(first)
            if state == L.CTA_DEADLOCK:
                return _ended_by(job, waiting, state)
            if state != L.CTA_IDLE:
                return state


@symbol("run_clusters", "int64(int64)")
def run_clusters(job: int) -> int:
    """As `run_grid`, for a list of whole clusters."""
    slots, size, count = get(job + _J_SLOTS), get(job + _J_SLOT_BYTES), get(job + _J_NCTAS)
    ranks = get(job + _J_CLUSTER)
    window = i64(1)
    while True:
        busy = False
        for group in range(window):
            first = slots + group * ranks * size
            while True:
                idle = True
                for rank in range(ranks):
                    idle = idle and get(first + rank * size + _STATE) != L.CTA_RUNNING
                if idle:
                    index = get(job + _J_STARTED)
                    if index == count:
                        break
                    put(job + _J_STARTED, index + ranks)
                    for rank in range(ranks):
                        start_cta(job, first + rank * size, group * ranks + rank, index + rank)
                state = run_cluster(job, first)
                if state == L.CTA_DONE:
                    continue
                if state != L.CTA_RUNNING:
                    return state
                busy = True
                break
        if not busy:
            return i64(L.CTA_DONE)
        if get(job + _J_STARTED) < count and (window + 1) * ranks <= get(job + _J_NSLOTS):
            window += 1
            put(job + _J_RESIDENT, window * ranks)
