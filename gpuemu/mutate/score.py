"""The mutation score of a sweep: all mutants of the kernels that some ops reach, each tried, counted.

Only ops that are clean themselves can be scored: on a kernel with a finding every mutant would be "caught". So each op
is swept as it is first (in the same order of cases, until something is found), and one that is not clean is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gpuemu.files import write_atomically
from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Op
from gpuemu.gate.once import judge_once
from gpuemu.gate.pool import run_cases
from gpuemu.mutate.operators import mutants
from gpuemu.mutate.ptx_waits import waits
from gpuemu.mutate.targets import Target, targets_of
from gpuemu.mutate.trial import Planted, Sweep, Trial, make_trial_runner, tried_cases
from gpuemu.triton_run import edited_ptx
from ptx.errors import InvalidInput

TIMEOUT = 300.0
"""Seconds for all cases of one mutant."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant and what came of it: 'caught', 'survived' or 'refused' (it does not compile, or could not be run)."""

    planted: Planted
    verdict: str
    by: str
    message: str
    tried: int


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """All outcomes, in the order of the source."""

    outcomes: tuple[Outcome, ...]
    fmad: str | None = None
    """The contraction of all runs, where it was chosen."""

    def of(self, verdict: str) -> list[Outcome]:
        """The outcomes with a verdict."""
        return [o for o in self.outcomes if o.verdict == verdict]

    @property
    def share(self) -> float:
        """Caught among those that ran; NaN where none did."""
        ran = len(self.of("caught")) + len(self.of("survived"))
        return len(self.of("caught")) / ran if ran else float("nan")


def plant(ops: Sequence[Op], work: Path, sweep: Sweep, *, source: bool = True, ptx: bool = True) -> list[Planted]:
    """All mutants of the kernels that the ops reach; changed files are written under `work`.

    Raises InvalidInput where the ops reach no Triton kernel.
    """
    files = {op.name: op.file for op in ops}
    targets = targets_of(ops)
    if not targets:
        raise InvalidInput("the ops reach no @triton.jit function outside installed packages: nothing to change")
    found: list[Planted] = []

    def reaching(target: Target) -> tuple[tuple[str, str], ...]:
        return tuple((files[n], n) for n in target.ops)

    by_file: dict[str, list[Target]] = {}
    for target in targets:
        by_file.setdefault(target.file, []).append(target)
    for file, own in by_file.items() if source else ():
        functions = {t.function: t for t in own}
        for mutant in mutants(Path(file).read_text(encoding="utf-8"), frozenset(functions)):
            # A folder named for the change: the same change finds its compiled kernels again.
            folder = work / hashlib.sha256(mutant.text.encode()).hexdigest()[:12]
            place = folder / Path(file).name
            if not place.exists():
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(place, mutant.text.encode())
            found.append(
                Planted(
                    index=len(found), kind=mutant.kind, file=file, function=mutant.function, line=mutant.line,
                    words=mutant.words(), ops=reaching(functions[mutant.function]), place=str(place),
                )
            )  # fmt: skip
    if ptx:
        for wait, reached in waits_of(ops, sweep).items():
            found.append(
                Planted(
                    index=len(found), kind="wait", file=wait[1] or files[reached[0]], function="PTX", line=wait[2],
                    words=f"{wait[0]}  ->  taken out of the PTX", ops=tuple((files[n], n) for n in reached), wait=wait,
                )
            )  # fmt: skip
    return found


def waits_of(ops: Sequence[Op], sweep: Sweep) -> dict[tuple[str, str, int], list[str]]:
    """Waits and barriers in the PTX of the ops, with the names of the ops: from one case of each shape and target."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for op in ops:
        seen: list[str] = []

        def keep(ptx: str, seen: list[str] = seen) -> str:
            seen.append(ptx)
            return ptx

        with edited_ptx(("keep", op.name), keep):
            ran = set()
            for case in tried_cases(op, sweep):
                if (key := (*case.dims.items(), case.target)) not in ran:
                    ran.add(key)
                    judge_once(op, case)
        for ptx in seen:
            for wait in waits(ptx):
                names = found.setdefault((wait.name, wait.file, wait.line), [])
                if op.name not in names:
                    names.append(op.name)
    return found


def score(
    ops: Sequence[Op], planted: Sequence[Planted], sweep: Sweep, *, parallel: int,
    progress: Callable[[int, int, Trial], None] | None = None,
) -> Score:  # fmt: skip
    """Try every mutant in worker processes (0 = in this one). Raises InvalidInput where an op is not clean itself."""
    own = [
        Planted(index=-1 - i, kind="", file=op.file, function="", line=op.line, words="", ops=((op.file, op.name),))
        for i, op in enumerate(ops)
    ]
    everything = (*own, *planted)
    cases = [
        Case(
            index=p.index, op=p.ops[0][1], file=p.place or p.file, dims={}, dtype=str(p.index), distribution="",
            target="", device=None, option={}, seed=0,
        )
        for p in everything
    ]  # fmt: skip
    trials: dict[int, Trial] = {}
    for result in run_cases(
        cases, make_work=make_trial_runner, arguments=(everything, sweep), parallel=parallel, timeout=TIMEOUT
    ):
        trial = result if isinstance(result, Trial) else Trial(
            case=result.case, verdict="unchecked", reason=result.reason, planted=result.case.index
        )  # fmt: skip
        trials[trial.planted] = trial
        if trial.planted < 0 and trial.verdict != "pass":
            why = trial.problems[0].message if trial.problems else trial.reason
            raise InvalidInput(
                f"op '{result.case.op}' is not clean as it is, so no mutant of it can be told from it",
                notes=(f"{trial.by}: {why}" if trial.by else str(why),), help="gpuemu ci shows the finding",
            )  # fmt: skip
        if progress is not None and trial.planted >= 0:
            progress(sum(t >= 0 for t in trials), len(planted), trial)
    return Score(outcomes=tuple(_outcome(p, trials[p.index]) for p in planted), fmad=sweep.fmad)


def _outcome(planted: Planted, trial: Trial) -> Outcome:
    # A mutant that runs without end is caught: by the time limit.
    timeout = (trial.reason or "").startswith("timeout")
    verdict = {"finding": "caught", "pass": "survived"}.get(trial.verdict, "caught" if timeout else "refused")
    message = trial.problems[0].message if trial.problems else (trial.reason or "")
    return Outcome(
        planted=planted, verdict=verdict, by=trial.by, message="" if verdict == "survived" else message,
        tried=trial.tried,
    )  # fmt: skip
