"""mbarrier objects (PTX ISA, 'Parallel Synchronization and Communication Instructions: mbarrier').

A wait that fails gives up the warp's turn (`interp.runtime.waiting`). Scopes and memory orders change nothing here, as
for atomics. A thread may arrive at barriers of other CTAs of its cluster, but waits at those of its own CTA only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.layout import SPACE_CLUSTER, SPACE_GENERIC, SPACE_SHARED
from ptx import ir
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at

_REF = "parallel-synchronization-and-communication-instructions-mbarrier"
_SPACES = (".shared", ".shared::cta")
_WIDER = (*_SPACES, ".shared::cluster")
_SEMANTICS: dict[str, Any] = {"sem": (".release", ".relaxed", ".acquire"), "scope": (".cta", ".cluster"), "ss": _WIDER}
_WAITING: dict[str, Any] = {**_SEMANTICS, "ss": _SPACES}


def _legal(sem: str | None, scope: str | None, allowed: tuple[str, ...], ss: str | None = None,
           incomplete: bool = False) -> str | None:
    """What ptxas refuses: an order without a scope or the other way round, and orders that make no sense."""
    if (sem is None) != (scope is None):
        return "a memory order and a scope stand together"
    if sem is not None and sem not in allowed:
        return f"'.{sem}' does not go with this operation"
    if incomplete and (scope == "cluster" or ss == "shared::cluster"):
        return "'.noComplete' is for barriers of the own CTA"
    return None


def _orders(*allowed: str, incomplete: bool = False) -> Any:
    return lambda sem, scope, ss, **_: _legal(sem, scope, allowed, ss, incomplete)


def _no_state(mods: Mapping[str, Any], operands: Mapping[str, ir.Operand]) -> str | None:
    """An arrival at a barrier of another CTA has no result."""
    if mods["ss"] == "shared::cluster" and not isinstance(operands["d"], ir.Sink):
        return "with '.shared::cluster' the destination is `_`"
    return None


def _has_hint(mods: Mapping[str, Any], operands: Mapping[str, ir.Operand]) -> str | None:
    return "'.test_wait' has no time limit" if "hint" in operands and mods["how"] == "test_wait" else None


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


_ORDERING = {".release": at((8, 0), 80), ".relaxed": at((8, 6), 90)}
_ARRIVING = {**_ORDERING, "count": at((7, 8), 90)}
_TRYING = {"how.try_wait": at((7, 8), 90), ".acquire": at((8, 0), 80), ".relaxed": at((8, 6), 90)}
_ARRIVE_TYPES = {"d": "b64", "count": "u32"}


@isa.op("mbarrier.arrive{.sem}{.scope}{.ss}.b64 d, [a]{, count}",
        needs=_ARRIVING, constraint=_orders("release", "relaxed"), rule=_no_state, discards=("d",), types=_ARRIVE_TYPES,
        varies=Varies.ALWAYS,
        ref=_REF + "-arrive", **_SEMANTICS, **_BASE)
def arrive(k: Kit, ss: str | None, **_: Any) -> Any:
    """arrive once, or `count` times; d = the state before"""
    come, one = k.warp("mbarrier_arrive", (64,), _space(ss), 0), k.const(32, 1)
    return lambda a, count=one: come(a, count)[0]


@isa.op("mbarrier.arrive.noComplete{.sem}{.scope}{.ss}.b64 d, [a], count",
        needs=_ORDERING, constraint=_orders("release", incomplete=True), discards=("d",), types=_ARRIVE_TYPES,
        varies=Varies.ALWAYS,
        ref=_REF + "-arrive", **_SEMANTICS, **_BASE)
def arrive_incomplete(k: Kit, ss: str | None, **_: Any) -> Any:
    """arrive `count` times, which must not complete the phase; d = the state before"""
    come = k.warp("mbarrier_arrive", (64,), _space(ss), 0)
    return lambda a, count: come(a, count)[0]


@isa.op("mbarrier.arrive_drop{.sem}{.scope}{.ss}.b64 d, [a]{, count}",
        needs=_ARRIVING, constraint=_orders("release", "relaxed"), rule=_no_state, discards=("d",), types=_ARRIVE_TYPES,
        varies=Varies.ALWAYS,
        ref=_REF + "-arrive-drop", **_SEMANTICS, **_BASE)
def arrive_drop(k: Kit, ss: str | None, **_: Any) -> Any:
    """arrive, and expect fewer arrivals from the next phase on; d = the state before"""
    come, one = k.warp("mbarrier_arrive", (64,), _space(ss), 1), k.const(32, 1)
    return lambda a, count=one: come(a, count)[0]


@isa.op("mbarrier.arrive.expect_tx{.sem}{.scope}{.ss}.b64 d, [a], bytes",
        needs=_ORDERING, constraint=_orders("release", "relaxed"), rule=_no_state, discards=("d",), types={"d": "b64",
        "bytes": "u32"},
        varies=Varies.ALWAYS, ref=_REF + "-arrive", **_SEMANTICS, **{**_BASE, "since": ((8, 0), 90)})
def arrive_expect(k: Kit, ss: str | None, **_: Any) -> Any:
    """expect `bytes` more in this phase, then arrive; d = the state before"""
    come = k.warp("mbarrier_arrive_expect", (64,), _space(ss), 0)
    return lambda a, bytes: come(a, bytes)[0]


@isa.op("mbarrier.expect_tx{.sem}{.scope}{.ss}.b64 [a], bytes", constraint=_orders("relaxed"),
        types={"bytes": "u32"}, writes=(),
        ref=_REF + "-expect-tx", **_SEMANTICS, **{**_BASE, "since": ((8, 0), 90)})
def expect_tx(k: Kit, ss: str | None, **_: Any) -> Any:
    """expect `bytes` more in this phase"""
    expect = k.warp("mbarrier_transact", (), _space(ss), 0)

    def run(a: Any, bytes: Any) -> None:
        expect(a, bytes)

    return run


@isa.op("mbarrier.complete_tx{.sem}{.scope}{.ss}.b64 [a], bytes", constraint=_orders("relaxed"),
        types={"bytes": "u32"}, writes=(),
        ref=_REF + "-complete-tx", **_SEMANTICS, **{**_BASE, "since": ((8, 0), 90)})
def complete_tx(k: Kit, ss: str | None, **_: Any) -> Any:
    """`bytes` of this phase have come"""
    complete = k.warp("mbarrier_transact", (), _space(ss), 1)

    def run(a: Any, bytes: Any) -> None:
        complete(a, bytes)

    return run


@isa.op("mbarrier.how{.sem}{.scope}{.ss}.b64 p, [a], state{, hint}",
        needs=_TRYING, constraint=_orders("acquire", "relaxed"), rule=_has_hint, how=(".test_wait", ".try_wait"),
        types={"p": "pred", "state": "b64", "hint": "u32"}, writes=("p",), ref=_REF + "-test-wait-try-wait",
        **_WAITING, **_BASE)
def wait_state(k: Kit, how: str, ss: str | None, **_: Any) -> Any:
    """p = the phase in which `state` was taken is over"""
    ask = k.warp("mbarrier_wait", (1,), _space(ss), 0)
    return lambda a, state, *hint: ask(a, state)[0]


@isa.op("mbarrier.how.parity{.sem}{.scope}{.ss}.b64 p, [a], parity{, hint}",
        needs=_TRYING | {"how.test_wait": at((7, 1), 80)}, constraint=_orders("acquire", "relaxed"), rule=_has_hint,
        how=(".test_wait", ".try_wait"),
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
