"""Runs one case from arrays to verdict; what a worker process does.

    make arrays -> launcher (the engine executes) -> findings of the engine -> bytes outside the outputs unchanged?
    -> FP64 reference -> bound -> compare -> if anything is wrong: run again, recorded; the bytes must be the same;
    find the line that wrote the worst element; write the replay

Anything that keeps a case from being executed or judged makes it 'unchecked' with the reason in one line, whatever it
is: an exception of the launcher, an instruction that is not modelled, a reference that fails, an error model that
judges nothing.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpuemu.bounds import Exact, family_of, statement_of
from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Op
from gpuemu.gate.discover import load_file
from gpuemu.gate.dtypes import F64
from gpuemu.gate.engine import Run, recording
from gpuemu.gate.inputs import (
    Argument,
    ReferenceFailed,
    absent,
    input_values,
    make_arguments,
    reference_values,
)
from gpuemu.gate.judge import Comparison, compare
from gpuemu.gate.locate import locate
from gpuemu.gate.results import VALUE_KINDS, CaseResult, Problem
from gpuemu.replay.write import SCRATCH, write_replay
from ptx.errors import GpuemuError, Unsupported


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What every worker is told.

    `replays`: folder for replays, None = write none. `root`: of reported paths. `scratch`: how the names of folders
    begin that hold replays not yet finished. `factors`: of calibrated error models, by family.
    """

    root: str
    replays: str | None
    scratch: str = SCRATCH
    engine: str = "compiled"
    factors: dict[str, float] = {}


class CaseRunner:
    """Executes cases; loads each file of ops once."""

    def __init__(self, settings: Settings, ops: Mapping[tuple[str, str], Op] | None = None) -> None:
        self._settings = settings
        self._ops = dict(ops or {})

    def __call__(self, case: Case) -> CaseResult:
        start = time.perf_counter()
        try:
            result = self._run(self._op(case), case)
        except Exception as error:
            result = CaseResult(case=case, verdict="unchecked", reason=reason_of(error))
        return msgspec.structs.replace(result, seconds=time.perf_counter() - start)

    def _op(self, case: Case) -> Op:
        key = (case.file, case.op)
        if key not in self._ops:
            for op in load_file(Path(case.file)):
                self._ops[case.file, op.name] = op
        return self._ops[key]

    def _run(self, op: Op, case: Case) -> CaseResult:
        arguments = make_arguments(op, case)
        run = Run(case, self._settings.engine)
        launch(op, case, arguments, run)
        if not run.results:
            raise NotJudged("the launcher ran no kernel")
        whole: dict[str, NDArray[Any]] = {}
        _, exact, bounds = oracle(op, case, arguments, whole)
        factor = self._settings.factors.get(family_of(op.bound) or "", 1.0)
        if factor != 1.0:
            bounds = {n: b * factor for n, b in bounds.items()}
        comparisons = tuple(
            compare(n, a.view, a.dtype, exact[n], bounds[n], a.poison, whole.get(n))
            for n, a in arguments.items()
            if n in exact
        )
        problems = [*engine_problems(run), *byte_problems(arguments), *value_problems(comparisons)]
        exactness = tuple(dict.fromkeys(note for r in run.results for note in notes_of(r)))
        common: dict[str, Any] = {
            "case": case,
            "model": self._model(op, case, factor),
            "family": family_of(op.bound),
            "layouts": {n: a.layout.kind for n, a in arguments.items() if a.layout.kind != "dense"},
            "comparisons": comparisons,
            "exactness": exactness,
            "instructions": sum(r.counters.executed for r in run.results if r.counters is not None),
        }
        if problems:
            kept = {**exact, **{n: w for n, w in whole.items() if w.itemsize == 8}}
            return self._explain(op, case, arguments, problems, kept, bounds, common, factor)
        for comparison in comparisons:
            if comparison.elements and not comparison.judged:
                raise NotJudged(f"the error model judges no element of output '{comparison.output}'")
        near = any(c.borderline for c in comparisons)
        return CaseResult(**common, verdict="borderline" if near else "pass")

    def _model(self, op: Op, case: Case, factor: float) -> str:
        """The words for what the case is judged by."""
        if case.distribution == "exact":
            return "integers whose sums are exact: any difference is a bug"
        words = statement_of(op.bound, case.dtype, case.device or case.target)
        return words if factor == 1.0 else f"{words}; {factor:g} of that by calibration"

    def _explain(
        self,
        op: Op,
        case: Case,
        first: Mapping[str, Argument],
        problems: list[Problem],
        exact: Mapping[str, NDArray[Any]],
        bounds: Mapping[str, F64],
        common: dict[str, Any],
        factor: float,
    ) -> CaseResult:
        """Run a failing case again with recording: confirm it, locate it, keep it."""
        again = make_arguments(op, case)
        with recording() as log:
            run = Run(case, self._settings.engine, log=log)
            launch(op, case, again, run)
        for name, argument in first.items():
            if argument.base.tobytes() != again[name].base.tobytes():
                raise NotJudged(f"two runs of this case gave different bytes in '{name}'")
        placed = [locate(p, log, again, run) for p in problems]
        replay = failed = None
        if self._settings.replays is not None:
            try:
                replay = write_replay(
                    Path(self._settings.replays), root=Path(self._settings.root), case=case, launches=log.launches,
                    after=run.after, arguments=again, exact=exact, bounds=bounds, problems=tuple(placed),
                    model=common["model"], factor=factor, scratch=self._settings.scratch,
                )  # fmt: skip
            except OSError as error:  # a full disk costs the replay, not the finding
                failed = error.strerror or str(error)
        return CaseResult(
            **common, verdict="finding", problems=tuple(placed), replay=replay, replay_error=failed
        )  # fmt: skip


class NotJudged(Exception):
    """The case ran, but there is nothing that a verdict could rest on."""


def launch(op: Op, case: Case, arguments: Mapping[str, Argument], run: Run) -> None:
    """Call the op's launcher with the arrays of a case."""
    views = {n: a.view for n, a in arguments.items()}
    op.call("launcher", {**case.dims, **case.option, "dtype": case.dtype, **absent(op), **views}, run)


def oracle(
    op: Op, case: Case, arguments: Mapping[str, Argument], whole: dict[str, NDArray[Any]] | None = None
) -> tuple[dict[str, F64], dict[str, F64], dict[str, F64]]:
    """(inputs, reference outputs, bounds), all float64, of a case. Raises ReferenceFailed.

    `whole`: as in `reference_values`."""
    inputs = input_values(arguments)
    exact = reference_values(op, case, arguments, whole)
    dtypes = {n: a.dtype for n, a in arguments.items()}
    run = Exact(inputs, exact, case.dims, case.dtype, case.device or case.target, case.option, dtypes)
    try:
        with np.errstate(all="ignore"):
            given = 0.0 if case.distribution == "exact" else op.bound(run)
        answer = dict(given) if isinstance(given, Mapping) else dict.fromkeys(exact, given)
        bounds = {n: np.broadcast_to(np.asarray(answer[n], np.float64), v.shape) for n, v in exact.items()}
    except Exception as error:
        raise ReferenceFailed(f"the error model of op '{op.name}' raised {type(error).__name__}: {error}") from error
    if any((b < 0).any() for b in bounds.values()):
        raise ReferenceFailed(f"the error model of op '{op.name}' gave a negative bound")
    return inputs, exact, bounds


def engine_problems(run: Run) -> list[Problem]:
    """The engine's own findings (memory, barriers, ...), in order, once each per kind and line."""
    seen: dict[tuple[str, str | None, int | None], Problem] = {}
    for result in run.results:
        for f in result.findings:
            index = tuple(int(i) for i in np.atleast_1d(f.index)) if f.index is not None else None
            found = Problem(kind=f.kind, message=f.message, file=f.file, line=f.line, array=f.array, index=index)
            seen.setdefault((f.kind, f.file, f.line), found)
    return list(seen.values())


def byte_problems(arguments: Mapping[str, Argument]) -> list[Problem]:
    """Bytes changed that are not the op's to change."""
    problems = []
    for name, argument in arguments.items():
        if argument.role == "input" and argument.base.tobytes() != argument.before:
            old = np.frombuffer(argument.before, np.uint8)
            at = int(np.flatnonzero(old != np.frombuffer(argument.base.tobytes(), np.uint8))[0])
            where = np.unravel_index(at // argument.base.itemsize, argument.base.shape)
            index = tuple(int(i) for i in where)
            problems.append(
                Problem(kind="modified-input", message=f"input {name} was written to", array=name, index=index)
            )
        elif argument.role == "output" and argument.gap_touched():
            where = np.unravel_index(int(np.argmax(argument.changed_gap())), argument.base.shape)
            problems.append(
                Problem(
                    kind="wrote-between-rows",
                    message=f"bytes between the rows of output {name} were written: a store is not masked",
                    array=name,
                    index=tuple(int(i) for i in where),
                )
            )
    return problems


def value_problems(comparisons: tuple[Comparison, ...]) -> list[Problem]:
    """One problem for each output that is wrong."""
    return [
        Problem(
            kind=c.kind, message=c.words(), array=c.output, index=c.index, error=c.error, allowed=c.allowed, ulps=c.ulps
        )
        for c in comparisons
        if c.kind in VALUE_KINDS
    ]


def notes_of(result: Any) -> tuple[str, ...]:
    """The engine's notes on exactness as a tuple of texts."""
    notes = getattr(result, "exactness", None) or ()
    return (notes,) if isinstance(notes, str) else tuple(str(n) for n in notes)


def reason_of(error: Exception) -> str:
    """One line that says why a case could not be checked."""
    if isinstance(error, Unsupported):
        return f"unsupported: {one_line(error.diagnostic.render().removeprefix('unsupported: '))}"
    if isinstance(error, GpuemuError):
        return one_line(error.diagnostic.render())
    if isinstance(error, ReferenceFailed):
        return f"no reference: {error}"
    if isinstance(error, NotJudged):
        return f"not judged: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"raised: {type(error).__name__}: {one_line(str(error))}{place}"


def one_line(text: str) -> str:
    """Lines joined, at most 400 characters."""
    joined = " ".join(part.strip() for part in text.splitlines() if part.strip())
    return joined if len(joined) <= 400 else joined[:397] + "..."


def make_runner(settings: Settings) -> CaseRunner:
    """What a worker process calls once; loads the engine, so that the first case does not wait for it."""
    with contextlib.suppress(ImportError):
        import gpuemu.triton_run  # noqa: F401
    return CaseRunner(settings)
