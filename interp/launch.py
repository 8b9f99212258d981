"""Modules, entries and launches: PTX text to executed CTAs.

    module = Module.from_ptx(text)
    result = module["kernel"].launch(grid=(4, 1, 1), block=(128, 1, 1), args=[x, y, n])

`target` is the code (`sm_80` PTX), `device` the arithmetic and the limits (whose tensor cores, how much shared memory);
the same code gives other bits on another device, as it does in hardware. Everything is checked before anything runs:
the text against the instruction table, the launch against the device's limits, the arguments against the parameters.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from interp import record
from interp.arguments import check_count, parameter_block
from interp.cluster import check_cluster, cluster_shape, in_clusters
from interp.engine.compiled import Compiled, compile_kernel
from interp.engine.fpenv import ieee
from interp.engine.plan import make_plan
from interp.faults import Scene
from interp.grid import Dim3, asynchrony_of, cta_list, dim3
from interp.hooks import Hooks
from interp.memory import plan, table
from interp.metrics import Metrics
from interp.ops import ISA
from interp.printing import print_buffer, printed
from interp.record import LaunchRecord, Log, recording
from interp.result import Counters, Finding, Result, count_instructions
from interp.runtime import layout as L
from interp.runtime.async_copy import QUEUE_BYTES
from interp.runtime.bulk_list import BULK_BYTES
from interp.runtime.job import Job, run_job
from interp.runtime.measured import WORDS
from interp.runtime.native import address, prefetch
from interp.runtime.tensor_memory import TENSOR_MEMORY_BYTES
from interp.runtime.wgmma import WGMMA_BYTES
from interp.structure import memories_of
from interp.variables import Places, place_globals, place_kernel
from ptx import ir
from ptx.contraction import plan as contraction
from ptx.contraction.read import read_plan
from ptx.decode import decode
from ptx.device import Device
from ptx.device import device as find_device
from ptx.errors import InternalError, InvalidInput, LaunchFailure
from ptx.flatten import flatten, reached
from ptx.join import join
from ptx.record import place
from ptx.targets import runs_on
from ptx.verify import require

if TYPE_CHECKING:
    from interp.engine.traced.program import Program

__all__ = ["Entry", "Finding", "LaunchRecord", "Log", "Module", "Result", "recording"]

ENGINES = ("compiled", "traced")
DEFAULT_FUEL = 20_000_000
"""Back edges that warps may take without any CTA ending: 4 s of a Triton loop that polls memory, longer with a body."""
SLOT_BUDGET = 1 << 32
"""Bytes of address space for resident CTAs; fewer are resident when each is large."""
LOCAL_MOST = 512 << 10
"""Bytes of local memory a thread (CUDA C++ Programming Guide, 'Technical Specifications')."""

BASE_SYMBOLS = ("run_grid", "load_b32", "store_b32", "warp_shfl")
"""Runtime functions that nearly every kernel uses."""


def base_symbols(engine: str) -> tuple[str, ...]:
    """What nearly every launch on an engine needs compiled, the longest first."""
    if engine != "traced":
        return BASE_SYMBOLS
    from interp.engine.traced.machine import RUN_WARP

    return RUN_WARP, *BASE_SYMBOLS


class Module(Mapping[str, "Entry"]):
    """A PTX module for a device: a mapping of entry names."""

    def __init__(
        self, text: str, module: ir.Module, target: str, device: Device, fmad: str | None, fused: contraction.Plan
    ) -> None:
        self.ptx, self.ir, self.target, self.device, self.fmad = text, module, target, device, fmad
        self.fused = fused
        self.globals = place_globals(module)
        self._entries: dict[str, Entry] = {}

    @classmethod
    def from_ptx(
        cls, text: str | Sequence[str], target: str | None = None, device: str | None = None, fmad: str | None = None
    ) -> Module:
        """Load PTX text, or several texts that need each other (`ptx.join`).

        `target`: the code's architecture, None for the text's `.target`; a different one is an error. `device`: whose
        arithmetic and limits, default the target's. `fmad`: "off" says that bare mul and add stay separate, as
        assembled with `-fmad=false`; None does the same and the result says that contraction is not modelled. "plan"
        fuses what the assembler fuses for the device (`ptx.contraction`; needs the assembler); the module's `fmad` is
        then the plan itself, a line that begins with "plan:" and can be given instead where there is no assembler.

        Raises InvalidInput for text that is not PTX or is inconsistent."""
        prefetch(BASE_SYMBOLS)
        if not isinstance(text, str):
            text = join(text)
        module = decode(text)
        if target is not None and target != module.target:
            raise InvalidInput(
                f"the text is for {module.target}, not for {target}",
                help="compile it for that target, or leave target out",
            )
        if fmad not in (None, "off", "plan") and not str(fmad).startswith(contraction.PREFIX):
            raise InvalidInput(f"fmad={fmad!r}", help="it is 'off', 'plan', a line that begins with 'plan:', or None")
        chosen = find_device(device or module.target)
        if not runs_on(module.target, chosen.arch):
            raise InvalidInput(f"code for {module.target} does not run on a {chosen.name} device")
        if fmad == "plan":
            suffix = module.target[-1].strip("0123456789")
            fmad = contraction.to_text(read_plan(text, f"sm_{chosen.arch}{suffix}"))
        fused = contraction.from_text(fmad) if fmad not in (None, "off") else {}
        return cls(text, contraction.apply(module, fused), module.target, chosen, fmad, fused)

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            try:
                kernel = self.ir.kernel(name)
            except KeyError:
                kernel = None
            if kernel is None or not kernel.is_entry:
                known = ", ".join(self) or "none"
                raise InvalidInput(f"no entry '{name}' in the module", help=f"entries: {known}")
            self._entries[name] = Entry(self, kernel)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self)

    def __iter__(self) -> Iterator[str]:
        return (k.name for k in self.ir.kernels if k.is_entry)

    def __len__(self) -> int:
        return sum(k.is_entry for k in self.ir.kernels)


class Entry:
    """A kernel of a module, compiled on its first launch."""

    def __init__(self, module: Module, kernel: ir.Kernel) -> None:
        self.module, self.kernel = module, kernel
        self._compiled: dict[tuple[bool, bool, bool], Compiled] = {}
        self._traced: dict[tuple[bool, bool, bool], Program] = {}
        self._arena: tuple[int, np.ndarray[Any, Any]] | None = None

    @cached_property
    def code(self) -> ir.Kernel:
        """The kernel as it is executed: checked, and with the functions that it calls in it."""
        module = self.module
        require(module.ir, ISA, only=self.kernel.name)
        for function in (self.kernel, *reached(module.ir, self.kernel)):
            if function is not self.kernel:
                require(module.ir, ISA, only=function.name)
        return flatten(module.ir, self.kernel)

    @cached_property
    def _places(self) -> Places:
        return place_kernel(self.module.ir, self.code, self.module.globals)

    @cached_property
    def sites(self) -> tuple[ir.Inst, ...]:
        """Every instruction that is executed, in text order, those of functions behind the kernel's."""
        return tuple(inst for block in self.code.blocks for inst in block.insts)

    @cached_property
    def _waits_for_cluster(self) -> bool:
        return any(inst.op == "barrier" and ".cluster" in inst.mods for inst in self.sites)

    def compiled(self, counters: bool, clusters: bool = False, measured: bool = False) -> Compiled:
        """Native code of the kernel: with counters or not, for clusters of several CTAs or of one, measured or not."""
        key = counters, clusters, measured
        if key not in self._compiled:
            m, places = self.module, self._places
            ranked = places.shared_names if clusters else frozenset[str]()
            self._compiled[key] = compile_kernel(
                m.ptx, self.code, places.symbols, m.device.arch, counters, ranked, measured, m.fmad
            )
        return self._compiled[key]

    def traced(self, counters: bool, clusters: bool = False, measured: bool = False) -> Program:
        """The kernel as the traced engine runs it, likewise."""
        from interp.engine.traced.program import build_program  # only here: the compiled engine does without

        key = counters, clusters, measured
        if key not in self._traced:
            m, places = self.module, self._places
            ranked = places.shared_names if clusters else frozenset[str]()
            plan_ = make_plan(self.code, ISA)
            self._traced[key] = build_program(plan_, places.symbols, m.device.arch, counters, ranked, measured)
        return self._traced[key]

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        shared: int = 0,
        ctas: Iterable[Dim3] | None = None,
        engine: str = "compiled",
        *,
        counters: bool = True,
        fuel: int | None = None,
        names: Sequence[str] | None = None,
        watch: int | None = None,
        hooks: Hooks | None = None,
        asynchrony: str = "late",
        cluster: Sequence[int] | None = None,
        metrics: bool = False,
    ) -> Result:
        """Execute the kernel; arrays in `args` are updated in place.

        `grid`, `block`: up to three sizes. `shared`: bytes of dynamic shared memory. `ctas`: the CTAs to run, all by
        default; `%nctaid` stays that of the grid and the result says "partial". `counters=False` saves the
        instrumentation. `fuel`: back edges taken without a CTA ending, after which the launch counts as endless.
        `names`: of the arguments, for findings. `watch`: a device address whose last writer is reported
        (`Result.written_by`). `engine`: "compiled", or "traced", which interprets one instruction after the other and
        tells `hooks` what happens; both give the same bytes.

        `asynchrony`: when asynchronous copies and products take effect: "late", at the wait that guarantees it;
        "eager", at once; "seeded" or "seeded:N", at either by choices that depend on N alone. A correct kernel gives
        the same bytes under all.

        `cluster`: CTAs of a cluster, up to three sizes, for a kernel that does not say them itself; `ctas` must then
        name whole clusters.

        `metrics=True`: measure accesses and branches, too (`Result.metrics`), with slower code made for that.

        A defect of the kernel ends the launch and is returned as a finding. Raises LaunchFailure when the device could
        not launch it, InvalidInput for arguments that do not fit, Unsupported for what is not modelled."""
        if engine not in ENGINES:
            raise InvalidInput(f"no engine {engine!r}", help=f"engines: {', '.join(ENGINES)}")
        asynchrony_of(asynchrony)
        if hooks is not None and engine != "traced":
            raise InvalidInput("hooks need engine='traced'")
        if fuel is not None and not (isinstance(fuel, int) and fuel > 0):
            raise InvalidInput(f"fuel={fuel!r} is not a positive number of back edges")
        grid3, block3 = dim3(grid, "grid"), dim3(block, "block")
        places = self._places
        list_ = cta_list(grid3, ctas)
        check_count(self.kernel, args)
        self._check_limits(grid3, block3, shared, places)
        asked = None if cluster is None else dim3(cluster, "cluster")
        shape = cluster_shape(self.kernel.name, self.kernel.directives, asked)
        if shape is not None:
            device = self.module.device
            check_cluster(self.kernel.name, self.kernel.directives, shape, grid3, device.name, device.arch)
            list_ = in_clusters(list_, shape)
        shown = list(names) if names is not None else [p.name for p in self.kernel.params]
        noted = record.begin(
            self.module, self.kernel.name, shown, args, grid=grid3, block=block3, shared=shared,
            ctas=None if ctas is None else tuple(tuple(int(x) for x in c) for c in list_),
            engine=engine, counters=counters, fuel=fuel, asynchrony=asynchrony, cluster=asked,
        )  # fmt: skip
        result = self._run(
            grid3, block3, args, shared, list_, counters, DEFAULT_FUEL if fuel is None else fuel, shown, watch, engine,
            hooks, asynchrony, shape, metrics,
        )  # fmt: skip
        if ctas is not None and len(list_) < grid3[0] * grid3[1] * grid3[2]:
            result.exactness = (*result.exactness, "partial")
        if noted is not None:
            noted.result = result
        return result

    # ---------------------------------------------------------------- checks
    def _check_limits(self, grid: Dim3, block: Dim3, shared: int, places: Places) -> None:
        d, name = self.module.device, self.kernel.name
        for what, size, most in (("grid", grid, d.grid), ("block", block, d.block)):
            if any(n < 1 for n in size) or any(n > m for n, m in zip(size, most, strict=True)):
                raise LaunchFailure(
                    f"{what} {size} of '{name}' is outside 1..{most}", help="every dimension must be at least 1"
                )
        if places.local > LOCAL_MOST:
            raise LaunchFailure(f"{places.local} bytes of local memory a thread: {LOCAL_MOST} are the most")
        threads = block[0] * block[1] * block[2]
        if threads > d.threads_per_cta:
            raise LaunchFailure(f"{threads} threads a CTA: {d.name} allows {d.threads_per_cta}")
        directives = self.kernel.directives
        most_threads = directives.get(".maxntid")
        if most_threads and threads > int(np.prod(most_threads)):
            raise LaunchFailure(f"{threads} threads a CTA: '{name}' was compiled with .maxntid {most_threads}")
        required = directives.get(".reqntid")
        if required and block != (*required, 1, 1)[:3]:
            raise LaunchFailure(f"block {block}: '{name}' was compiled with .reqntid {required}")
        if shared < 0 or places.static_shared + shared > d.shared_per_cta:
            raise LaunchFailure(
                f"{places.static_shared + shared} bytes of shared memory a CTA: {d.name} allows {d.shared_per_cta}"
            )

    # ---------------------------------------------------------------- execution
    def _run(
        self, grid: Dim3, block: Dim3, args: Sequence[Any], shared: int, ctas: np.ndarray[Any, np.dtype[np.int64]],
        counters: bool, fuel: int, names: Sequence[str], watch: int | None, engine: str, hooks: Hooks | None,
        asynchrony: str, cluster: Dim3 | None, metrics: bool,
    ) -> Result:  # fmt: skip
        places, module = self._places, self.module
        ranks = prod(cluster) if cluster is not None else 1
        counters = counters or metrics
        program = self.traced(counters, ranks > 1, metrics) if engine == "traced" else None
        native = program or self.compiled(counters, ranks > 1, metrics)
        observer = None
        if program is not None and hooks is not None:
            from interp.engine.traced.observe import Observer

            observer = Observer(program, hooks)
        recipe = native.recipe
        memory = [(i, array) for i, a in enumerate(args) for array in memories_of(a)]
        positions, arrays = [i for i, _ in memory], [array for _, array in memory]
        addresses, allocations = plan(arrays)
        of_argument: dict[int, list[int]] = {}
        for i, at in zip(positions, addresses, strict=True):
            of_argument.setdefault(i, []).append(at)
        params = parameter_block(self.kernel, args, of_argument)
        rows = table([*module.globals.allocations, *allocations])
        prints = print_buffer() if "system_vprintf" in recipe.symbols else None
        before = WORDS * len(self.sites) * metrics  # records of `interp.runtime.measured`
        raw = np.zeros(before + 2 * len(recipe.regions) + len(recipe.guarded) + 1, np.int64)
        job = Job(
            run_warp=native.loaded.run_warp if isinstance(native, Compiled) else address("run_warp_traced"),
            recipe=recipe,
            grid=grid,
            block=block,
            ctas=ctas,
            shared=places.static_shared + shared,
            dynamic_shared=shared,
            local=places.local,
            params=np.frombuffer(params, np.uint8),
            allocations=rows,
            rows=len(module.globals.allocations) + len(allocations),
            sites=np.zeros(max(len(self.sites), 1), np.int64),
            counters=raw[before:],
            fuel=fuel,
            watch=watch,
            multiprocessors=module.device.multiprocessors,
            queue_bytes=QUEUE_BYTES + WGMMA_BYTES if recipe.uses_async else 0,
            bulk_bytes=BULK_BYTES if recipe.uses_bulk else 0,
            perform=address("bulk_perform") if recipe.uses_bulk else 0,
            combine=address("bulk_combine") if recipe.uses_reduction else 0,
            multiply=address(f"wgmma_{'general_' * recipe.uses_general_wgmma}multiply") if recipe.uses_wgmma else 0,
            tensor_memory_bytes=TENSOR_MEMORY_BYTES if recipe.uses_tensor_memory else 0,
            tensor_step=address("tcgen05_step") if recipe.uses_tensor_memory else 0,
            asynchrony=asynchrony_of(asynchrony)[0],
            seed=asynchrony_of(asynchrony)[1],
            cluster=cluster or (1, 1, 1),
            explicit_cluster=cluster is not None,
            cluster_barrier=self._waits_for_cluster,
            program=program.address if program else 0,
            hook=observer.address if observer else 0,
            printing=prints,
        )
        threads = block[0] * block[1] * block[2]
        resident = module.device.resident_ctas(threads, places.static_shared + shared)
        slots = max(1, min(resident, len(ctas), SLOT_BUDGET // job.slot_bytes) // ranks) * ranks
        arena = self._memory(slots * job.slot_bytes)
        with ieee():
            outcome = run_job(job, arena, slots)
        if observer is not None and observer.error is not None:
            raise observer.error
        findings: tuple[Finding, ...] = ()
        if outcome.state != L.CTA_DONE:
            named = [(names[i], array, at) for i, array, at in zip(positions, arrays, addresses, strict=True)]
            named += module.globals.named
            slots_of = arena[: slots * job.slot_bytes].view(np.int64).reshape(slots, -1)
            first = outcome.slot // ranks * ranks
            scenes = [Scene(words, self.sites, recipe, allocations, named) for words in slots_of[first:][:ranks]]
            findings = (self._finding(outcome.state, scenes, outcome.slot - first, fuel),)
        counts = None
        if counters:
            counts = Counters(count_instructions(recipe.regions, recipe.guarded, self.sites, raw[before:]), ISA)
        measured = Metrics(self.code, counts, raw[:before]) if metrics and counts is not None else None
        written = None
        if outcome.written_site >= 0:
            x, y, z = (int(v) for v in ctas[outcome.written_cta])
            written = (self.sites[outcome.written_site], (x, y, z))
        return Result(
            counts, findings, self._exactness, module.ptx, resident=outcome.resident,
            cancelled=outcome.cancelled, written_by=written,
            printed="" if prints is None else printed(prints), metrics=measured,
        )  # fmt: skip

    def _finding(self, state: int, cluster: Sequence[Scene], rank: int, fuel: int) -> Finding:
        """What ended a launch early. `cluster`: its CTAs; `rank`: of the one that did."""
        scene = cluster[rank]
        if state == L.CTA_FAULT and scene.get("FAULT") == L.FAULT_SPLIT:
            inst = self.sites[scene.get("FAULT_SITE")]
            raise InternalError("lanes parted at a branch that was taken for uniform", where=place(inst))
        if state == L.CTA_FAULT:
            return scene.fault()
        return scene.deadlock(cluster) if state == L.CTA_DEADLOCK else scene.no_progress(fuel)

    def _memory(self, size: int) -> np.ndarray[Any, Any]:
        """Address space for the slots, kept between launches; untouched pages cost nothing."""
        if self._arena is None or self._arena[0] < size:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
            self._arena = (size, np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8))
        return self._arena[1]

    @cached_property
    def _exactness(self) -> tuple[str, ...]:
        notes = []
        if self.module.fmad is None and any(True for _ in contraction.pairs(self.code)):
            notes.append("contraction not modelled")
        if self.kernel.name in self.module.fused and self.module.fused[self.kernel.name].unknown:
            notes.append("contraction modelled in part")
        if any(inst.op == "tcgen05" and ".mma" in inst.mods for inst in self.sites):
            notes.append("tcgen05 modelled from publication")
        if any(inst.op == "clusterlaunchcontrol" and ".try_cancel" in inst.mods for inst in self.sites):
            notes.append("clusters cancelled in launch order")
        return tuple(notes)
