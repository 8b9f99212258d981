"""Bulk copies, tensor copies and tensor maps (PTX ISA, 'Data Movement': cp.async.bulk, cp.async.bulk.tensor,
tensormap).

When they take effect: `interp.runtime.bulk`; what a tensor map is and how tiles are copied:
`interp.runtime.tensor_copy`. Only tiled mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interp.kit import Kit
from interp.ops.table import BLACKWELL, CONVERTING, isa
from interp.runtime.atomics import atomic_symbol
from interp.runtime.layout import SPACE_CLUSTER, SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, TENSOR_TYPES
from interp.runtime.tensor_map import FIELDS
from ptx import ir
from ptx.isa import Cost, Effect
from ptx.targets import at

_REF = "data-movement-and-conversion-instructions-"
_DIMS = tuple(f".{n}d" for n in range(1, 6))
_LOCAL = (".shared::cta", ".shared::cluster")


def _coordinates(mods: Mapping[str, Any], operands: Mapping[str, ir.Operand]) -> str | None:
    """A coordinate for each dimension; rows of gather4 and scatter4 are a column and four rows."""
    four = any(str(mods.get(name) or "").endswith("4") for name in ("mode", "late"))
    wanted, tensor = 5 if four else int(mods.get("dim", "2d")[0]), operands["map"]
    if isinstance(tensor, ir.TensorMem) and len(tensor.coords.items) != wanted:
        return f"{len(tensor.coords.items)} coordinates where {wanted} belong"
    return None


_BASE: dict[str, Any] = {"effect": Effect.ASYNC, "cost": Cost.ASYNC, "since": ((8, 0), 90), "writes": ()}
_GROUPS = (".cta_group::1", ".cta_group::2")
"""Whether the barrier is that of the CTA, or may be that of the other one of its pair: its address says so anyway."""
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


_REDUCTIONS = {
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"), "inc": ("u32",), "dec": ("u32",),
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"), "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
}  # fmt: skip


def _legal_reduction(op: str, type: str, noftz: str | None = None, **_: Any) -> str | None:
    if type not in _REDUCTIONS[op]:
        return f"'.{op}' does not take {type}"
    wants = op == "add" and type in ("f16", "bf16")
    return None if (noftz is not None) == wants else "'.noftz' goes with the addition of 16-bit formats"


@isa.op("cp.reduce.async.bulk.global.shared::cta.bulk_group{.hint}.op{.noftz}.type "
        "[to], [from], size{, policy if hint}",
        op=tuple("." + o for o in _REDUCTIONS),
        type=tuple(f".{t}" for t in sorted({t for ts in _REDUCTIONS.values() for t in ts})),
        noftz=(".noftz",), types={"size": "u32", "policy": "b64"}, constraint=_legal_reduction,
        ref=_REF + "cp-reduce-async-bulk", **_HINT, **_BASE)
def bulk_reduce(k: Kit, op: str, type: str, **_: Any) -> Any:
    """queue a reduction of `size` bytes into global memory"""
    n, code = atomic_symbol(op, type)[1:]
    store = k.warp("async_bulk_reduce", (), code | (n == 64) << 8)

    def run(to: Any, source: Any, size: Any, *policy: Any) -> None:
        store(to, source, size)

    return run


@isa.op("cp.async.bulk.prefetch.L2.global{.hint} [from], size{, policy if hint}", types={"size": "u32",
        "policy": "b64"},
        ref=_REF + "cp-async-bulk-prefetch", **_HINT, **_BASE)
def bulk_prefetch(k: Kit, hint: str | None) -> Any:
    """a hint: nothing happens"""
    return lambda *_: None


@isa.op("cp.async.bulk.tensor.dim.dst.global{.tile}.mbarrier::complete_tx::bytes{.group}{.hint} [to], [map], [bar]"
        "{, policy if hint}",
        needs={"dst.shared::cta": at((8, 6), 90), ".cta_group::1,.cta_group::2": at((8, 6), 100, *BLACKWELL)},
        dim=_DIMS, dst=_LOCAL, group=_GROUPS, types={"policy": "b64"},
        ref=_REF + "cp-async-bulk-tensor", **_HINT, rule=_coordinates, **_BASE)
def tensor_load(k: Kit, dim: str, dst: str, **_: Any) -> Any:
    """queue a copy of a box to shared memory; the barrier gets its bytes"""
    load = k.warp("async_tensor_load", (), int(dim[0]), _space(dst), 0)

    def run(to: Any, map: Any, bar: Any, *policy: Any) -> None:
        address, coords = map
        load(to, address, bar, *coords)

    return run


@isa.op("cp.async.bulk.tensor.dim.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes.multicast::cluster{.hint} "
        "[to], [map], [bar], ctas{, policy if hint}", dim=_DIMS, types={"ctas": "u16", "policy": "b64"},
        ref=_REF + "cp-async-bulk-tensor", **_HINT, rule=_coordinates, **_BASE)
def tensor_load_many(k: Kit, dim: str, **_: Any) -> Any:
    """as without multicast, to the same place of each CTA of the cluster whose rank is a bit of `ctas`"""
    load, widen = k.warp("async_tensor_load", (), int(dim[0]), SPACE_CLUSTER, 1), k.zext(16, 32)

    def run(to: Any, map: Any, bar: Any, ctas: Any, *policy: Any) -> None:
        address, coords = map
        load(to, address, bar, *coords, widen(ctas))

    return run


def _one_mode(mode: str | None, late: str | None, **_: Any) -> str | None:
    return None if (mode is None) != (late is None) else "the mode stands once"


_FOUR: dict[str, Any] = {**_BASE, "since": ((8, 6), 100), "types": {"policy": "b64"}, "constraint": _one_mode}


@isa.op("cp.async.bulk.tensor.2d{.mode}.dst.global{.late}.mbarrier::complete_tx::bytes{.group}{.hint} [to], [map], "
        "[bar]{, policy if hint}",
        needs={"dst.shared::cluster,.cta_group::1,.cta_group::2": at((8, 6), 100, *BLACKWELL)}, group=_GROUPS,
        mode=(".tile::gather4",), late=(".tile::gather4",), dst=_LOCAL,
        ref=_REF + "cp-async-bulk-tensor", **_HINT, rule=_coordinates, **_FOUR)
def tensor_gather(k: Kit, dst: str, **_: Any) -> Any:
    """queue a copy of parts of four rows to shared memory; coordinates are a column and four rows"""
    load = k.warp("async_tensor_gather", (), _space(dst))

    def run(to: Any, map: Any, bar: Any, *policy: Any) -> None:
        address, coords = map
        load(to, address, bar, *coords)

    return run


@isa.op("cp.async.bulk.tensor.2d{.mode}.global.shared::cta{.late}.bulk_group{.hint} [map], [from]{, policy if hint}",
        only=BLACKWELL,
        mode=(".tile::scatter4",), late=(".tile::scatter4",), ref=_REF + "cp-async-bulk-tensor", **_HINT,
        rule=_coordinates, **_FOUR)
def tensor_scatter(k: Kit, **_: Any) -> Any:
    """queue a copy of four rows of shared memory to parts of four rows"""
    store = k.warp("async_tensor_scatter", ())

    def run(map: Any, source: Any, *policy: Any) -> None:
        address, coords = map
        store(address, source, *coords)

    return run


@isa.op("cp.async.bulk.tensor.dim.global.shared::cta{.tile}.bulk_group{.hint} [map], [from]{, policy if hint}",
        dim=_DIMS,
        types={"policy": "b64"}, ref=_REF + "cp-async-bulk-tensor", **_HINT, rule=_coordinates, **_BASE)
def tensor_store(k: Kit, dim: str, **_: Any) -> Any:
    """queue a copy of a box to global memory"""
    store = k.warp("async_tensor_store", (), int(dim[0]), -1)

    def run(map: Any, source: Any, *policy: Any) -> None:
        address, coords = map
        store(address, source, *coords)

    return run


@isa.op("cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{.tile}.bulk_group{.hint} "
        "[map], [from]{, policy if hint}",
        dim=_DIMS,
        op=tuple("." + o for o in _REDUCTIONS), types={"policy": "b64"}, ref=_REF + "cp-reduce-async-bulk-tensor",
        **_HINT, rule=_coordinates, **_BASE)
def tensor_reduce(k: Kit, dim: str, op: str, **_: Any) -> Any:
    """queue a reduction of a box into global memory; its type is the tensor map's"""
    store = k.warp("async_tensor_reduce", (), int(dim[0]), atomic_symbol(op, "u32")[2])

    def run(map: Any, source: Any, *policy: Any) -> None:
        address, coords = map
        store(address, source, *coords)

    return run


@isa.op("cp.async.bulk.prefetch.tensor.dim.L2.global{.tile}{.hint} [map]{, policy if hint}", dim=_DIMS,
        types={"policy": "b64"},
        ref=_REF + "cp-async-bulk-prefetch-tensor", **_HINT, rule=_coordinates, **_BASE)
def tensor_prefetch(k: Kit, **_: Any) -> Any:
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


# ------------------------------------------------------------------------------------------------ tensor maps
_MAP_SPACES = (".global", ".shared::cta")
_MAP: dict[str, Any] = {"effect": Effect.STORE, "cost": Cost.LOAD_STORE, "since": ((8, 3), 90), "writes": ()}


def _replace(k: Kit, field: str, ss: str | None, index: int, wide: bool) -> Any:
    offset, size, _ = FIELDS[field]
    space = SPACE_GENERIC if ss is None else SPACE_GLOBAL if ss == "global" else SPACE_SHARED
    put, up = k.warp("tensor_map_replace", (), offset + index * size, size, space), k.zext(64 if wide else 32, 64)

    def run(a: Any, value: Any) -> None:
        put(a, up(value))

    return run


def _legal_index(field: str, type: str, n: int = 0, **_: Any) -> str | None:
    if not 0 <= n < FIELDS[field][2]:
        return f"{field} has no element {n}"
    return None if (type == "b64") == (field == "global_stride") else f"'.{field}' is of another width"


def _legal_width(field: str, type: str, **_: Any) -> str | None:
    return None if (type == "b64") == (field == "global_address") else "of another width"


_REPLACING = ("90a", *CONVERTING)


@isa.op("tensormap.replace.tile.field{.ss}.b1024.type [a], value",
        only=_REPLACING, field=(".global_address", ".rank"), ss=_MAP_SPACES,
        type=(".b32", ".b64"), types={"value": "type"}, ref=_REF + "tensormap-replace",
        constraint=_legal_width, **_MAP)
def replace_field(k: Kit, field: str, ss: str | None, type: str) -> Any:
    """put a value into a field of a tensor map"""
    return _replace(k, field, ss, 0, type == "b64")


@isa.op("tensormap.replace.tile.field{.ss}.b1024.type [a], #n, value",
        only=_REPLACING, ss=_MAP_SPACES, type=(".b32", ".b64"),
        field=(".box_dim", ".global_dim", ".global_stride", ".element_stride"), types={"value": "type"},
        constraint=_legal_index, ref=_REF + "tensormap-replace", **_MAP)
def replace_element(k: Kit, field: str, ss: str | None, type: str, n: int) -> Any:
    """put a value into element n of a field of a tensor map"""
    return _replace(k, field, ss, n, type == "b64")


def _legal_choice(field: str, n: int = 0, **_: Any) -> str | None:
    most = {"elemtype": len(TENSOR_TYPES) - 1, "interleave_layout": 2, "swizzle_mode": 4, "fill_mode": 1,
            "swizzle_atomicity": 3}[field]
    return None if 0 <= n <= most else f"{field} {n} is not modelled"


@isa.op("tensormap.replace.tile.field{.ss}.b1024.b32 [a], #n",
        only=_REPLACING, needs={".swizzle_atomicity": at((8, 6), 100, *CONVERTING)}, ss=_MAP_SPACES, types={},
        field=(".elemtype", ".interleave_layout", ".swizzle_mode", ".fill_mode", ".swizzle_atomicity"),
        constraint=_legal_choice, ref=_REF + "tensormap-replace", **_MAP)
def replace_choice(k: Kit, field: str, ss: str | None, n: int) -> Any:
    """choose a mode of a tensor map"""
    put = _replace(k, field, ss, 0, False)
    return lambda a: put(a, k.const(32, n))


@isa.op("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [to], [from], #n",
        scope=(".cta", ".cluster", ".gpu", ".sys"), effect=Effect.WARP, cost=Cost.LOAD_STORE, since=((8, 3), 90),
        writes=(), constraint=lambda n=128, **_: None if n == 128 else "the size must be 128",
        ref="parallel-synchronization-and-communication-instructions-tensormap-cp-fenceproxy")
def cp_fenceproxy(k: Kit, scope: str, n: int) -> Any:
    """copy a tensor map to global memory and publish it"""
    copy = k.warp("tensor_map_copy", ())

    def run(to: Any, source: Any) -> None:
        copy(to, source)

    return run
