"""What a study found, as Markdown and as JSON: the same bytes for the same verdicts, with no times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gpuemu.gate.values import DISTRIBUTIONS
from gpuemu.study.judgements import SCHEMES
from gpuemu.study.strategies import STRATEGIES, Outcome, Strategy, count, named

OURS = "derived fp64"
FULL = "full sweep"
_LINES: tuple[tuple[str, str, str], ...] = (
    ("`gpuemu ci`: all shapes, dtypes and values; derived bounds", FULL, OURS),
    ("the same with calibrated bounds", FULL, "calibrated fp64"),
    *((f"only {name} values, all shapes; derived bounds", f"only {name}", OURS) for name in DISTRIBUTIONS),
    ("one usual shape, regular values, all dtypes; derived bounds", "usual shape, all dtypes", OURS),
    ("one usual shape, float16, `allclose(1e-2, 1e-2)`, FP64 reference", "one shape, one draw", "allclose fp64"),
    ("the same, reference in binary32", "one shape, one draw", "allclose same"),
    ("one usual shape, float16, `assert_close` defaults, binary32", "one shape, one draw", "assert_close same"),
    ("KernelBench: five draws at one shape, float32, 1e-2, binary32", "one shape, five draws", "allclose same"),
    ("all of our cases, `allclose(1e-2, 1e-2)`, FP64 reference", FULL, "allclose fp64"),
    ("all of our cases, `assert_close` defaults, FP64 reference", FULL, "assert_close fp64"),
    ("all of our cases, `assert_close` defaults, binary32", FULL, "assert_close same"),
)


class Report:
    """The outcomes of a study, sorted into what is asked of them."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = list(outcomes)
        self.controls = [o for o in outcomes if o.subject.family is None]
        self.bugs = [o for o in outcomes if o.subject.family is not None]
        self.reachable = [o for o in self.bugs if o.subject.unreachable is None]
        self.unreachable = [o for o in self.bugs if o.subject.unreachable is not None]

    def half(self, half: str) -> list[Outcome]:
        """The controls of a half."""
        return [o for o in self.controls if o.subject.half == half]

    @property
    def missed(self) -> tuple[str, ...]:
        """Reachable bugs that the full sweep with derived bounds does not catch."""
        return count(self.reachable, named(FULL), OURS).missed

    @property
    def alarms(self) -> list[str]:
        """Controls that it flags."""
        return [o.subject.key for o in self.controls if o.caught(named(FULL), OURS)]

    @property
    def announced(self) -> dict[str, str]:
        """Bugs that the corpus says this gate cannot show, with the reason."""
        return {o.subject.key: o.subject.unseen for o in self.reachable if o.subject.unseen is not None}

    @property
    def refuted(self) -> list[str]:
        """Bugs argued to be unreachable, or announced as unseen, that it catches."""
        argued = [*self.unreachable, *(o for o in self.reachable if o.subject.unseen is not None)]
        return [o.subject.key for o in argued if o.caught(named(FULL), OURS)]

    @property
    def unchecked(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.unchecked]

    @property
    def exit_code(self) -> int:
        """0 as it should be, 1 a missed bug that is not announced, a false alarm or a refuted argument, 3 something was
        not checked."""
        if set(self.missed) - set(self.announced) or self.alarms or self.refuted:
            return 1
        return 3 if self.unchecked or not self.outcomes else 0


def grid(rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; the first row is its head."""
    head, *body = rows
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(r)} |" for r in body), ""]


def main_table(report: Report) -> list[str]:
    """Recall and false alarms of every way to test."""
    rows = [("tested how", "bugs caught", "false alarms, held-out half", "calibrated half")]
    for words, strategy, scheme in _LINES:
        chosen = named(strategy)
        rows.append(
            (
                words, count(report.reachable, chosen, scheme).words(),
                count(report.half("held out"), chosen, scheme).words(),
                count(report.half("calibrated"), chosen, scheme).words(),
            )
        )  # fmt: skip
    return grid(rows)


def family_table(report: Report) -> list[str]:
    """Bugs caught by family, ours beside the usual tests."""
    columns = (
        ("`gpuemu ci`", FULL, OURS), *((f"only {d}", f"only {d}", OURS) for d in DISTRIBUTIONS if d != "exact"),
        ("usual shape, derived", "usual shape, all dtypes", OURS),
        ("one shape, `allclose`", "one shape, one draw", "allclose fp64"),
        ("KernelBench", "one shape, five draws", "allclose same"),
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [("family", "bugs", *(c[0] for c in columns))]
    for family in sorted({o.subject.family or "" for o in report.reachable}):
        own = [o for o in report.reachable if o.subject.family == family]
        hits = (str(count(own, named(strategy), scheme).hit) for _, strategy, scheme in columns)
        rows.append((family, str(len(own)), *hits))
    return grid(rows)


def cross_table(report: Report) -> list[str]:
    """Every strategy under every tolerance and oracle: bugs caught / controls flagged."""
    schemes = [s for s in SCHEMES if s != "published fp64"]
    rows: list[tuple[str, ...]] = [("cases", *schemes)]
    for strategy in STRATEGIES:
        rows.append((strategy.name, *(_pair(report, strategy, s) for s in schemes)))
    return grid(rows)


def _pair(report: Report, strategy: Strategy, scheme: str) -> str:
    caught, alarms = (count(group, strategy, scheme) for group in (report.reachable, report.controls))
    return f"{100 * caught.share:.1f} % / {alarms.hit}" if caught.of else "-"


def verdict_lines(report: Report) -> list[str]:
    """What must be empty for the study to be as it should be."""
    known = report.announced
    missed = [f"{key} ({known[key]})" if key in known else key for key in report.missed]
    lines = [
        f"* missed of {len(report.reachable)} reachable bugs: {'; '.join(missed) or 'none'}",
        f"* false alarms on {len(report.controls)} controls: {', '.join(report.alarms) or 'none'}",
        f"* arguments refuted of {len(report.unreachable)} unreachable bugs: {', '.join(report.refuted) or 'none'}",
    ]
    for outcome in report.unchecked:
        first = outcome.unchecked[0]
        words = f"{outcome.subject.key}, {len(outcome.unchecked)} cases, {first.label}: {first.reason}"
        lines.append(f"* not checked: {words}")
    return lines


def text_table(report: Report) -> str:
    """What the command prints."""
    return "\n".join([*main_table(report), *verdict_lines(report)]) + "\n"


def json_report(report: Report, command: str) -> bytes:
    """One line of verdicts for each subject: by strategy and scheme, rejected cases of cases."""
    subjects = []
    for outcome in report.outcomes:
        subject = outcome.subject
        rates: dict[str, dict[str, str]] = {}
        for strategy in STRATEGIES:
            schemes = SCHEMES if strategy.name == FULL else (OURS, "allclose fp64", "assert_close same")
            own = {s: outcome.rate(strategy, s) for s in schemes}
            kept = {s: f"{hit}/{of}" for s, (hit, of) in own.items() if of}
            if kept:
                rates[strategy.name] = kept
        subjects.append(
            {
                "key": subject.key, "control": subject.control, "family": subject.family, "half": subject.half,
                "unreachable": subject.unreachable, "unchecked": len(outcome.unchecked), "rejected": rates,
            }
        )  # fmt: skip
    whole: dict[str, Any] = {"format": 1, "command": command, "subjects": subjects}
    # One subject a line: a change of the gate is then a diff that can be read.
    lines = [msgspec.json.encode(s).decode() for s in subjects]
    head = msgspec.json.encode({**whole, "subjects": []}).decode().removesuffix("[]}")
    return (head + "[\n" + ",\n".join(lines) + "\n]}\n").encode()
