"""Two sides compared: for each target every metric, old and new; across targets, which differences are the same.

A difference is *architecture-independent* here when it is the same number on every target that both sides were measured
on, and these are at least two: a statement about these targets, not a law. Where the assemblers of the two sides differ
for a target (a baseline made with another release), the comparison says so: part of the difference is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuemu.accounting.measure import Measured
from ptx.accounting.account import Absent, Account
from ptx.accounting.metrics import EVERY, Metric

Number = int | float


@dataclass(frozen=True, slots=True)
class Row:
    """A metric on a target; None where a side does not have it."""

    metric: Metric
    old: Number | None
    new: Number | None

    @property
    def delta(self) -> Number | None:
        if self.old is None or self.new is None:
            return None
        return round(self.new - self.old, 4)

    @property
    def percent(self) -> float | None:
        return 100 * (self.new - self.old) / self.old if self.old and self.new is not None else None

    @property
    def changed(self) -> bool:
        return self.old != self.new

    @property
    def worse(self) -> bool:
        """Whether the change costs something."""
        return bool(self.delta) and self.metric.worse * (self.delta or 0) > 0


@dataclass(frozen=True, slots=True)
class OnTarget:
    """One target: rows in the order of the table of metrics, or the reason why there are none."""

    target: str
    rows: tuple[Row, ...]
    reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric that changed: its differences by target. `same`: on all targets; None with a single one."""

    metric: Metric
    deltas: dict[str, Number]
    same: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`old` is None when a side is shown alone."""

    old: Measured | None
    new: Measured
    targets: tuple[OnTarget, ...]

    @property
    def measured(self) -> tuple[OnTarget, ...]:
        return tuple(t for t in self.targets if t.reason is None)

    def differences(self) -> tuple[Difference, ...]:
        """Every metric that changed on some target, in the order of the table."""
        out = []
        for metric in EVERY.values():
            found = {t.target: r.delta for t in self.measured for r in t.rows if r.metric is metric}
            deltas = {t: d for t, d in found.items() if d is not None}
            if any(deltas.values()):
                same = len(set(deltas.values())) == 1 if len(deltas) > 1 else None
                out.append(Difference(metric, deltas, same))
        return tuple(out)


def compare(old: Measured | None, new: Measured) -> Comparison:
    """Compare on the targets of `new`; with `old` None, its numbers alone."""
    return Comparison(old, new, tuple(_on_target(t, old, new) for t in new.accounts))


def _on_target(target: str, old: Measured | None, new: Measured) -> OnTarget:
    after = new.accounts[target]
    before = old.accounts.get(target) if old is not None else None
    if isinstance(after, Absent) or isinstance(before, Absent) or (old is not None and before is None):
        absent = [(n, a) for n, a in (("old", before), ("new", after)) if isinstance(a, Absent)]
        reasons = list(dict.fromkeys(a.reason for _, a in absent)) or ["old was not measured on it"]
        which = (
            "" if len(absent) == 2 and len(reasons) == 1 or old is None else f"{absent[0][0] if absent else 'old'}: "
        )
        return OnTarget(target, (), which + "; ".join(reasons))
    return OnTarget(target, _rows(before, after), None, _notes(before, after))


def _rows(before: Account | None, after: Account) -> tuple[Row, ...]:
    a, b = (before.metrics if before else {}), after.metrics
    return tuple(Row(m, a.get(m.name), b.get(m.name)) for m in EVERY.values() if m.name in a or m.name in b)


def _notes(before: Account | None, after: Account) -> tuple[str, ...]:
    notes = []
    if before is not None and before.assembler != after.assembler:
        notes.append(f"old by {before.assembler}, new by {after.assembler}: part of the difference may be theirs")
    olds, news = _about(before) if before is not None else [], _about(after)
    if before is None or olds == news:
        return (*notes, *news)
    return (*notes, *(f"old: {n}" for n in olds), *(f"new: {n}" for n in news))


def _about(one: Account) -> list[str]:
    notes = []
    if one.assembled_for != one.target:
        notes.append(f"assembled for {one.assembled_for}")
    if one.unknown:
        notes.append(f"PTX instructions counted as unknown: {_listed(one.unknown)}")
    if one.unclassified:
        notes.append(f"machine opcodes without a class: {_listed(one.unclassified)}")
    return notes


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ×{n}" for name, n in counts.items())
