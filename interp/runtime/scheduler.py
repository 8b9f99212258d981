"""The scheduler: which CTA and which warp runs next. Deterministic; the order depends on the launch alone.

Warps of a CTA take turns in ascending order; each runs until it ends, waits at a barrier, or has used its slice of fuel
(taken back edges). CTAs run one after the other as long as each comes to its end. A CTA of which a warp runs out of
fuel, or whose warps together use up a slice between barriers, may be waiting for another one: then one more CTA becomes
resident and they take turns, up to as many as the device holds at once, so that waiting for a CTA that could not be
resident is a deadlock here as it is there.

A warp that has polled memory in vain (`interp.runtime.waiting`) is asked again each round. When all that is left of a
CTA waits, at barriers or by polling, and nothing happens for IDLE_LIMIT rounds, no warp can ever continue: only the CTA
itself can change its shared memory.

CTAs of one cluster run together: `interp.runtime.cluster`.

A launch ends early with the first fault, when all warps of a CTA wait for something that cannot happen, or when the
fuel is gone: what all warps together may burn until a CTA ends, which fills it up again.
"""

from __future__ import annotations

from interp.runtime import layout as L
from interp.runtime.access import get, put
from interp.runtime.async_copy import HEADER_BYTES
from interp.runtime.bulk_list import reset_bulk
from interp.runtime.indirect import call_by_address
from interp.runtime.layout import CTX, WARP, WARP_WORDS
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native, store_u32, store_u64, u32, u64
from interp.runtime.tensor_memory import check_leak, reset_tensor_memory
from interp.runtime.waiting import POLLED

JOB_FIELDS = (
    "RUN_WARP", "SLOTS", "SLOT_BYTES", "NSLOTS", "CTAS", "NCTAS", "FUEL", "FUEL_SLICE", "TEMPLATE", "CTX_BYTES",
    "WARPS_AT", "SHARED_AT", "LOCAL_AT", "ASYNC_AT", "ZEROED", "NZEROED", "SLOT", "DONE", "RESIDENT",
    "WRITTEN_SITE", "WRITTEN_CTA", "BULK_AT", "FUEL_FULL", "CLUSTER", "TENSOR_MEMORY_AT", "STARTED", "CANCELLED",
)  # fmt: skip
JOB = {name: i for i, name in enumerate(JOB_FIELDS)}
"""A launch as the scheduler gets it, 64-bit words. CTAS: three words (x, y, z) a CTA. *_AT: byte offsets in a slot.
ZEROED: (offset, bytes) pairs of a frame's slots that start as zero. CLUSTER: CTAs a cluster; those of one stand
together in the list, by rank, and lie in consecutive slots. STARTED: CTAs of the list that have begun or were
cancelled. Out: SLOT (of the CTA that ended the launch early), DONE (CTAs finished), CANCELLED (CTAs that others took
over before they began: `interp.runtime.cluster_launch`), RESIDENT (most CTAs resident at once), WRITTEN_* (last write
to the watched address)."""

_STATE, _LIVE, _ARRIVED, _EXPECTED, _TRUE = (8 * CTX[n] for n in ("STATE", "LIVE", "ARRIVED", "EXPECTED", "TRUE"))
_W_TRUE, _W_CAME = 8 * WARP["TRUE"], 8 * WARP["CAME"]
_FUEL, _NWARPS, _WARPS, _STRIDE = (8 * CTX[n] for n in ("FUEL", "NWARPS", "WARPS", "WARP_STRIDE"))
_NREGIONS, _FAULT, _C_LOCAL_SIZE = 8 * CTX["NREGIONS"], 8 * CTX["FAULT"], 8 * CTX["LOCAL_SIZE"]
_W_ID, _W_LIVE, _W_STATUS, _W_TID, _W_ASYNC = (8 * WARP[n] for n in ("ID", "LIVE", "STATUS", "TID", "ASYNC"))
_PENDING = 8 * WARP_WORDS
_C_ASYNC, _C_ASYNC_STRIDE, _C_CTAID, _C_LINEAR, _C_LOCAL = (
    8 * CTX[n] for n in ("ASYNC", "ASYNC_STRIDE", "CTAID", "LINEAR", "LOCAL")
)
_C_NTHREADS, _C_NTID, _C_SHARED, _C_SHARED_SIZE, _C_WATCH_CTA = (
    8 * CTX[n] for n in ("NTHREADS", "NTID", "SHARED", "SHARED_SIZE", "WATCH_CTA")
)
_C_WATCH_SITE = 8 * CTX["WATCH_SITE"]
_C_CLUSTER_CTAID, _C_CLUSTER_NCTAID, _C_CLUSTERID, _C_RANK, _C_RANKS, _C_SHARED_LOW = (
    8 * CTX[n]
    for n in ("CLUSTER_CTAID", "CLUSTER_NCTAID", "CLUSTERID", "CLUSTER_CTARANK", "CLUSTER_NCTARANK", "SHARED_LOW")
)
_J_ASYNC_AT, _J_CTAS, _J_CTX_BYTES, _J_DONE, _J_FUEL = (
    8 * JOB[n] for n in ("ASYNC_AT", "CTAS", "CTX_BYTES", "DONE", "FUEL")
)
_J_FUEL_SLICE, _J_LOCAL_AT, _J_NCTAS, _J_NSLOTS, _J_NZEROED = (
    8 * JOB[n] for n in ("FUEL_SLICE", "LOCAL_AT", "NCTAS", "NSLOTS", "NZEROED")
)
_J_RESIDENT, _J_RUN_WARP, _J_SHARED_AT, _J_SLOT, _J_SLOTS = (
    8 * JOB[n] for n in ("RESIDENT", "RUN_WARP", "SHARED_AT", "SLOT", "SLOTS")
)
_J_SLOT_BYTES, _J_TEMPLATE, _J_WARPS_AT, _J_WRITTEN_CTA, _J_WRITTEN_SITE = (
    8 * JOB[n] for n in ("SLOT_BYTES", "TEMPLATE", "WARPS_AT", "WRITTEN_CTA", "WRITTEN_SITE")
)
_J_ZEROED, _J_BULK_AT, _J_FUEL_FULL = 8 * JOB["ZEROED"], 8 * JOB["BULK_AT"], 8 * JOB["FUEL_FULL"]
_J_TENSOR_MEMORY_AT, _C_TENSOR_MEMORY = 8 * JOB["TENSOR_MEMORY_AT"], 8 * CTX["TENSOR_MEMORY"]
_J_STARTED, _C_JOB = 8 * JOB["STARTED"], 8 * CTX["JOB"]
_C_BULK, _EVENTS, _IDLE, _WAITING, _PERFORM = (
    8 * CTX[n] for n in ("BULK", "EVENTS", "IDLE_ROUNDS", "WAITING", "PERFORM")
)
IDLE_LIMIT = 4096
"""Rounds without an event after which waiting warps count as deadlocked: a polling loop may give up before."""
_IDLE_SLICE = 64
ALIVE, RAN, TIRED, POLLING, FAULTED, SPENT = (1 << i for i in range(6))
"""What a round of a CTA's warps has shown: some has not ended, has done something, has used up its slice, has polled in
vain, has faulted; the launch has no fuel left."""


@native
def fill(address: int, count: int, word: int) -> None:
    """Store `count` 64-bit words."""
    for i in range(count):
        store_u64(address + 8 * i, u64(word))


@native
def start_cta(job: int, ctx: int, slot: int, index: int) -> None:
    """Set up a slot for CTA number `index` of the list."""
    template = get(job + _J_TEMPLATE)
    for i in range(get(job + _J_CTX_BYTES) >> 3):
        put(ctx + 8 * i, get(template + 8 * i))
    base = get(job + _J_SLOTS) + slot * get(job + _J_SLOT_BYTES)
    warps = base + get(job + _J_WARPS_AT)
    put(ctx + _C_JOB, job)
    put(ctx + _WARPS, warps)
    put(ctx + _C_SHARED, base + get(job + _J_SHARED_AT))
    put(ctx + _C_LOCAL, base + get(job + _J_LOCAL_AT))
    put(ctx + _C_ASYNC, base + get(job + _J_ASYNC_AT))
    put(ctx + _C_BULK, base + get(job + _J_BULK_AT) if get(job + _J_BULK_AT) else i64(0))
    reset_bulk(ctx)
    tensor_memory_at = get(job + _J_TENSOR_MEMORY_AT)
    put(ctx + _C_TENSOR_MEMORY, base + tensor_memory_at if tensor_memory_at else i64(0))
    reset_tensor_memory(ctx)
    put(ctx + _C_LINEAR, index)
    for axis in range(3):
        number = get(get(job + _J_CTAS) + 24 * index + 8 * axis)
        put(ctx + _C_CTAID + 8 * axis, number)
        across = get(ctx + _C_CLUSTER_NCTAID + 8 * axis)
        put(ctx + _C_CLUSTERID + 8 * axis, number // across)
        put(ctx + _C_CLUSTER_CTAID + 8 * axis, number % across)
    rank = index % get(ctx + _C_RANKS)
    put(ctx + _C_RANK, rank)
    put(ctx + _C_SHARED_LOW, L.SHARED_BASE + (rank << L.RANK_SHIFT))
    put(ctx + _STATE, L.CTA_RUNNING)
    fill(get(ctx + _C_SHARED), (get(ctx + _C_SHARED_SIZE) + 7) >> 3, -1)
    fill(get(ctx + _C_LOCAL), get(ctx + _NWARPS) * 4 * get(ctx + _C_LOCAL_SIZE), -1)
    nx, ny = get(ctx + _C_NTID), get(ctx + _C_NTID + 8)
    threads = get(ctx + _C_NTHREADS)
    regions = get(ctx + _NREGIONS)
    for w in range(get(ctx + _NWARPS)):
        warp = warps + w * get(ctx + _STRIDE)
        fill(warp, _W_TID >> 3, 0)
        put(warp + _W_ID, w)
        live = i64(0)
        for lane in range(32):
            t = w * 32 + lane
            store_u32(warp + _W_TID + 4 * lane, u32(t % nx))
            store_u32(warp + _W_TID + 128 + 4 * lane, u32(t // nx % ny))
            store_u32(warp + _W_TID + 256 + 4 * lane, u32(t // (nx * ny)))
            if t < threads:
                live |= i64(1) << lane
        put(warp + _W_LIVE, live)
        for i in range(3 * regions):
            store_u32(warp + _PENDING + 4 * i, u32(0))
        store_u32(warp + _PENDING, u32(live))
        zeroed = get(job + _J_ZEROED)
        for i in range(get(job + _J_NZEROED)):
            at = warp + get(zeroed + 16 * i)
            for b in range(get(zeroed + 16 * i + 8) >> 2):
                store_u32(at + 4 * b, u32(0))
        queue = get(ctx + _C_ASYNC) + w * get(ctx + _C_ASYNC_STRIDE)
        put(warp + _W_ASYNC, queue)
        if get(ctx + _C_ASYNC_STRIDE):
            fill(queue, HEADER_BYTES >> 3, 0)


@native
def release_barriers(ctx: int) -> int:
    """Let go of every barrier at which all expected threads have arrived."""
    released = False
    for b in range(16):
        arrived = get(ctx + _ARRIVED + 8 * b)
        expected = get(ctx + _EXPECTED + 8 * b)
        if expected == 0:
            expected = get(ctx + _LIVE)
        if arrived == 0 or arrived < expected:
            continue
        true = get(ctx + _TRUE + 8 * b)
        put(ctx + _ARRIVED + 8 * b, 0)
        put(ctx + _TRUE + 8 * b, 0)
        released = True
        regions = get(ctx + _NREGIONS)
        for w in range(get(ctx + _NWARPS)):
            warp = get(ctx + _WARPS) + w * get(ctx + _STRIDE)
            for r in range(regions):
                parked = warp + _PENDING + 4 * (regions + r)
                mask = load_u32(parked)
                if mask and load_u32(parked + 4 * regions) == u32(b):
                    store_u32(parked, u32(0))
                    pending = warp + _PENDING + 4 * r
                    store_u32(pending, load_u32(pending) | mask)
                    put(warp + _W_STATUS, L.STATUS_READY)
                    put(warp + _W_TRUE, true)
                    put(warp + _W_CAME, arrived)
    return released


@native
def run_round(job: int, ctx: int) -> int:
    """Give every warp of a CTA that can run its turn; what happened, as bits ALIVE to SPENT."""
    function, slice_ = get(job + _J_RUN_WARP), get(job + _J_FUEL_SLICE)
    seen = i64(0)
    for w in range(get(ctx + _NWARPS)):
        warp = get(ctx + _WARPS) + w * get(ctx + _STRIDE)
        status = get(warp + _W_STATUS)
        if status == L.STATUS_DONE:
            continue
        seen |= ALIVE
        if status == L.STATUS_BARRIER or status == L.STATUS_STUCK:
            continue
        put(ctx + _FUEL, slice_)
        status = call_by_address(function, ctx, warp)
        put(warp + _W_STATUS, status)
        waiting = get(ctx + _WAITING)
        used = slice_ - get(ctx + _FUEL)
        if waiting:
            put(ctx + _WAITING, 0)
            used = slice_ - (waiting >> 2) + 1
            if status == L.STATUS_FUEL and waiting & 3 == POLLED:
                status = i64(L.STATUS_POLL)
                put(warp + _W_STATUS, status)
        left = get(job + _J_FUEL) - used
        put(job + _J_FUEL, left)
        if status == L.STATUS_FAULT:
            return seen | FAULTED
        if left <= 0:
            return seen | SPENT
        seen |= POLLING if status == L.STATUS_POLL else RAN
        if status == L.STATUS_FUEL:
            seen |= TIRED
    return seen


@native
def end_cta(ctx: int) -> int:
    """What no warp has waited for happens when all have ended: the state in which the CTA ends."""
    if get(ctx + _PERFORM):
        call_by_address(get(ctx + _PERFORM), ctx, i64(0))
    if get(ctx + _C_TENSOR_MEMORY):
        check_leak(ctx)
    return i64(L.CTA_FAULT if get(ctx + _FAULT) else L.CTA_DONE)


@native
def count_idle(ctx: int) -> int:
    """A round in which warps have only polled in vain: whether to go on (CTA_IDLE), let others run, or give up."""
    idle = get(ctx + _IDLE) + 1
    put(ctx + _IDLE, idle)
    if idle > IDLE_LIMIT:
        return i64(L.CTA_DEADLOCK)
    return i64(L.CTA_RUNNING if idle % _IDLE_SLICE == 0 else L.CTA_IDLE)


@native
def run_cta(job: int, ctx: int) -> int:
    """Run the warps of a CTA in turn until it ends, faults, blocks for good, or has nothing but warps out of fuel."""
    enough = get(job + _J_FUEL) - get(job + _J_FUEL_SLICE)
    while True:
        events = get(ctx + _EVENTS)
        seen = run_round(job, ctx)
        if seen & FAULTED:
            return i64(L.CTA_FAULT)
        if seen & SPENT:
            return i64(L.CTA_OUT_OF_FUEL)
        if not seen & ALIVE:
            return end_cta(ctx)
        released = release_barriers(ctx)
        if seen & TIRED or get(job + _J_FUEL) < enough:
            return i64(L.CTA_RUNNING)
        if seen & RAN or released or get(ctx + _EVENTS) != events:
            put(ctx + _IDLE, 0)
        elif not seen & POLLING:
            return i64(L.CTA_DEADLOCK)
        else:
            state = count_idle(ctx)
            if state != L.CTA_IDLE:
                return state


@native
def keep_written(job: int, ctx: int) -> None:
    """Pass on which site last wrote to the watched address."""
    if get(ctx + _C_WATCH_SITE) >= 0:
        put(job + _J_WRITTEN_SITE, get(ctx + _C_WATCH_SITE))
        put(job + _J_WRITTEN_CTA, get(ctx + _C_WATCH_CTA))
        put(ctx + _C_WATCH_SITE, -1)


@symbol("run_grid", "int64(int64)")
def run_grid(job: int) -> int:
    """Run every CTA of the job's list; CTA_DONE, or the state of the CTA that ended the launch."""
    slots, size, count = get(job + _J_SLOTS), get(job + _J_SLOT_BYTES), get(job + _J_NCTAS)
    most = get(job + _J_NSLOTS)
    window = i64(1)
    while True:
        busy = False
        for slot in range(window):
            ctx = slots + slot * size
            while True:
                if get(ctx + _STATE) != L.CTA_RUNNING:
                    index = get(job + _J_STARTED)
                    if index == count:
                        break
                    put(job + _J_STARTED, index + 1)
                    start_cta(job, ctx, slot, index)
                state = run_cta(job, ctx)
                put(ctx + _STATE, state)
                keep_written(job, ctx)
                if state == L.CTA_DONE:
                    put(job + _J_DONE, get(job + _J_DONE) + 1)
                    put(job + _J_FUEL, get(job + _J_FUEL_FULL))
                    continue
                if state != L.CTA_RUNNING:
                    put(job + _J_SLOT, slot)
                    return state
                busy = True
                break
        if not busy:
            return i64(L.CTA_DONE)
        if get(job + _J_STARTED) < count and window < most:
            window += 1
            put(job + _J_RESIDENT, window)
