"""Tensor maps that a kernel makes or changes (PTX ISA, 'tensormap.replace', 'tensormap.cp_fenceproxy').

The manual has `tensormap.replace` for tiled maps only. What a map is: `interp.runtime.tensor_layout`.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import CONVERTING, isa
from interp.runtime.layout import SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, TENSOR_TYPES
from interp.runtime.tensor_map import FIELDS
from ptx.isa import Cost, Effect
from ptx.targets import at

_REF = "data-movement-and-conversion-instructions-"
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


@isa.op("tensormap.replace.tile.field{.ss}.b1024.type [a], value", only=_REPLACING,
        field=(".global_address", ".rank"), ss=_MAP_SPACES,
        type=(".b32", ".b64"), types={"value": "type"}, ref=_REF + "tensormap-replace",
        constraint=_legal_width, **_MAP)
def replace_field(k: Kit, field: str, ss: str | None, type: str) -> Any:
    """put a value into a field of a tensor map"""
    return _replace(k, field, ss, 0, type == "b64")


@isa.op("tensormap.replace.tile.field{.ss}.b1024.type [a], #n, value", only=_REPLACING,
        ss=_MAP_SPACES, type=(".b32", ".b64"),
        field=(".box_dim", ".global_dim", ".global_stride", ".element_stride"), types={"value": "type"},
        constraint=_legal_index, ref=_REF + "tensormap-replace", **_MAP)
def replace_element(k: Kit, field: str, ss: str | None, type: str, n: int) -> Any:
    """put a value into element n of a field of a tensor map"""
    return _replace(k, field, ss, n, type == "b64")


def _legal_choice(field: str, n: int = 0, **_: Any) -> str | None:
    most = {"elemtype": len(TENSOR_TYPES) - 1, "interleave_layout": 2, "swizzle_mode": 4, "fill_mode": 1,
            "swizzle_atomicity": 3}[field]
    return None if 0 <= n <= most else f"{field} {n} is not modelled"


@isa.op("tensormap.replace.tile.field{.ss}.b1024.b32 [a], #n", only=_REPLACING, ss=_MAP_SPACES,
        needs={".swizzle_atomicity": at((8, 6), 100, *CONVERTING)}, types={},
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
