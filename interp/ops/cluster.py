"""Clusters of CTAs (PTX ISA, 'Data Movement': mapa, getctarank, st.async; 'Parallel Synchronization': barrier.cluster).
`st.async` to global memory, which came with sm_100 and knows no cluster, stands beside the other one.

A shared address carries the rank of its CTA (`RANK_SHIFT` in `interp.runtime.layout`), so that mapping one to another
CTA is arithmetic; whether that CTA exists, and still runs, is checked by the access. The generic window of shared
memory begins at a multiple of 2^32, hence generic addresses are mapped in the same way.

The wait of the cluster barrier has no meaning against the kit: the engine parks lanes there, as at a CTA's barrier
(`interp.engine.control`); when they go on says `interp.runtime.cluster`.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.layout import RANK_SHIFT
from ptx.isa import Cost, Effect, vec
from ptx.targets import at
from ptx.types import width

_REF = "data-movement-and-conversion-instructions-"
_BARRIER = "parallel-synchronization-and-communication-instructions-barrier-cluster"
_SINCE = ((7, 8), 90)
_RANKS = 0xFF


@isa.op("mapa{.shared::cluster}.type d, a, b", type=(".u32", ".u64"), types={"d": "type", "a": "type", "b": "u32"},
        cost=Cost.INT, since=_SINCE, ref=_REF + "mapa",
        vectors=[vec(".shared::cluster.u32", 0x410, 1, d=0x1000410, why="the same byte of another CTA"),
                 vec(".shared::cluster.u32", 0x3000410, 0, d=0x410, why="back to the first CTA"),
                 vec(".u64", 0x7FFE_0200_0410, 7, d=0x7FFE_0700_0410, why="a generic address")])
def mapa(k: Kit, shared_cluster: bool, type: str) -> Any:
    """d = the address of the same byte in the shared memory of the CTA of rank b"""
    n = width(type)
    and_, or_, shl, widen = k.and_(n), k.or_(n), k.shl(n), k.zext(32, n)
    offset, low = k.const(n, ((1 << n) - 1) & ~(_RANKS << RANK_SHIFT)), k.const(n, _RANKS)
    return lambda a, b: or_(and_(a, offset), shl(and_(widen(b), low), k.const(n, RANK_SHIFT)))


@isa.op("getctarank{.shared::cluster}.type d, a", type=(".u32", ".u64"), types={"d": "u32", "a": "type"},
        cost=Cost.INT, since=_SINCE, ref=_REF + "getctarank",
        vectors=[vec(".shared::cluster.u32", 0x3000410, d=3, why="the rank in a shared address"),
                 vec(".u64", 0x7FFE_0200_0410, d=2, why="the rank in a generic address")])
def getctarank(k: Kit, shared_cluster: bool, type: str) -> Any:
    """d = the rank of the CTA that the shared address a belongs to"""
    n = width(type)
    shr, and_, narrow = k.shr_u(n), k.and_(n), k.trunc(n, 32)
    return lambda a: narrow(and_(shr(a, k.const(n, RANK_SHIFT)), k.const(n, _RANKS)))


@isa.op("barrier.cluster.arrive{.sem}{.aligned}",
        needs={".release,.relaxed": at((8, 0), 90)}, sem=(".release", ".relaxed"), writes=(), effect=Effect.ASYNC,
        cost=Cost.SYNC, since=_SINCE, ref=_BARRIER)
def barrier_cluster_arrive(k: Kit, sem: str | None, aligned: bool) -> Any:
    """arrive at the barrier of the cluster, and go on"""
    come = k.warp("cluster_arrive", ())

    def run() -> None:
        come()

    return run


@isa.op("barrier.cluster.wait{.acquire}{.aligned}",
        needs={".acquire": at((8, 0), 90)}, writes=(), effect=Effect.BARRIER, cost=Cost.SYNC, since=_SINCE,
        ref=_BARRIER)
def barrier_cluster_wait(k: Kit, acquire: bool, aligned: bool) -> Any:
    """wait until all threads of the cluster that have not exited have arrived"""
    return None


@isa.op("st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], {b}, [bar]",
        vec=(".v2", ".v4"), type=(".b32", ".b64", ".u32", ".u64", ".s32", ".s64", ".f32", ".f64"),
        constraint=lambda vec, type,
        **_: "a vector has 128 bits at most" if vec == "v4" and width(type) == 64 else None,
        types=lambda vec, type, **_: {"b": (type, int(vec[1:]) if vec else 0)}, writes=(), effect=Effect.ASYNC,
        cost=Cost.ASYNC, since=((8, 1), 90), ref=_REF + "st-async")
def st_async(k: Kit, vec: str | None, type: str, **_: Any) -> Any:
    """memory at a, of any CTA of the cluster, = b some time; the barrier there gets the bytes"""
    count = int(vec[1:]) if vec else 0
    put = k.warp("async_bulk_words", (), width(type) // 8, max(count, 1))

    def run(a: Any, b: Any, bar: Any) -> None:
        put(a, bar, *(b if count else (b,)))

    return run


@isa.op("st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes.b128 [a], b, [bar]", types={"b": "b128"},
        writes=(), effect=Effect.ASYNC, cost=Cost.ASYNC, since=((9, 2), 90), ref=_REF + "st-async")
def st_async_wide(k: Kit, **_: Any) -> Any:
    """16 bytes of memory at a, of any CTA of the cluster, = b some time; the barrier there gets the bytes"""
    put = k.warp("async_bulk_words", (), 8, 2)

    def run(a: Any, b: Any, bar: Any) -> None:
        put(a, bar, *b)

    return run


@isa.op("st.async{.mmio}.release.scope{.ss}.type [a], b", scope=(".gpu", ".sys"), ss=(".global",),
        type=tuple(f".{kind}{n}" for kind in "bus" for n in (8, 16, 32, 64)) + (".f32", ".f64"), types={"b": "type"},
        constraint=lambda scope, mmio, **_: "'.mmio' goes with '.sys'" if mmio and scope != "sys" else None,
        writes=(), effect=Effect.STORE, cost=Cost.LOAD_STORE, since=((8, 7), 100), ref=_REF + "st-async")
def st_async_release(k: Kit, ss: str | None, type: str, **_: Any) -> Any:
    """memory at a = b after all that the thread did before; nothing tells when, and here it is at once"""
    store = k.store(ss or "generic", width(type), 1)
    return lambda a, b: store(a, b)
