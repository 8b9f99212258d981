"""Statements of random programs that need all threads of a CTA and several instructions: mbarriers, bulk and tensor
copies, wgmma.

Each function writes one self-contained sequence with a `programs._Writer`: it makes its barriers, starts something,
waits, and takes its barriers down. They are called where all threads are together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from interp.kits.python import PythonKit
from interp.tensor_map import Im2col, TensorMap
from ptx.errors import Unsupported
from ptx.isa import _resolve_types
from ptx.record import Op
from ptx.types import width
from tests.differential import forms

if TYPE_CHECKING:
    from tests.differential.programs import _Writer

BAR, FIRST, SAME = "%t13", "%pt2", "%pt3"
"""Shared address of the barrier; whether this is thread 0; the answer of a wait."""
_MBARRIER = {"ss": ".shared"}


def _begin(w: _Writer, arrivals: str) -> None:
    """A barrier for `arrivals`, a text with T for the number of threads."""
    w.body.shared = True
    w.put("bar.sync 0")
    w.put(f"setp.eq.u32 {FIRST}, %t0, 0")
    w.put(f"mov.u32 {BAR}, bars")
    w.put(
        f"mul.lo.u32 %t14, %t2, {arrivals.removeprefix('T*')}"
        if arrivals.startswith("T*")
        else f"mov.u32 %t14, {arrivals}"
    )
    w.put(f"@{FIRST} {mbarrier(w, 'init')} [{BAR}], %t14")
    if w.rng.random() < 0.5:
        w.put(w.draw_syntax("fence.mbarrier_init"))
    w.put("bar.sync 0")


def _end(w: _Writer, state: str | None = None) -> None:
    """Wait for the phase, by parity or by a state that an arrival gave, and take the barrier down."""
    again = w.fresh()
    w.body.loops = True
    how = w.rng.choice(("try_wait", "test_wait"))
    w.body.lines.append(f"{again}:")
    record = "mbarrier.how{" if state else "mbarrier.how.parity"
    text = w.draw_syntax(record, how=f".{how}", **_MBARRIER)
    hint = w.rng.choice(("", ", 1000")) if how == "try_wait" else ""
    w.put(f"{text} {SAME}, [{BAR}], {state or 0}{hint}")
    w.put(f"@!{SAME} bra {again}")
    w.put("bar.sync 0")
    w.put(f"@{FIRST} {mbarrier(w, 'inval')} [{BAR}]")


def mbarrier(w: _Writer, what: str) -> str:
    return w.draw_syntax(f"mbarrier.{what}{{", **_MBARRIER)


def arrivals(w: _Writer) -> None:
    """All threads arrive, in one of the ways that there are."""
    how = w.rng.choice(("arrive", "twice", "noComplete", "arrive_drop", "state" if not w.uniform else "arrive"))
    _begin(w, "T*2" if how in ("twice", "noComplete", "arrive_drop") else "T*1")
    if how == "noComplete":
        w.put(f"{mbarrier(w, 'arrive.noComplete')} %a7, [{BAR}], 1")
        w.put("bar.sync 0")
    if how == "arrive_drop":  # at least one arrival must remain for the next phase
        w.put(f"{mbarrier(w, how)} %a7, [{BAR}]")
    w.put(f"{mbarrier(w, 'arrive')} %a7, [{BAR}]{', 2' if how == 'twice' else ''}")
    w.put(f"{w.draw_syntax('mbarrier.pending_count')} {forms.register(32, w.rng)}, %a7")
    _end(w, "%a7" if how == "state" else None)


def transactions(w: _Writer) -> None:
    """Expected and completed bytes."""
    size = w.rng.choice((16, 64, 1000))
    if w.rng.random() < 0.5:
        _begin(w, "1")
        w.put(f"@{FIRST} {mbarrier(w, 'arrive.expect_tx')} %a7, [{BAR}], {size}")
    else:
        _begin(w, "T*1")
        w.put(f"@{FIRST} {mbarrier(w, 'expect_tx')} [{BAR}], {size}")
        w.put("bar.sync 0")
        w.put(f"{mbarrier(w, 'arrive')} %a7, [{BAR}]")
    w.put(f"@{FIRST} {mbarrier(w, 'complete_tx')} [{BAR}], {size}")
    _end(w)


def copies_arrive(w: _Writer) -> None:
    """cp.async that arrive at a barrier when they are complete."""
    more = w.rng.random() < 0.5
    _begin(w, "T*2" if more else "T*1")
    source = w.address("global", 8)
    w.put(f"add.u64 %a6, {source.partition('+')[0]}, 0")
    w.put(f"cp.async.ca.shared.global [{w.address('shared', 8)}], [%a6], 8")
    op = w.record_of("cp.async.mbarrier.arrive")
    w.record(op)
    w.put(f"cp.async.mbarrier.arrive{'.noinc' if more else ''}.shared.b64 [{BAR}]")
    w.put(f"{mbarrier(w, 'arrive')} %a7, [{BAR}]")
    _end(w)


def bulk_load(w: _Writer) -> None:
    """A bulk copy to shared memory; sometimes read before the wait, where it is not there yet."""
    size = w.rng.choice((16, 64, 256))
    _begin(w, "1")
    w.put(f"@{FIRST} {mbarrier(w, 'arrive.expect_tx')} %a7, [{BAR}], {size}")
    text = w.draw_syntax("cp.async.bulk.dst.global.mbarrier", hint="")
    w.put(f"@{FIRST} {text} [area+{16 * w.rng.randrange(32)}], [%a2+{16 * w.rng.randrange(32)}], {size}, [{BAR}]")
    if w.rng.random() < 0.3:
        w.put(f"ld.shared.b32 {forms.register(32, w.rng)}, [area+{4 * w.rng.randrange(128)}]")
    _end(w)


def bulk_store(w: _Writer) -> None:
    """A bulk copy or reduction to global memory, in a group."""
    w.body.shared = True
    rng, size = w.rng, w.rng.choice((16, 64, 256))
    w.put(w.draw_syntax("fence.proxy.kind", kind=".async"))
    w.put("bar.sync 0")
    w.put(f"setp.eq.u32 {FIRST}, %t0, 0")
    record = rng.choice(
        ("cp.async.bulk.global.shared::cta.bulk_group", "cp.reduce.async.bulk.global", "cp.async.bulk.prefetch.L2")
    )
    text = w.draw_syntax(record, hint="")
    target, source = f"[%a2+{16 * rng.randrange(32)}]", f"[area+{16 * rng.randrange(32)}]"
    w.put(
        f"@{FIRST} {text} {target}, {source}, {size}"
        if "prefetch" not in record
        else f"@{FIRST} {text} {target}, {size}"
    )
    _groups(w)


def _groups(w: _Writer) -> None:
    w.put(f"@{FIRST} {w.draw_syntax('cp.async.bulk.commit_group')}")
    if w.rng.random() < 0.2:
        w.put(f"@{FIRST} {w.draw_syntax('cp.async.bulk.wait_group')} 1")
    text = w.draw_syntax("cp.async.bulk.wait_group")
    w.put(f"@{FIRST} {text} 0")
    w.put("bar.sync 0")


def tensor_copies(w: _Writer) -> None:
    """A tensor map made in the kernel, and a box loaded, stored or reduced through it; coordinates may lie outside."""
    rng = w.rng
    w.body.shared = True
    w.put("bar.sync 0")
    w.put(f"setp.eq.u32 {FIRST}, %t0, 0")
    for i in range(16):
        w.put(f"@{FIRST} st.shared.b64 [map+{8 * i}], 0")
    w.put("add.u64 %a6, %a2, 256")
    w.put("mov.u32 %t14, map")
    fields = [("global_address", None, "%a6", 64), ("rank", None, 1, 32), ("global_stride", 0, 64, 64)]
    fields += [("box_dim", 0, 8, 32), ("box_dim", 1, 4, 32), ("global_dim", 0, 16, 32), ("global_dim", 1, 8, 32)]
    fields += [("element_stride", 0, 1, 32), ("element_stride", 1, 1, 32)]
    rng.shuffle(fields)
    for field, index, value, bits in fields:
        w.record(w.record_of("tensormap.replace", index=0 if index is None else 1))
        place = "" if index is None else f" {index},"
        text = f"tensormap.replace.tile.{field}.shared::cta.b1024.b{bits}"
        if isinstance(value, int):
            w.put(f"mov.u{bits} {'%a5' if bits == 64 else '%t8'}, {value}")
            value = "%a5" if bits == 64 else "%t8"
        w.put(f"@{FIRST} {text} [%t14],{place} {value}")
    kind = rng.choice((2, 3, 7))  # u32, s32, f32, which is only added
    for field, choice in (
        ("elemtype", kind),
        ("interleave_layout", 0),
        ("swizzle_mode", 0),
        ("fill_mode", 0),
    ):
        w.record(w.record_of("tensormap.replace", index=2))
        w.put(f"@{FIRST} tensormap.replace.tile.{field}.shared::cta.b1024.b32 [%t14], {choice}")
    how = rng.choice(("load", "store", "reduce", "prefetch"))
    least = -1 if how in ("load", "prefetch") else 0  # stores begin in the tensor
    w.put(f"mov.u32 %t8, {4 * rng.randrange(least, 4)}")  # a box begins at a multiple of 16 bytes
    w.put(f"mov.u32 %t9, {rng.randrange(2 * least, 14)}")
    _tensor_copy(w, how, 0, ".2d", "%t8, %t9", "", (".add",) if kind == 7 else (".add", ".min", ".max"))


def columns(w: _Writer) -> None:
    """A tensor map of two images of 6 pixels with 8 channels in im2col mode, and a column of 8 pixels of 4 channels."""
    rng = w.rng
    w.body.shared = True
    w.put("bar.sync 0")
    w.put(f"setp.eq.u32 {FIRST}, %t0, 0")
    how = rng.choice(("load", "store", "reduce", "prefetch"))
    low, high = (rng.randrange(-2, 2), rng.randrange(-2, 3)) if how in ("load", "prefetch") else (1, -1)
    map_ = TensorMap(
        np.zeros(1, np.uint32), (2, 6, 8), (192, 32), (8, 4), "u32", steps=(1, rng.choice((1, 2)), 1),
        im2col=Im2col((low,), (high,)),
    )  # fmt: skip
    for i, word in enumerate(struct.unpack("<16Q", map_.encode(0))):
        w.put(f"mov.u64 %a5, {word}" if i else "add.u64 %a5, %a2, 256")
        w.put(f"@{FIRST} st.shared.b64 [map+{8 * i}], %a5")
    w.put("mov.u32 %t14, map")
    w.put(f"mov.u32 %t8, {rng.choice((0, 4))}")
    w.put(f"mov.u32 %t9, {rng.randrange(low, 6 + high)}")
    w.put("mov.u32 %t15, 1" if rng.random() < 0.5 else "mov.u32 %t15, 0")
    _tensor_copy(w, how, 1, ".3d", "%t8, %t9, %t15", f", {{{rng.randrange(4)}}}", (".add", ".xor"))


def _tensor_copy(
    w: _Writer, how: str, mode: int, dim: str, coordinates: str, info: str, ops: tuple[str, ...]
) -> None:  # fmt: skip
    """Publish the map in shared memory, and use it. `mode`: 0 tiled, 1 im2col, as their records come in order; `ops`:
    reductions that its type takes."""
    rng, fixed = w.rng, {"dim": dim, "hint": ""}
    w.put("bar.sync 0")
    w.put(f"{w.draw_syntax('tensormap.cp_fenceproxy')} [%a2], [%t14], 128")
    w.put(w.draw_syntax("fence.proxy.tensormap::generic.release"))
    w.put(f"{w.draw_syntax('fence.proxy.tensormap::generic.acquire')} [%a2], 128")
    place, map_ = f"[area+{128 * rng.randrange(8)}]", f"[%a2, {{{coordinates}}}]"
    if how == "load":
        _begin(w, "1")
        w.put(f"@{FIRST} {mbarrier(w, 'arrive.expect_tx')} %a7, [{BAR}], 128")
        many = rng.random() < 0.5
        record = f"cp.async.bulk.tensor.dim{{.mode,.early}}.{'shared::cluster' if many else 'dst'}.global"
        text = w.draw_syntax(record, mode, **fixed)
        w.put(f"@{FIRST} {text} {place}, {map_}, [{BAR}]{info}{', 1' if many else ''}")
        _end(w)
        return
    if how == "prefetch":
        text = w.draw_syntax("cp.async.bulk.prefetch.tensor.dim", mode, **fixed)
        w.put(f"@{FIRST} {text} {map_}{info}")
        return
    record = "cp.async.bulk.tensor.dim{.mode}.global.shared::cta" if how == "store" else "cp.reduce.async.bulk.tensor"
    if how == "reduce":
        fixed["op"] = rng.choice(ops)
    w.put(f"@{FIRST} {w.draw_syntax(record, mode, **fixed)} {map_}, {place}")
    _groups(w)


def products(w: _Writer) -> None:
    """wgmma on whatever shared memory holds, with random strides and layouts; rarely without the wait."""
    rng = w.rng
    w.body.shared = True
    op = rng.choice([o for o in forms.ISA.ops if o.syntax.startswith("wgmma.mma_async")])
    text, mods = _wgmma_form(op, w)
    w.record(op)
    types = _resolve_types(op, mods)
    for i in (5, 6):
        start, leading, stride = (rng.randrange(64) for _ in range(3))
        bits = start | (leading | 1) << 16 | (stride | 1) << 32 | rng.choice((0, 0, 1, 2, 3)) << 62
        w.put(f"mov.u64 %a{i}, {bits}")
        w.put("cvt.u64.u32 %a4, %t4")
        w.put("shr.u64 %a4, %a4, 4")
        w.put(f"add.u64 %a{i}, %a{i}, %a4")
    parts = []
    for spec in op.operands:
        type, count = types[spec.name]
        if spec.form == "imm":
            parts.append(str(mods[spec.name]))
        elif count:
            pool = POOL_D if spec.name == "d" else "%r"
            parts.append("{" + ", ".join(f"{pool}{i}" for i in range(count)) + "}")
        else:
            registers = {"a": "%a5", "b": "%a6", "p": forms.register(1, rng), "e": forms.register(32, rng)}
            parts.append(registers[spec.name])
    for i in range(types["d"][1]):
        w.put(f"mov.b32 {POOL_D}{i}, {forms.register(32, rng)}")
    w.put(w.draw_syntax("wgmma.fence"))
    w.put(f"{text} {', '.join(parts)}")
    w.put(w.draw_syntax("wgmma.commit_group"))
    w.put(f"{w.draw_syntax('wgmma.wait_group')} {rng.choice((0, 0, 0, 0, 1))}")
    for i in range(types["d"][1]):
        w.put(f"xor.b32 %r{i % 12}, %r{i % 12}, {POOL_D}{i}")


POOL_D = "%w"
"""Accumulators: registers of their own, up to 16."""


def _wgmma_form(op: Op, w: _Writer) -> tuple[str, dict[str, object]]:
    for _ in range(200):
        columns = w.rng.choice((8, 16, 32))
        shape = w.rng.choice([s for s in op.choices["shape"] if f"n{columns}k" in s])
        text, mods = forms.opcode(op, w.rng, {"shape": shape})
        for spec in op.operands:
            if spec.form == "imm":
                mods[spec.name] = w.rng.choice((1, -1) if spec.name in ("sa", "sb") else (0, 1))
        if (op.constraint is None or op.constraint(**mods) is None) and width("b32") * int(columns) <= 1024:
            try:
                op.meaning(PythonKit(90), **mods)
            except Unsupported:
                continue
            return text, mods
    raise AssertionError(f"no legal form of {op.syntax}")


def clusters(w: _Writer) -> None:
    """What reaches the CTAs of a cluster, in a cluster of one: its barrier, and copies to the CTA itself."""
    rng = w.rng
    w.body.shared = True
    how = rng.choice(("barrier", "words", "send", "many"))
    if how == "barrier":
        w.put(w.draw_syntax("barrier.cluster.arrive"))
        w.put(w.draw_syntax("barrier.cluster.wait"))
        return
    target, size = f"[area+{64 * rng.randrange(8)}]", rng.choice((16, 64))
    if how == "words":
        op = w.record_of("st.async")
        w.record(op)
        text, mods = forms.opcode(op, rng, {"shared_cluster": ".shared::cluster"}, w.variety)
        n, count = width(mods["type"]), int((mods["vec"] or "v1")[1:])
        size = n // 8 * count
        values = ", ".join(forms.register(n, rng) for _ in range(count))
        copy = f"{text} {target}, {{{values}}}, [{BAR}]" if mods["vec"] else f"{text} {target}, {values}, [{BAR}]"
    elif how == "send":
        text = w.draw_syntax("cp.async.bulk.shared::cluster.shared::cta")
        copy = f"{text} {target}, [area+{512 + 16 * rng.randrange(16)}], {size}, [{BAR}]"
    else:
        text = w.draw_syntax("cp.async.bulk.shared::cluster.global", hint="")
        copy = f"{text} {target}, [%a2+{16 * rng.randrange(32)}], {size}, [{BAR}], 1"
    _begin(w, "1")
    w.put(f"@{FIRST} {mbarrier(w, 'arrive.expect_tx')} %a7, [{BAR}], {size}")
    w.put(f"@{FIRST} {copy}")
    _end(w)


def orders(w: _Writer) -> None:
    """Fences, launch control, register counts, split barriers, and a trap that nobody reaches."""
    rng = w.rng
    how = rng.randrange(5)
    if how == 0:
        w.put(w.draw_syntax("fence.proxy.kind"))
    elif how == 1:
        w.put(w.draw_syntax("griddepcontrol"))
    elif how == 2:
        w.put(f"{w.draw_syntax('setmaxnreg')} {rng.choice((24, 64, 232))}")
    elif how == 3:
        w.put("mul.lo.u32 %t14, %t2, 2")
        index = rng.randrange(2)
        w.record(w.record_of(("bar{.cta}.arrive", "barrier{.cta}.arrive")[index]))
        w.put(f"{('bar', 'barrier')[index]}.arrive 5, %t14")
        w.put("bar.sync 5, %t14")
    else:
        w.put("ld.param.u32 %t8, [p_number]")
        w.put("setp.gt.u32 %pt0, %t8, 1000")
        w.record(w.record_of("trap"))
        w.put("@%pt0 trap")


STATEMENTS: tuple[tuple[int, Callable[[_Writer], None]], ...] = (
    (4, arrivals),
    (3, transactions),
    (2, copies_arrive),
    (3, bulk_load),
    (4, bulk_store),
    (4, tensor_copies),
    (4, columns),
    (10, products),
    (4, clusters),
    (5, orders),
)
