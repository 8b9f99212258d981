"""Matrix instructions of few bits and small shapes (PTX ISA, mma): m8n8 of bytes, 4-bit and 1-bit integers, and m8n8k4
of f16, Volta's shape.

Integers are exact. From sm_90 on (1 bit: sm_100) the assembler makes other integer operations of the small ones, which
changes no result. m8n8k4 of f16 is one tensor-core operation on Volta and Turing and code from sm_80 on, with other
bits (`interp.tensorcore.volta`).
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.matrix_general import pack_extra, pack_shape
from interp.tensorcore.general import POPC_AND, POPC_XOR
from interp.tensorcore.model import F16, F32
from ptx.isa import Cost, Effect, Varies

REF = "warp-level-matrix-instructions-mma"
BITS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}


def dimensions(shape: str) -> tuple[int, int]:
    """Rows and depth of a shape."""
    rows, depth = shape.removeprefix("m").split("n8k")
    return int(rows), int(depth)


def registers(rows: int, depth_a: int, depth_b: int, bits: int) -> tuple[int, int, int]:
    """Registers of A, B and a 32-bit accumulator."""
    return rows * depth_a * bits // 1024, depth_b * bits // 128, rows // 4


def _integer_types(shape: str, atype: str = "b1", **_: Any) -> dict[str, Any]:
    rows, depth = dimensions(shape)
    a, b, c = registers(rows, depth, depth, BITS[atype])
    return {"d": ("s32", c), "a": ("b32", a), "b": ("b32", b), "c": ("s32", c)}


def _declare(shapes: tuple[str, ...], types: tuple[str, ...], since: tuple[tuple[int, int], int]) -> None:
    @isa.op("mma.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32{.last} {d}, {a}, {b}, {c}",
            shape=shapes, atype=types, btype=types, last=(".satfinite",), types=_integer_types, effect=Effect.WARP,
            varies=Varies.ALWAYS, cost=Cost.TENSOR, since=since, ref=REF)
    def mma(k: Kit, shape: str, satfinite: bool, atype: str, btype: str, last: str | None) -> Any:
        """d = a * b + c, exact, wrapping or clamped"""
        rows, depth = dimensions(shape)
        counts = registers(rows, depth, depth, BITS[atype])
        flags = int(atype[0] == "s") | int(btype[0] == "s") << 1 | int(satfinite or last is not None) << 2
        parameters = pack_shape(rows, depth, BITS[atype]), flags, 0, pack_extra(counts)
        multiply = k.warp("warp_mma_integer", (32,) * counts[2], *parameters)
        return lambda a, b, c: multiply(*a, *b, *c)


_declare((".m8n8k16",), (".s8", ".u8"), ((6, 5), 75))
_declare((".m8n8k32",), (".s4", ".u4"), ((6, 5), 75))
_declare((".m16n8k32", ".m16n8k64"), (".s4", ".u4"), ((7, 0), 80))


def _declare_bits(shapes: tuple[str, ...], ops: tuple[str, ...], since: tuple[tuple[int, int], int]) -> None:
    @isa.op("mma.sync.aligned.shape.row.col.s32.b1.b1.s32.op.popc {d}, {a}, {b}, {c}", shape=shapes, op=ops,
            types=_integer_types, effect=Effect.WARP, varies=Varies.ALWAYS, cost=Cost.TENSOR, since=since, ref=REF)
    def mma(k: Kit, shape: str, op: str) -> Any:
        """d = c + the number of ones in a and b, or in a xor b"""
        rows, depth = dimensions(shape)
        counts = registers(rows, depth, depth, 1)
        popc = POPC_AND if op == "and" else POPC_XOR
        parameters = pack_shape(rows, depth // 32, 32), popc << 3, 0, pack_extra(counts)
        multiply = k.warp("warp_mma_integer", (32,) * counts[2], *parameters)
        return lambda a, b, c: multiply(*a, *b, *c)


_declare_bits((".m8n8k128",), (".xor",), ((7, 0), 75))
_declare_bits((".m8n8k128",), (".and",), ((7, 1), 80))
_declare_bits((".m16n8k128", ".m16n8k256"), (".and", ".xor"), ((7, 0), 80))


def _volta_types(dtype: str, ctype: str, **_: Any) -> dict[str, Any]:
    count = {"f16": 4, "f32": 8}
    return {"d": ("b32", count[dtype]), "a": ("b32", 2), "b": ("b32", 2), "c": ("b32", count[ctype])}


@isa.op("mma.sync.aligned.m8n8k4.la.lb.dtype.f16.f16.ctype {d}, {a}, {b}, {c}", la=(".row", ".col"),
        lb=(".row", ".col"), dtype=(".f16", ".f32"), ctype=(".f16", ".f32"), types=_volta_types, effect=Effect.WARP,
        constraint=lambda dtype, ctype, **_: "c of f32 needs d of f32" if (dtype, ctype) == ("f16", "f32") else None,
        varies=Varies.ALWAYS, cost=Cost.TENSOR, since=((6, 4), 70), ref=REF)
def mma_884(k: Kit, la: str, lb: str, dtype: str, ctype: str) -> Any:
    """d = a * b + c, four products of 8 x 4 and 4 x 8 elements, each in eight lanes"""
    layout = int(la == "col") | int(lb == "row") << 1
    out = F16 if dtype == "f16" else F32
    count = 4 if dtype == "f16" else 8
    multiply = k.warp("warp_mma_884", (32,) * count, layout, int(ctype == "f16"), out, int(k.device < 80))
    return lambda a, b, c: multiply(*a, *b, *c)
