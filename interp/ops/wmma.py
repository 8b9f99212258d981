"""Warp matrices in fragments (PTX ISA, 'Matrix multiply-accumulate operation using wmma instructions').

PTX leaves open which lane holds which element; here it is as the assembler has it for sm_80 and later
(`interp.tensorcore.wmma`), so code that looks into fragments gets what it gets there. The bits of a product are those
of the device's `mma`. The leading dimension defaults to the width (by rows) or height (by columns) of the matrix.
"""

from __future__ import annotations

from typing import Any

from interp.formats.rounding import MODES
from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.layout import SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED
from interp.runtime.wmma import pack_matrix, pack_product
from interp.tensorcore.model import F16, F32, KINDS
from interp.tensorcore.table import arithmetic
from interp.tensorcore.wmma import A, B, C
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at

REF = "warp-level-matrix-instructions-wmma-"
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
_SPACES = {None: SPACE_GENERIC, "global": SPACE_GLOBAL, "shared": SPACE_SHARED, "shared::cta": SPACE_SHARED}
_SS = (".global", ".shared", ".shared::cta")
_WIDE = (".m16n16k16", ".m8n32k16", ".m32n8k16")
_SHAPES = (*_WIDE, ".m16n16k8", ".m8n8k4", ".m8n8k32", ".m8n8k128")
_LAYOUTS = (".row", ".col")
_TYPES = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), _WIDE), "tf32": (".m16n16k8",), "f64": (".m8n8k4",),
    "s4": (".m8n8k32",), "u4": (".m8n8k32",), "b1": (".m8n8k128",),
}  # fmt: skip
"""Shapes of the element types of A and B."""


def dimensions(shape: str) -> tuple[int, int, int]:
    """m, n, k of a shape."""
    m, _, rest = shape.removeprefix("m").partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)


def registers(role: int, shape: str, type: str) -> int:
    """Registers of a fragment: of 32 bits, of f64 of 64."""
    m, n, k = dimensions(shape)
    if type == "f16" and role != C:
        return 8
    elements = {A: m * k, B: k * n, C: m * n}[role]
    return elements * BITS[type] // (32 * (64 if type == "f64" else 32))


def _since(type: str) -> tuple[tuple[int, int], int]:
    return {"bf16": ((7, 0), 80), "tf32": ((7, 0), 80), "f64": ((7, 0), 80), "f16": ((6, 0), 70)}.get(
        type, ((6, 3), 75 if type in ("s4", "u4", "b1") else 72)
    )


def _register_type(type: str) -> str:
    return "f64" if type == "f64" else "b32"


def _legal_operand(layout: str, shape: str, type: str, ss: str | None, role: str) -> str | None:
    if "." + shape not in _TYPES[type]:
        return "no such shape for the type"
    if BITS[type] < 8 and layout != ("row" if role == "a" else "col"):
        return "a of less than eight bits stands by rows, b by columns"
    return None


def _operand_types(shape: str, type: str, role: str, **_: Any) -> dict[str, Any]:
    return {"d": (_register_type(type), registers(A if role == "a" else B, shape, type)), "stride": "u32"}


def _load(k: Kit, role: int, layout: str, shape: str, ss: str | None, type: str) -> Any:
    m, n, depth = dimensions(shape)
    count = registers(role, shape, type)
    columns = layout == "col"
    width = 64 if type == "f64" else 32
    matrix = pack_matrix(role, m, n, depth, BITS[type], columns, count if width == 32 else 0)
    load = k.warp("warp_wmma_load", (width,) * count, matrix, _SPACES[ss])
    height, breadth = {A: (m, depth), B: (depth, n), C: (m, n)}[role]
    leading = k.const(32, height if columns else breadth)
    return lambda a, stride=leading: load(a, stride)


def _declare_loads(types: tuple[str, ...]) -> None:
    @isa.op("wmma.load.role.sync.aligned.layout.shape{.ss}.type {d}, [a]{, stride}", role=(".a", ".b"), layout=_LAYOUTS,
            shape=_SHAPES, ss=_SS, type=types, types=_operand_types, constraint=_legal_operand, effect=Effect.WARP,
            varies=Varies.ALWAYS, cost=Cost.LOAD_STORE, since=_since(types[0][1:]), ref=REF + "load")
    def load(k: Kit, role: str, layout: str, shape: str, ss: str | None, type: str) -> Any:
        """d = the fragment of a matrix in memory"""
        return _load(k, A if role == "a" else B, layout, shape, ss, type)


for _group in ((".f16",), (".s8", ".u8"), (".s4", ".u4", ".b1"), (".bf16", ".tf32", ".f64")):
    _declare_loads(_group)


_RESULTS = {
    "f16": _WIDE, "f32": (*_WIDE, ".m16n16k8"), "s32": (*_WIDE, ".m8n8k32", ".m8n8k128"), "f64": (".m8n8k4",),
}  # fmt: skip


def _legal_accumulator(layout: str, shape: str, type: str, ss: str | None) -> str | None:
    return None if "." + shape in _RESULTS[type] else "no such shape for the type"


_ACCUMULATOR: dict[str, Any] = {
    "needs": {".m16n16k8,.m8n8k4": at((7, 0), 80)},
    "layout": _LAYOUTS, "shape": _SHAPES, "ss": _SS, "type": tuple("." + t for t in _RESULTS),
    "constraint": _legal_accumulator, "effect": Effect.WARP, "cost": Cost.LOAD_STORE, "since": ((6, 0), 70),
}  # fmt: skip


@isa.op("wmma.load.c.sync.aligned.layout.shape{.ss}.type {d}, [a]{, stride}", varies=Varies.ALWAYS, ref=REF + "load",
        types=lambda shape, type, **_: {"d": (_register_type(type), registers(C, shape, type)), "stride": "u32"},
        **_ACCUMULATOR)
def wmma_load_c(k: Kit, layout: str, shape: str, ss: str | None, type: str) -> Any:
    """d = the fragment of an accumulator in memory"""
    return _load(k, C, layout, shape, ss, type)


@isa.op("wmma.store.d.sync.aligned.layout.shape{.ss}.type [a], {b}{, stride}", writes=(), ref=REF + "store",
        types=lambda shape, type, **_: {"b": (_register_type(type), registers(C, shape, type)), "stride": "u32"},
        **_ACCUMULATOR)
def wmma_store(k: Kit, layout: str, shape: str, ss: str | None, type: str) -> Any:
    """the matrix in memory = the fragment b"""
    m, n, depth = dimensions(shape)
    columns = layout == "col"
    matrix = pack_matrix(C, m, n, depth, BITS[type], columns, 0)
    store = k.warp("warp_wmma_store", (), matrix, _SPACES[ss])
    leading = k.const(32, m if columns else n)

    def run(a: Any, b: Any, stride: Any = leading) -> None:
        store(a, stride, *b)

    return run


# ------------------------------------------------------------------------------------------------ products
def _product_types(shape: str, atype: str, dtype: str, ctype: str, **_: Any) -> dict[str, Any]:
    kind = _register_type(atype)
    return {
        "d": (kind, registers(C, shape, dtype)), "a": (kind, registers(A, shape, atype)),
        "b": (kind, registers(B, shape, atype)), "c": (kind, registers(C, shape, ctype)),
    }  # fmt: skip


def _float(k: Kit, shape: str, atype: str, dtype: str, ctype: str) -> Any:
    m, n, depth = dimensions(shape)
    out = "f16" if dtype == ctype == "f16" else "f32"
    numbers = arithmetic(k.device, atype, out)
    kinds = KINDS[atype] | (F16 if out == "f16" else F32) << 8 | int(ctype == "f16") << 16 | int(dtype == "f16") << 24
    counts = registers(A, shape, atype), registers(B, shape, atype)
    multiply = k.warp(
        "warp_wmma_float", (32,) * registers(C, shape, dtype), pack_product(m, n, depth, BITS[atype], counts), kinds,
        numbers.block | numbers.fraction << 8, numbers.floor,
    )  # fmt: skip
    return lambda a, b, c: multiply(*a, *b, *c)


_PRODUCT: dict[str, Any] = {
    "la": _LAYOUTS, "lb": _LAYOUTS, "effect": Effect.WARP, "varies": Varies.ALWAYS, "cost": Cost.TENSOR,
    "ref": REF + "mma",
}  # fmt: skip


@isa.op("wmma.mma.sync.aligned.la.lb.shape.dtype.ctype {d}, {a}, {b}, {c}", shape=_WIDE, dtype=(".f16", ".f32"),
        ctype=(".f16", ".f32"), types=lambda **mods: _product_types(atype="f16", **mods), since=((6, 0), 70),
        **_PRODUCT)
def wmma_half(k: Kit, shape: str, dtype: str, ctype: str, **_: Any) -> Any:
    """d = a * b + c of f16"""
    return _float(k, shape, "f16", dtype, ctype)


@isa.op("wmma.mma.sync.aligned.la.lb.shape.f32.atype.btype.f32 {d}, {a}, {b}, {c}", shape=(*_WIDE, ".m16n16k8"),
        atype=(".bf16", ".tf32"), btype=(".bf16", ".tf32"),
        types=lambda **mods: _product_types(dtype="f32", ctype="f32", **mods),
        constraint=lambda shape, atype, btype, **_: None if atype == btype and "." + shape in _TYPES[atype]
        else "no such shape for the types",
        since=((7, 0), 80), **_PRODUCT)
def wmma_alternate(k: Kit, shape: str, atype: str, **_: Any) -> Any:
    """d = a * b + c of bf16 or tf32"""
    return _float(k, shape, atype, "f32", "f32")


_ROUNDINGS = (".rn", ".rz", ".rm", ".rp")


@isa.op("wmma.mma.sync.aligned.la.lb.m8n8k4{.rnd}.f64.f64.f64.f64{.last} {d}, {a}, {b}, {c}", rnd=_ROUNDINGS,
        last=_ROUNDINGS, constraint=lambda rnd, last, **_: "one rounding" if rnd and last else None,
        types=lambda **_: _product_types("m8n8k4", "f64", "f64", "f64"), since=((7, 0), 80), **_PRODUCT)
def wmma_double(k: Kit, rnd: str | None, last: str | None, **_: Any) -> Any:
    """d = a * b + c of f64, a chain of fused multiply-adds; nvcc writes the rounding last, the manual in front"""
    multiply = k.warp("warp_wmma_double", (64,) * 2, MODES[rnd or last or "rn"])
    return lambda a, b, c: multiply(*a, *b, *c)


def _integer(k: Kit, shape: str, atype: str, btype: str, clamp: bool, popc: int) -> Any:
    m, n, depth = dimensions(shape)
    counts = registers(A, shape, atype), registers(B, shape, atype)
    bits, steps = (32, depth // 32) if popc else (BITS[atype], depth)
    flags = int(atype[0] == "s") | int(btype[0] == "s") << 1 | int(clamp) << 2 | popc << 3
    multiply = k.warp(
        "warp_wmma_integer", (32,) * registers(C, shape, "s32"), pack_product(m, n, steps, bits, counts), flags
    )
    return lambda a, b, c: multiply(*a, *b, *c)


def _integer_types(shape: str, atype: str = "b1", **_: Any) -> dict[str, Any]:
    return _product_types(shape, atype, "s32", "s32")


def _legal_integer(atype: str, btype: str, la: str, lb: str, **_: Any) -> str | None:
    if atype != btype:
        return "a and b must have one type"
    return "four bits need rows of a and columns of b" if atype[1:] == "4" and (la, lb) != ("row", "col") else None


def _declare_products(types: tuple[str, ...], shapes: tuple[str, ...], since: tuple[tuple[int, int], int]) -> None:
    @isa.op("wmma.mma.sync.aligned.la.lb.shape.s32.atype.btype.s32{.satfinite} {d}, {a}, {b}, {c}", shape=shapes,
            atype=types, btype=types, types=_integer_types, since=since,
            constraint=_legal_integer, **_PRODUCT)
    def wmma_integer(k: Kit, shape: str, atype: str, btype: str, satfinite: bool, **_: Any) -> Any:
        """d = a * b + c, exact, wrapping or clamped"""
        return _integer(k, shape, atype, btype, satfinite, 0)


_declare_products((".s8", ".u8"), _WIDE, ((6, 3), 72))
_declare_products((".s4", ".u4"), (".m8n8k32",), ((6, 3), 75))


@isa.op("wmma.mma.op.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {d}, {a}, {b}, {c}",
        needs={".and": at((7, 1), 80)}, op=(".xor", ".and"),
        types=lambda **_: _integer_types("m8n8k128"), effect=Effect.WARP, varies=Varies.ALWAYS, cost=Cost.TENSOR,
        since=((6, 3), 75), ref=REF + "mma")
def wmma_bits(k: Kit, op: str) -> Any:
    """d = c + the number of ones in a and b, or in a xor b"""
    return _integer(k, "m8n8k128", "b1", "b1", False, 1 if op == "and" else 2)
