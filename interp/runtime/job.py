"""A launch as the native scheduler takes it: the words of a job and of a context template, laid out and run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from interp.runtime import native
from interp.runtime.layout import CTX, CTX_WORDS
from interp.runtime.scheduler import JOB

FUEL_SLICE = 100_000
"""Back edges a warp may take before the next one runs."""

Words = np.ndarray[Any, np.dtype[np.int64]]


class FrameRecipe(Protocol):
    """What a job needs to know of a compiled kernel."""

    @property
    def regions(self) -> Sequence[Sequence[int]]: ...
    @property
    def frame_bytes(self) -> int: ...
    @property
    def zeroed(self) -> Sequence[tuple[int, int]]: ...


def _up(value: int, to: int = 128) -> int:
    return (value + to - 1) // to * to


@dataclass(frozen=True)
class Job:
    """Sizes in bytes; `ctas`: int64 (n, 3); `allocations`: the table; `sites`, `counters`: scratch and result words.
    `explicit_cluster`: the launch or the kernel asks for a cluster shape; `cluster_barrier`: the kernel waits at its
    cluster's barrier. `program`, `hook`: of the traced engine. `printing`: the print buffer, where one is used."""

    run_warp: int
    recipe: FrameRecipe
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    ctas: Words
    shared: int
    dynamic_shared: int
    local: int
    params: np.ndarray[Any, np.dtype[np.uint8]]
    allocations: Words
    rows: int
    sites: Words
    counters: Words
    fuel: int
    watch: int | None
    multiprocessors: int
    queue_bytes: int
    bulk_bytes: int
    asynchrony: int
    seed: int
    perform: int
    combine: int
    multiply: int
    tensor_memory_bytes: int = 0
    tensor_step: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    explicit_cluster: bool = False
    cluster_barrier: bool = False
    program: int = 0
    hook: int = 0
    printing: Words | None = None

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        return (self.threads + 31) // 32

    @property
    def ranks(self) -> int:
        """CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @cached_property
    def parts(self) -> tuple[int, int, int, int, int, int, int]:
        """Byte offsets in a slot of the warp frames, shared memory, copy queues, local memory, bulk copies, tensor
        memory; its end."""
        frames = _up(8 * CTX_WORDS)
        shared = frames + self.warps * _up(self.recipe.frame_bytes)
        queues = shared + _up(self.shared, 1024)
        local = queues + self.warps * _up(self.queue_bytes)
        bulk = local + _up(self.warps * 32 * self.local)
        tensor_memory = bulk + _up(self.bulk_bytes)
        return frames, shared, queues, local, bulk, tensor_memory, tensor_memory + _up(self.tensor_memory_bytes)

    @cached_property
    def slot_bytes(self) -> int:
        return _up(self.parts[-1], 4096)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: CTA_* state, the slot of the CTA that ended it, CTAs done, most resident; last watched write;
    CTAs that never began because others took them over."""

    state: int
    slot: int
    done: int
    resident: int
    written_site: int
    written_cta: int
    cancelled: int


@lru_cache(maxsize=2)
def _scheduler(name: str) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(native.address(name))


def run_job(job: Job, arena: np.ndarray[Any, Any], slots: int) -> Outcome:
    """Run a job in `slots` slots of `arena`; its memory must stay in place until this returns."""
    frames, shared, queues, local, bulk, tensor_memory, _ = job.parts
    base = _address(arena)
    size = job.slot_bytes
    # a slot is busy when its state word is CTA_RUNNING: clear what another launch left there (its low byte tells)
    states = arena[: slots * size].reshape(slots, size)[:, 8 * CTX["STATE"] : 8 * CTX["STATE"] + 8]
    states[states[:, 0] != 0] = 0
    ranks = job.ranks
    template = _template(job, ranks)
    zeroed = np.array([*job.recipe.zeroed, (0, 0)], np.int64)
    words = np.zeros(len(JOB), np.int64)
    for name, value in {
        "RUN_WARP": job.run_warp,
        "SLOTS": base,
        "SLOT_BYTES": size,
        "NSLOTS": slots,
        "CTAS": _address(job.ctas),
        "NCTAS": len(job.ctas),
        "FUEL": job.fuel,
        "FUEL_FULL": job.fuel,
        "FUEL_SLICE": min(FUEL_SLICE, job.fuel),
        "TEMPLATE": _address(template),
        "CTX_BYTES": 8 * CTX_WORDS,
        "WARPS_AT": frames,
        "SHARED_AT": shared,
        "LOCAL_AT": local,
        "ASYNC_AT": queues,
        "BULK_AT": bulk if job.bulk_bytes else 0,
        "TENSOR_MEMORY_AT": tensor_memory if job.tensor_memory_bytes else 0,
        "CLUSTER": ranks,
        "ZEROED": _address(zeroed),
        "NZEROED": len(job.recipe.zeroed),
        "RESIDENT": ranks,
        "WRITTEN_SITE": -1,
    }.items():
        words[JOB[name]] = value
    state = _scheduler("run_clusters" if ranks > 1 or job.cluster_barrier else "run_grid")(_address(words))
    return Outcome(
        int(state), int(words[JOB["SLOT"]]), int(words[JOB["DONE"]]), int(words[JOB["RESIDENT"]]),
        int(words[JOB["WRITTEN_SITE"]]), int(words[JOB["WRITTEN_CTA"]]), int(words[JOB["CANCELLED"]]),
    )  # fmt: skip


def _template(job: Job, ranks: int) -> Words:
    """The context that every CTA starts from."""
    ctx = np.zeros(CTX_WORDS, np.int64)
    clusters = job.grid if ranks == 1 else tuple(n // c for n, c in zip(job.grid, job.cluster, strict=True))
    of_clusters = (*job.cluster, *clusters, ranks, job.explicit_cluster, job.slot_bytes)
    ctx[CTX["CLUSTER_NCTAID"] : CTX["CLUSTER_NCTAID"] + len(of_clusters)] = of_clusters
    for name, values in {"NTID": job.block, "NCTAID": job.grid}.items():
        ctx[CTX[name] : CTX[name] + 3] = values
    for name, value in {
        "NWARPS": job.warps,
        "NTHREADS": job.threads,
        "LIVE": job.threads,
        "SHARED_SIZE": job.shared,
        "PARAMS": _address(job.params),
        "PARAMS_SIZE": len(job.params),
        "ALLOCS": _address(job.allocations),
        "NALLOCS": job.rows,
        "SITES": _address(job.sites),
        "COUNTERS": _address(job.counters),
        "WARP_STRIDE": _up(job.recipe.frame_bytes),
        "NREGIONS": len(job.recipe.regions),
        "LOCAL_SIZE": job.local,
        "ASYNC_STRIDE": _up(job.queue_bytes),
        "WATCH_LO": job.watch or 0,
        "WATCH_HI": job.watch + 1 if job.watch else 0,
        "WATCH_SITE": -1,
        "NSMID": job.multiprocessors,
        "DYNAMIC_SMEM_SIZE": job.dynamic_shared,
        "TOTAL_SMEM_SIZE": job.shared,
        "ASYNCHRONY": job.asynchrony,
        "RANDOM": job.seed,
        "PERFORM": job.perform,
        "COMBINE": job.combine,
        "MULTIPLY": job.multiply,
        "TENSOR_STEP": job.tensor_step,
        "PROGRAM": job.program,
        "HOOK": job.hook,
        "PRINT": 0 if job.printing is None else _address(job.printing),
    }.items():
        ctx[CTX[name]] = value
    return ctx


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])
