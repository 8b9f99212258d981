"""What came of each case and of the whole sweep: records that cross process borders and become reports.

A case is exactly one of
    pass         executed, every judged element within its bound, nothing found by the engine
    borderline   as pass, but at least one element exceeds its bound by less than the oracle's own margin
    finding      executed, and something is wrong
    unchecked    not executed or not judged: unsupported, crashed, timed out, raised; never green
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from gpuemu.gate.cases import Case
from gpuemu.gate.judge import Comparison
from gpuemu.gate.values import DISTRIBUTIONS

Verdict = Literal["pass", "borderline", "finding", "unchecked"]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing wrong in one case. `kind`: 'wrong-value', 'non-finite', 'unwritten', 'modified-input', 'wrote-between-
    rows', or the kind of an engine finding. `file` (absolute) and `line`: the source line it points at."""

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    array: str | None = None
    index: tuple[int, ...] | None = None
    error: float | None = None
    allowed: float | None = None
    ulps: float | None = None


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one case. `problems`: the first is the one reported. `replay`: the folder's name."""

    case: Case
    verdict: Verdict
    problems: tuple[Problem, ...] = ()
    reason: str | None = None
    """Why it is unchecked: one word or two, then the message."""
    model: str = ""
    comparisons: tuple[Comparison, ...] = ()
    exactness: tuple[str, ...] = ()
    layouts: dict[str, str] = {}
    """How arguments that are not dense lie in memory."""
    family: str | None = None
    """The error model's family for calibration; None for an author's own model."""
    replay: str | None = None
    replay_error: str | None = None
    """Why there is no replay of a finding, where one was to be written."""
    instructions: int = 0
    """PTX instructions that the threads of all its launches executed."""
    seconds: float = 0.0


class BrokenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that declares ops but could not be loaded; counts as unchecked."""

    file: str
    reason: str


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """All cases of one op that point at the same line with the same class of problem: one bug, one report."""

    op: str
    file: str
    line: int | None
    kind: str
    cases: tuple[CaseResult, ...]

    @property
    def shown(self) -> CaseResult:
        """The case that is shown: one that points at the bug's line, of its kind, with plain values rather than extreme
        ones (which may show something else), with the fewest elements, then the first."""

        def order(case: CaseResult) -> tuple[bool, bool, int, int, int]:
            first = case.problems[0]
            return (
                first.line != self.line, first.kind != self.kind, DISTRIBUTIONS.index(case.case.distribution),
                sum(x.elements for x in case.comparisons), case.case.index,
            )  # fmt: skip

        return min(self.cases, key=order)

    @property
    def problem(self) -> Problem:
        return self.shown.problems[0]


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the gate has been seen to find something planted. `words`: what was planted where, what came of it."""

    proven: bool
    words: str


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    """A finished sweep. `cases` in enumeration order. `root`: what reported paths are relative to."""

    seed: int
    root: str
    cases: tuple[CaseResult, ...]
    broken: tuple[BrokenFile, ...] = ()
    seconds: float = 0.0
    planned: int | None = None
    """Cases that the sweep would have had, where it was interrupted; else None."""
    alive: Alive | None = None
    """None: not asked for, or interrupted."""
    ops: tuple[str, ...] = ()
    """Names of the ops that were found, also those without a case."""
    fmad: str | None = None
    """The contraction that was asked for."""

    def of(self, verdict: Verdict) -> list[CaseResult]:
        """The cases with a verdict."""
        return [c for c in self.cases if c.verdict == verdict]

    @property
    def bugs(self) -> list[Bug]:
        return group_bugs(self.cases)

    @property
    def dead(self) -> bool:
        """Whether the gate was to be proven alive and was not."""
        return self.alive is not None and not self.alive.proven

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings (also with unchecked cases), 3 something or everything unchecked or the gate not proven
        alive, 130 interrupted."""
        if self.planned is not None:
            return 130
        if self.of("finding"):
            return 1
        if self.broken or self.of("unchecked") or not self.cases or self.dead:
            return 3
        return 0


VALUE_KINDS = ("wrong-value", "non-finite", "unwritten")
"""Kinds that are one bug when they meet on one line: a wrong number is a NaN for other inputs."""


def group_bugs(cases: Sequence[CaseResult]) -> list[Bug]:
    """Group findings by op, place and class, in order of first appearance.

    A wrong statistic spoils every output that is made from it, each written on its own line, and in some cases only one
    of them shows. So lines whose values are wrong together in one case count as one place: that of the line reported by
    most cases.
    """
    found = [c for c in cases if c.verdict == "finding"]
    together = _lines_together(found)
    groups: dict[tuple[str, str, int, str], list[CaseResult]] = {}
    for case in found:
        first = case.problems[0]
        place = _place(case, first)
        if first.kind in VALUE_KINDS:
            groups.setdefault((case.case.op, *together[case.case.op, *place], "value"), []).append(case)
        else:
            groups.setdefault((case.case.op, *place, first.kind), []).append(case)
    bugs = []
    for (op, file, line, kind), members in groups.items():
        counts = [m.problems[0].kind for m in members]
        shown = max(dict.fromkeys(counts), key=counts.count) if kind == "value" else kind
        bugs.append(Bug(op=op, file=file, line=line or None, kind=shown, cases=tuple(members)))
    return bugs


def _place(case: CaseResult, problem: Problem) -> tuple[str, int]:
    return problem.file or case.case.file, problem.line or 0


def _lines_together(found: Sequence[CaseResult]) -> dict[tuple[str, str, int], tuple[str, int]]:
    """For each (op, file, line) with a wrong value: the place that stands for all lines wrong together with it."""
    joined: dict[tuple[str, str, int], set[tuple[str, str, int]]] = {}
    counts: dict[tuple[str, str, int], int] = {}
    for case in found:
        values = [(case.case.op, *_place(case, p)) for p in case.problems if p.kind in VALUE_KINDS]
        whole = set[tuple[str, str, int]]().union(*(joined.get(v, {v}) for v in values))
        joined.update(dict.fromkeys(whole, whole))
        if case.problems[0].kind in VALUE_KINDS:
            counts[values[0]] = counts.get(values[0], 0) + 1
    return {one: max(sorted(all_), key=lambda v: counts.get(v, 0))[1:] for one, all_ in joined.items()}
