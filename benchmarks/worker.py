"""A measurement in a process of its own: pinned to one core, single-threaded libraries, JSON on its last line."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_ONE_THREAD = dict.fromkeys(_THREAD_VARIABLES, "1")


def start(module: str, arguments: Sequence[str], environment: Mapping[str, str | None], timeout: float = 300) -> Any:
    """Run `python -m module arguments` and return the JSON of its last line.

    `environment` is added to this process's; None removes a variable. Raises RuntimeError with the worker's stderr when
    it fails: a benchmark never reports a number from a run that went wrong.
    """
    merged = {**os.environ, **_ONE_THREAD}
    for name, value in environment.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=merged, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def pin_to_one_core() -> None:
    """Keep this process on the last core it may use, where that can be asked for."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def timed(function: Callable[[], object], seconds: float = 1.0, at_least: int = 3) -> dict[str, float]:
    """Best and median processor seconds of repeated calls, after one that is not counted.

    Processor time, not wall time: everything here runs on one thread, and what else the machine does must not count.
    """
    function()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < at_least or time.perf_counter() < end:
        before = time.process_time()
        function()
        times.append(time.process_time() - before)
    return {"best": min(times), "median": statistics.median(times)}


def best_of(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """One record from several rounds of `timed`: the best of the bests, the median of the medians."""
    return {
        "best": min(r["best"] for r in rounds),
        "median": statistics.median(r["median"] for r in rounds),
    }
