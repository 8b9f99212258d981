"""Control transfer and CTA barriers (PTX ISA, 'Control Flow Instructions', 'bar', 'barrier').

These have no meaning against the kit: the engine turns them into edges between regions (interp/engine/control.py).
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.named_barrier import OUTCOMES
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at


@isa.op("bra{.uni} target", types={"target": "label"}, writes=(), effect=Effect.BRANCH, cost=Cost.CONTROL,
        ref="control-flow-instructions-bra")
def bra(k: Kit, uni: bool) -> Any:
    """continue at the label"""
    return None


@isa.op("brx.idx{.uni} index{, list}", types={"index": "u32", "list": "label"}, writes=(), effect=Effect.CALL,
        cost=Cost.CONTROL,        ref="control-flow-instructions-brx-idx", since=((6, 0), 30))
def brx(k: Kit, uni: bool) -> Any:
    """continue at the label list[index]; the transfer itself is made of plain branches (ptx.flatten)"""
    return lambda *_: None


@isa.op("call{.uni}", effect=Effect.CALL, cost=Cost.CONTROL, ref="control-flow-instructions-call")
def call(k: Kit, uni: bool) -> Any:
    """a call as it is counted; the transfer itself is made of moves and plain branches (ptx.flatten)"""
    return lambda: None


@isa.op("call{.uni} {results}, function, {arguments}{, list}", writes=("results",), effect=Effect.CALL,
        cost=Cost.CONTROL,
        types=dict.fromkeys(("results", "function", "arguments", "list"), "label"), counted=("results", "arguments"),
        ref="control-flow-instructions-call")
def call_function(k: Kit, uni: bool, **_: Any) -> Any:
    """results = function(arguments), directly or through a pointer; made into the form above before execution"""
    return lambda *_: None


@isa.op("ret{.uni}", effect=Effect.EXIT, cost=Cost.CONTROL, ref="control-flow-instructions-ret")
def ret(k: Kit, uni: bool) -> Any:
    """end of the thread, in an entry"""
    return None


@isa.op("exit", effect=Effect.EXIT, cost=Cost.CONTROL, ref="control-flow-instructions-exit")
def exit_(k: Kit) -> Any:
    """end of the thread"""
    return None


@isa.op("trap", effect=Effect.EXIT, cost=Cost.CONTROL, ref="miscellaneous-instructions-trap")
def trap(k: Kit) -> Any:
    """stops the launch with an error"""
    return None


_CTA = {".cta": at((7, 8))}


@isa.op("bar{.cta}.sync a{, b}",
        needs=_CTA, types={"a": "u32", "b": "u32"}, writes=(), effect=Effect.BARRIER, cost=Cost.SYNC,
        ref="parallel-synchronization-and-communication-instructions-bar")
def bar_sync(k: Kit, cta: bool) -> Any:
    """wait at barrier a until b threads (all, without b) have arrived"""
    return None


@isa.op("barrier{.cta}.sync{.aligned} a{, b}",
        needs=_CTA, types={"a": "u32", "b": "u32"}, writes=(), effect=Effect.BARRIER,
        cost=Cost.SYNC, ref="parallel-synchronization-and-communication-instructions-bar", since=((6, 0), 30))
def barrier_sync(k: Kit, cta: bool, aligned: bool) -> Any:
    """wait at barrier a until b threads (all, without b) have arrived"""
    return None


def _arrive(k: Kit) -> Any:
    come = k.warp("barrier_arrive", ())

    def run(a: Any, b: Any) -> None:
        come(a, b)

    return run


@isa.op("bar{.cta}.arrive a, b",
        needs=_CTA, types={"a": "u32", "b": "u32"}, writes=(), effect=Effect.ASYNC, cost=Cost.SYNC,
        ref="parallel-synchronization-and-communication-instructions-bar", since=((2, 0), 20))
def bar_arrive(k: Kit, cta: bool) -> Any:
    """arrive at barrier a, which b threads release, and go on"""
    return _arrive(k)


@isa.op("barrier{.cta}.arrive{.aligned} a, b",
        needs=_CTA, types={"a": "u32", "b": "u32"}, writes=(), effect=Effect.ASYNC,
        cost=Cost.SYNC, ref="parallel-synchronization-and-communication-instructions-bar", since=((6, 0), 30))
def barrier_arrive(k: Kit, cta: bool, aligned: bool) -> Any:
    """arrive at barrier a, which b threads release, and go on"""
    return _arrive(k)


def _reduced(k: Kit, **_: Any) -> Any:
    """d = reduction of all threads' c at barrier a; made into the three below before execution (ptx.flatten)"""
    return None


def _declare_red(head: str, d: str, since: tuple[tuple[int, int], int], **choices: Any) -> None:
    for operands in ("d, a, c", "d, a, b, c"):
        isa.op(
            f"{head} {operands}",
        needs=_CTA, types={"d": d, "a": "u32", "b": "u32", "c": "pred"}, since=since, effect=Effect.WARP,
            varies=Varies.ALWAYS, cost=Cost.SYNC, ref="parallel-synchronization-and-communication-instructions-bar",
            **choices,
        )(_reduced)  # fmt: skip


_declare_red("bar{.cta}.red.popc.u32", "u32", ((2, 0), 20))
_declare_red("bar{.cta}.red.op.pred", "pred", ((2, 0), 20), op=(".and", ".or"))
_declare_red("barrier{.cta}.red.popc{.aligned}.u32", "u32", ((6, 0), 30))
_declare_red("barrier{.cta}.red.op{.aligned}.pred", "pred", ((6, 0), 30), op=(".and", ".or"))


@isa.op("bar.check a", internal=True, types={"a": "u32"}, writes=(), effect=Effect.ASYNC, cost=Cost.SYNC,
        ref="parallel-synchronization-and-communication-instructions-bar")
def bar_check(k: Kit) -> Any:
    """before a barrier whose number is in a register: it is 0 to 15"""
    check = k.warp("barrier_check", ())

    def run(a: Any) -> None:
        check(a)

    return run


@isa.op("bar.contribute a, c", internal=True, types={"a": "u32", "c": "pred"}, writes=(), effect=Effect.ASYNC,
        cost=Cost.SYNC, ref="parallel-synchronization-and-communication-instructions-bar")
def bar_contribute(k: Kit) -> Any:
    """first part of bar.red: this thread's predicate counts at barrier a"""
    give = k.warp("barrier_contribute", ())

    def run(a: Any, c: Any) -> None:
        give(a, c)

    return run


@isa.op("bar.outcome.popc d", internal=True, types={"d": "u32"}, effect=Effect.ASYNC, varies=Varies.ALWAYS,
        cost=Cost.SYNC, ref="parallel-synchronization-and-communication-instructions-bar")
def bar_popc(k: Kit) -> Any:
    """last part of bar.red: d = true predicates at the barrier just left"""
    take = k.warp("barrier_outcome", (32,), OUTCOMES["popc"])
    return lambda: take()[0]


@isa.op("bar.outcome.op d", internal=True, op=(".and", ".or"), types={"d": "pred"}, effect=Effect.ASYNC,
        varies=Varies.ALWAYS, cost=Cost.SYNC, ref="parallel-synchronization-and-communication-instructions-bar")
def bar_decide(k: Kit, op: str) -> Any:
    """last part of bar.red: d = whether all or any predicates were true"""
    take = k.warp("barrier_outcome", (1,), OUTCOMES[op])
    return lambda: take()[0]


def _allocated(k: Kit, **_: Any) -> Any:
    """d = address of a bytes of local memory, at a multiple of n; given back when the function returns (ptx.flatten)"""
    return None


_STACK: dict[str, Any] = {
    "type": (".u32", ".u64"), "cost": Cost.INT, "since": ((7, 3), 52), "effect": Effect.CALL,
    "ref": "stack-manipulation-instructions",
}  # fmt: skip
isa.op("alloca.type d, a{, #n}", **_STACK,
       constraint=lambda n=8, **_: None if 0 < n <= 1 << 23 and n & (n - 1) == 0 else "a power of two up to 2^23"
       )(_allocated)  # fmt: skip
isa.op("stacksave.type d", **_STACK)(_allocated)
isa.op("stackrestore.type a", writes=(), **_STACK)(_allocated)


def _placed(k: Kit, **_: Any) -> Any:
    """d = a, the address that ptx.flatten made"""
    return lambda a: a


for _name in ("alloca", "stacksave"):
    isa.op(f"{_name}.done.type d, a", internal=True, **{**_STACK, "effect": Effect.NONE})(_placed)


@isa.op("stackrestore.done", internal=True, writes=(), cost=Cost.INT, ref=_STACK["ref"])
def stack_restored(k: Kit) -> Any:
    """what it does stands in front of it (ptx.flatten)"""
    return lambda: None


@isa.op("nanosleep.u32 t", types={"t": "u32"}, writes=(), effect=Effect.ASYNC, cost=Cost.SYNC, since=((6, 3), 70),
        ref="miscellaneous-instructions-nanosleep")
def nanosleep(k: Kit) -> Any:
    """let others run"""
    rest = k.warp("yield_turn", ())

    def run(t: Any) -> None:
        rest()

    return run
