"""Operations across a warp (PTX ISA: shfl, vote, match, redux, activemask, elect, bar.warp.sync).

All lanes that execute one of these together are those of the active mask; the engine waits for the member mask.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import CONVERTING, isa
from interp.runtime.warp import REDUX_OPS, SHFL_MODES, VOTE_MODES
from ptx.isa import Cost, Effect, Varies
from ptx.types import is_signed, width


@isa.op("shfl.sync.mode.b32 d|p, a, b, c, members", mode=tuple("." + m for m in SHFL_MODES),
        discards=("p",), types={"d": "b32", "p": "pred", "a": "b32", "b": "u32", "c": "u32", "members": "u32"},
        writes=("d", "p"),
        effect=Effect.WARP, varies=Varies.ALWAYS, cost=Cost.LOAD_STORE, since=((6, 0), 30),
        ref="data-movement-and-conversion-instructions-shfl-sync")
def shfl(k: Kit, mode: str) -> Any:
    """d = a of another lane of the segment, p = that lane is inside it"""
    exchange = k.warp("warp_shfl", (32, 1), SHFL_MODES[mode])
    return lambda a, b, c, members: exchange(a, b, c, members)


@isa.op("vote.sync.ballot.b32 d, a, members", types={"d": "b32", "a": "pred", "members": "u32"}, effect=Effect.WARP,
        cost=Cost.INT, ref="parallel-synchronization-and-communication-instructions-vote-sync", since=((6, 0), 30))
def vote_ballot(k: Kit) -> Any:
    """d = one bit a lane: its predicate"""
    ballot = k.warp("warp_vote", (32,), VOTE_MODES["ballot"])
    return lambda a, members: ballot(a, members)[0]


@isa.op("vote.sync.mode.pred d, a, members", mode=(".all", ".any", ".uni"),
        types={"d": "pred", "a": "pred", "members": "u32"},
        effect=Effect.WARP, cost=Cost.INT, ref="parallel-synchronization-and-communication-instructions-vote-sync",
        since=((6, 0), 30))
def vote(k: Kit, mode: str) -> Any:
    """d = all, any, or equal predicates"""
    decide = k.warp("warp_vote", (1,), VOTE_MODES[mode])
    return lambda a, members: decide(a, members)[0]


@isa.op("activemask.b32 d", types={"d": "b32"}, effect=Effect.WARP, cost=Cost.INT,
        ref="parallel-synchronization-and-communication-instructions-activemask", since=((6, 2), 30))
def activemask(k: Kit) -> Any:
    """d = lanes that execute this together"""
    read = k.warp("warp_activemask", (32,))
    return lambda: read()[0]


@isa.op("match.any.sync.type d, a, members", type=(".b32", ".b64"), types={"d": "b32", "a": "type", "members": "u32"},
        effect=Effect.WARP, varies=Varies.ALWAYS, cost=Cost.INT, since=((6, 0), 70),
        ref="parallel-synchronization-and-communication-instructions-match-sync")
def match_any(k: Kit, type: str) -> Any:
    """d = lanes whose a equals this lane's"""
    match = k.warp("warp_match_any", (32,), width(type) // 8)
    return lambda a, members: match(a, members)[0]


@isa.op("match.all.sync.type d|p, a, members", type=(".b32", ".b64"),
        discards=("d", "p"), types={"d": "b32", "p": "pred", "a": "type", "members": "u32"},
        writes=("d", "p"), effect=Effect.WARP, cost=Cost.INT, since=((6, 0), 70),
        ref="parallel-synchronization-and-communication-instructions-match-sync")
def match_all(k: Kit, type: str) -> Any:
    """d = the member mask and p = true when all lanes have the same a, else 0 and false"""
    match = k.warp("warp_match_all", (32, 1), width(type) // 8)
    return lambda a, members: match(a, members)


def _legal_reduction(op: str, type: str) -> str | None:
    return "and, or, xor take b32" if (op in ("and", "or", "xor")) != (type == "b32") else None


@isa.op("redux.sync.op.type d, a, members", op=tuple("." + o for o in REDUX_OPS), type=(".u32", ".s32", ".b32"),
        types={"d": "type", "a": "type", "members": "u32"}, effect=Effect.WARP, cost=Cost.INT, since=((7, 0), 80),
        constraint=_legal_reduction,
        ref="parallel-synchronization-and-communication-instructions-redux-sync")
def redux(k: Kit, op: str, type: str) -> Any:
    """d = the reduction of a over the member mask"""
    reduce = k.warp("warp_redux", (32,), REDUX_OPS[op], int(is_signed(type)))
    return lambda a, members: reduce(a, members)[0]


@isa.op("redux.sync.op{.abs}{.NaN}.f32 d, a, members",
        only=("100f",), op=(".min", ".max"),
        types={"d": "f32", "a": "f32", "members": "u32"}, effect=Effect.WARP, cost=Cost.INT, since=((8, 6), 100),
        ref="parallel-synchronization-and-communication-instructions-redux-sync")
def redux_float(k: Kit, op: str, abs: bool, NaN: bool) -> Any:
    """d = the smallest or largest a (or magnitude of a) over the member mask; -0 < +0; NaN as for min and max"""
    reduce = k.warp("warp_redux_f32", (32,), int(op == "max"), int(abs), int(NaN))
    return lambda a, members: reduce(a, members)[0]


@isa.op("elect.sync d|p, members", discards=("d",), types={"d": "b32", "p": "pred", "members": "u32"}, writes=("d",
        "p"),
        effect=Effect.WARP, varies=Varies.ALWAYS, cost=Cost.INT, since=((8, 0), 90),
        ref="parallel-synchronization-and-communication-instructions-elect-sync")
def elect(k: Kit) -> Any:
    """p = this is the elected lane (the lowest, here), d = its number"""
    choose = k.warp("warp_elect", (32, 1))
    return lambda members: choose(members)


@isa.op("setmaxnreg.how.sync.aligned.u32 #n",
        only=("90a", *CONVERTING), how=(".inc", ".dec"), effect=Effect.WARP, cost=Cost.SYNC,
        since=((8, 0), 90),
        constraint=lambda n=24, **_: None if 24 <= n <= 256 and n % 8 == 0 else "a multiple of 8 from 24 to 256",
        ref="miscellaneous-instructions-setmaxnreg")
def setmaxnreg(k: Kit, how: str, n: int) -> Any:
    """gives back or asks for registers; values do not change, and there are always enough"""
    return lambda: None


@isa.op("bar.warp.sync members", types={"members": "u32"}, writes=(), effect=Effect.WARP, cost=Cost.SYNC,
        since=((6, 0), 30), ref="parallel-synchronization-and-communication-instructions-bar-warp-sync")
def bar_warp(k: Kit) -> Any:
    """wait for the lanes of the member mask"""
    return lambda members: None
