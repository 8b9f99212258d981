"""A whole sweep: files -> ops -> cases -> workers -> one result, the same whatever the number of workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from gpuemu.gate.cases import enumerate_cases
from gpuemu.gate.discover import find_files, load_ops
from gpuemu.gate.dtypes import dtype_name
from gpuemu.gate.execute import CaseRunner, Settings, make_runner
from gpuemu.gate.pool import run_cases
from gpuemu.gate.results import CaseResult, SweepResult
from gpuemu.gate.values import DISTRIBUTIONS
from gpuemu.replay.write import SCRATCH, remove_scratch
from ptx.errors import InvalidInput


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to sweep and how; the command line and the configuration fill it in.

    `parallel`: worker processes, 0 = in this process. `timeout`: seconds for one case. `factors`: of calibrated error
    models, by family (`gate/tolerances.py`). `fmad`: contraction, as in `gpuemu.run`.
    """

    paths: tuple[str, ...] = (".",)
    seed: int = 0
    targets: tuple[str, ...] = ("sm_80",)
    device: str | None = None
    fmad: str | None = None
    only: tuple[str, ...] = ()
    dtypes: tuple[str, ...] | None = None
    distributions: tuple[str, ...] = DISTRIBUTIONS
    quick: bool = False
    parallel: int = 1
    timeout: float = 300.0
    replays: str | None = ".gpuemu/replays"
    root: str | None = None
    alive: str | None = None
    """Folder for the planted change that proves the gate alive (`gpuemu/mutate/alive.py`); None = not done."""
    factors: dict[str, float] = {}


def find_root(start: Path) -> Path:
    """The repository that holds `start` (the nearest parent with .git), else `start` itself."""
    start = start.resolve()
    return next((p for p in (start, *start.parents) if (p / ".git").exists()), start)


def sweep(plan: Plan, progress: Callable[[int, int, CaseResult], None] | None = None) -> SweepResult:
    """Run a sweep. `progress(done, total, result)` is called as cases finish.

    An interruption (KeyboardInterrupt) ends it early; the result then holds what was finished, and `planned`.
    Raises InvalidInput for wrong paths, declarations or names; everything that happens to a case is in its result.
    """
    start = time.perf_counter()
    if unknown := set(plan.distributions) - set(DISTRIBUTIONS):
        raise InvalidInput(f"unknown distribution '{sorted(unknown)[0]}'", help=f"one of {', '.join(DISTRIBUTIONS)}")
    dtypes = tuple(dtype_name(d) for d in plan.dtypes) if plan.dtypes else None
    root = Path(plan.root) if plan.root else find_root(Path.cwd())
    if "" in plan.paths:
        raise InvalidInput("a path is empty", help="a shell variable without a value? '.' is the current folder")
    ops, broken = load_ops(find_files([Path(p) for p in plan.paths]), plan.only)
    cases = enumerate_cases(
        ops, seed=plan.seed, targets=plan.targets, device=plan.device, quick=plan.quick,
        distributions=plan.distributions, dtypes=dtypes, fmad=plan.fmad,
    )  # fmt: skip
    replays = str(Path(plan.replays).resolve()) if plan.replays else None
    settings = Settings(root=str(root), replays=replays, scratch=f"{SCRATCH}{os.getpid()}-", factors=plan.factors)
    results: list[CaseResult] = []
    stream: Iterable[CaseResult]
    if plan.parallel == 0:
        loaded = {(op.file, op.name): op for op in ops}
        stream = map(CaseRunner(settings, loaded), cases)
    else:
        stream = run_cases(
            cases, make_work=make_runner, arguments=(settings,), parallel=plan.parallel, timeout=plan.timeout
        )
    interrupted = False
    try:
        for result in stream:
            results.append(result)
            if progress is not None:
                progress(len(results), len(cases), result)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if replays is not None:  # what a worker that was ended had not finished
            remove_scratch(Path(replays), settings.scratch)
    results.sort(key=lambda r: r.case.index)
    alive = None
    if plan.alive is not None and results and not interrupted:
        from gpuemu.mutate.alive import prove_alive

        alive = prove_alive(ops, results, Path(plan.alive).resolve(), root)
    return SweepResult(
        seed=plan.seed, root=str(root), cases=tuple(results), broken=tuple(broken),
        seconds=time.perf_counter() - start, planned=len(cases) if interrupted else None, alive=alive, fmad=plan.fmad,
        ops=tuple(op.name for op in ops),
    )  # fmt: skip
