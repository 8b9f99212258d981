"""How long `gpuemu diff` takes for each control/bug pair of examples/ on all targets. `python -m benchmarks.diff_pairs`

Each pair is one run of the command in a process of its own, with the words of a launch at the op's largest shape; once
to fill the cache and once to measure: wall time, and processor time of all its processes, since another load on the
machine shows in the first only. The bound that the project set itself is 20 s a pair.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.delta_study import PAIRS, op_of
from benchmarks.worker import ROOT
from gpuemu.gate.cases import Case, shapes_of
from gpuemu.gate.declare import Op
from gpuemu.gate.dtypes import name_of
from gpuemu.gate.inputs import make_arguments
from ptx.accounting.assemble import TARGETS

BOUND = 20.0


class Words:
    """What a launcher calls instead of `gpuemu.run`: keeps the kernel, its grid and its words."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, list[str]]] = []

    def __call__(self, kernel: Any, grid: Any, *args: Any, **named: Any) -> None:
        named = {n: v for n, v in named.items() if n not in ("num_warps", "num_stages", "enable_fp_fusion")}
        bound = dict(zip(kernel.arg_names, args, strict=False)) | named
        self.calls.append((kernel.fn.__name__, grid, [f"{name}={_word(value)}" for name, value in bound.items()]))


def _word(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"zeros:{'x'.join(map(str, value.shape))}:{name_of(value.dtype)}"
    return repr(value)


def words_of(op: Op) -> tuple[str, Any, list[str]]:
    """(kernel, grid, words) of an op at its largest shape and its first dtype."""
    case = Case(
        index=0, op=op.name, file=op.file, dims=shapes_of(op)[-1], dtype=op.dtypes[0], distribution="regular",
        target="sm_90", device=None, option=dict(op.options[0]), seed=0,
    )  # fmt: skip
    run = Words()
    op.call("launcher", {**case.dims, **case.option, **{n: a.view for n, a in make_arguments(op, case).items()}}, run)
    return run.calls[0]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    worst = 0.0
    print(f"gpuemu diff on {len(TARGETS)} targets\n\n| pair | dtype | first s | warm s | warm, processor s |")
    print("|---|---|--:|--:|--:|")
    for control, twin in PAIRS:
        old, new = op_of(control), op_of(twin)
        kernel, _, words = words_of(old)
        other, _, more = words_of(new)
        sides = [f"{old.file}::{kernel}", f"{new.file}::{other}"]
        command = [
            sys.executable, "-m", "gpuemu", "diff", *sides, "--", *(f"old.{w}" for w in words),
            *(f"new.{w}" for w in more),
        ]  # fmt: skip
        seconds = []
        for _ in range(2):  # the first fills the cache
            start, before = time.perf_counter(), _children()
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            seconds.append(time.perf_counter() - start)
            processor = _children() - before
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
        worst = max(worst, seconds[1])
        print(f"| {twin} | {old.dtypes[0]} | {seconds[0]:.1f} | {seconds[1]:.1f} | {processor:.1f} |", flush=True)
    print(f"\nslowest pair, warm: {worst:.1f} s; bound {BOUND:.0f} s")
    return 0 if worst < BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
