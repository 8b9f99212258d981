"""Block-scaled products of a warp with a sparse A (PTX ISA, mma.sp with `.kind` and `.block_scale`), which sm_120a
has; those of 8 bits are for its family, too.

A holds half of its columns and has metadata as `matrix_sparse`, of 8-bit elements with kind mxf8f6f4, of 4-bit ones
(pairs of pairs) with the others; K is twice that of the dense instruction and so are the columns that share a scale.
Everything else is as in `matrix_scaled`; the arithmetic is that of the dense products, of what is stored (a guess).
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.matrix_scaled import (
    COMMON,
    FOUR_NEEDS,
    MX4,
    MX8,
    SCALED_TYPES,
    SIZES,
    TYPES,
    legal_four,
    scaled,
    together,
)
from interp.ops.matrix_sparse import ORDERED, REF
from interp.ops.table import isa
from interp.tensorcore.general import MXF4, MXF8F6F4
from interp.tensorcore.model import KINDS

_OPERANDS = " {d}, {a}, {b}, {c}, e, #f, sa, {ia}, sb, {ib}"
_COMMON: dict[str, Any] = {
    **COMMON, "types": {**SCALED_TYPES, "b": ("b32", 4), "e": "b32"}, "since": ((8, 7), 120), "ref": REF,
}  # fmt: skip


def _wrong(early: str | None, late: str | None, f: int) -> str | None:
    if (early is None) == (late is None):
        return "'.sp::ordered_metadata' is named once"
    return "the sparsity selector must be 0" if f else None


def _legal_eight(early: str | None, late: str | None, first: str | None, kind: str | None, before: str | None,
                 after: str | None, f: int = 0, **_: Any) -> str | None:
    return _wrong(early, late, f) or together(first, kind, before, after)


def _legal_four(early: str | None, late: str | None, f: int = 0, **mods: Any) -> str | None:
    return _wrong(early, late, f) or legal_four(**mods)


@isa.op("mma{.early}.sync.aligned{.first}{.late}{.before}.m16n8k64.row.col{.kind}{.after}.f32.atype.btype.f32"
        ".ue8m0" + _OPERANDS,
        early=ORDERED, late=ORDERED, first=MX8, kind=MX8, before=(".block_scale", ".block_scale.scale_vec::1X"),
        after=(".block_scale", ".block_scale.scale_vec::1X"), atype=TYPES, btype=TYPES,
        only=("120f",), constraint=_legal_eight, **_COMMON)
def mma_sp_mxf8f6f4(k: Kit, atype: str, btype: str, **_: Any) -> Any:
    """d = (a * scales) * (b * scales) + c, a sparse, one scale for each row of a and column of b"""
    return scaled(k, MXF8F6F4, KINDS[atype] | KINDS[btype] << 8, 1, False, True)


@isa.op("mma{.early}.sync.aligned{.first}{.late}{.before}.m16n8k128.row.col{.kind}{.after}.f32.e2m1.e2m1.f32"
        ".stype" + _OPERANDS,
        early=ORDERED, late=ORDERED, first=MX4, kind=MX4, before=SIZES, after=SIZES, stype=(".ue8m0", ".ue4m3"),
        only=("120a", "121a"), needs=FOUR_NEEDS, constraint=_legal_four, **_COMMON)
def mma_sp_mxf4(k: Kit, before: str | None, after: str | None, stype: str, **_: Any) -> Any:
    """d = (a * scales) * (b * scales) + c of FP4, a sparse, two or four scales for each row of a and column of b"""
    vector = 4 if (before or after or "").endswith("4X") else 2
    return scaled(k, MXF4, 0, vector, stype == "ue4m3", True)
