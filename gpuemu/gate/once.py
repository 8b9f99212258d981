"""One case executed once and judged: no second run, no line, no replay. What a study and a mutant need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Op
from gpuemu.gate.dtypes import F64
from gpuemu.gate.engine import Run
from gpuemu.gate.execute import NotJudged, byte_problems, engine_problems, launch, oracle, value_problems
from gpuemu.gate.inputs import Argument, make_arguments
from gpuemu.gate.judge import Comparison, compare
from gpuemu.gate.results import Problem


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a case: its arrays after the run, the FP64 results, the comparisons and what is wrong."""

    arguments: Mapping[str, Argument]
    exact: Mapping[str, F64]
    comparisons: tuple[Comparison, ...]
    problems: tuple[Problem, ...]
    tight: bool
    """Whether anything is wrong under the bounds times `factor`."""


def judge_once(
    op: Op, case: Case, spoil: Callable[[Mapping[str, Argument]], None] | None = None, factor: float = 1.0
) -> Judged:
    """Execute and judge a case. `spoil` may change the arrays after the run (to prove that it is seen); `factor`: of a
    calibrated error model.

    Raises whatever the launcher, the engine, the reference or the error model raise, and NotJudged.
    """
    arguments = make_arguments(op, case)
    run = Run(case)
    launch(op, case, arguments, run)
    if not run.results:
        raise NotJudged("the launcher ran no kernel")
    if spoil is not None:
        spoil(arguments)
    whole: dict[str, NDArray[Any]] = {}
    _, exact, bounds = oracle(op, case, arguments, whole)

    def judged(factor: float) -> tuple[Comparison, ...]:
        named = ((n, arguments[n]) for n in exact)
        return tuple(
            compare(n, a.view, a.dtype, exact[n], bounds[n] * factor, a.poison, whole.get(n)) for n, a in named
        )

    comparisons = judged(1.0)
    problems = (*engine_problems(run), *byte_problems(arguments), *value_problems(comparisons))
    if not problems:
        for comparison in comparisons:
            if comparison.elements and not comparison.judged:
                raise NotJudged(f"the error model judges no element of output '{comparison.output}'")
    tight = bool(problems)
    if factor != 1.0 and not tight:
        tight = bool(value_problems(judged(factor)))
    return Judged(arguments, exact, comparisons, problems, tight)
