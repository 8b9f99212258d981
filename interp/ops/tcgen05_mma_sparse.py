"""Products of a sparse A of the fifth generation of tensor cores (PTX ISA, 'tcgen05.mma.sp', 'tcgen05.mma.ws.sp').

A holds half of its columns, K is twice that of the dense instruction, and metadata in tensor memory say which columns
they are (`interp.runtime.tcgen05_metadata`). Everything else is as in `tcgen05_mma`, whose meanings these are.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.ops.tcgen05_mma import (
    OPERANDS,
    PLAIN,
    SCALED,
    STATIONARY,
    legal_lanes,
    legal_scale,
    plain,
    scaled,
    stationary,
    types_masked,
)
from ptx.targets import at

_REF = "tcgen05-instructions-tcgen05-mma-sp"
_PLAIN = {**PLAIN, "ref": _REF}
_FOURS = {".kind::mxf4,.kind::mxf4nvf4": at((8, 6), 100, "100a", "103a", "110a")}
_SCALED = {**SCALED, "needs": {**SCALED["needs"], **_FOURS}, "ref": _REF}
_STATIONARY = {**STATIONARY, "ref": "tcgen05-instructions-tcgen05-mma-ws-sp"}


@isa.op("tcgen05.mma.sp.group.kind{.collector} [d], a, b, [e], idesc, p{, #scale}", types=OPERANDS,
        constraint=legal_scale, **_PLAIN)
def mma_sp(k: Kit, group: str, kind: str, collector: str | None, scale: int = 0) -> Any:
    """queue d = p ? a * b + d * 2^-scale : a * b, a sparse, a and b in shared memory"""
    return plain(k, group, kind, scale, 0, False, True)


@isa.op("tcgen05.mma.sp.group.kind{.collector} [d], [a], b, [e], idesc, p{, #scale}", types=OPERANDS,
        constraint=legal_scale, **_PLAIN)
def mma_sp_tensor(k: Kit, group: str, kind: str, collector: str | None, scale: int = 0) -> Any:
    """queue d = p ? a * b + d * 2^-scale : a * b, a sparse and in tensor memory"""
    return plain(k, group, kind, scale, 0, True, True)


@isa.op("tcgen05.mma.sp.group.kind{.collector} [d], a, b, [e], idesc, {lanes}, p{, #scale}", types=types_masked,
        counted=("lanes",), constraint=legal_lanes, **_PLAIN)
def mma_sp_lanes(k: Kit, group: str, kind: str, collector: str | None, lanes_count: int, scale: int = 0) -> Any:
    """as without `lanes`, which are left as they are"""
    return plain(k, group, kind, scale, lanes_count, False, True)


@isa.op("tcgen05.mma.sp.group.kind{.collector} [d], [a], b, [e], idesc, {lanes}, p{, #scale}", types=types_masked,
        counted=("lanes",), constraint=legal_lanes, **_PLAIN)
def mma_sp_tensor_lanes(k: Kit, group: str, kind: str, collector: str | None, lanes_count: int, scale: int = 0) -> Any:
    """as without `lanes`, which are left as they are, a in tensor memory"""
    return plain(k, group, kind, scale, lanes_count, True, True)


@isa.op("tcgen05.mma.sp.group.kind.block_scale{.vector}{.collector} [d], a, b, [e], idesc, [sa], [sb], p", **_SCALED)
def mma_sp_scaled(k: Kit, group: str, kind: str, vector: str | None, collector: str | None) -> Any:
    """queue d = p ? (a sa) * (b sb) + d : (a sa) * (b sb), a sparse, a and b in shared memory"""
    return scaled(k, group, kind, vector, False, True)


@isa.op("tcgen05.mma.sp.group.kind.block_scale{.vector}{.collector} [d], [a], b, [e], idesc, [sa], [sb], p", **_SCALED)
def mma_sp_scaled_tensor(k: Kit, group: str, kind: str, vector: str | None, collector: str | None) -> Any:
    """queue d = p ? (a sa) * (b sb) + d : (a sa) * (b sb), a sparse and in tensor memory"""
    return scaled(k, group, kind, vector, True, True)


@isa.op("tcgen05.mma.ws.sp.group.kind{.collector} [d], a, b, [e], idesc, p{, zeros}", **_STATIONARY)
def mma_ws_sp(k: Kit, group: str, kind: str, collector: str | None) -> Any:
    """queue d = p ? a * b + d : a * b in the layout of .ws, a sparse, a and b in shared memory"""
    return stationary(k, kind, False, True)


@isa.op("tcgen05.mma.ws.sp.group.kind{.collector} [d], [a], b, [e], idesc, p{, zeros}", **_STATIONARY)
def mma_ws_sp_tensor(k: Kit, group: str, kind: str, collector: str | None) -> Any:
    """queue d = p ? a * b + d : a * b in the layout of .ws, a sparse and in tensor memory"""
    return stationary(k, kind, True, True)
