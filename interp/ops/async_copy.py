"""Asynchronous copies to shared memory (PTX ISA, 'cp.async' and its groups).

A copy is queued when it is issued and takes effect as late as its completion is guaranteed: at the wait that covers its
group. A kernel that forgets the wait, or waits for too few groups, reads what was in shared memory before.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, Effect

_REF = "data-movement-and-conversion-instructions-cp-async"


def _legal(cop: str, size: int | None = None, **_: object) -> str | None:
    if size is not None and (size not in (4, 8, 16) or (cop == "cg" and size != 16)):
        return "cp-size must be 4, 8 or 16 (16 only with .cg)"
    return None


@isa.op("cp.async.cop.ss.global{.hint}{.prefetch} [dst], [src], #size{, count}{, policy if hint}", cop=(".ca", ".cg"),
        ss=(".shared", ".shared::cta"), hint=(".L2::cache_hint",), prefetch=(".L2::64B", ".L2::128B", ".L2::256B"),
        types={"count": "u32", "policy": "b64"}, constraint=_legal, effect=Effect.ASYNC, cost=Cost.ASYNC,
        since=((7, 0), 80), writes=(), ref=_REF)
def cp_async(k: Kit, size: int, hint: str | None, **_: Any) -> Any:
    """queue a copy of `size` bytes, of which `count` are read and the rest are zero"""
    enqueue, whole = k.warp("async_copy", (), size), k.const(32, size)

    def copy(dst: Any, src: Any, *rest: Any) -> None:
        # without a byte count the only extra operand is a cache policy
        enqueue(dst, src, rest[0] if rest and not (hint and len(rest) == 1) else whole)

    return copy


@isa.op("cp.async.commit_group", effect=Effect.ASYNC, cost=Cost.ASYNC, since=((7, 0), 80), ref=_REF + "-commit-group")
def commit_group(k: Kit) -> Any:
    """close the group of copies issued so far"""
    commit = k.warp("async_commit", ())

    def run() -> None:
        commit()

    return run


@isa.op("cp.async.wait_group #n", effect=Effect.ASYNC, cost=Cost.ASYNC, since=((7, 0), 80), ref=_REF + "-wait-group")
def wait_group(k: Kit, n: int) -> Any:
    """complete all groups but the n most recent"""
    wait = k.warp("async_wait", (), n)

    def run() -> None:
        wait()

    return run


@isa.op("cp.async.wait_all", effect=Effect.ASYNC, cost=Cost.ASYNC, since=((7, 0), 80), ref=_REF + "-wait-group")
def wait_all(k: Kit) -> Any:
    """complete all copies, committed or not"""
    wait = k.warp("async_wait", (), -1)

    def run() -> None:
        wait()

    return run
