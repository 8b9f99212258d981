"""Copies by tensor maps (PTX ISA, 'Data Movement': cp.async.bulk.tensor, cp.reduce.async.bulk.tensor,
cp.async.bulk.prefetch.tensor).

Modes: tiled (`interp.runtime.tensor_copy`), four rows (`tensor_gather`), im2col and its wide forms (`tensor_columns`).
The manual puts the mode behind the state spaces and `.cta_group` at the end; the assembler takes both right behind
`.5d` as well, where CUTLASS writes them for sm_100.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interp.kit import Kit
from interp.ops.bulk import REDUCTIONS
from interp.ops.table import BLACKWELL, isa
from interp.runtime.atomics import atomic_symbol
from interp.runtime.layout import SPACE_CLUSTER, SPACE_SHARED
from interp.runtime.tensor_layout import IM2COL, IM2COL_W, IM2COL_W128, TILE
from ptx.isa import Cost, Effect
from ptx.targets import at

_DIMS = tuple(f".{n}d" for n in range(1, 6))
_IMAGES = _DIMS[2:]
_LOCAL = (".shared::cta", ".shared::cluster")
_GROUPS = (".cta_group::1", ".cta_group::2")
"""Whether the barrier is that of the CTA, or may be that of the other one of its pair: its address says so anyway."""
_MODES = {None: TILE, "tile": TILE, "im2col": IM2COL, "im2col_no_offs": IM2COL, "im2col::w": IM2COL_W,
          "im2col::w::128": IM2COL_W128}  # fmt: skip
_LOAD = "data-movement-and-conversion-instructions-cp-async-bulk-tensor"
_PREFETCH = "data-movement-and-conversion-instructions-cp-async-bulk-prefetch-tensor"
_REDUCE = "data-movement-and-conversion-instructions-cp-reduce-async-bulk-tensor"
_BASE: dict[str, Any] = {"effect": Effect.ASYNC, "cost": Cost.ASYNC, "writes": (), "hint": (".L2::cache_hint",),
                         "counted": ("map",)}  # fmt: skip
_NEEDS = {
    ",".join(_GROUPS): at((8, 6), 100, *BLACKWELL), ".im2col::w::128": at((8, 6), 100, *BLACKWELL),
}  # fmt: skip
_HOPPER: dict[str, Any] = {**_BASE, "since": ((8, 0), 90), "needs": {"dst.shared::cta": at((8, 6), 90), **_NEEDS}}
_BLACKWELL: dict[str, Any] = {
    **_BASE, "since": ((8, 6), 100), "needs": {"dst.shared::cluster": at((8, 6), 100, *BLACKWELL), **_NEEDS},
}  # fmt: skip
_POLICY = {"policy": "b64"}


def _space(dst: str) -> int:
    return SPACE_CLUSTER if dst == "shared::cluster" else SPACE_SHARED


def _once(must: bool, coordinates: int = 0) -> Callable[..., str | None]:
    """The constraint that mode and group stand in one of their places; `must`: the mode does. `coordinates`: how many
    there are where it is not the rank."""

    def check(
        mode: str | None = None, late: str | None = None, early: str | None = None, group: str | None = None,
        dim: str = "0d", map_count: int = 0, **_: Any,
    ) -> str | None:  # fmt: skip
        if (mode is not None and late is not None) or (early is not None and group is not None):
            return "a modifier stands twice"
        if must and mode is None and late is None:
            return "it has no mode"
        wanted = coordinates or int(dim[0])
        return None if map_count in (0, wanted) else f"it takes {wanted} coordinates, not {map_count}"

    return check


def _mode(mode: str | None, late: str | None) -> int:
    return _MODES[mode or late]


def _modes(*names: str) -> dict[str, Any]:
    """Where a mode and a CTA group may stand."""
    return {"mode": names, "late": names, "early": _GROUPS, "group": _GROUPS}


def _stored(*names: str) -> dict[str, Any]:
    return {"mode": names, "late": names}


_LOAD_LINE = ("cp.async.bulk.tensor.{dims}{{.mode,.early}}.{dst}.global{{.late}}.mbarrier::complete_tx::bytes{many}"
              "{{.group}}{{.hint}} [to], [map], [bar]{info}{ctas}{{, policy if hint}}")  # fmt: skip


def _load_line(dims: str, *, info: bool = False, many: bool = False) -> str:
    """The syntax line of a load: `dims` "dim" or "2d"; `info`: with offsets; `many`: to CTAs of a cluster."""
    return _LOAD_LINE.format(
        dims=dims, dst="shared::cluster" if many else "dst", many=".multicast::cluster" if many else "",
        info=", {info}" if info else "", ctas=", ctas" if many else "",
    )  # fmt: skip


def _copy(k: Kit, name: str, params: tuple[int, ...], many: bool) -> Any:
    """A load: the words of the runtime's call from those of the instruction, 16-bit ones widened."""
    load, widen = k.warp(name, (), *params), k.zext(16, 32)

    def run(to: Any, map: Any, bar: Any, *rest: Any) -> None:
        address, coords = map
        words = list(coords)
        if rest and isinstance(rest[0], (tuple, list)):
            words += [widen(word) for word in rest[0]]
            rest = rest[1:]
        if many:
            words.append(widen(rest[0]))
        load(to, address, bar, *words)

    return run


@isa.op(_load_line("dim"), dim=_DIMS, dst=_LOCAL, types=_POLICY, constraint=_once(False), ref=_LOAD,
        **_modes(".tile"), **_HOPPER)
def tensor_load(k: Kit, dim: str, dst: str, **_: Any) -> Any:
    """queue a copy of a box to shared memory; the barrier gets its bytes"""
    return _copy(k, "async_tensor_load", (int(dim[0]), _space(dst), 0, TILE), False)


@isa.op(_load_line("dim", many=True), dim=_DIMS, types={"ctas": "u16", **_POLICY}, constraint=_once(False), ref=_LOAD,
        **_modes(".tile"), **_HOPPER)
def tensor_load_many(k: Kit, dim: str, **_: Any) -> Any:
    """as without multicast, to the same place of each CTA of the cluster whose rank is a bit of `ctas`"""
    return _copy(k, "async_tensor_load", (int(dim[0]), SPACE_CLUSTER, 1, TILE), True)


# ------------------------------------------------------------------------------------------------ four rows
@isa.op(_load_line("2d"), dst=_LOCAL, types=_POLICY, constraint=_once(True, 5), ref=_LOAD, **_modes(".tile::gather4"),
        **_BLACKWELL)
def tensor_gather(k: Kit, dst: str, **_: Any) -> Any:
    """queue a copy of parts of four rows to shared memory; coordinates are a column and four rows"""
    return _copy(k, "async_tensor_gather", (_space(dst), 0), False)


@isa.op(_load_line("2d", many=True), types={"ctas": "u16", **_POLICY}, constraint=_once(True, 5), ref=_LOAD,
        only=BLACKWELL, **_modes(".tile::gather4"), **_BLACKWELL)
def tensor_gather_many(k: Kit, **_: Any) -> Any:
    """as without multicast, to the same place of each CTA of the cluster whose rank is a bit of `ctas`"""
    return _copy(k, "async_tensor_gather", (SPACE_CLUSTER, 1), True)


@isa.op("cp.async.bulk.tensor.2d{.mode}.global.shared::cta{.late}.bulk_group{.hint} [map], [from]{, policy if hint}",
        types=_POLICY, constraint=_once(True, 5), ref=_LOAD, only=BLACKWELL, **_stored(".tile::scatter4"),
        **_BLACKWELL)
def tensor_scatter(k: Kit, **_: Any) -> Any:
    """queue a copy of four rows of shared memory to parts of four rows"""
    store = k.warp("async_tensor_scatter", ())

    def run(map: Any, source: Any, *policy: Any) -> None:
        address, coords = map
        store(address, source, *coords)

    return run


# ------------------------------------------------------------------------------------------------ columns of pixels
def _offsets(**more: str) -> Callable[..., dict[str, Any]]:
    """Operand types of a load in im2col mode: an offset for each dimension of an image."""
    return lambda dim, **_: {"info": ("u16", int(dim[0]) - 2), **more, **_POLICY}


def _wide(**more: str) -> Callable[..., dict[str, Any]]:
    return lambda **_: {"info": ("u16", 2), **more, **_POLICY}


@isa.op(_load_line("dim", info=True), dim=_IMAGES, dst=_LOCAL, types=_offsets(), constraint=_once(True), ref=_LOAD,
        **_modes(".im2col"), **_HOPPER)
def tensor_columns(k: Kit, dim: str, dst: str, **_: Any) -> Any:
    """queue a copy of a column of pixels to shared memory; `info` are offsets in W, H, D"""
    return _copy(k, "async_tensor_load", (int(dim[0]), _space(dst), 0, IM2COL), False)


@isa.op(_load_line("dim", info=True, many=True), dim=_IMAGES, types=_offsets(ctas="u16"), constraint=_once(True),
        ref=_LOAD, **_modes(".im2col"), **_HOPPER)
def tensor_columns_many(k: Kit, dim: str, **_: Any) -> Any:
    """as without multicast, to the same place of each CTA of the cluster whose rank is a bit of `ctas`"""
    return _copy(k, "async_tensor_load", (int(dim[0]), SPACE_CLUSTER, 1, IM2COL), True)


@isa.op(_load_line("dim", info=True), dim=_IMAGES, dst=_LOCAL, types=_wide(), constraint=_once(True), ref=_LOAD,
        **_modes(".im2col::w", ".im2col::w::128"), **_BLACKWELL)
def tensor_wide(k: Kit, dim: str, dst: str, mode: str | None, late: str | None, **_: Any) -> Any:
    """queue a copy of a column of pixels along W to shared memory; `info` is wHalo, wOffset"""
    return _copy(k, "async_tensor_load", (int(dim[0]), _space(dst), 0, _mode(mode, late)), False)


@isa.op(_load_line("dim", info=True, many=True), dim=_IMAGES, types=_wide(ctas="u16"), constraint=_once(True),
        ref=_LOAD, only=BLACKWELL, **_modes(".im2col::w", ".im2col::w::128"), **_BLACKWELL)
def tensor_wide_many(k: Kit, dim: str, mode: str | None, late: str | None, **_: Any) -> Any:
    """as without multicast, to the same place of each CTA of the cluster whose rank is a bit of `ctas`"""
    return _copy(k, "async_tensor_load", (int(dim[0]), SPACE_CLUSTER, 1, _mode(mode, late)), True)


# ------------------------------------------------------------------------------------------------ to global memory
_STORE_LINE = ("cp.async.bulk.tensor.dim{.mode}.global.shared::cta{.late}.bulk_group{.hint} "
               "[map], [from]{, policy if hint}")  # fmt: skip
_REDUCE_LINE = ("cp.reduce.async.bulk.tensor.dim{.mode}.global.shared::cta.op{.late}.bulk_group{.hint} [map], [from]"
                "{, policy if hint}")  # fmt: skip


def _store(k: Kit, name: str, dim: str, op: int, mode: int) -> Any:
    store = k.warp(name, (), int(dim[0]), op, mode)

    def run(map: Any, source: Any, *policy: Any) -> None:
        address, coords = map
        store(address, source, *coords)

    return run


@isa.op(_STORE_LINE, dim=_DIMS, types=_POLICY, constraint=_once(False), ref=_LOAD, **_stored(".tile"), **_HOPPER)
def tensor_store(k: Kit, dim: str, **_: Any) -> Any:
    """queue a copy of a box to global memory"""
    return _store(k, "async_tensor_store", dim, -1, TILE)


@isa.op(_STORE_LINE, dim=_IMAGES, types=_POLICY, constraint=_once(True), ref=_LOAD, **_stored(".im2col_no_offs"),
        **_HOPPER)
def tensor_store_columns(k: Kit, dim: str, **_: Any) -> Any:
    """queue a copy of a column of pixels to global memory"""
    return _store(k, "async_tensor_store", dim, -1, IM2COL)


_OPS = tuple("." + o for o in REDUCTIONS)


@isa.op(_REDUCE_LINE, dim=_DIMS, op=_OPS, types=_POLICY, constraint=_once(False), ref=_REDUCE, **_stored(".tile"),
        **_HOPPER)
def tensor_reduce(k: Kit, dim: str, op: str, **_: Any) -> Any:
    """queue a reduction of a box into global memory; its type is the tensor map's"""
    return _store(k, "async_tensor_reduce", dim, atomic_symbol(op, "u32")[2], TILE)


@isa.op(_REDUCE_LINE, dim=_IMAGES, op=_OPS, types=_POLICY, constraint=_once(True), ref=_REDUCE,
        **_stored(".im2col_no_offs"), **_HOPPER)
def tensor_reduce_columns(k: Kit, dim: str, op: str, **_: Any) -> Any:
    """queue a reduction of a column of pixels into global memory; its type is the tensor map's"""
    return _store(k, "async_tensor_reduce", dim, atomic_symbol(op, "u32")[2], IM2COL)


# ------------------------------------------------------------------------------------------------ prefetches
_PREFETCH_LINE = ("cp.async.bulk.prefetch.tensor.{dims}{{.mode}}.L2.global{{.late}}{{.hint}} "
                  "[map]{info}{{, policy if hint}}")  # fmt: skip


@isa.op(_PREFETCH_LINE.format(dims="dim", info=""), dim=_DIMS, types=_POLICY, constraint=_once(False), ref=_PREFETCH,
        **_stored(".tile"), **_HOPPER)
def tensor_prefetch(k: Kit, **_: Any) -> Any:
    """a hint: nothing happens"""
    return lambda *_: None


@isa.op(_PREFETCH_LINE.format(dims="2d", info=""), types=_POLICY, constraint=_once(True, 5), ref=_PREFETCH,
        only=BLACKWELL, **_stored(".tile::gather4"), **_BLACKWELL)
def tensor_prefetch_rows(k: Kit, **_: Any) -> Any:
    """a hint: nothing happens"""
    return lambda *_: None


@isa.op(_PREFETCH_LINE.format(dims="dim", info=", {info}"), dim=_IMAGES, types=_offsets(), constraint=_once(True),
        ref=_PREFETCH, **_stored(".im2col"), **_HOPPER)
def tensor_prefetch_columns(k: Kit, **_: Any) -> Any:
    """a hint: nothing happens"""
    return lambda *_: None


@isa.op(_PREFETCH_LINE.format(dims="dim", info=", {info}"), dim=_IMAGES, types=_wide(), constraint=_once(True),
        ref=_PREFETCH, only=BLACKWELL, **_stored(".im2col::w", ".im2col::w::128"), **_BLACKWELL)
def tensor_prefetch_wide(k: Kit, **_: Any) -> Any:
    """a hint: nothing happens"""
    return lambda *_: None
