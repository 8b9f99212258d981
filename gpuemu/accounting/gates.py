"""Limits that a change must keep, checked on every target.

    --max-regs N                    registers a thread of NEW
    --max-spills N                  bytes of spill stores and loads of NEW
    --max-increase METRIC=PERCENT   NEW against OLD; from zero, any increase is too much
    --max-decrease METRIC=PERCENT   likewise for a fall: work that is gone is often a bug (an accumulator overwritten
                                    instead of added to takes fewer registers and instructions)
    --explained METRIC=REASON       a fall of this metric is meant; the report says why

A limit that cannot be checked on a target, because a number is missing there, is not kept and not broken: it is
*unchecked*, and the command exits with 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuemu.accounting.compare import Comparison, Row
from ptx.accounting.account import Account
from ptx.accounting.metrics import DYNAMIC, EVERY, check_metrics
from ptx.errors import InvalidInput

REGISTERS = "launch__registers_per_thread"
SPILLS = ("ptxas__spill_stores_bytes", "ptxas__spill_loads_bytes")


@dataclass(frozen=True, slots=True)
class Gates:
    """None and empty: no limit."""

    max_regs: int | None = None
    max_spills: int | None = None
    max_increase: dict[str, float] = field(default_factory=dict)
    max_decrease: dict[str, float] = field(default_factory=dict)
    explained: dict[str, str] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        limits = self.max_regs, self.max_spills, self.max_increase or None, self.max_decrease or None
        return any(limit is not None for limit in limits)


@dataclass(frozen=True, slots=True)
class Broken:
    """A limit that NEW breaks on a target. `rule`: too-many-registers, too-many-spills, too-large-increase or
    unexplained-decrease."""

    rule: str
    target: str
    metric: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """`unchecked`: sentences about limits that could not be looked at."""

    broken: tuple[Broken, ...]
    unchecked: tuple[str, ...]


def parse_increases(texts: tuple[str, ...]) -> dict[str, float]:
    """`METRIC=PERCENT` as the command line has it. Raises InvalidInput."""
    out = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            out[name] = float(value.removesuffix("%"))
        except ValueError:
            equals = ""
        if not equals:
            raise InvalidInput(f"cannot read the limit '{text}'", help=f"METRIC=PERCENT, for example {REGISTERS}=5")
    check_metrics(out)
    return out


def parse_explanations(texts: tuple[str, ...]) -> dict[str, str]:
    """`METRIC=REASON` as the command line has it. Raises InvalidInput."""
    out = {}
    for text in texts:
        name, _, reason = text.partition("=")
        if not reason.strip():
            raise InvalidInput(f"cannot read '{text}'", help="METRIC=REASON, for example sass__inst='loop removed'")
        out[name] = reason.strip()
    check_metrics(dict.fromkeys(out, 0.0))
    return out


def check(gates: Gates, comparison: Comparison) -> Verdict:
    """Look at every limit on every target that was measured."""
    if (gates.max_increase or gates.max_decrease) and comparison.old is None:
        raise InvalidInput("--max-increase and --max-decrease compare: give OLD and NEW")
    broken: list[Broken] = []
    unchecked = _not_launched(comparison)
    for one in comparison.measured:
        rows = {r.metric.name: r for r in one.rows}
        if gates.max_regs is not None:
            used = rows[REGISTERS].new if REGISTERS in rows else None
            if used is None:
                unchecked.append(f"{one.target}: registers are not known")
            elif used > gates.max_regs:
                message = f"{used} registers a thread on {one.target}, at most {gates.max_regs} are allowed"
                broken.append(Broken("too-many-registers", one.target, REGISTERS, message))
        if gates.max_spills is not None:
            parts = [rows[name].new if name in rows else None for name in SPILLS]
            spilled = sum(n for n in parts if n is not None)
            if None in parts:
                unchecked.append(f"{one.target}: spills are not known")
            elif spilled > gates.max_spills:
                message = f"{spilled} bytes of spills on {one.target}, at most {gates.max_spills} are allowed"
                broken.append(Broken("too-many-spills", one.target, SPILLS[0], message))
        limits = [(name, percent, _too_large) for name, percent in gates.max_increase.items()]
        limits += [(name, percent, _fallen) for name, percent in gates.max_decrease.items()]
        for name, percent, judge in limits:
            if name not in rows or rows[name].old is None or rows[name].new is None:
                how = "" if EVERY[name].level != "dynamic" else ": it is counted with --dynamic"
                unchecked.append(f"{one.target}: {name} is not known on both sides{how}")
            elif (said := judge(rows[name], percent)) is not None and not (
                judge is _fallen and name in gates.explained
            ):
                rule = "unexplained-decrease" if judge is _fallen else "too-large-increase"
                broken.append(Broken(rule, one.target, name, f"{said} on {one.target}"))
    return Verdict(tuple(broken), tuple(unchecked))


def _not_launched(comparison: Comparison) -> list[str]:
    """Launches that were asked for and gave no numbers."""
    found = []
    for one in comparison.measured:
        for name, side in (("old", comparison.old), ("new", comparison.new)):
            account = side.accounts.get(one.target) if side is not None else None
            if isinstance(account, Account) and (why := account.missing.get(DYNAMIC[0].name)) is not None:
                found.append(f"{one.target}: no dynamic numbers of {name}: {why}")
    return found


def _too_large(row: Row, percent: float) -> str | None:
    assert row.old is not None and row.new is not None
    if row.new <= row.old * (1 + percent / 100):
        return None
    grown = f"{row.percent:+.1f} %" if row.percent is not None else "from zero"
    return f"{row.metric.name} rose from {row.old:g} to {row.new:g} ({grown}), at most {percent:+g} % is allowed"


def _fallen(row: Row, percent: float) -> str | None:
    assert row.old is not None and row.new is not None
    if row.new >= row.old * (1 - percent / 100):
        return None
    return (
        f"{row.metric.name} fell from {row.old:g} to {row.new:g} ({row.percent:+.1f} %), at most -{percent:g} % is "
        f"allowed without --explained"
    )
