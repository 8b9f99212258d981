"""Asynchronous matrix products of a warpgroup (PTX ISA, 'Asynchronous Warpgroup Level Matrix Instructions').

Accumulators are *in place*: the meaning does not get their values but where the warp keeps them, as words of byte
offsets in its frame (-1: nobody reads it), 32 to a word, and the machine updates them there when the operation takes
effect: at the wait, under late completion (`interp.runtime.wgmma`). The engine cuts its regions so that no copy of an
accumulator is held across that.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from interp.runtime import wgmma as machine
from interp.tensorcore.model import F16, F32, KINDS
from interp.tensorcore.table import arithmetic
from ptx.isa import Cost, Effect, Varies
from ptx.targets import at

_REF = "asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async"
_SINCE = ((8, 0), 90)
ONLY = ("90a",)
OUT = {"f16": F16, "f32": F32}


def shapes(k: int) -> tuple[str, ...]:
    """Every shape of a depth."""
    return tuple(f".m64n{n}k{k}" for n in range(8, 257, 8))


def columns(shape: str) -> int:
    """N of a shape."""
    return int(shape.removeprefix("m64n").partition("k")[0])


def _types(shape: str, dtype: str = "f32", in_registers: bool = False, **_: Any) -> dict[str, Any]:
    registers = columns(shape) // (4 if dtype == "f16" else 2)
    return {"d": ("b32", registers), "a": ("b32", 4) if in_registers else "b64", "b": "b64", "p": "pred"}


def _types_rs(**mods: Any) -> dict[str, Any]:
    return _types(in_registers=True, **mods)


def legal_signs(sa: int = 1, sb: int = 1, ta: int = 0, tb: int = 0, **_: Any) -> str | None:
    if sa not in (1, -1) or sb not in (1, -1):
        return "imm-scale must be 1 or -1"
    return None if ta in (0, 1) and tb in (0, 1) else "imm-trans must be 0 or 1"


def legal_half(dtype: str, atype: str, btype: str, **mods: Any) -> str | None:
    if atype != btype or (atype == "bf16" and dtype == "f16"):
        return "a and b must have one type, and bf16 gives f32"
    return legal_signs(**mods)


def integer_shapes(k: int) -> tuple[str, ...]:
    """Columns are 8, 16, 24 or multiples of 16."""
    return tuple(s for s in shapes(k) if columns(s[1:]) in (8, 24) or columns(s[1:]) % 16 == 0)


def flags_of(sa: int, sb: int, ta: int, tb: int, in_registers: bool) -> int:
    return (
        in_registers * machine.A_IN_REGISTERS | ta * machine.TRANSPOSE_A | tb * machine.TRANSPOSE_B
        | (sa < 0) * machine.NEGATE_A | (sb < 0) * machine.NEGATE_B
    )  # fmt: skip


def _float(k: Kit, shape: str, dtype: str, atype: str, btype: str, flags: int) -> Any:
    numbers = arithmetic(k.device, atype, dtype, unit="wgmma")
    kinds = 2 | KINDS[atype] << 8 | KINDS[btype] << 16 | OUT[dtype] << 24
    form = numbers.block | columns(shape) // 8 << 8 | flags << 16
    start = k.warp("async_wgmma", (), kinds, form, numbers.fraction | numbers.out_fraction << 8, numbers.floor)

    def issue(d: Any, a: Any, b: Any, p: Any) -> None:
        start(*d, *(a if isinstance(a, tuple) else (a,)), b, p)

    return issue


_HALF: dict[str, Any] = {
    "shape": shapes(16), "dtype": (".f32", ".f16"), "atype": (".f16", ".bf16"), "btype": (".f16", ".bf16"),
    "effect": Effect.WARP, "varies": Varies.ALWAYS, "cost": Cost.TENSOR, "since": _SINCE, "only": ONLY, "ref": _REF,
    "in_place": ("d",), "constraint": legal_half,
}


@isa.op("wgmma.mma_async.sync.aligned.shape.dtype.atype.btype {d}, a, b, p, #sa, #sb, #ta, #tb", types=_types, **_HALF)
def wgmma_half(k: Kit, shape: str, dtype: str, atype: str, btype: str, sa: int, sb: int, ta: int, tb: int) -> Any:
    """queue d = p ? d + a * b : a * b, both operands in shared memory, of 16-bit types"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, ta, tb, False))


@isa.op("wgmma.mma_async.sync.aligned.shape.dtype.atype.btype {d}, {a}, b, p, #sa, #sb, #tb", types=_types_rs, **_HALF)
def wgmma_half_registers(k: Kit, shape: str, dtype: str, atype: str, btype: str, sa: int, sb: int, tb: int) -> Any:
    """queue d = p ? d + a * b : a * b, a in registers, of 16-bit types"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, tb, True))


_TF32: dict[str, Any] = {
    **_HALF, "shape": shapes(8), "dtype": (".f32",), "atype": (".tf32",), "btype": (".tf32",),
    "constraint": legal_signs,
}  # fmt: skip
_FP8: dict[str, Any] = {
    **_TF32, "shape": shapes(32), "dtype": (".f32", ".f16"), "atype": (".e4m3", ".e5m2"), "btype": (".e4m3", ".e5m2"),
}  # fmt: skip


@isa.op("wgmma.mma_async.sync.aligned.shape.dtype.atype.btype {d}, a, b, p, #sa, #sb", types=_types, **_TF32)
def wgmma_tf32(k: Kit, shape: str, dtype: str, atype: str, btype: str, sa: int, sb: int) -> Any:
    """queue d = p ? d + a * b : a * b, both operands in shared memory"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, 0, False))


@isa.op("wgmma.mma_async.sync.aligned.shape.dtype.atype.btype {d}, {a}, b, p, #sa, #sb", types=_types_rs, **_TF32)
def wgmma_tf32_registers(k: Kit, shape: str, dtype: str, atype: str, btype: str, sa: int, sb: int) -> Any:
    """queue d = p ? d + a * b : a * b, a in registers"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, 0, True))


@isa.op("wgmma.mma_async.sync.aligned.shape.dtype.atype.btype {d}, a, b, p, #sa, #sb", types=_types, **_FP8)
def wgmma_fp8(k: Kit, shape: str, dtype: str, atype: str, btype: str, sa: int, sb: int) -> Any:
    """queue d = p ? d + a * b : a * b, both operands in shared memory; an f32 result keeps 13 fraction bits"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, 0, False))


@isa.op("wgmma.mma_async.sync.aligned.shape.dtype.atype.btype {d}, {a}, b, p, #sa, #sb", types=_types_rs, **_FP8)
def wgmma_fp8_registers(k: Kit, shape: str, dtype: str, atype: str, btype: str, sa: int, sb: int) -> Any:
    """queue d = p ? d + a * b : a * b, a in registers; an f32 result keeps 13 fraction bits"""
    return _float(k, shape, dtype, atype, btype, flags_of(sa, sb, 0, 0, True))


_INT: dict[str, Any] = {
    "shape": integer_shapes(32), "atype": (".s8", ".u8"), "btype": (".s8", ".u8"), "effect": Effect.WARP,
    "varies": Varies.ALWAYS, "cost": Cost.TENSOR, "since": _SINCE, "only": ONLY, "ref": _REF, "in_place": ("d",),
    "needs": {"atype.s8 btype.u8": at((8, 4), 90, "90a"), "atype.u8 btype.s8": at((8, 4), 90, "90a")},
}  # fmt: skip


def _integer(k: Kit, shape: str, satfinite: bool, atype: str, btype: str, flags: int) -> Any:
    flags |= machine.INTEGER | satfinite * machine.CLAMP
    flags |= (atype == "s8") * machine.SIGNED_A | (btype == "s8") * machine.SIGNED_B
    start = k.warp("async_wgmma", (), 2 | F32 << 24, columns(shape) // 8 << 8 | flags << 16)

    def issue(d: Any, a: Any, b: Any, p: Any) -> None:
        start(*d, *(a if isinstance(a, tuple) else (a,)), b, p)

    return issue


@isa.op("wgmma.mma_async.sync.aligned.shape{.satfinite}.s32.atype.btype {d}, a, b, p", types=_types, **_INT)
def wgmma_int(k: Kit, shape: str, satfinite: bool, atype: str, btype: str) -> Any:
    """queue d = p ? d + a * b : a * b, both operands in shared memory, exact, wrapping or clamped"""
    return _integer(k, shape, satfinite, atype, btype, 0)


@isa.op("wgmma.mma_async.sync.aligned.shape{.satfinite}.s32.atype.btype {d}, {a}, b, p", types=_types_rs, **_INT)
def wgmma_int_registers(k: Kit, shape: str, satfinite: bool, atype: str, btype: str) -> Any:
    """queue d = p ? d + a * b : a * b, a in registers, exact, wrapping or clamped"""
    return _integer(k, shape, satfinite, atype, btype, machine.A_IN_REGISTERS)


_BITS = {**_INT, "shape": integer_shapes(256), "atype": (".b1",), "btype": (".b1",)}


def _bits(k: Kit, shape: str, flags: int) -> Any:
    form = columns(shape) // 8 << 8 | (flags | machine.INTEGER | machine.BITS) << 16
    start, none = k.warp("async_wgmma_general", (), 2 | F32 << 24, form), k.const(32, 0)

    def issue(d: Any, a: Any, b: Any, p: Any) -> None:
        start(none, *d, *(a if isinstance(a, tuple) else (a,)), b, p)

    return issue


@isa.op("wgmma.mma_async.sync.aligned.shape.s32.atype.btype.and.popc {d}, a, b, p", types=_types, **_BITS)
def wgmma_bits(k: Kit, shape: str, atype: str, btype: str) -> Any:
    """queue d = the number of ones in a and b, plus d if p, both operands in shared memory"""
    return _bits(k, shape, 0)


@isa.op("wgmma.mma_async.sync.aligned.shape.s32.atype.btype.and.popc {d}, {a}, b, p", types=_types_rs, **_BITS)
def wgmma_bits_registers(k: Kit, shape: str, atype: str, btype: str) -> Any:
    """queue d = the number of ones in a and b, plus d if p, a in registers"""
    return _bits(k, shape, machine.A_IN_REGISTERS)


@isa.op("wgmma.fence.sync.aligned", effect=Effect.FENCE, cost=Cost.SYNC, since=_SINCE, only=ONLY,
        ref="asynchronous-warpgroup-level-matrix-instructions-wgmma-fence")
def wgmma_fence(k: Kit) -> Any:
    """orders registers and shared memory before later products: they always are"""
    return lambda: None


@isa.op("wgmma.commit_group.sync.aligned", effect=Effect.WARP, cost=Cost.ASYNC, since=_SINCE, only=ONLY,
        ref="asynchronous-warpgroup-level-matrix-instructions-wgmma-commit-group")
def wgmma_commit(k: Kit) -> Any:
    """close the group of products issued so far"""
    commit = k.warp("async_wgmma_commit", ())

    def run() -> None:
        commit()

    return run


@isa.op("wgmma.wait_group.sync.aligned #n", effect=Effect.WARP, cost=Cost.ASYNC, since=_SINCE, only=ONLY, settles=True,
        ref="asynchronous-warpgroup-level-matrix-instructions-wgmma-wait-group")
def wgmma_wait(k: Kit, n: int) -> Any:
    """complete all groups but the n most recent"""
    wait = k.warp("async_wgmma_wait", (), n)

    def run() -> None:
        wait()

    return run
