"""mbarrier objects (PTX ISA, 'Parallel Synchronization and Communication Instructions: mbarrier').

A wait that fails gives up the warp's turn (`interp.runtime.waiting`). Scopes and memory orders change nothing here, as
for atomics. A thread may arrive at barriers of other CTAs of its cluster, but waits at those of its own CTA only.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.layout import SPACE_CLUSTER, SPACE_GENERIC, SPACE_SHARED
from ptx.isa import Cost, Effect, Varies

_REF = "parallel-synchronization-and-communication-instructions-mbarrier"
_SPACES = (".shared", ".shared::cta")
_WIDER = (*_SPACES, ".shared::cluster")
_SEMANTICS: dict[str, Any] = {"sem": (".release", ".relaxed", ".acquire"), "scope": (".cta", ".cluster"), "ss": _WIDER}
_WAITING: dict[str, Any] = {**_SEMANTICS, "ss": _SPACES}
_BASE: dict[str, Any] = {"effect": Effect.ASYNC, "cost": Cost.SYNC, "since": ((7, 0), 80)}


def _space(ss: str | None) -> int:
    if ss == "shared::cluster":
        return SPACE_CLUSTER
    return SPACE_SHARED if ss else SPACE_GENERIC


@isa.op("mbarrier.init{.ss}.b64 [a], count", ss=_SPACES, types={"count": "u32"}, writes=(), ref=_REF + "-init", **_BASE)
def init(k: Kit, ss: str | None) -> Any:
    """a barrier whose phases wait for `count` arrivals each"""
    make = k.warp("mbarrier_init", (), _space(ss))

    def run(a: Any, count: Any) -> None:
        make(a, count)

    return run


@isa.op("mbarrier.inval{.ss}.b64 [a]", ss=_SPACES, writes=(), ref=_REF + "-inval", **_BASE)
def inval(k: Kit, ss: str | None) -> Any:
    """no longer a barrier"""
    end = k.warp("mbarrier_inval", (), _space(ss))

    def run(a: Any) -> None:
        end(a)

    return run


_ARRIVE_TYPES = {"d": "b64", "count": "u32"}


@isa.op("mbarrier.arrive{.sem}{.scope}{.ss}.b64 d, [a]{, count}", types=_ARRIVE_TYPES, varies=Varies.ALWAYS,
        ref=_REF + "-arrive", **_SEMANTICS, **_BASE)
def arrive(k: Kit, ss: str | None, **_: Any) -> Any:
    """arrive once, or `count` times; d = the state before"""
    come, one = k.warp("mbarrier_arrive", (64,), _space(ss), 0), k.const(32, 1)
    return lambda a, count=one: come(a, count)[0]


@isa.op("mbarrier.arrive.noComplete{.sem}{.scope}{.ss}.b64 d, [a], count", types=_ARRIVE_TYPES, varies=Varies.ALWAYS,
        ref=_REF + "-arrive", **_SEMANTICS, **_BASE)
def arrive_incomplete(k: Kit, ss: str | None, **_: Any) -> Any:
    """arrive `count` times, which must not complete the phase; d = the state before"""
    come = k.warp("mbarrier_arrive", (64,), _space(ss), 0)
    return lambda a, count: come(a, count)[0]


@isa.op("mbarrier.arrive_drop{.sem}{.scope}{.ss}.b64 d, [a]{, count}", types=_ARRIVE_TYPES, varies=Varies.ALWAYS,
        ref=_REF + "-arrive-drop", **_SEMANTICS, **_BASE)
def arrive_drop(k: Kit, ss: str | None, **_: Any) -> Any:
    """arrive, and expect fewer arrivals from the next phase on; d = the state before"""
    come, one = k.warp("mbarrier_arrive", (64,), _space(ss), 1), k.const(32, 1)
    return lambda a, count=one: come(a, count)[0]


@isa.op("mbarrier.arrive.expect_tx{.sem}{.scope}{.ss}.b64 d, [a], bytes", types={"d": "b64", "bytes": "u32"},
        varies=Varies.ALWAYS, ref=_REF + "-arrive", **_SEMANTICS, **_BASE)
def arrive_expect(k: Kit, ss: str | None, **_: Any) -> Any:
    """expect `bytes` more in this phase, then arrive; d = the state before"""
    come = k.warp("mbarrier_arrive_expect", (64,), _space(ss), 0)
    return lambda a, bytes: come(a, bytes)[0]


@isa.op("mbarrier.expect_tx{.sem}{.scope}{.ss}.b64 [a], bytes", types={"bytes": "u32"}, writes=(),
        ref=_REF + "-expect-tx", **_SEMANTICS, **_BASE)
def expect_tx(k: Kit, ss: str | None, **_: Any) -> Any:
    """expect `bytes` more in this phase"""
    expect = k.warp("mbarrier_transact", (), _space(ss), 0)

    def run(a: Any, bytes: Any) -> None:
        expect(a, bytes)

    return run


@isa.op("mbarrier.complete_tx{.sem}{.scope}{.ss}.b64 [a], bytes", types={"bytes": "u32"}, writes=(),
        ref=_REF + "-complete-tx", **_SEMANTICS, **_BASE)
def complete_tx(k: Kit, ss: str | None, **_: Any) -> Any:
    """`bytes` of this phase have come"""
    complete = k.warp("mbarrier_transact", (), _space(ss), 1)

    def run(a: Any, bytes: Any) -> None:
        complete(a, bytes)

    return run


@isa.op("mbarrier.how{.sem}{.scope}{.ss}.b64 p, [a], state{, hint}", how=(".test_wait", ".try_wait"),
        types={"p": "pred", "state": "b64", "hint": "u32"}, writes=("p",), ref=_REF + "-test-wait-try-wait",
        **_WAITING, **_BASE)
def wait_state(k: Kit, how: str, ss: str | None, **_: Any) -> Any:
    """p = the phase in which `state` was taken is over"""
    ask = k.warp("mbarrier_wait", (1,), _space(ss), 0)
    return lambda a, state, *hint: ask(a, state)[0]


@isa.op("mbarrier.how.parity{.sem}{.scope}{.ss}.b64 p, [a], parity{, hint}", how=(".test_wait", ".try_wait"),
        types={"p": "pred", "parity": "u32", "hint": "u32"}, writes=("p",), ref=_REF + "-test-wait-try-wait",
        **_WAITING, **_BASE)
def wait_parity(k: Kit, how: str, ss: str | None, **_: Any) -> Any:
    """p = the phase of that parity is over"""
    ask = k.warp("mbarrier_wait", (1,), _space(ss), 1)
    return lambda a, parity, *hint: ask(a, parity)[0]


@isa.op("mbarrier.pending_count.b64 d, state", types={"d": "b32", "state": "b64"}, ref=_REF + "-pending-count", **_BASE)
def pending_count(k: Kit) -> Any:
    """d = arrivals that were pending in a state"""
    read = k.warp("mbarrier_pending", (32,))
    return lambda state: read(state)[0]


@isa.op("cp.async.mbarrier.arrive{.noinc}{.ss}.b64 [a]", ss=_SPACES, writes=(), ref=_REF + "-cp-async-mbarrier-arrive",
        **_BASE)
def copy_arrive(k: Kit, noinc: bool, ss: str | None) -> Any:
    """arrive when this thread's earlier cp.async are complete (without .noinc the phase waits for one more)"""
    queue = k.warp("async_copy_arrive", (), _space(ss), int(noinc))

    def run(a: Any) -> None:
        queue(a)

    return run
