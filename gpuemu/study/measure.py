"""Runs the cases of one op of the corpus and says of each what every judgement makes of it; what a worker does.

Two kinds of cases. 'sweep': all that `gpuemu ci` would try, with the case's own seed. 'usual': regular values at the
one usual shape, five draws, as tests with one shape have them. A case is executed once; it is not run again to find
the line, so the study says nothing about locations and replays.

A bug whose kernel does not compile, or a control without a verdict, is 'unchecked': it counts as neither caught nor
passed, and the study is then not green.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gpuemu.bounds import family_of
from gpuemu.gate.bits import seed_of
from gpuemu.gate.cases import Case, enumerate_cases
from gpuemu.gate.declare import Op
from gpuemu.gate.discover import load_file
from gpuemu.gate.dtypes import F64, FORMATS
from gpuemu.gate.execute import reason_of
from gpuemu.gate.inputs import Argument, absent, reference_inputs
from gpuemu.gate.once import judge_once
from gpuemu.gate.results import CaseResult
from gpuemu.study.corpus import Subject
from gpuemu.study.judgements import rejected

DRAWS = 5
"""Random inputs of a test with one shape; KernelBench takes as many."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One case: `source` 'sweep' or 'usual', `draw` its number there; by scheme whether it was rejected.

    `kinds`: what ours found. `reason`: why there is no verdict, else None.
    """

    source: str
    draw: int
    label: str
    dtype: str
    distribution: str
    rejected: dict[str, bool]
    kinds: tuple[str, ...] = ()
    ratio: float = 0.0
    reason: str | None = None


class StudyResult(CaseResult, frozen=True, kw_only=True):
    """What the pool carries: all measured cases of one subject and dtype."""

    measured: tuple[Measured, ...] = ()


def usual_cases(
    op: Op, subject: Subject, dtype: str, target: str, seed: int, fmad: str | None = None
) -> list[Case]:
    """The draws of a test with one shape."""
    option = dict(op.options[0])
    return [
        Case(
            index=draw, op=op.name, file=subject.file, dims=subject.usual, dtype=dtype, distribution="regular",
            # An even seed: dense arrays, as a test makes them.
            target=target, device=None, option=option, seed=seed_of("usual", seed, op.name, dtype, draw) & ~1,
            fmad=fmad,
        )
        for draw in range(DRAWS)
    ]  # fmt: skip


class StudyRunner:
    """Measures subjects; loads each file once. A `Case` stands for a subject's file, op, dtype and target."""

    def __init__(self, subjects: tuple[Subject, ...], seed: int, factors: dict[str, float]) -> None:
        self._factors = factors
        self._subjects = {(s.file, s.op): s for s in subjects}
        self._seed = seed
        self._ops: dict[tuple[str, str], Op] = {}

    def __call__(self, case: Case) -> CaseResult:
        try:
            if (case.file, case.op) not in self._ops:
                self._ops = {(case.file, op.name): op for op in load_file(Path(case.file))}
            op = self._ops[case.file, case.op]
            subject = self._subjects[case.file, case.op]
        except Exception as error:
            return StudyResult(case=case, verdict="unchecked", reason=reason_of(error))
        swept = enumerate_cases(
            [op], seed=self._seed, targets=(case.target,), dtypes=(case.dtype,), fmad=case.fmad
        )
        usual = usual_cases(op, subject, case.dtype, (op.targets or (case.target,))[0], self._seed, case.fmad)
        factor = self._factors.get(family_of(op.bound) or "", 1.0)
        tagged = [("sweep", c) for c in swept] + [("usual", c) for c in usual]
        measured = [measure(op, subject, source, c, factor) for source, c in tagged]
        return StudyResult(case=case, verdict="pass", measured=tuple(measured))


def make_study_runner(subjects: tuple[Subject, ...], seed: int, factors: dict[str, float]) -> StudyRunner:
    """What a worker process calls once."""
    return StudyRunner(subjects, seed, factors)


def measure(op: Op, subject: Subject, source: str, case: Case, factor: float = 1.0) -> Measured:
    """Execute one case and judge it under every scheme."""
    common: dict[str, Any] = {
        "source": source, "draw": case.index, "label": case.label(), "dtype": case.dtype,
        "distribution": case.distribution,
    }  # fmt: skip
    try:
        judged = judge_once(op, case, factor=factor)
    except Exception as error:
        return Measured(**common, rejected={}, reason=reason_of(error))
    arguments, exact, problems = judged.arguments, judged.exact, judged.problems
    outputs = {n: (arguments[n].view, arguments[n].dtype) for n in exact}
    verdict = {"derived fp64": bool(problems), "calibrated fp64": judged.tight}
    verdict.update(rejected(outputs, exact, same_precision(op, case, arguments), subject.published))
    kinds = tuple(dict.fromkeys(p.kind for p in problems))
    return Measured(
        **common, rejected=verdict, kinds=kinds, ratio=max((c.worst_ratio for c in judged.comparisons), default=0.0)
    )


def same_precision(op: Op, case: Case, arguments: Mapping[str, Argument]) -> dict[str, F64] | None:
    """The op's reference evaluated on binary32 arrays; None where the reference cannot take them."""
    narrow = {
        n: v.astype(np.float32) if arguments[n].dtype in FORMATS else v for n, v in reference_inputs(arguments).items()
    }
    known = {**case.dims, **case.option, "dtype": case.dtype, **absent(op), **narrow}
    try:
        with np.errstate(all="ignore"):
            answer = op.call("reference", known)
    except Exception:
        return None
    if not isinstance(answer, dict):
        parts = answer if isinstance(answer, tuple) else (answer,)
        answer = dict(zip([n for n in op.outputs if n in arguments], parts, strict=False))
    return {n: np.asarray(answer[n], np.float64) for n in op.outputs if n in arguments and n in answer}
