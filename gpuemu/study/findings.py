"""The findings P1 to P4 that a published tool of the same purpose reports, beside what this study measures.

The claims are those of arXiv 2606.20128 (P1), 2606.27396 (P3) and of two papers in the same author's repository (P2,
P4); what is measured is this repository's own rewrite of that corpus (the ops with a published tolerance), and for P3
all bugs of the family "tail mask".
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuemu.study.strategies import Outcome, count, named
from gpuemu.study.tables import FULL, OURS, Report, grid

TAIL = "tail mask"


def findings_table(report: Report, deltas: str | None = None) -> list[str]:
    """Claim and measurement, a line each. `deltas`: what was measured for P4, None = not measured in this run."""
    rows = [("finding", "claimed", "measured here"), *(_line(report, n) for n in (1, 2, 3))]
    claim = (
        "register deltas of nine pairs are identical on five GPUs, so that a gate calibrated on one is portable; pairs "
        "with another constant compile to identical PTX"
    )
    rows.append(("P4, static PTX", claim, deltas or "not measured in this run (`--deltas`)"))
    return grid(rows)


def _line(report: Report, number: int) -> tuple[str, str, str]:
    own = [o for o in report.outcomes if o.subject.published is not None]
    bugs, controls = [o for o in own if o.subject.family], [o for o in own if not o.subject.family]
    if number == 1:
        one = count(bugs, named("one shape, one draw"), "allclose fp64")
        return (
            "P1, the correctness illusion",
            "one-shape `allclose` catches 0 of 10 bugs, boundary cases catch 10 of 10; 0 of 16 controls",
            f"one-shape `allclose` catches {one.hit} of {one.of} (it passes {', '.join(one.missed) or 'none'}); the "
            f"sweep {_of(bugs, FULL)}; {_of(controls, FULL)} controls flagged",
        )
    if number == 2:
        parts = []
        for words, scheme in (("published tolerances", "published fp64"), ("derived bounds", OURS)):
            hit, of = _cases(bugs, scheme)
            alarms, controls_of = _cases(controls, scheme)
            parts.append(f"{words} {100 * hit / max(of, 1):.1f} % of {of} (controls: {alarms} of {controls_of})")
        return (
            "P2, tolerances",
            "calibrated tolerances flag 82.4 % of bug cases, hand-picked ones 73.2 %; 20 of 1,882 control cases too",
            "of the same cases: " + ", ".join(parts) + ". A case in which the bug has no effect counts as not flagged",
        )
    tails = [o for o in report.reachable if o.subject.family == TAIL]
    return (
        "P3, shapes and values",
        "regular shapes catch 0 % of tail-mask bugs, boundary shapes all; adversarial values catch 99 % of cases and "
        "flag 94 % of control cases",
        f"tail-mask bugs ({len(tails)}): regular values at one block-multiple shape "
        f"{_of(tails, 'usual shape, all dtypes')}, the sweep {_of(tails, FULL)}; adversarial values: "
        f"{_of(report.reachable, 'only adversarial')} of all bugs, "
        f"{_of(report.controls, 'only adversarial')} controls flagged",
    )


def _of(outcomes: Sequence[Outcome], strategy: str) -> str:
    return count(outcomes, named(strategy), OURS).words()


def _cases(outcomes: Sequence[Outcome], scheme: str) -> tuple[int, int]:
    rates = [o.rate(named(FULL), scheme) for o in outcomes]
    return sum(hit for hit, _ in rates), sum(of for _, of in rates)
