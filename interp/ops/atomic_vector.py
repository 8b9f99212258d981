"""Atomics on vectors (PTX ISA, 'Parallel Synchronization': atom and red with vector types), and `red.async`.

Each element is an atomic operation of its own; here all lanes do the first element, then all do the second. The vector
is aligned as a whole. The assembler takes the operation before the type, as the manual has it, and behind it.

Atomics on 128 bits: `interp.ops.wide`. Not offered: `multimem`.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.memory import SCOPES, space_name
from interp.ops.table import isa
from interp.runtime.atomics import atomic_symbol
from interp.runtime.layout import SPACE_GENERIC, SPACE_GLOBAL
from ptx.isa import Cost, Effect, Varies
from ptx.types import width

REF = "parallel-synchronization-and-communication-instructions-"
_LENGTHS = {"f32": (2, 4), "f16": (2, 4, 8), "bf16": (2, 4, 8), "f16x2": (2, 4), "bf16x2": (2, 4)}
_VECTOR: dict[str, Any] = {
    "sem": (".relaxed", ".acquire", ".release", ".acq_rel"), "scope": SCOPES, "ss": (".global",),
    "hint": (".L2::cache_hint",), "op": (".add", ".min", ".max"), "vec": (".v2", ".v4", ".v8"),
    "type": tuple("." + t for t in _LENGTHS), "since": ((8, 1), 90), "effect": Effect.ATOMIC, "cost": Cost.ATOMIC,
}  # fmt: skip
_ORDERS = (".op{.noftz}{.hint}.vec.type", "{.hint}.vec.type.op{.noftz}")


def _legal(op: str, vec: str, type: str, noftz: bool, **_: object) -> str | None:
    if int(vec[1:]) not in _LENGTHS[type]:
        return "no such vector of the type"
    if type == "f32" and op != "add":
        return "f32 has the addition only"
    return "'.noftz' goes with the 16-bit formats" if noftz != (type != "f32") else None


def _legal_red(sem: str | None = None, **mods: Any) -> str | None:
    return f"no 'red' is a '.{sem}'" if sem in ("acquire", "acq_rel") else _legal(**mods)


def _types(vec: str, type: str, **_: object) -> dict[str, Any]:
    return {"d": (type, int(vec[1:])), "b": (type, int(vec[1:])), "policy": "b64"}


def _each(k: Kit, ss: str | None, op: str, vec: str, type: str) -> Any:
    """(address, elements) -> the old elements."""
    count, size = int(vec[1:]), width(type) // 8
    check = k.warp("atomic_vector", (), SPACE_GLOBAL if ss else SPACE_GENERIC, count * size)
    update, add = k.atomic(space_name(ss), op, type), k.add(64)

    def run(a: Any, b: Any) -> tuple[Any, ...]:
        check(a)
        return tuple(update(add(a, k.const(64, i * size)) if i else a, word) for i, word in enumerate(b))

    return run


def _declare(order: str) -> None:
    @isa.op(f"atom{{.sem,.scope,.ss}}{order} {{d}}, [a], {{b}}{{, policy if hint}}", types=_types, constraint=_legal,
            varies=Varies.ALWAYS, ref=REF + "atom", **_VECTOR)
    def atom(k: Kit, ss: str | None, op: str, vec: str, type: str, **_: Any) -> Any:
        """d = memory at a; memory at a = op(d, b), element by element"""
        update = _each(k, ss, op, vec, type)
        return lambda a, b, *policy: update(a, b)

    @isa.op(f"red{{.sem,.scope,.ss}}{order} [a], {{b}}{{, policy if hint}}", types=_types, constraint=_legal_red,
            writes=(),
            ref=REF + "red", **_VECTOR)
    def red(k: Kit, ss: str | None, op: str, vec: str, type: str, **_: Any) -> Any:
        """memory at a = op(memory at a, b), element by element"""
        update = _each(k, ss, op, vec, type)

        def reduce(a: Any, b: Any, *policy: Any) -> None:
            update(a, b)

        return reduce


for _order in _ORDERS:
    _declare(_order)


_REDUCTIONS = {
    "inc": ("u32",), "dec": ("u32",), "min": ("u32", "s32"), "max": ("u32", "s32"), "add": ("u32", "s32", "u64", "s64"),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip


_REDUCED = (".u32", ".s32", ".u64", ".s64", ".b32")


@isa.op("red.async.sem.scope{.shared::cluster}.mbarrier::complete_tx::bytes.op.type [a], b, [bar]",
        sem=(".relaxed",), scope=(".cluster",), op=tuple("." + o for o in _REDUCTIONS),
        type=_REDUCED, types={"b": "type"}, writes=(),
        constraint=lambda op, type, **_: None if type in _REDUCTIONS[op] else f"'.{op}' does not take {type}",
        effect=Effect.ASYNC, cost=Cost.ASYNC, since=((8, 1), 90), ref=REF + "red-async")
def red_async(k: Kit, op: str, type: str, **_: Any) -> Any:
    """memory at a, of any CTA of the cluster, = op(memory at a, b) some time; the barrier there gets the bytes"""
    n, code = atomic_symbol(op, type)[1:]
    put = k.warp("async_bulk_words_reduce", (), n // 8, code | (n == 64) << 8)

    def run(a: Any, b: Any, bar: Any) -> None:
        put(a, bar, b)

    return run


def _legal_release(op: str, type: str, scope: str, mmio: bool, **_: object) -> str | None:
    if mmio and scope != "sys":
        return "'.mmio' goes with '.sys'"
    return None if type in _REDUCTIONS[op] else f"'.{op}' does not take {type}"


@isa.op("red.async{.mmio}.release.scope{.ss}.op.type [a], b", scope=(".gpu", ".sys"), ss=(".global",),
        op=tuple("." + o for o in _REDUCTIONS), type=_REDUCED, types={"b": "type"}, writes=(),
        constraint=_legal_release, effect=Effect.ATOMIC, cost=Cost.ATOMIC, since=((8, 7), 100), ref=REF + "red-async")
def red_async_release(k: Kit, ss: str | None, op: str, type: str, **_: Any) -> Any:
    """memory at a = op(memory at a, b) after all that the thread did before; nothing tells when, and here it is at
    once"""
    update = k.atomic(space_name(ss), op, type)

    def run(a: Any, b: Any) -> None:
        update(a, b)

    return run
