"""Loads, stores, atomics and fences (PTX ISA, 'Data Movement' ld, st, prefetch; 'Parallel Synchronization' atom, red,
fence).

Cache operators, eviction priorities, prefetch sizes and cache hints do not change values and are accepted wherever the
manual allows them. Memory orders do not change values either, since one warp runs at a time and every access takes
effect at once; they are accepted and kept in the opcode for the checkers.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.convert import toward_zero_32
from interp.ops.table import isa
from ptx.isa import Cost, Effect, Varies, vec
from ptx.targets import at
from ptx.types import width

SPACES = (
    ".global", ".shared", ".shared::cta", ".shared::cluster", ".local", ".const", ".param", ".param::entry",
    ".param::func",
)  # fmt: skip
TYPES = (".b8", ".b16", ".b32", ".b64", ".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64", ".f32", ".f64")
SCOPES = (".cta", ".cluster", ".gpu", ".sys")
ORDERS = tuple(f".{o}{s}" for o in ("relaxed", "acquire", "release") for s in SCOPES)
_PRIORITIES = ("evict_last", "evict_normal", "evict_first", "evict_unchanged")
CACHING: dict[str, tuple[str, ...]] = {
    "cop": (".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"),
    "l1": tuple(f".L1::{p}" for p in (*_PRIORITIES, "no_allocate")),
    "l2": tuple(f".L2::{p}" for p in _PRIORITIES),
    "hint": (".L2::cache_hint",),
    "prefetch": tuple(f".L2::{n}B" for n in (64, 128, 256)),
}
_TAIL = "{.cop}{.l1}{.l2}{.hint}{.prefetch}{.vec}.type"
_LD: dict[str, Any] = {
    "order": (".weak", ".volatile", *ORDERS), "ss": SPACES, **CACHING, "nc": (".nc",),
    "vec": (".v2", ".v4", ".v8"), "type": TYPES,
}  # fmt: skip


_WIDE = {
    ".v8 .b32,.u32,.s32,.f32": at((8, 8), 100), ".v4 .b64,.u64,.s64,.f64": at((8, 8), 100),
    "order.volatile ss.local": at((9, 1)),
}  # fmt: skip
_OPERATORS = {"ld": ("ca", "cg", "cs", "lu", "cv"), "ld.nc": ("ca", "cg", "cs"), "st": ("wb", "cg", "cs", "wt")}
_MEANT = {"ld": "acquire", "st": "release"}


def combination(name: str, ss: str | None, vec: str | None, type: str, order: str | None = None,
                cop: str | None = None, l1: str | None = None, l2: str | None = None, hint: str | None = None,
                prefetch: str | None = None, nc: str | None = None) -> str | None:
    """Why ptxas refuses modifiers of a load or store together, or None. One question a line: which orders and cache
    operators there are, what excludes what, and which spaces have caches."""
    sem = order.partition(".")[0] if order else None
    cached, ordered = ss in (None, "global"), sem in ("relaxed", "acquire", "release")
    bits = width(type) * max(_length(vec), 1)
    if ordered and sem not in ("relaxed", _MEANT[name]):
        return f"no '{name}' is a '.{sem}'"
    if ordered and ss is not None and not ss.startswith(("global", "shared")):
        return f"'.{sem}' is for global and shared memory"
    if cop is not None and cop not in _OPERATORS[name + (".nc" if nc else "")]:
        return f"'.{cop}' does not go with '{name}{'.nc' if nc else ''}'"
    if nc and ss != "global":
        return "'.nc' needs '.global'"
    if nc and sem is not None:
        return f"'.{sem}' does not go with '.nc'"
    if cop is not None and (l1 is not None or sem not in (None, "weak")):
        return f"'.{cop}' goes neither with an eviction priority nor with '.volatile' and memory orders"
    if sem == "volatile" and (l1 is not None or hint is not None):
        return "'.volatile' has neither an eviction priority nor a cache policy"
    if sem == "volatile" and ss is not None and ss.startswith(("const", "param")):
        return "'.volatile' is for memory that other threads may write"
    if not cached and (l1 or l2 or hint or prefetch):
        return "eviction priorities, prefetch sizes and cache policies are for global memory"
    if name == "st" and (prefetch or ss == "param::entry"):
        return "a store has no prefetch size, and parameters of the entry are read only"
    if l2 is not None and ((vec, width(type)) not in (("v8", 32), ("v4", 64)) or l2.endswith("unchanged")):
        return "an eviction priority of L2, not 'evict_unchanged', is for vectors of 256 bits"
    if bits > 128 and ((vec, width(type)) not in (("v8", 32), ("v4", 64)) or not cached):
        return "a vector has 128 bits at most, or 256 in global memory: .v8 of 32 bits or .v4 of 64"
    return None


def space_name(ss: str | None) -> str:
    """The state space that the kit knows (generic without one)."""
    if ss == "shared::cluster":
        return "cluster"
    if ss == "param::func":  # parameters of functions, where registers do not do (ptx.flatten)
        return "local"
    return "generic" if ss is None else ss.partition("::")[0]


def _length(vec: str | None) -> int:
    return int(vec[1:]) if vec else 0


@isa.op(f"ld{{.order}}{{.ss}}{_TAIL.replace('{.l1}', '{.nc}{.l1}')} {{d}}, [a]{{, policy if hint}}",
        needs=_WIDE, **_LD,
        types=lambda vec, type, **_: {"d": (type, _length(vec)), "policy": "b64"}, effect=Effect.LOAD,
        cost=Cost.LOAD_STORE, constraint=lambda **mods: combination("ld", **mods),
        ref="data-movement-and-conversion-instructions-ld")
def ld(k: Kit, ss: str | None, vec: str | None, type: str, **_: Any) -> Any:
    """d = memory at a; a vector is one access"""
    load, count = k.load(space_name(ss), width(type), max(_length(vec), 1)), _length(vec)
    return (lambda a, *policy: load(a)) if count else (lambda a, *policy: load(a)[0])


@isa.op("ldu{.ss}{.vec}.type {d}, [a]", ss=(".global",), vec=(".v2", ".v4"), type=TYPES,
        constraint=lambda vec, type, **_: "a vector has 128 bits at most" if _length(vec) * width(type) > 128 else None,
        types=lambda vec, type, **_: {"d": (type, _length(vec))}, effect=Effect.LOAD, cost=Cost.LOAD_STORE,
        since=((2, 0), 20), ref="data-movement-and-conversion-instructions-ldu")
def ldu(k: Kit, ss: str | None, vec: str | None, type: str) -> Any:
    """d = memory at a, which is the same for all threads of the warp and read only; a vector is one access"""
    load, count = k.load(space_name(ss), width(type), max(_length(vec), 1)), _length(vec)
    return (lambda a: load(a)) if count else (lambda a: load(a)[0])


@isa.op(f"st{{.order}}{{.ss}}{_TAIL} [a], {{b}}{{, policy if hint}}",
        needs=_WIDE, **{k: v for k, v in _LD.items() if k not in ("nc", "ss")},
        ss=tuple(s for s in SPACES if s != ".const"),
        types=lambda vec, type, **_: {"b": (type, _length(vec)), "policy": "b64"}, effect=Effect.STORE,
        cost=Cost.LOAD_STORE, constraint=lambda **mods: combination("st", **mods),
        ref="data-movement-and-conversion-instructions-st", writes=())
def st(k: Kit, ss: str | None, vec: str | None, type: str, **_: Any) -> Any:
    """memory at a = b; a vector is one access"""
    store, count = k.store(space_name(ss), width(type), max(_length(vec), 1)), _length(vec)
    return (lambda a, b, *policy: store(a, *b)) if count else (lambda a, b, *policy: store(a, b))


@isa.op("prefetch{.ss}.level [a]",
        constraint=lambda ss, level: "an eviction priority is for global memory" if ss == "local" and level[:3] == "L2:"
        else None,
        needs={".L2::evict_last,.L2::evict_normal": at((7, 4), 80)}, ss=(".global", ".local"),
        level=(".L1", ".L2", ".L2::evict_last", ".L2::evict_normal"), writes=(),
        cost=Cost.LOAD_STORE, ref="data-movement-and-conversion-instructions-prefetch-prefetchu")
def prefetch(k: Kit, ss: str | None, level: str) -> Any:
    """a hint: nothing happens, and hardware ignores a bad address"""
    return lambda a: None


@isa.op("prefetchu.L1 [a]", writes=(), cost=Cost.LOAD_STORE, since=((2, 0), 20),
        ref="data-movement-and-conversion-instructions-prefetch-prefetchu")
def prefetchu(k: Kit) -> Any:
    """a hint: nothing happens"""
    return lambda a: None


@isa.op("applypriority{.ss}.L2::evict_normal [a], #n", ss=(".global",), writes=(), cost=Cost.LOAD_STORE,
        since=((7, 4), 80), constraint=lambda n=128, **_: None if n == 128 else "the size is 128",
        ref="data-movement-and-conversion-instructions-applypriority")
def applypriority(k: Kit, ss: str | None, n: int) -> Any:
    """a hint: nothing happens"""
    return lambda a: None


@isa.op("prefetch{.ss}.tensormap [a]", ss=(".const", ".param"), writes=(), cost=Cost.LOAD_STORE, since=((8, 0), 90),
        ref="data-movement-and-conversion-instructions-prefetch-prefetchu")
def prefetch_tensor_map(k: Kit, ss: str | None) -> Any:
    """a hint, before copies that use the tensor map at a"""
    return lambda a: None


_POLICIES = {"evict_first": 0x12, "evict_last": 0x14, "evict_normal": 0x16, "evict_unchanged": 0x10}
_SIXTEEN = 0x417F_D70A
"""15.99, by which the assembler's code multiplies a fraction to cut it to four bits."""


@isa.op("createpolicy.fractional.first{.second}.b64 d{, fraction}",
        first=tuple(f".L2::{p}" for p in _PRIORITIES), second=(".L2::evict_first", ".L2::evict_unchanged"),
        types={"d": "b64", "fraction": "f32"}, cost=Cost.MOVE, since=((7, 4), 80),
        ref="data-movement-and-conversion-instructions-createpolicy",
        vectors=[vec(".fractional.L2::evict_first.b64", 0x3F80_0000, d=0x12F0 << 48, why="for all accesses"),
                 vec(".fractional.L2::evict_last.L2::evict_first.b64", 0x3EC6_724D, d=0x1560 << 48, why="for a part")])
def createpolicy(k: Kit, first: str, second: str | None) -> Any:
    """d = a cache eviction policy, for the operand of '.L2::cache_hint', as an H200 makes it: kinds and fraction"""
    kinds = (_POLICIES[first.partition("::")[2]] | (second is not None and second.endswith("first"))) << 56
    whole, scale = toward_zero_32(k, False), k.fmul(32)
    widen, and_, or_, shl = k.zext(32, 64), k.and_(32), k.or_(64), k.shl(64)

    def policy(*fraction: Any) -> Any:
        if not fraction:
            return k.const(64, kinds | 0xF << 52)
        part = and_(whole(scale(fraction[0], k.const(32, _SIXTEEN))), k.const(32, 15))
        return or_(k.const(64, kinds), shl(widen(part), k.const(64, 52)))

    return policy


_ATOM_OPS = (".and", ".or", ".xor", ".exch", ".add", ".inc", ".dec", ".min", ".max")
_ATOM: dict[str, Any] = {
    "sem": (".relaxed", ".acquire", ".release", ".acq_rel"), "scope": SCOPES,
    "ss": (".global", ".shared", ".shared::cta", ".shared::cluster"), "hint": (".L2::cache_hint",),
    "noftz": (".noftz",),
    "type": (".b16", ".b32", ".b64", ".u32", ".u64", ".s32", ".s64", ".f16", ".f16x2", ".bf16", ".bf16x2", ".f32",
             ".f64"),
}


def legal_hint(ss: str | None = None, hint: str | None = None, **_: object) -> str | None:
    return "a cache policy is for global memory" if hint and ss not in (None, "global") else None


def _legal_red(sem: str | None = None, **mods: Any) -> str | None:
    return f"no 'red' is a '.{sem}'" if sem in ("acquire", "acq_rel") else _legal_atom(**mods)


def _legal_atom(op: str, type: str, noftz: str | None = None, **mods: Any) -> str | None:
    floats = type in ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
    half = type in ("f16", "f16x2", "bf16", "bf16x2")
    if (noftz is not None) != half:
        return "'.noftz' goes with the 16-bit formats"
    allowed = {
        "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"), "exch": ("b32", "b64"),
        "inc": ("u32",), "dec": ("u32",), "min": ("u32", "u64", "s32", "s64"), "max": ("u32", "u64", "s32", "s64"),
        "add": ("u32", "u64", "s32"),
    }[op]
    if type in allowed or (op == "add" and floats):
        return legal_hint(**mods)
    if op in ("min", "max") and half:
        return f"'.{op}' of {type} is for vectors"
    return f"'.{op}' does not take {type}"


_ATOM_NEEDS = {
    ".f64": at((5, 0), 60), ".f16x2": at((6, 2), 60), ".f16": at((6, 3), 70), ".bf16,.bf16x2": at((7, 8), 90),
}  # fmt: skip


@isa.op("atom{.sem,.scope,.ss}.op{.noftz}{.hint}.type d, [a], b{, policy if hint}",
        needs=_ATOM_NEEDS, **_ATOM, op=_ATOM_OPS,
        discards=("d",), types={"policy": "b64"}, constraint=_legal_atom, effect=Effect.ATOMIC, varies=Varies.ALWAYS,
        cost=Cost.ATOMIC,
        ref="parallel-synchronization-and-communication-instructions-atom")
def atom(k: Kit, ss: str | None, op: str, type: str, **_: Any) -> Any:
    """d = memory at a; memory at a = op(d, b), lane after lane"""
    update = k.atomic(space_name(ss), op, type)
    return lambda a, b, *policy: update(a, b)


@isa.op("atom{.sem,.scope,.ss}.cas.type d, [a], b, c",
        needs={".b16": at((6, 3), 70)}, **{**_ATOM, "type": (".b16", ".b32", ".b64")},
        discards=("d",), effect=Effect.ATOMIC, varies=Varies.ALWAYS, cost=Cost.ATOMIC,
        ref="parallel-synchronization-and-communication-instructions-atom")
def atom_cas(k: Kit, ss: str | None, type: str, **_: Any) -> Any:
    """d = memory at a; memory at a = (d == b) ? c : d"""
    update = k.atomic(space_name(ss), "cas", type)
    return lambda a, b, c: update(a, b, c)


@isa.op("red{.sem,.scope,.ss}.op{.noftz}{.hint}.type [a], b{, policy if hint}",
        needs=_ATOM_NEEDS, **_ATOM,
        op=tuple(o for o in _ATOM_OPS if o != ".exch"),
        types={"policy": "b64"}, constraint=_legal_red, effect=Effect.ATOMIC, cost=Cost.ATOMIC, writes=(),
        ref="parallel-synchronization-and-communication-instructions-red")
def red(k: Kit, ss: str | None, op: str, type: str, **_: Any) -> Any:
    """memory at a = op(memory at a, b), lane after lane"""
    update = k.atomic(space_name(ss), op, type)

    def reduce(a: Any, b: Any, *policy: Any) -> None:
        update(a, b)

    return reduce


@isa.op("membar.level", level=(".cta", ".gl", ".sys"), effect=Effect.FENCE, cost=Cost.SYNC,
        ref="parallel-synchronization-and-communication-instructions-membar-fence")
def membar(k: Kit, level: str) -> Any:
    """orders memory; every access has already taken effect"""
    return lambda: None


@isa.op("fence{.sem}.scope",
        needs={"sem.acquire,sem.release": at((8, 6), 90)}, sem=(".sc", ".acq_rel", ".acquire", ".release"),
        scope=SCOPES, effect=Effect.FENCE,
        cost=Cost.SYNC, ref="parallel-synchronization-and-communication-instructions-membar-fence", since=((6, 0), 70))
def fence(k: Kit, sem: str | None, scope: str) -> Any:
    """orders memory; every access has already taken effect"""
    return lambda: None


_PROXIES = ("alias", "async", "async.global", "async.shared::cta", "async.shared::cluster")


@isa.op("fence.proxy.kind",
        needs={",".join("." + p for p in _PROXIES[1:]): at((8, 0), 90)}, kind=tuple("." + p for p in _PROXIES),
        effect=Effect.FENCE, cost=Cost.SYNC,
        since=((7, 5), 70), ref="parallel-synchronization-and-communication-instructions-membar-fence")
def fence_proxy(k: Kit, kind: str) -> Any:
    """orders memory between proxies; every access has already taken effect, or waits in a queue of its own"""
    return lambda: None


@isa.op("fence.proxy.tensormap::generic.acquire.scope [a], #n",
        constraint=lambda n=128, **_: None if n == 128 else "a tensor map has 128 bytes", scope=SCOPES,
        effect=Effect.FENCE,
        cost=Cost.SYNC, since=((8, 3), 90), writes=(),
        ref="parallel-synchronization-and-communication-instructions-membar-fence")
def fence_tensor_map(k: Kit, scope: str, n: int) -> Any:
    """orders a tensor map's bytes before copies that use it"""
    return lambda *_: None


@isa.op("fence.proxy.tensormap::generic.release.scope", scope=SCOPES, effect=Effect.FENCE, cost=Cost.SYNC,
        since=((8, 3), 90), ref="parallel-synchronization-and-communication-instructions-membar-fence")
def fence_tensor_map_release(k: Kit, scope: str) -> Any:
    """publishes what was written to tensor maps; every access has already taken effect"""
    return lambda: None


@isa.op("fence.mbarrier_init.release.cluster", effect=Effect.FENCE, cost=Cost.SYNC, since=((8, 0), 90),
        ref="parallel-synchronization-and-communication-instructions-membar-fence")
def fence_mbarrier_init(k: Kit) -> Any:
    """orders barrier initialisation in the cluster"""
    return lambda: None


@isa.op("griddepcontrol.action", action=(".launch_dependents", ".wait"), effect=Effect.FENCE, cost=Cost.SYNC,
        since=((7, 8), 90), ref="parallel-synchronization-and-communication-instructions-griddepcontrol")
def griddepcontrol(k: Kit, action: str) -> Any:
    """orders dependent grids: earlier launches have always ended"""
    return lambda: None
