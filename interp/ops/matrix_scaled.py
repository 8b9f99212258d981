"""Matrix products of 8, 6 and 4 bits with a kind, and block-scaled ones (PTX ISA, mma with `.kind`, `.block_scale`),
which sm_120a has.

With kinds f8f6f4 and mxf8f6f4 every element has a byte: FP6 in its low six bits, FP4 in bits 5 to 2. Kinds mxf4 and
mxf4nvf4 have eight elements a register, packed like 4-bit integers. Scales are bytes of a register of some lanes, which
the two numbers behind them name (`interp.tensorcore.general.mma_scaled`; lanes and bytes as CUTLASS and Triton lay them
out). The kind may stand before the shape or behind the layouts.

Arithmetic: `interp.tensorcore.scaled`, as MMA-Sim has it; nothing here has been compared with a GPU.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.matrix import planned
from interp.ops.table import CONVERTING, isa
from interp.runtime.matrix_general import pack_extra, pack_shape
from interp.tensorcore.general import MXF4, MXF8F6F4
from interp.tensorcore.model import F16, F32, KINDS
from interp.tensorcore.table import narrow
from ptx.errors import Unsupported
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at

REF = "warp-level-matrix-instructions-mma"
TYPES = (".e4m3", ".e5m2", ".e2m3", ".e3m2", ".e2m1")
COMMON: dict[str, Any] = {
    "effect": Effect.WARP, "varies": Varies.ALWAYS, "cost": Cost.TENSOR, "ref": REF,
}  # fmt: skip


def _once(first: str | None, kind: str | None) -> str | None:
    return None if (first is None) != (kind is None) else "the kind is named once"


def together(first: str | None, kind: str | None, before: str | None, after: str | None) -> str | None:
    if (first is None, kind is None) != (before is None, after is None):
        return "'.block_scale' goes with the kind"
    return _once(first, kind)


def _narrow_types(shape: str, dtype: str, **_: Any) -> dict[str, Any]:
    a, c = (4 if shape == "m16n8k32" else 2), (2 if dtype == "f16" else 4)
    return {"d": ("b32", c), "a": ("b32", a), "b": ("b32", a // 2), "c": ("b32", c)}


def _legal_narrow(shape: str, dtype: str, atype: str, btype: str, ctype: str, first: str | None, kind: str | None,
                  **_: Any) -> str | None:
    if dtype != ctype:
        return "d and c must have one type"
    if shape == "m16n8k16" and not {atype, btype} <= {"e4m3", "e5m2"}:
        return "m16n8k16 takes FP8 only"
    return _once(first, kind)


@isa.op("mma.sync.aligned{.first}.shape.row.col{.kind}.dtype.atype.btype.ctype {d}, {a}, {b}, {c}",
        first=(".kind::f8f6f4",), kind=(".kind::f8f6f4",), shape=(".m16n8k16", ".m16n8k32"), dtype=(".f32", ".f16"),
        ctype=(".f32", ".f16"), atype=TYPES, btype=TYPES, types=_narrow_types, constraint=_legal_narrow,
        since=((8, 6), 100), only=CONVERTING,
        needs={".m16n8k16,dtype.f16": at((8, 7), 100), ".e2m3,.e3m2,.e2m1": at((8, 7), 120, "120f")}, **COMMON)
def mma_f8f6f4(k: Kit, shape: str, dtype: str, atype: str, btype: str, **_: Any) -> Any:
    """d = a * b + c of elements of 8, 6 or 4 bits"""
    if {atype, btype} <= {"e4m3", "e5m2"}:
        return planned(k, shape, dtype, atype, btype)
    numbers, out = narrow(k.device, dtype), F16 if dtype == "f16" else F32
    count = 2 if dtype == "f16" else 4
    multiply = k.warp(
        "warp_mma_general", (32,) * count, pack_shape(16, 32, 8, KINDS[atype], KINDS[btype], out),
        numbers.block | numbers.fraction << 8 | numbers.out_fraction << 16, numbers.floor, pack_extra((4, 2, count)),
    )  # fmt: skip
    return lambda a, b, c: multiply(*a, *b, *c)


SCALED_TYPES = {
    "d": ("f32", 4), "a": ("b32", 4), "b": ("b32", 2), "c": ("f32", 4),
    "sa": "b32", "ia": ("b16", 2), "sb": "b32", "ib": ("b16", 2),
}  # fmt: skip
_OPERANDS = " {d}, {a}, {b}, {c}, sa, {ia}, sb, {ib}"


def scaled(k: Kit, kind: int, kinds: int, vector: int, float_scale: bool, sparse: bool = False) -> Any:
    """The meaning of a block-scaled product: (a, b, c[, metadata], scales and selectors of a, of b)."""
    if k.device not in (120, 121):
        raise Unsupported(f"sm_{k.device} has no block-scaled mma.sync", help="sm_120a and sm_121a have it")
    multiply = k.warp("warp_mma_scaled", (32,) * 4, kind, kinds, vector, float_scale | sparse << 1)
    widen = k.zext(16, 32)

    def run(a: Any, b: Any, c: Any, *rest: Any) -> Any:
        sa, ia, sb, ib = rest[-4:]
        return multiply(*a, *b, *c, *rest[:-4], sa, *(widen(i) for i in ia), sb, *(widen(i) for i in ib))

    return run


MX8, MX4 = (".kind::mxf8f6f4",), (".kind::mxf4", ".kind::mxf4nvf4")


@isa.op("mma.sync.aligned{.first}{.before}.m16n8k32.row.col{.kind}{.after}.f32.atype.btype.f32.ue8m0" + _OPERANDS,
        first=MX8, kind=MX8, before=(".block_scale", ".block_scale.scale_vec::1X"),
        after=(".block_scale", ".block_scale.scale_vec::1X"), atype=TYPES, btype=TYPES, types=SCALED_TYPES,
        constraint=lambda first, kind, before, after, **_: together(first, kind, before, after),
        since=((8, 7), 120), only=("120f",), **COMMON)
def mma_mxf8f6f4(k: Kit, atype: str, btype: str, **_: Any) -> Any:
    """d = (a * scales) * (b * scales) + c, one scale for each row of a and column of b"""
    return scaled(k, MXF8F6F4, KINDS[atype] | KINDS[btype] << 8, 1, False)


SIZES = (".block_scale", ".block_scale.scale_vec::2X", ".block_scale.scale_vec::4X")
FOUR_NEEDS = {".block_scale.scale_vec::4X stype.ue8m0": at((9, 1), 120)}


def legal_four(first: str | None, kind: str | None, before: str | None, after: str | None, stype: str) -> str | None:
    size = before or after or ""
    if (reason := together(first, kind, before, after)) is not None:
        return reason
    if (first or kind) == "kind::mxf4":
        return "kind::mxf4 has two scales of ue8m0" if size.endswith("4X") or stype != "ue8m0" else None
    if "scale_vec" not in size:
        return "kind::mxf4nvf4 needs '.scale_vec'"
    return "two scales are of ue8m0" if size.endswith("2X") and stype != "ue8m0" else None


@isa.op("mma.sync.aligned{.first}{.before}.m16n8k64.row.col{.kind}{.after}.f32.e2m1.e2m1.f32.stype" + _OPERANDS,
        first=MX4, kind=MX4, before=SIZES, after=SIZES, stype=(".ue8m0", ".ue4m3"), types=SCALED_TYPES,
        constraint=legal_four, since=((8, 7), 120), only=("120f",), needs=FOUR_NEEDS, **COMMON)
def mma_mxf4(k: Kit, before: str | None, after: str | None, stype: str, **_: Any) -> Any:
    """d = (a * scales) * (b * scales) + c of FP4, two or four scales for each row of a and column of b"""
    vector = 4 if (before or after or "").endswith("4X") else 2
    return scaled(k, MXF4, 0, vector, stype == "ue4m3")
