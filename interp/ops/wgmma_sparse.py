"""Asynchronous products of a warpgroup with a sparse A (PTX ISA, 'wgmma.mma_async.sp').

As in `interp.ops.wgmma`, with half of the columns of A stored, metadata in a register and twice the depth. What they
do: `interp.runtime.wgmma_general`.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.ops.wgmma import ONLY, OUT, columns, flags_of, integer_shapes, legal_half, legal_signs, shapes
from interp.runtime import wgmma as machine
from interp.tensorcore.model import F32, KINDS
from interp.tensorcore.table import arithmetic
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at

_SINCE = ((8, 2), 90)
_REF = "asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async-sp"


def _types(shape: str, dtype: str = "f32", in_registers: bool = False, **_: Any) -> dict[str, Any]:
    registers = columns(shape) // (4 if dtype == "f16" else 2)
    return {
        "d": ("b32", registers), "a": ("b32", 4) if in_registers else "b64", "b": "b64", "e": "b32", "p": "pred",
    }  # fmt: skip


def _types_rs(**mods: Any) -> dict[str, Any]:
    return _types(in_registers=True, **mods)


def _selector(f: int, most: int) -> str | None:
    return None if 0 <= f <= most else f"the sparsity selector must be {'0 or 1' if most else '0'}"


def _legal_16(f: int = 0, **mods: Any) -> str | None:
    return _selector(f, 1) or legal_half(**mods)


def _legal_32(f: int = 0, **mods: Any) -> str | None:
    return _selector(f, 1) or legal_signs(**mods)


def _legal_8(f: int = 0, **mods: Any) -> str | None:
    return _selector(f, 0) or legal_signs(**mods)


def _issue(k: Kit, kinds: int, block: int, shape: str, flags: int, *numbers: int) -> Any:
    """The meaning of a form: (d, a, b, metadata, scale-d)."""
    form = block | columns(shape) // 8 << 8 | (flags | machine.SPARSE) << 16
    start = k.warp("async_wgmma_general", (), kinds, form, *numbers)

    def issue(d: Any, a: Any, b: Any, e: Any, p: Any) -> None:
        start(e, *d, *(a if isinstance(a, tuple) else (a,)), b, p)

    return issue


def _float(k: Kit, shape: str, dtype: str, atype: str, btype: str, flags: int, f: int) -> Any:
    numbers = arithmetic(k.device, atype, dtype, unit="wgmma")
    kinds = 2 | KINDS[atype] << 8 | KINDS[btype] << 16 | OUT[dtype] << 24
    flags |= f * machine.SECOND_PAIR
    return _issue(
        k, kinds, numbers.block, shape, flags, numbers.fraction | numbers.out_fraction << 8, numbers.floor
    )


_COMMON: dict[str, Any] = {
    "effect": Effect.WARP, "varies": Varies.ALWAYS, "cost": Cost.TENSOR, "since": _SINCE, "only": ONLY,
    "ref": _REF, "in_place": ("d",),
}  # fmt: skip
_HALF = {
    **_COMMON, "shape": shapes(32), "dtype": (".f32", ".f16"), "atype": (".f16", ".bf16"), "btype": (".f16", ".bf16"),
    "constraint": _legal_16,
}  # fmt: skip
_TF32 = {
    **_COMMON, "shape": shapes(16), "dtype": (".f32",), "atype": (".tf32",), "btype": (".tf32",),
    "constraint": _legal_32,
}  # fmt: skip
_FP8 = {
    **_COMMON, "shape": shapes(64), "dtype": (".f32", ".f16"), "atype": (".e4m3", ".e5m2"),
    "btype": (".e4m3", ".e5m2"), "constraint": _legal_8,
}  # fmt: skip
_SS = "wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype {d}, a, b, e, #f, p, #sa, #sb"
_RS = "wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype {d}, {a}, b, e, #f, p, #sa, #sb"


@isa.op(_SS + ", #ta, #tb", types=_types, **_HALF)
def wgmma_sp_half(
    k: Kit, shape: str, dtype: str, atype: str, btype: str, f: int, sa: int, sb: int, ta: int, tb: int
) -> Any:
    """queue d = p ? d + a * b : a * b, a sparse, both operands in shared memory, of 16-bit types"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, ta, tb, False), f)


@isa.op(_RS + ", #tb", types=_types_rs, **_HALF)
def wgmma_sp_half_registers(
    k: Kit, shape: str, dtype: str, atype: str, btype: str, f: int, sa: int, sb: int, tb: int
) -> Any:
    """queue d = p ? d + a * b : a * b, a sparse and in registers, of 16-bit types"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, tb, True), f)


def _declare(choices: dict[str, Any]) -> None:
    @isa.op(_SS, types=_types, **choices)
    def wgmma_sp(k: Kit, shape: str, dtype: str, atype: str, btype: str, f: int, sa: int, sb: int) -> Any:
        """queue d = p ? d + a * b : a * b, a sparse, both operands in shared memory"""
        return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, 0, False), f)

    @isa.op(_RS, types=_types_rs, **choices)
    def wgmma_sp_registers(k: Kit, shape: str, dtype: str, atype: str, btype: str, f: int, sa: int, sb: int) -> Any:
        """queue d = p ? d + a * b : a * b, a sparse and in registers"""
        return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, 0, True), f)


_declare(_TF32)
_declare(_FP8)

_INT = {
    **_COMMON, "shape": integer_shapes(64), "atype": (".s8", ".u8"), "btype": (".s8", ".u8"),
    "needs": {"atype.s8 btype.u8": at((8, 4), 90, "90a"), "atype.u8 btype.s8": at((8, 4), 90, "90a")},
    "constraint": lambda f=0, **_: _selector(f, 0),
}  # fmt: skip


def _integer(k: Kit, shape: str, satfinite: bool, atype: str, btype: str, flags: int) -> Any:
    flags |= machine.INTEGER | satfinite * machine.CLAMP
    flags |= (atype == "s8") * machine.SIGNED_A | (btype == "s8") * machine.SIGNED_B
    return _issue(k, 2 | F32 << 24, 0, shape, flags)


@isa.op("wgmma.mma_async.sp.sync.aligned.shape{.satfinite}.s32.atype.btype {d}, a, b, e, #f, p", types=_types, **_INT)
def wgmma_sp_int(k: Kit, shape: str, satfinite: bool, atype: str, btype: str, f: int) -> Any:
    """queue d = p ? d + a * b : a * b, a sparse, both operands in shared memory, exact, wrapping or clamped"""
    return _integer(k, shape, satfinite, atype, btype, 0)


@isa.op("wgmma.mma_async.sp.sync.aligned.shape{.satfinite}.s32.atype.btype {d}, {a}, b, e, #f, p", types=_types_rs,
        **_INT)
def wgmma_sp_int_registers(k: Kit, shape: str, satfinite: bool, atype: str, btype: str, f: int) -> Any:
    """queue d = p ? d + a * b : a * b, a sparse and in registers, exact, wrapping or clamped"""
    return _integer(k, shape, satfinite, atype, btype, machine.A_IN_REGISTERS)
