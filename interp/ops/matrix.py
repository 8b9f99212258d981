"""Matrix instructions of a warp (PTX ISA, 'Warp-Level Matrix Instructions': mma, ldmatrix, movmatrix).

The arithmetic of `mma` is the *device's*, bit for bit (`interp.tensorcore`): the same code gives different bits on an
A100 and an H100. All live lanes take part; the engine waits for them.

Here are the usual shapes; in `interp.ops.matrix_small` the integer shapes of few bits and m8n8, and m8n8k4 of f16, in
`interp.ops.matrix_sparse` and `interp.ops.matrix_scaled` what their names say.
"""

from __future__ import annotations

from typing import Any

from interp.formats.rounding import MODES
from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime.layout import SPACE_GENERIC, SPACE_SHARED
from interp.runtime.matrix import pack
from interp.tensorcore.table import plan
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
_REF = "warp-level-matrix-instructions-mma"
ROUNDINGS = ("rn", "rz", "rm", "rp")


def _float_types(shape: str, dtype: str, atype: str, btype: str, ctype: str, **_: Any) -> dict[str, tuple[str, int]]:
    groups = int(shape.removeprefix("m16n8k")) * _BITS[atype] // 128
    results = {"f16": 2}
    d, c = results.get(dtype, 4), results.get(ctype, 4)
    return {"d": ("b32", d), "a": ("b32", 2 * groups), "b": ("b32", groups), "c": ("b32", c)}


def _legal_float(shape: str, dtype: str, atype: str, btype: str, ctype: str, **_: Any) -> str | None:
    if dtype != ctype:
        return "d and c of different types are not modelled"
    if dtype == "f16" and atype in ("tf32", "bf16"):
        return "a result of f16 needs f16 or FP8 operands"
    eight = ("e4m3", "e5m2")
    if atype != btype and not (atype in eight and btype in eight):
        return "a and b must have one type"
    depth = {"f16": (8, 16), "bf16": (8, 16), "tf32": (4, 8), "e4m3": (16, 32), "e5m2": (16, 32)}[atype]
    return None if int(shape.removeprefix("m16n8k")) in depth else "no such shape for the type"


@isa.op("mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype {d}, {a}, {b}, {c}",
        needs={".m16n8k4,.m16n8k16": at((7, 0), 80), ".e4m3,.e5m2": at((8, 4), 89),
               ".e4m3,.e5m2 .m16n8k16,dtype.f16": at((8, 7), 89)},
        shape=(".m16n8k4", ".m16n8k8", ".m16n8k16", ".m16n8k32"), dtype=(".f32", ".f16"),
        atype=(".f16", ".bf16", ".tf32", ".e4m3", ".e5m2"), btype=(".f16", ".bf16", ".tf32", ".e4m3", ".e5m2"),
        ctype=(".f32", ".f16"),
        types=_float_types, constraint=_legal_float, effect=Effect.WARP, varies=Varies.ALWAYS, cost=Cost.TENSOR,
        since=((6, 5), 75), ref=_REF)
def mma(k: Kit, shape: str, dtype: str, atype: str, btype: str, **_: Any) -> Any:
    """d = a * b + c, block by block, each block aligned, cut, added exactly and rounded once"""
    return planned(k, shape, dtype, atype, btype)


def planned(k: Kit, shape: str, dtype: str, atype: str, btype: str) -> Any:
    """The meaning of a dense product that `table.plan` has."""
    how = plan(k.device, shape, atype, btype, dtype)
    multiply = k.warp("warp_" + how.function, (32,) * how.registers[2], *pack(how.arguments))
    return lambda a, b, c: multiply(*a, *b, *c)


def _int_types(shape: str, **_: Any) -> dict[str, tuple[str, int]]:
    groups = int(shape.removeprefix("m16n8k")) // 16
    return {"d": ("s32", 4), "a": ("b32", 2 * groups), "b": ("b32", groups), "c": ("s32", 4)}


@isa.op("mma.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32{.last} {d}, {a}, {b}, {c}",
        shape=(".m16n8k16", ".m16n8k32"), last=(".satfinite",),
        atype=(".s8", ".u8"), btype=(".s8", ".u8"), types=_int_types, effect=Effect.WARP, varies=Varies.ALWAYS,
        cost=Cost.TENSOR, since=((7, 0), 80), ref=_REF)
def mma_int(k: Kit, shape: str, satfinite: bool, atype: str, btype: str, last: str | None) -> Any:
    """d = a * b + c, exact, wrapping or clamped"""
    how = plan(k.device, shape, atype, btype, "s32", satfinite=satfinite or last is not None)
    multiply = k.warp("warp_" + how.function, (32,) * 4, *how.arguments)
    return lambda a, b, c: multiply(*a, *b, *c)


def _f64_types(shape: str, **_: Any) -> dict[str, tuple[str, int]]:
    if shape == "m8n8k4":
        return {"d": ("f64", 2), "a": ("f64", 1), "b": ("f64", 1), "c": ("f64", 2)}
    depth = int(shape.removeprefix("m16n8k"))
    return {"d": ("f64", 4), "a": ("f64", depth // 2), "b": ("f64", depth // 4), "c": ("f64", 4)}


@isa.op("mma.sync.aligned.shape.row.col{.rnd}.f64.f64.f64.f64 {d}, {a}, {b}, {c}",
        needs={".m16n8k4,.m16n8k8,.m16n8k16": at((7, 8), 90)},
        rnd=tuple("." + r for r in ROUNDINGS),
        shape=(".m8n8k4", ".m16n8k4", ".m16n8k8", ".m16n8k16"), types=_f64_types, effect=Effect.WARP,
        varies=Varies.ALWAYS, cost=Cost.TENSOR, since=((7, 0), 80), ref=_REF)
def mma_f64(k: Kit, shape: str, rnd: str | None) -> Any:
    """d = a * b + c as a chain of fused multiply-adds, ascending k"""
    how = plan(k.device, shape, "f64", "f64", "f64")
    na, nb, nc = how.registers
    if rnd in (None, "rn"):
        multiply = k.warp("warp_mma_f64", (64,) * nc, *how.arguments, na, nb)
    else:
        rows, depth = how.arguments
        multiply = k.warp("warp_mma_f64_directed", (64,) * nc, rows | depth << 8, MODES[rnd], na, nb)
    return lambda a, b, c: multiply(*a, *b, *c)


@isa.op("ldmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 {d}, [a]", num=(".x1", ".x2", ".x4"),
        ss=(".shared", ".shared::cta"), types=lambda num, **_: {"d": ("b32", int(num[1:]))},
        effect=Effect.WARP, varies=Varies.ALWAYS, cost=Cost.LOAD_STORE, since=((6, 5), 75),
        ref="warp-level-matrix-instructions-ldmatrix")
def ldmatrix(k: Kit, num: str, trans: bool, ss: str | None) -> Any:
    """d = rows (or columns) of one, two or four 8x8 matrices of 16-bit elements"""
    count = int(num[1:])
    load = k.warp("warp_ldmatrix", (32,) * count, count, int(trans), SPACE_SHARED if ss else SPACE_GENERIC)
    return lambda a: load(a)


@isa.op("stmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 [a], {b}", num=(".x1", ".x2", ".x4"),
        ss=(".shared", ".shared::cta"), types=lambda num, **_: {"b": ("b32", int(num[1:]))}, writes=(),
        effect=Effect.WARP, cost=Cost.LOAD_STORE, since=((7, 8), 90), ref="warp-level-matrix-instructions-stmatrix")
def stmatrix(k: Kit, num: str, trans: bool, ss: str | None) -> Any:
    """rows (or columns) of one, two or four 8x8 matrices of 16-bit elements = b"""
    count = int(num[1:])
    store = k.warp("warp_stmatrix", (), count, int(trans), SPACE_SHARED if ss else SPACE_GENERIC)

    def run(a: Any, b: Any) -> None:
        store(a, *b)

    return run


@isa.op("movmatrix.sync.aligned.m8n8.trans.b16 d, a", types={"d": "b32", "a": "b32"}, effect=Effect.WARP,
        varies=Varies.ALWAYS, cost=Cost.INT, since=((7, 8), 75), ref="warp-level-matrix-instructions-movmatrix")
def movmatrix(k: Kit) -> Any:
    """d = the transpose of an 8x8 matrix held across the warp"""
    move = k.warp("warp_movmatrix", (32,))
    return lambda a: move(a)[0]
