"""Cluster launch control (PTX ISA, 'Parallel Synchronization': clusterlaunchcontrol).

A running cluster asks to take over one that has not started; the answer is 16 bytes in shared memory, which
`query_cancel` reads. Which cluster it gets: `interp.runtime.cluster_launch`. The layout of the answer is the one that
the assembler's code for `query_cancel` reads on sm_100.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import CONVERTING, isa
from ptx.isa import Cost, Effect, vec
from ptx.targets import at

_REF = "parallel-synchronization-and-communication-instructions-clusterlaunchcontrol-"
_SINCE = ((8, 6), 100)


@isa.op("clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.many}.b128 [a], [bar]",
        needs={".multicast::cluster::all": at((8, 6), 100, *CONVERTING)}, many=(".multicast::cluster::all",),
        effect=Effect.ASYNC, cost=Cost.ASYNC, since=_SINCE, writes=(),
        ref=_REF + "try-cancel")
def try_cancel(k: Kit, shared_cta: bool, many: str | None) -> Any:
    """ask for the next cluster that has not started; the answer comes to a some time, or to all CTAs of the cluster"""
    ask = k.warp("async_bulk_cancel", (), int(many is not None))

    def run(a: Any, bar: Any) -> None:
        ask(a, bar)

    return run


@isa.op("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, a", types={"p": "pred", "a": "b128"}, writes=("p",),
        cost=Cost.INT, since=_SINCE, ref=_REF + "query-cancel",
        vectors=[vec(".query_cancel.is_canceled.pred.b128", 5, 1, d=1, why="a cluster was cancelled"),
                 vec(".query_cancel.is_canceled.pred.b128", 0, 0, d=0, why="none was left")])
def is_canceled(k: Kit) -> Any:
    """p = the answer a says that a cluster was cancelled"""
    ne, and_, one, zero = k.ne(64), k.and_(64), k.const(64, 1), k.const(64, 0)
    return lambda a: ne(and_(a[1], one), zero)


def _first(k: Kit, word: Any) -> tuple[Any, Any, Any]:
    """x, y, z of the first half of an answer."""
    narrow, shr, and_, low = k.trunc(64, 32), k.shr_u(64), k.and_(64), k.const(64, 0xFFFF)
    return narrow(word), narrow(and_(shr(word, k.const(64, 32)), low)), narrow(shr(word, k.const(64, 48)))


@isa.op("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {d}, a",
        types={"d": ("b32", 4), "a": "b128"}, cost=Cost.INT, since=_SINCE, ref=_REF + "query-cancel")
def get_first_ctaid(k: Kit) -> Any:
    """d = %ctaid of the first CTA of the cancelled cluster, and 0"""
    return lambda a: (*_first(k, a[0]), k.const(32, 0))


@isa.op("clusterlaunchcontrol.query_cancel.dimension.b32.b128 d, a",
        dimension=tuple(f".get_first_ctaid::{axis}" for axis in "xyz"), types={"d": "b32", "a": "b128"},
        cost=Cost.INT, since=_SINCE, ref=_REF + "query-cancel",
        vectors=[vec(".query_cancel.get_first_ctaid::x.b32.b128", 0x3_0002_0000_0001, 1, d=1, why="the first word"),
                 vec(".query_cancel.get_first_ctaid::y.b32.b128", 0x3_0002_0000_0001, 1, d=2, why="half a word"),
                 vec(".query_cancel.get_first_ctaid::z.b32.b128", 0x3_0002_0000_0001, 1, d=3, why="the other half")])
def get_first_ctaid_of(k: Kit, dimension: str) -> Any:
    """d = one dimension of %ctaid of the first CTA of the cancelled cluster"""
    return lambda a: _first(k, a[0])["xyz".index(dimension[-1])]
