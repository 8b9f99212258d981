"""Ways to test an op: which of the measured cases each looks at, and under which judgement.

A subject is *caught* by a way of testing if at least one of its cases is rejected, which for a control is a false
alarm. The sweep takes every case; a distribution alone only its own; a test with one shape the usual shape in the first
of float16, or the op's first dtype; KernelBench five random inputs in float32 where the op has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpuemu.gate.values import DISTRIBUTIONS
from gpuemu.study.corpus import Subject
from gpuemu.study.judgements import SCHEMES
from gpuemu.study.measure import Measured


@dataclass(frozen=True, slots=True)
class Strategy:
    """Which cases are tried. `takes(measured, dtypes)`: whether a case is among them, given the op's dtypes."""

    name: str
    takes: Callable[[Measured, Sequence[str]], bool]


def _one_dtype(dtypes: Sequence[str], wanted: str) -> str:
    return wanted if wanted in dtypes else dtypes[0]


STRATEGIES = (
    Strategy("full sweep", lambda m, d: m.source == "sweep"),
    *(
        Strategy(f"only {name}", lambda m, d, name=name: m.source == "sweep" and m.distribution == name)  # type: ignore[misc]
        for name in DISTRIBUTIONS
    ),
    Strategy("usual shape, all dtypes", lambda m, d: m.source == "usual"),
    Strategy(
        "one shape, one draw", lambda m, d: m.source == "usual" and m.draw == 0 and m.dtype == _one_dtype(d, "float16")
    ),
    Strategy("one shape, five draws", lambda m, d: m.source == "usual" and m.dtype == _one_dtype(d, "float32")),
)


class Outcome:
    """All measured cases of one subject."""

    def __init__(self, subject: Subject, dtypes: Sequence[str], measured: Iterable[Measured]) -> None:
        self.subject = subject
        self.dtypes = tuple(dtypes)
        self.measured = tuple(measured)

    def cases(self, strategy: Strategy) -> list[Measured]:
        """The cases that a strategy looks at."""
        return [m for m in self.measured if m.reason is None and strategy.takes(m, self.dtypes)]

    def caught(self, strategy: Strategy, scheme: str) -> bool | None:
        """Whether a case is rejected; None where the strategy has no case under that judgement."""
        verdicts = [m.rejected[scheme] for m in self.cases(strategy) if scheme in m.rejected]
        return any(verdicts) if verdicts else None

    def rate(self, strategy: Strategy, scheme: str) -> tuple[int, int]:
        """(rejected cases, cases)."""
        verdicts = [m.rejected[scheme] for m in self.cases(strategy) if scheme in m.rejected]
        return sum(verdicts), len(verdicts)

    @property
    def unchecked(self) -> list[Measured]:
        return [m for m in self.measured if m.reason is not None]


@dataclass(frozen=True, slots=True)
class Count:
    """`hit` of `of`; `missed` names the others."""

    hit: int
    of: int
    missed: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return self.hit / self.of if self.of else float("nan")

    def words(self) -> str:
        return f"{self.hit}/{self.of} ({100 * self.share:.1f} %)" if self.of else "-"


def count(outcomes: Iterable[Outcome], strategy: Strategy, scheme: str) -> Count:
    """How many subjects are caught. A subject for which the way of testing has no case counts as not caught, except
    under a judgement that none of its cases knows (a published tolerance), where it is left out."""
    hit, of, missed = 0, 0, []
    for outcome in outcomes:
        caught = outcome.caught(strategy, scheme)
        if caught is None and (scheme not in SCHEMES[:1]) and not any(scheme in m.rejected for m in outcome.measured):
            continue
        of += 1
        hit += bool(caught)
        if not caught:
            missed.append(outcome.subject.key)
    return Count(hit, of, tuple(missed))


def named(name: str) -> Strategy:
    """The strategy of a name."""
    return next(s for s in STRATEGIES if s.name == name)
