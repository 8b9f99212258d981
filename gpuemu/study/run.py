"""A whole study: corpus -> subjects -> measured in workers -> outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gpuemu.gate.cases import Case
from gpuemu.gate.discover import load_file
from gpuemu.gate.pool import run_cases
from gpuemu.study.corpus import Subject, read_corpus
from gpuemu.study.measure import Measured, StudyResult, make_study_runner
from gpuemu.study.strategies import Outcome

TIMEOUT = 900.0
"""Seconds for all cases of one subject and dtype."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure. `only`: controls to keep, with their bugs. `factors`: of calibrated error models, by family."""

    paths: tuple[str, ...]
    work: str
    seed: int = 0
    target: str = "sm_80"
    parallel: int = 1
    only: tuple[str, ...] = ()
    factors: dict[str, float] = {}
    fmad: str | None = None


def run_study(
    study: Study, progress: Callable[[int, int, StudyResult], None] | None = None
) -> tuple[list[Outcome], float]:
    """(outcomes in the order of the corpus, seconds). Raises InvalidInput for a corpus that is wrong."""
    start = time.perf_counter()
    work = Path(study.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    subjects = [
        s for s in read_corpus([Path(p) for p in study.paths], work) if not study.only or s.control in study.only
    ]
    dtypes = dtypes_of(subjects)
    cases = [
        Case(
            index=i, op=subject.op, file=subject.file, dims={}, dtype=dtype, distribution="", target=study.target,
            device=None, option={}, seed=0, fmad=study.fmad,
        )
        for i, (subject, dtype) in enumerate((s, d) for s in subjects for d in dtypes[s.source, s.op])
    ]  # fmt: skip
    found: dict[tuple[str, str], list[Measured]] = {}
    stream = run_cases(
        cases, make_work=make_study_runner, arguments=(tuple(subjects), study.seed, study.factors),
        parallel=study.parallel, timeout=TIMEOUT,
    )  # fmt: skip
    for done, result in enumerate(stream, 1):
        own = found.setdefault((result.case.file, result.case.op), [])
        if isinstance(result, StudyResult) and result.verdict == "pass":
            own += result.measured
        else:
            own.append(
                Measured(
                    source="sweep", draw=0, label=result.case.label(), dtype=result.case.dtype, distribution="",
                    rejected={}, reason=result.reason or "no result",
                )
            )  # fmt: skip
        if progress is not None:
            progress(done, len(cases), result)  # type: ignore[arg-type]
    outcomes = [Outcome(s, dtypes[s.source, s.op], found.get((s.file, s.op), ())) for s in subjects]
    return outcomes, time.perf_counter() - start


def dtypes_of(subjects: Sequence[Subject]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The dtypes of each op, by source file and name."""
    return {
        (source, op.name): op.dtypes for source in dict.fromkeys(s.source for s in subjects)
        for op in load_file(Path(source))
    }  # fmt: skip
