"""Matrix products of the fifth generation of tensor cores (PTX ISA, 'tcgen05.mma', 'tcgen05.mma.ws').

Shapes, element types, transposes and signs are in the instruction descriptor, a register, so they are checked when the
instruction runs (`interp.runtime.tcgen05`). Collector buffers are hints: matrices are read from memory each time.

Sparse products: `tcgen05_mma_sparse`. Left out: `.ashift`, as `tcgen05.shift` (`interp.ops.tcgen05`).
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import BLACKWELL, isa
from interp.ops.tcgen05 import group_of, in_tensor_memory, machine
from interp.runtime import tcgen05_rules as rules
from interp.tensorcore.table import arithmetic
from ptx.isa import Cost, Effect
from ptx.targets import at

_REF = "tcgen05-instructions-tcgen05-mma"
_KINDS = {
    "kind::f16": rules.KIND_F16, "kind::tf32": rules.KIND_TF32, "kind::f8f6f4": rules.KIND_F8F6F4,
    "kind::i8": rules.KIND_I8, "kind::mxf8f6f4": rules.KIND_MXF8F6F4, "kind::mxf4": rules.KIND_MXF4,
    "kind::mxf4nvf4": rules.KIND_MXF4NVF4,
}  # fmt: skip
_USES = ("fill", "use", "lastuse", "discard")
_THREAD: dict[str, Any] = {
    "effect": Effect.ASYNC, "cost": Cost.TENSOR, "since": ((8, 6), 100), "only": BLACKWELL, "writes": (), "ref": _REF,
    "group": (".cta_group::1", ".cta_group::2"), "collector": tuple(f".collector::a::{u}" for u in _USES),
}  # fmt: skip
PLAIN = {
    **_THREAD, "kind": (".kind::f16", ".kind::tf32", ".kind::f8f6f4", ".kind::i8"),
    "needs": {".kind::i8": at((8, 6), 100, "100a", "110a"), "scale": at((8, 6), 100, "100f")},
    "rule": in_tensor_memory("d", "a"),
}  # fmt: skip
OPERANDS: dict[str, Any] = {"a": "b64", "b": "b64", "idesc": "b32", "p": "pred", "zeros": "b64"}


def _start(k: Kit, kind: str, group: int, flags: int) -> Any:
    """The runtime function of a form: (d, a, b, scale a, scale b, metadata, idesc, masks ..., p)."""
    numbers, half = (arithmetic(k.device, "f16", out, unit="tcgen05") for out in ("f32", "f16"))
    flags |= _KINDS[kind] | (group == 2) * rules.PAIR | (k.device == 103) * rules.HAS_96
    return machine(k, "async_tcgen05_mma", (), flags, numbers.fraction | 32 << 8, numbers.floor, half.floor)


def legal_scale(kind: str, scale: int | None = None, **_: Any) -> str | None:
    if not 0 <= (scale or 0) <= 15:
        return "scale-input-d must be 0 to 15"
    if scale is not None and kind not in ("kind::f16", "kind::tf32"):
        return "scale-input-d is for kind::f16 and kind::tf32"
    return None


def legal_lanes(group: str, lanes_count: int = 0, **mods: Any) -> str | None:
    if lanes_count not in (0, 4 * group_of(group)):
        return f"disable-output-lane must have {4 * group_of(group)} words"
    return legal_scale(**mods)


def plain(
    k: Kit, group: str, kind: str, scale: int, lanes: int, in_tensor_memory: bool, sparse: bool = False
) -> Any:
    """The meaning of a form without block scales: (d, a, b[, metadata], idesc[, masks], p)."""
    flags = scale << rules.SCALE_D_SHIFT | lanes << rules.MASKS_SHIFT
    flags |= in_tensor_memory * rules.A_IN_TENSOR_MEMORY | sparse * rules.SPARSE
    start, none = _start(k, kind, group_of(group), flags), k.const(64, 0)

    def issue(d: Any, a: Any, b: Any, *rest: Any) -> None:
        e, idesc = (rest[0], rest[1]) if sparse else (none, rest[0])
        masks = rest[-2] if lanes else ()
        start(d, a, b, none, none, e, idesc, *masks, rest[-1])

    return issue


def types_masked(group: str, **_: Any) -> dict[str, Any]:
    return {**OPERANDS, "lanes": ("b32", 4 * group_of(group))}


@isa.op("tcgen05.mma.group.kind{.collector} [d], a, b, idesc, p{, #scale}", types=OPERANDS, constraint=legal_scale,
        **PLAIN)
def mma(k: Kit, group: str, kind: str, collector: str | None, scale: int = 0) -> Any:
    """queue d = p ? a * b + d * 2^-scale : a * b, a and b in shared memory"""
    return plain(k, group, kind, scale, 0, False)


@isa.op("tcgen05.mma.group.kind{.collector} [d], [a], b, idesc, p{, #scale}", types=OPERANDS, constraint=legal_scale,
        **PLAIN)
def mma_tensor(k: Kit, group: str, kind: str, collector: str | None, scale: int = 0) -> Any:
    """queue d = p ? a * b + d * 2^-scale : a * b, a in tensor memory"""
    return plain(k, group, kind, scale, 0, True)


@isa.op("tcgen05.mma.group.kind{.collector} [d], a, b, idesc, {lanes}, p{, #scale}", types=types_masked,
        counted=("lanes",), constraint=legal_lanes, **PLAIN)
def mma_lanes(k: Kit, group: str, kind: str, collector: str | None, lanes_count: int, scale: int = 0) -> Any:
    """as without `lanes`, which are left as they are"""
    return plain(k, group, kind, scale, lanes_count, False)


@isa.op("tcgen05.mma.group.kind{.collector} [d], [a], b, idesc, {lanes}, p{, #scale}", types=types_masked,
        counted=("lanes",), constraint=legal_lanes, **PLAIN)
def mma_tensor_lanes(k: Kit, group: str, kind: str, collector: str | None, lanes_count: int, scale: int = 0) -> Any:
    """as without `lanes`, which are left as they are, a in tensor memory"""
    return plain(k, group, kind, scale, lanes_count, True)


# ------------------------------------------------------------------------------------------------ block scaling
_BLOCKS = {
    ("kind::mxf8f6f4", None): 32, ("kind::mxf8f6f4", "scale_vec::1X"): 32, ("kind::mxf8f6f4", "block32"): 32,
    ("kind::mxf4", None): 32, ("kind::mxf4", "scale_vec::2X"): 32, ("kind::mxf4", "block32"): 32,
    ("kind::mxf4nvf4", "scale_vec::2X"): 32, ("kind::mxf4nvf4", "block32"): 32,
    ("kind::mxf4nvf4", "scale_vec::4X"): 16, ("kind::mxf4nvf4", "block16"): 16,
}  # fmt: skip
SCALED: dict[str, Any] = {
    **_THREAD, "kind": (".kind::mxf8f6f4", ".kind::mxf4", ".kind::mxf4nvf4"), "types": OPERANDS,
    "vector": (".scale_vec::1X", ".scale_vec::2X", ".scale_vec::4X", ".block16", ".block32"),
    "needs": {
        ".block16,.block32": at((8, 8), 100),
        ".scale_vec::1X,.scale_vec::2X,.scale_vec::4X": at((8, 6), 100, "100a", "103a", "110a"),
        ".kind::mxf4nvf4 .scale_vec::2X,.scale_vec::4X": at((8, 7), 100),
    },
    "rule": in_tensor_memory("d", "a", "sa", "sb"),
    "constraint": lambda kind, vector, **_: None if (kind, vector) in _BLOCKS else "the kind does not have this block",
}  # fmt: skip


def scaled(
    k: Kit, group: str, kind: str, vector: str | None, in_tensor_memory: bool, sparse: bool = False
) -> Any:
    """The meaning of a form with block scales: (d, a, b[, metadata], idesc, scale a, scale b, p)."""
    flags = _BLOCKS[kind, vector] << rules.BLOCK_SHIFT | in_tensor_memory * rules.A_IN_TENSOR_MEMORY
    flags |= sparse * rules.SPARSE | (vector or "").startswith("scale_vec") * rules.BY_COUNT
    start, none = _start(k, kind, group_of(group), flags), k.const(64, 0)

    def issue(d: Any, a: Any, b: Any, *rest: Any) -> None:
        e = rest[0] if sparse else none
        idesc, sa, sb, p = rest[-4:]
        start(d, a, b, sa, sb, e, idesc, p)

    return issue


@isa.op("tcgen05.mma.group.kind.block_scale{.vector}{.collector} [d], a, b, idesc, [sa], [sb], p", **SCALED)
def mma_scaled(k: Kit, group: str, kind: str, vector: str | None, collector: str | None) -> Any:
    """queue d = p ? (a sa) * (b sb) + d : (a sa) * (b sb), a and b in shared memory, scales in tensor memory"""
    return scaled(k, group, kind, vector, False)


@isa.op("tcgen05.mma.group.kind.block_scale{.vector}{.collector} [d], [a], b, idesc, [sa], [sb], p", **SCALED)
def mma_scaled_tensor(k: Kit, group: str, kind: str, vector: str | None, collector: str | None) -> Any:
    """queue d = p ? (a sa) * (b sb) + d : (a sa) * (b sb), a and scales in tensor memory"""
    return scaled(k, group, kind, vector, True)


# ------------------------------------------------------------------------------------------------ weight stationary
STATIONARY = {
    **PLAIN, "group": (".cta_group::1",), "types": OPERANDS, "ref": _REF + "-ws",
    "collector": tuple(f".collector::b{n}::{u}" for n in range(4) for u in _USES),
}  # fmt: skip


def stationary(k: Kit, kind: str, in_tensor_memory: bool, sparse: bool = False) -> Any:
    """The meaning of a form of `.ws`: (d, a, b[, metadata], idesc, p[, zero-column mask])."""
    flags = rules.STATIONARY | in_tensor_memory * rules.A_IN_TENSOR_MEMORY | sparse * rules.SPARSE
    start, none = _start(k, kind, 1, flags), k.const(64, 0)

    def dense(d: Any, a: Any, b: Any, idesc: Any, p: Any, zeros: Any = none) -> None:
        start(d, a, b, zeros, none, none, idesc, p)

    def from_stored(d: Any, a: Any, b: Any, e: Any, idesc: Any, p: Any, zeros: Any = none) -> None:
        start(d, a, b, zeros, none, e, idesc, p)

    return from_stored if sparse else dense


@isa.op("tcgen05.mma.ws.group.kind{.collector} [d], a, b, idesc, p{, zeros}", **STATIONARY)
def mma_ws(k: Kit, group: str, kind: str, collector: str | None) -> Any:
    """queue d = p ? a * b + d : a * b in the layout of .ws, a and b in shared memory"""
    return stationary(k, kind, False)


@isa.op("tcgen05.mma.ws.group.kind{.collector} [d], [a], b, idesc, p{, zeros}", **STATIONARY)
def mma_ws_tensor(k: Kit, group: str, kind: str, collector: str | None) -> Any:
    """queue d = p ? a * b + d : a * b in the layout of .ws, a in tensor memory"""
    return stationary(k, kind, True)
