"""Whole kernels on both machines: the launches of op files, recorded on the emulator, compared byte for byte.

From every op of the files a few cases are run, spread over its sweep (shapes, dtypes, distributions), with the
assembler's own contraction (`fmad="plan"`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuemu.conform.bundle import write_launch
from gpuemu.gate.cases import Case, enumerate_cases
from gpuemu.gate.declare import Op
from gpuemu.gate.discover import find_files, load_file
from gpuemu.gate.engine import Run
from gpuemu.gate.execute import launch
from gpuemu.gate.inputs import make_arguments
from interp.launch import recording
from interp.record import LaunchRecord

CASES = 6
"""Cases of an op."""


@dataclass(frozen=True)
class Kernel:
    """One launch on a GPU: bytes that the kernel changed, bytes that differ from the emulator's, or why it did not
    run."""

    name: str
    changed: int
    different: int
    error: str | None = None


def write_launches(folder: Path, paths: Sequence[Path], target: str) -> int:
    """Record launches of the ops under `paths`, compiled for `target`, into a bundle; how many."""
    count = 0
    for name, record in _records(paths, target):
        special = record.target[-1] if record.target[-1] in "af" else ""
        write_launch(folder, name, record, record.device + special)
        count += 1
    return count


def _records(paths: Sequence[Path], target: str) -> Iterator[tuple[str, LaunchRecord]]:
    for file in find_files(paths):
        for op in load_file(file):
            cases = enumerate_cases([op], seed=0, targets=(target,), device=target, fmad="plan")
            for number, case in enumerate(_spread(cases)):
                with recording() as log:
                    launch_case(op, case)
                for i, record in enumerate(log.launches):
                    yield f"{op.name}.{number}" + (f".{i}" if i else ""), record


def launch_case(op: Op, case: Case) -> None:
    """Run one case of an op."""
    launch(op, case, make_arguments(op, case), Run(case))


def _spread(cases: Sequence[Case]) -> Sequence[Case]:
    """A few cases at even distances; the distances share no factor with the number of distributions and dtypes."""
    if len(cases) <= CASES:
        return cases
    step = len(cases) // CASES
    while any(step % n == 0 for n in (2, 3)):
        step -= 1
    return [cases[i * max(step, 1)] for i in range(CASES)]


def outcomes(folder: Path) -> list[Kernel]:
    """What `on_gpu.py` found for the launches of a bundle."""
    told = json.loads((folder / "results.json").read_text())["launches"]
    return [
        Kernel(name, t.get("bytes_changed", 0), t.get("bytes_differing", 0), t.get("error"))
        for name, t in sorted(told.items())
    ]
