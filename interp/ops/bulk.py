"""Bulk copies and their groups (PTX ISA, 'Data Movement': cp.async.bulk, cp.reduce.async.bulk).

When they take effect: `interp.runtime.bulk`. Copies by tensor maps: `interp.ops.bulk_tensor`.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.atomics import atomic_symbol
from interp.runtime.layout import SPACE_CLUSTER, SPACE_SHARED
from interp.runtime.tile_reduce import SUBNORMALS, WIDE
from ptx.isa import Cost, Effect
from ptx.targets import at

_REF = "data-movement-and-conversion-instructions-"
_LOCAL = (".shared::cta", ".shared::cluster")
_BASE: dict[str, Any] = {"effect": Effect.ASYNC, "cost": Cost.ASYNC, "since": ((8, 0), 90), "writes": ()}
_HINT: dict[str, Any] = {"hint": (".L2::cache_hint",)}


def _space(dst: str) -> int:
    return SPACE_CLUSTER if dst == "shared::cluster" else SPACE_SHARED


@isa.op("cp.async.bulk.dst.global.mbarrier::complete_tx::bytes{.hint} [to], [from], size, [bar]{, policy if hint}",
        needs={"dst.shared::cta": at((8, 6), 90)}, dst=_LOCAL,
        types={"size": "u32", "policy": "b64"}, ref=_REF + "cp-async-bulk", **_HINT, **_BASE)
def bulk_load(k: Kit, dst: str, hint: str | None) -> Any:
    """queue a copy of `size` bytes to shared memory; the barrier gets its bytes"""
    load = k.warp("async_bulk_load", (), _space(dst), 0)

    def run(to: Any, source: Any, size: Any, bar: Any, *policy: Any) -> None:
        load(to, source, bar, size)

    return run


@isa.op("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster{.hint} [to], [from], "
        "size, [bar], ctas{, policy if hint}", types={"size": "u32", "ctas": "u16", "policy": "b64"},
        ref=_REF + "cp-async-bulk", **_HINT, **_BASE)
def bulk_load_many(k: Kit, hint: str | None) -> Any:
    """as without multicast, to the same place of each CTA of the cluster whose rank is a bit of `ctas`"""
    load, widen = k.warp("async_bulk_load", (), SPACE_CLUSTER, 1), k.zext(16, 32)

    def run(to: Any, source: Any, size: Any, bar: Any, ctas: Any, *policy: Any) -> None:
        load(to, source, bar, size, widen(ctas))

    return run


@isa.op("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to], [from], size, [bar]",
        types={"size": "u32"}, ref=_REF + "cp-async-bulk", **_BASE)
def bulk_send(k: Kit) -> Any:
    """queue a copy of `size` bytes to the shared memory of a CTA of the cluster; the barrier there gets its bytes"""
    send = k.warp("async_bulk_send", ())

    def run(to: Any, source: Any, size: Any, bar: Any) -> None:
        send(to, source, bar, size)

    return run


@isa.op("cp.async.bulk.global.shared::cta.bulk_group{.hint} [to], [from], size{, policy if hint}",
        types={"size": "u32", "policy": "b64"}, ref=_REF + "cp-async-bulk", **_HINT, **_BASE)
def bulk_store(k: Kit, hint: str | None) -> Any:
    """queue a copy of `size` bytes to global memory"""
    store = k.warp("async_bulk_store", (), -1)

    def run(to: Any, source: Any, size: Any, *policy: Any) -> None:
        store(to, source, size)

    return run


@isa.op("st.bulk{.weak}{.shared::cta} [a], size, #n", types={"size": "u64"}, writes=(), effect=Effect.STORE,
        cost=Cost.LOAD_STORE, since=((8, 6), 100), ref=_REF + "st-bulk",
        constraint=lambda n=0, **_: None if n == 0 else "the value must be 0")
def st_bulk(k: Kit, weak: bool, shared_cta: bool, n: int) -> Any:
    """`size` bytes of the CTA's shared memory at a = 0"""
    fill = k.warp("fill_zeros", (), int(not shared_cta))

    def run(a: Any, size: Any) -> None:
        fill(a, size)

    return run


REDUCTIONS = {
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"), "inc": ("u32",), "dec": ("u32",),
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"), "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
}  # fmt: skip


def _legal_reduction(op: str, type: str, noftz: str | None = None, **_: Any) -> str | None:
    if type not in REDUCTIONS[op]:
        return f"'.{op}' does not take {type}"
    wants = op == "add" and type in ("f16", "bf16")
    return None if (noftz is not None) == wants else "'.noftz' goes with the addition of 16-bit formats"


@isa.op("cp.reduce.async.bulk.global.shared::cta.bulk_group{.hint}.op{.noftz}.type "
        "[to], [from], size{, policy if hint}",
        op=tuple("." + o for o in REDUCTIONS),
        type=tuple(f".{t}" for t in sorted({t for ts in REDUCTIONS.values() for t in ts})),
        noftz=(".noftz",), types={"size": "u32", "policy": "b64"}, constraint=_legal_reduction,
        ref=_REF + "cp-reduce-async-bulk", **_HINT, **_BASE)
def bulk_reduce(k: Kit, op: str, type: str, **_: Any) -> Any:
    """queue a reduction of `size` bytes into global memory"""
    n, code = atomic_symbol(op, type)[1:]
    store = k.warp("async_bulk_reduce", (), code | (WIDE if n == 64 else SUBNORMALS if type == "f32" else 0))

    def run(to: Any, source: Any, size: Any, *policy: Any) -> None:
        store(to, source, size)

    return run


@isa.op("cp.async.bulk.prefetch.L2.global{.hint} [from], size{, policy if hint}", types={"size": "u32",
        "policy": "b64"},
        ref=_REF + "cp-async-bulk-prefetch", **_HINT, **_BASE)
def bulk_prefetch(k: Kit, hint: str | None) -> Any:
    """a hint: nothing happens"""
    return lambda *_: None


@isa.op("cp.async.bulk.commit_group", ref=_REF + "cp-async-bulk-commit-group", **_BASE)
def bulk_commit(k: Kit) -> Any:
    """close the group of bulk copies issued so far"""
    commit = k.warp("async_bulk_commit", ())

    def run() -> None:
        commit()

    return run


@isa.op("cp.async.bulk.wait_group{.read} #n", ref=_REF + "cp-async-bulk-wait-group", **_BASE)
def bulk_wait(k: Kit, read: bool, n: int) -> Any:
    """complete all bulk groups but the n most recent (with .read: as far as shared memory is concerned)"""
    wait = k.warp("async_bulk_wait", (), n)

    def run() -> None:
        wait()

    return run
