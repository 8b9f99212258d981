"""Sparse matrix products of a warp (PTX ISA, 'Matrix multiply-accumulate using mma.sp instruction with sparse matrix
A').

A holds half of its columns; an operand says which (`interp.tensorcore.elements`), and the immediate which lanes have
it. `mma.sp` and `mma.sp::ordered_metadata` compute the same. For indices out of order in the latter, and the same
twice, the manual promises nothing; an H200 takes all sixteen nibbles as they are for every type but tf32. The integers
are exact; the floats of stored elements form blocks as dense ones do, on an H200 and by a guess elsewhere
(`interp.tensorcore.table.sparse`).

FP8 is one operation on sm_89 and sm_120, and code of the assembler's on sm_90 to sm_103
(`interp.tensorcore.expanded_sparse`). Block-scaled products: `interp.ops.matrix_sparse_scaled`.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.matrix_small import BITS as INTEGER_BITS
from interp.ops.matrix_small import dimensions, registers
from interp.ops.table import CONVERTING, isa
from interp.runtime.matrix_general import pack_extra, pack_shape
from interp.tensorcore.model import F16, F32, KINDS
from interp.tensorcore.table import EXPANDED_FP8, narrow, sparse
from ptx.errors import Unsupported
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at

REF = "warp-level-matrix-instructions-mma-sp"
_VARIANTS = (".sp", ".sp::ordered_metadata")
ORDERED = (".sp::ordered_metadata",)
"""With kinds it stands behind the name or behind the kind."""
_FLOAT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 8}
_DEPTHS = {"f16": (16, 32), "bf16": (16, 32), "tf32": (8, 16), "e4m3": (64,), "e5m2": (64,), "s8": (32, 64),
           "u8": (32, 64), "s4": (64, 128), "u4": (64, 128)}
_FP8, _F8F6F4 = (".e4m3", ".e5m2"), (".e4m3", ".e5m2", ".e2m3", ".e3m2", ".e2m1")


def _count(shape: str, atype: str) -> int:
    """Number of selectors. Sixteen rows of n nibbles are eight words for every four nibbles: one lane of each quad."""
    bits = _FLOAT_BITS.get(atype) or INTEGER_BITS[atype]
    nibbles = dimensions(shape)[1] // {32: 2, 16: 4, 8: 4, 4: 8}[bits]
    return 16 // nibbles


def _types(shape: str, atype: str, dtype: str = "s32", ctype: str = "s32", **_: Any) -> dict[str, Any]:
    rows, depth = dimensions(shape)
    bits = _FLOAT_BITS.get(atype) or INTEGER_BITS[atype]
    a, b, _c = registers(rows, depth // 2, depth, bits)
    d, c = (2 if t == "f16" else 4 for t in (dtype, ctype))
    return {"d": ("b32", d), "a": ("b32", a), "b": ("b32", b), "c": ("b32", c), "e": "b32"}


def _legal_variant(variant: str, dtype: str = "s32", atype: str = "", btype: str = "", **mods: Any) -> str | None:
    eights = (_FLOAT_BITS.get(atype), _FLOAT_BITS.get(btype)).count(8)
    if eights == 1:
        return "a and b must have one size"
    if eights and dtype == "f16" and variant == "sp":
        return "FP8 with a result of f16 needs '.sp::ordered_metadata'"
    return _legal(atype=atype, btype=btype, dtype=dtype, **mods)


def _legal(shape: str, atype: str, btype: str, f: int = 0, dtype: str = "s32", ctype: str = "s32", kind: str = "",
           first: str | None = None, **_: Any) -> str | None:
    if dtype != ctype or (dtype == "f16" and atype in ("bf16", "tf32")):
        return "d and c must have one type, f16 only for f16 and FP8 operands"
    if atype != btype and 8 not in (_FLOAT_BITS.get(atype), _FLOAT_BITS.get(btype)) and atype[0] not in "su":
        return "a and b must have one type"
    if (INTEGER_BITS.get(atype), INTEGER_BITS.get(btype)).count(4) == 1:
        return "a and b must have one size"
    if dimensions(shape)[1] not in _DEPTHS.get(atype, (64,)):
        return "no such shape for the type"
    return None if 0 <= f < _count(shape, atype) else "no such sparsity selector for the shape"


def _expanded(k: Kit, dtype: str, atype: str, btype: str) -> Any:
    if dtype != "f32":
        raise Unsupported(
            f"mma.sp of FP8 with {dtype} results on sm_{k.device}: the assembler refuses it there",
            help="run it on a device that has the instruction (sm_120)",
        )
    numbers = sparse(k.device, "f16", dtype)
    kinds = KINDS[atype] | KINDS[btype] << 8
    multiply = k.warp(
        "warp_mma_sp_fp8_expanded", (32,) * 4, kinds, numbers.block | numbers.fraction << 8, numbers.floor
    )
    return lambda a, b, c, e: multiply(*a, *b, *c, e)


def _float(k: Kit, shape: str, dtype: str, atype: str, btype: str, f: int) -> Any:
    rows, depth = dimensions(shape)
    bits = _FLOAT_BITS[atype]
    if k.device in EXPANDED_FP8 and {atype, btype} <= {"e4m3", "e5m2"}:
        return _expanded(k, dtype, atype, btype)
    small = "." + atype not in _FP8 and bits == 8 or "." + btype not in _FP8 and bits == 8
    numbers = narrow(k.device, dtype) if small else sparse(k.device, atype, dtype)
    out = F16 if dtype == "f16" else F32
    a, b, _c = registers(rows, depth // 2, depth, bits)
    count = 2 if dtype == "f16" else 4
    multiply = k.warp(
        "warp_mma_general", (32,) * count, pack_shape(rows, depth, bits, KINDS[atype], KINDS[btype], out),
        numbers.block | numbers.fraction << 8 | numbers.out_fraction << 16, numbers.floor,
        pack_extra((a, b, count), True, f),
    )  # fmt: skip
    return lambda a, b, c, e: multiply(*a, *b, *c, e)


_ORDERED = {"variant.sp::ordered_metadata": at((8, 5), 80)}
_FLOAT: dict[str, Any] = {
    "types": _types, "constraint": _legal, "effect": Effect.WARP, "varies": Varies.ALWAYS, "cost": Cost.TENSOR,
    "ref": REF,
}  # fmt: skip


@isa.op("mma.variant.sync.aligned.shape.row.col.dtype.atype.btype.ctype {d}, {a}, {b}, {c}, e, #f",
        needs=_ORDERED | {".e4m3,.e5m2": at((8, 4), 89), "dtype.f16 .e4m3,.e5m2": at((8, 7), 120, "120f")},
        variant=_VARIANTS, shape=(".m16n8k8", ".m16n8k16", ".m16n8k32", ".m16n8k64"), dtype=(".f32", ".f16"),
        ctype=(".f32", ".f16"), atype=(".f16", ".bf16", ".tf32", *_FP8), btype=(".f16", ".bf16", ".tf32", *_FP8),
        since=((7, 1), 80), **{**_FLOAT, "constraint": _legal_variant})
def mma_sp(k: Kit, shape: str, dtype: str, atype: str, btype: str, f: int, **_: Any) -> Any:
    """d = a * b + c, a sparse"""
    return _float(k, shape, dtype, atype, btype, f)


def _legal_kind(early: str | None, late: str | None, first: str | None, kind: str | None, **mods: Any) -> str | None:
    if (early is None) == (late is None) or (first is None) == (kind is None):
        return "the kind and '.sp::ordered_metadata' are named once"
    return _legal("m16n8k64", **mods)


@isa.op("mma{.early}.sync.aligned{.first}{.late}.m16n8k64.row.col{.kind}.dtype.atype.btype.ctype "
        "{d}, {a}, {b}, {c}, e, #f",
        early=ORDERED, late=ORDERED, first=(".kind::f8f6f4",), kind=(".kind::f8f6f4",), dtype=(".f32", ".f16"),
        ctype=(".f32", ".f16"), atype=_F8F6F4, btype=_F8F6F4, since=((8, 6), 100), only=CONVERTING,
        needs={"dtype.f16": at((8, 7), 120, "120f"), ".e2m3,.e3m2,.e2m1": at((8, 7), 120, "120f")},
        **{**_FLOAT, "types": lambda **mods: _types("m16n8k64", **mods), "constraint": _legal_kind})
def mma_sp_f8f6f4(k: Kit, dtype: str, atype: str, btype: str, f: int, **_: Any) -> Any:
    """d = a * b + c, a sparse, elements of 8 bits and less in bytes"""
    return _float(k, "m16n8k64", dtype, atype, btype, f)


@isa.op("mma.variant.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32{.last} {d}, {a}, {b}, {c}, e, #f",
        needs=_ORDERED,
        variant=_VARIANTS, shape=(".m16n8k32", ".m16n8k64", ".m16n8k128"), atype=(".s8", ".u8", ".s4", ".u4"),
        btype=(".s8", ".u8", ".s4", ".u4"), last=(".satfinite",), since=((7, 1), 80), **_FLOAT)
def mma_sp_integer(k: Kit, shape: str, satfinite: bool, atype: str, btype: str, last: str | None, f: int,
                   **_: Any) -> Any:
    """d = a * b + c, a sparse, exact, wrapping or clamped"""
    rows, depth = dimensions(shape)
    bits = INTEGER_BITS[atype]
    counts = registers(rows, depth // 2, depth, bits)
    flags = int(atype[0] == "s") | int(btype[0] == "s") << 1 | int(satfinite or last is not None) << 2
    parameters = pack_shape(rows, depth, bits), flags, 0, pack_extra(counts, True, f)
    multiply = k.warp("warp_mma_integer", (32,) * 4, *parameters)
    return lambda a, b, c, e: multiply(*a, *b, *c, e)
