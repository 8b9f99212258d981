"""The compiled engine: a kernel's plan, emitted, compiled, linked; cached on disk by content.

The cache key is the PTX without what does not change code (comments, `.loc`, `.file`, debug sections and their labels),
the contraction, the entry, the options, the engine's sources and the CPU with its full feature string. A hit skips
planning and emission. What is left out of the text is left out only where it fills whole lines or blocks by itself: a
key too many costs a compilation, one too few would be another kernel's code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from interp.engine import cpu as cpus
from interp.engine.emit import Options, emit_kernel
from interp.engine.jit import Loaded, compile_object, link
from interp.engine.plan import make_plan
from interp.ops import ISA
from interp.runtime.native import engine_digest, prefetch
from ptx import cache, ir

_NOISE = re.compile(
    r"""
    /\*.*?\*/                                                         # comments, before what stands within them
    | ^[ \t]*(?:
        \.loc\s+\d+\s+\d+\s+\d+ (?:,[ ]function_name[^;{}/\n]*)?   # directives and labels alone on their lines
        | \.file\s+\d+\s+"[^"\n]*" [\s\d,]*?
        | \$L__(?:tmp|func_begin|func_end)\w*:
      )[ \t]*(?://[^\n]*)?$
    | //[^\n]*
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_SECTION = re.compile(r"\.section\s+\S+\s*\{[^{}]*\}")


class Recipe(msgspec.Struct, frozen=True):
    """What a launch must know of a compiled kernel; stored beside its object."""

    regions: tuple[tuple[int, ...], ...]  # sites of each region, its control transfer included
    guarded: tuple[int, ...]
    frame_bytes: int
    registers_offset: int
    zeroed: tuple[tuple[int, int], ...]  # (offset, bytes) of slots that are read before they are written
    symbols: tuple[str, ...]
    uses_async: bool
    uses_bulk: bool
    uses_reduction: bool
    uses_wgmma: bool
    uses_general_wgmma: bool
    uses_tensor_memory: bool
    waits: tuple[tuple[int, int], ...]  # (region in which parked lanes resume, site of what they wait at)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel ready to run."""

    recipe: Recipe
    loaded: Loaded


def compile_kernel(
    text: str,
    kernel: ir.Kernel,
    symbols: Mapping[str, int],
    device: int,
    counters: bool,
    ranked: frozenset[str] = frozenset(),
    measured: bool = False,
    fmad: str | None = None,
) -> Compiled:
    """Compile a verified kernel of the PTX `text` for the current CPU; `symbols`: addresses of its variables; `ranked`,
    `measured`: see `Options`; `fmad`: how `kernel` was made of the text."""
    cpu = cpus.current()
    options = Options(cpu.has_fma, device, counters, ranked, measured)
    placed = sorted(symbols.items())
    key = cache.digest(
        essence(text), fmad, kernel.name, repr((placed, sorted(ranked))), device, int(counters) + int(measured),
        engine_digest(), cpu.name, cpu.features,
    )  # fmt: skip
    stored = cache.get("kernel", key)
    if stored is not None:
        recipe, image = msgspec.msgpack.decode(stored, type=tuple[Recipe, bytes])
    else:
        recipe, image = _build(kernel, symbols, options, cpu)
        cache.put("kernel", key, msgspec.msgpack.encode((recipe, image)))
    return Compiled(recipe, link(image, recipe.symbols, cpu))


def asynchronous(symbols: Iterable[str]) -> dict[str, bool]:
    """Which parts of the machine the kernel needs besides warps and memory, by the runtime functions that it calls."""
    names = [s for s in symbols if s.startswith("async_")]
    bulk = any(s.startswith(("async_bulk", "async_tensor", "async_copy_arrive", "async_tcgen05")) for s in names)
    return {
        "uses_async": bool(names), "uses_bulk": bulk, "uses_reduction": any(s.endswith("_reduce") for s in names),
        "uses_wgmma": any(s.startswith("async_wgmma") for s in names),
        "uses_general_wgmma": "async_wgmma_general" in names,
        "uses_tensor_memory": any(s.startswith("async_tcgen05") for s in names),
    }  # fmt: skip


def essence(text: str) -> str:
    """The PTX without comments, source positions and debug data."""
    body = _SECTION.sub("", _NOISE.sub(" ", text))
    return "\n".join(line for line in body.splitlines() if line.strip())


def _build(kernel: ir.Kernel, symbols: Mapping[str, int], options: Options, cpu: cpus.Cpu) -> tuple[Recipe, bytes]:
    plan = make_plan(kernel, ISA)
    emitted = emit_kernel(plan, symbols, options)
    prefetch(emitted.symbols)  # while LLVM compiles the kernel
    regions = tuple(tuple(s.site for s in (*r.steps, *((r.end,) if r.end else ()))) for r in plan.regions)
    entry_live = plan.entry_live
    recipe = Recipe(
        regions=regions,
        guarded=plan.guarded,
        frame_bytes=plan.frame_bytes,
        registers_offset=plan.registers_offset,
        zeroed=tuple((plan.slots[r], plan.slot_bytes(r)) for r in sorted(entry_live)),
        symbols=emitted.symbols,
        **asynchronous(emitted.symbols),
        waits=plan.awaited,
    )
    return recipe, compile_object(emitted.text, cpu)

