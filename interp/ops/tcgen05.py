"""Tensor memory (PTX ISA, 'Tensorcore 5th Generation Family Instructions'): allocation, loads, stores, copies, commits.

What they do: `interp.runtime.tensor_memory`, `tensor_access`, `tcgen05`. Products are in `tcgen05_mma`. Fences order
nothing here that is not ordered: operations happen where something waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interp.kit import Kit
from interp.ops.table import BLACKWELL, isa
from interp.runtime.layout import SPACE_CLUSTER, SPACE_GENERIC, SPACE_SHARED
from interp.runtime.tcgen05 import SPREAD_01_23, SPREAD_02_13, SPREAD_ALL, SPREAD_NONE
from interp.runtime.tensor_access import (
    PACKED,
    REDUCE,
    REDUCE_ABS,
    REDUCE_FLOAT,
    REDUCE_MAX,
    REDUCE_NAN,
    REDUCE_SIGNED,
    REGISTERS,
    SHAPES,
)
from ptx import ir
from ptx.errors import Unsupported
from ptx.isa import Cost, Effect, Varies
from ptx.types import width

_REF = "tcgen05-instructions-tcgen05-"
_GROUPS = (".cta_group::1", ".cta_group::2")


def in_tensor_memory(*names: str) -> Any:
    """The rule that addresses in tensor memory have 32 bits. `names`: those operands."""

    def rule(mods: Mapping[str, Any], operands: Mapping[str, ir.Operand]) -> str | None:
        for name in names:
            match operands.get(name):
                case ir.Mem(ir.Reg(register, type), _) if width(type) != 32:
                    return f"{register} is .{type}, and addresses in tensor memory have 32 bits"
        return None

    return rule


_WARP: dict[str, Any] = {"effect": Effect.WARP, "since": ((8, 6), 100), "only": BLACKWELL}
_THREAD: dict[str, Any] = {"effect": Effect.ASYNC, "cost": Cost.ASYNC, "since": ((8, 6), 100), "only": BLACKWELL,
        "writes": ()}


ARCHITECTURES = (100, 103)
"""Devices that have tensor memory; RTX Blackwell (sm_120) has none."""


def group_of(group: str) -> int:
    """CTAs of `.cta_group`."""
    return int(group[-1])


def machine(k: Kit, name: str, results: tuple[int, ...], *params: int) -> Any:
    """A runtime function, on devices that have tensor memory. Raises Unsupported on others."""
    if k.device not in ARCHITECTURES:
        raise Unsupported(f"sm_{k.device} has no tensor memory and no tcgen05 instructions")
    return k.warp(name, results, *params)


# ------------------------------------------------------------------------------------------------ allocation
@isa.op("tcgen05.alloc.group.sync.aligned{.ss}.b32 [to], columns", group=_GROUPS, ss=(".shared::cta",),
        types={"columns": "u32"}, writes=(), cost=Cost.SYNC, ref=_REF + "alloc-dealloc-relinquish-alloc-permit",
        **_WARP)
def alloc(k: Kit, group: str, ss: str | None) -> Any:
    """allocate columns of tensor memory; their address goes to shared memory"""
    take = machine(k, "async_tcgen05_alloc", (), SPACE_SHARED if ss else SPACE_GENERIC, group_of(group))

    def run(to: Any, columns: Any) -> None:
        take(to, columns)

    return run


@isa.op("tcgen05.dealloc.group.sync.aligned.b32 a, columns", group=_GROUPS, types={"a": "b32", "columns": "u32"},
        writes=(), cost=Cost.SYNC, ref=_REF + "alloc-dealloc-relinquish-alloc-permit", **_WARP)
def dealloc(k: Kit, group: str) -> Any:
    """give an allocation back"""
    give, widen = machine(k, "async_tcgen05_dealloc", (), group_of(group)), k.zext(32, 64)

    def run(a: Any, columns: Any) -> None:
        give(widen(a), columns)

    return run


@isa.op("tcgen05.relinquish_alloc_permit.group.sync.aligned", group=_GROUPS, writes=(), cost=Cost.SYNC,
        ref=_REF + "alloc-dealloc-relinquish-alloc-permit", **_WARP)
def relinquish(k: Kit, group: str) -> Any:
    """this CTA allocates no more"""
    end = machine(k, "async_tcgen05_relinquish", (), group_of(group))

    def run() -> None:
        end()

    return run


# ------------------------------------------------------------------------------------------------ registers
_NUMBERS = tuple(f".x{1 << i}" for i in range(8))
_SPLIT = "16x32bx2"
_ONE_ADDRESS = tuple("." + s for s in SHAPES if s != _SPLIT)


def _count(shape: str, num: str) -> int:
    return REGISTERS[shape] * int(num[1:])


def _registers(shape: str, num: str, **_: Any) -> dict[str, Any]:
    registers = ("b32", _count(shape, num))
    return {"d": registers, "v": registers}


def _legal(shape: str, num: str, **_: Any) -> str | None:
    return None if _count(shape, num) <= 128 else "at most 128 registers"


def _legal_split(shape: str, num: str, split: int = 0, **_: Any) -> str | None:
    return _legal(shape, num) if 0 <= split < 512 else "the second address must be 0 to 511 columns on"


_LOAD: dict[str, Any] = {
    **_WARP, "rule": in_tensor_memory("a"), "num": _NUMBERS, "types": _registers, "cost": Cost.LOAD_STORE,
    "varies": Varies.ALWAYS, "ref": _REF + "ld",
}  # fmt: skip
_STORE: dict[str, Any] = {**_LOAD, "writes": (), "ref": _REF + "st"}


def _load(k: Kit, shape: str, num: str, pack: bool, split: int) -> Any:
    count = _count(shape, num)
    return machine(k, "async_tcgen05_ld", (32,) * count, SHAPES[shape] | pack * PACKED, count, split)


def _store(k: Kit, shape: str, num: str, unpack: bool, split: int) -> Any:
    store = machine(k, "async_tcgen05_st", (), SHAPES[shape] | unpack * PACKED, _count(shape, num), split)

    def run(a: Any, v: Any) -> None:
        store(a, *v)

    return run


@isa.op("tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 {d}, [a]", shape=_ONE_ADDRESS, constraint=_legal, **_LOAD)
def ld(k: Kit, shape: str, num: str, pack_16b: bool) -> Any:
    """d = cells of the warp's quarter of tensor memory"""
    return _load(k, shape, num, pack_16b, 0)


@isa.op("tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 {d}, [a], #split", shape=("." + _SPLIT,),
        constraint=_legal_split, **_LOAD)
def ld_split(k: Kit, shape: str, num: str, pack_16b: bool, split: int) -> Any:
    """d = cells of 16 lanes; threads 16 to 31 read `split` columns on"""
    return _load(k, shape, num, pack_16b, split)


_REDUCING = {
    **_LOAD, "shape": (".32x32b",), "num": _NUMBERS[1:], "op": (".min", ".max"), "writes": ("d", "r"),
    "since": ((8, 8), 103), "only": ("103f", "110f"), "types": lambda **mods: {**_registers(**mods), "r": "b32"},
}  # fmt: skip


def _reduced(k: Kit, num: str, flags: int) -> Any:
    count = _count("32x32b", num)
    return machine(k, "async_tcgen05_ld", (32,) * (count + 1), SHAPES["32x32b"], count, 0, REDUCE | flags)


@isa.op("tcgen05.ld.red.sync.aligned.shape.num.op{.abs}{.NaN}.f32 {d}, r, [a]", **_REDUCING)
def ld_reduce(k: Kit, shape: str, num: str, op: str, abs: bool, NaN: bool) -> Any:
    """d = cells of the thread's lane, r = the least or largest of them (or of their magnitudes)"""
    return _reduced(k, num, (op == "max") * REDUCE_MAX | REDUCE_FLOAT | abs * REDUCE_ABS | NaN * REDUCE_NAN)


@isa.op("tcgen05.ld.red.sync.aligned.shape.num.op.type {d}, r, [a]", type=(".u32", ".s32"), **_REDUCING)
def ld_reduce_integer(k: Kit, shape: str, num: str, op: str, type: str) -> Any:
    """d = cells of the thread's lane, r = the least or largest of them"""
    return _reduced(k, num, (op == "max") * REDUCE_MAX | (type == "s32") * REDUCE_SIGNED)


@isa.op("tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [a], {v}", shape=_ONE_ADDRESS, constraint=_legal, **_STORE)
def st(k: Kit, shape: str, num: str, unpack_16b: bool) -> Any:
    """cells of the warp's quarter of tensor memory = v some time"""
    return _store(k, shape, num, unpack_16b, 0)


@isa.op("tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [a], #split, {v}", shape=("." + _SPLIT,),
        constraint=_legal_split, **_STORE)
def st_split(k: Kit, shape: str, num: str, unpack_16b: bool, split: int) -> Any:
    """cells of 16 lanes = v some time; threads 16 to 31 write `split` columns on"""
    return _store(k, shape, num, unpack_16b, split)


@isa.op("tcgen05.wait::ld.sync.aligned", writes=(), cost=Cost.ASYNC, ref=_REF + "wait", **_WARP)
def wait_ld(k: Kit) -> Any:
    """earlier loads are complete: they always are"""
    return lambda: None


@isa.op("tcgen05.wait::st.sync.aligned", writes=(), cost=Cost.ASYNC, ref=_REF + "wait", **_WARP)
def wait_st(k: Kit) -> Any:
    """the warp's earlier stores are complete"""
    wait = machine(k, "async_tcgen05_wait_st", ())

    def run() -> None:
        wait()

    return run


# ------------------------------------------------------------------------------------------------ copies, completion
isa.leave_out(r"^tcgen05\.cp\..*\.4x256b", "which lanes its four rows go to is told in a figure of the manual only")
isa.leave_out(
    r"^tcgen05\.shift\.|^tcgen05\.mma\..*\.ashift",
    "which neighbour a row gets by a shift 'down' is told in a figure of the manual only, and CUTLASS does not use it",
)
_COPIES = {
    ("128x256b", None): (128, 2, SPREAD_NONE), ("128x128b", None): (128, 1, SPREAD_NONE),
    ("64x128b", "warpx2::02_13"): (64, 1, SPREAD_02_13), ("64x128b", "warpx2::01_23"): (64, 1, SPREAD_01_23),
    ("32x128b", "warpx4"): (32, 1, SPREAD_ALL),
}  # fmt: skip
_BITS = {None: 0, "b6x16_p32": 6, "b4x16_p64": 4}


def _legal_copy(shape: str, multicast: str | None, **_: Any) -> str | None:
    return None if (shape, multicast) in _COPIES else "the shape does not go with the multicast"


@isa.op("tcgen05.cp.group.shape{.multicast} [to], source", group=_GROUPS, types={"source": "b64"},
        shape=(".128x256b", ".128x128b", ".64x128b", ".32x128b"),
        multicast=(".warpx2::02_13", ".warpx2::01_23", ".warpx4"), constraint=_legal_copy, ref=_REF + "cp", **_THREAD)
def cp(k: Kit, group: str, shape: str, multicast: str | None) -> Any:
    """queue a copy from shared to tensor memory"""
    return _copy(k, group, shape, multicast, None)


@isa.op("tcgen05.cp.group.shape{.multicast}.b8x16.packed [to], source", group=_GROUPS, types={"source": "b64"},
        shape=(".128x256b", ".128x128b", ".64x128b", ".32x128b"),
        multicast=(".warpx2::02_13", ".warpx2::01_23", ".warpx4"), packed=(".b6x16_p32", ".b4x16_p64"),
        constraint=_legal_copy, ref=_REF + "cp", **_THREAD)
def cp_unpack(k: Kit, group: str, shape: str, multicast: str | None, packed: str) -> Any:
    """queue a copy that puts packed 6- or 4-bit numbers into a byte each"""
    return _copy(k, group, shape, multicast, packed)


def _copy(k: Kit, group: str, shape: str, multicast: str | None, packed: str | None) -> Any:
    rows, chunks, spread = _COPIES[shape, multicast]
    copy = machine(k, "async_tcgen05_cp", (), rows | chunks << 8 | spread << 16, _BITS[packed], group_of(group))

    def run(to: Any, source: Any) -> None:
        copy(to, source)

    return run


_COMMIT: dict[str, Any] = {"group": _GROUPS, "ss": (".shared::cluster",), "ref": _REF + "commit", **_THREAD}


def _space(ss: str | None) -> int:
    return SPACE_CLUSTER if ss else SPACE_GENERIC


@isa.op("tcgen05.commit.group.mbarrier::arrive::one{.ss}.b64 [bar]", types={}, **_COMMIT)
def commit(k: Kit, group: str, ss: str | None) -> Any:
    """an arrival at the barrier when the thread's earlier copies and products are complete"""
    track = machine(k, "async_tcgen05_commit", (), _space(ss), 0, group_of(group))

    def run(bar: Any) -> None:
        track(bar)

    return run


@isa.op("tcgen05.commit.group.mbarrier::arrive::one{.ss}.multicast::cluster.b64 [bar], ctas", types={"ctas": "u16"},
        **_COMMIT)
def commit_many(k: Kit, group: str, ss: str | None) -> Any:
    """as without multicast, at the same place of each CTA of the cluster whose rank is a bit of `ctas`"""
    track, widen = machine(k, "async_tcgen05_commit", (), _space(ss), 1, group_of(group)), k.zext(16, 32)

    def run(bar: Any, ctas: Any) -> None:
        track(bar, widen(ctas))

    return run


_FENCE: dict[str, Any] = {
    "effect": Effect.FENCE, "cost": Cost.SYNC, "writes": (), "since": ((8, 6), 100), "only": BLACKWELL,
    "ref": _REF + "fence",
}  # fmt: skip


@isa.op("tcgen05.fence::before_thread_sync", **_FENCE)
def fence_before(k: Kit) -> Any:
    """orders earlier tcgen05 operations before later ones of other threads: they happen in order of issue"""
    return lambda: None


@isa.op("tcgen05.fence::after_thread_sync", **_FENCE)
def fence_after(k: Kit) -> Any:
    """orders later tcgen05 operations behind earlier ones of other threads: they happen in order of issue"""
    return lambda: None
