"""`gpuemu diff` for people: tables with rich, then what is the same on all targets, the PTX, the limits.

The same comparison gives the same text when it does not go to a terminal: no colour, fixed width.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpuemu.accounting.code import CodeChange, heading, lines
from gpuemu.accounting.compare import Comparison, Difference, Number, OnTarget, Row
from gpuemu.accounting.gates import Gates, Verdict

HEADLINE = (
    "ptx__registers_live_max", "ptx__inst", "launch__registers_per_thread", "ptxas__spill_stores_bytes",
    "ptxas__spill_loads_bytes", "sass__code_bytes", "sass__inst", "occupancy__ctas_per_sm",
    "sm__maximum_warps_per_active_cycle_pct", "smsp__inst_executed", "smsp__thread_inst_executed",
    "ptx__bytes_global", "ptx__flops",
)  # fmt: skip
"""Metrics that are always shown, if they are known; the others where they changed."""
MOST_LINES = 200
_WIDTH = 120


def diff_text(
    comparison: Comparison,
    code: Sequence[CodeChange],
    gates: Gates,
    verdict: Verdict,
    every: bool = False,
    colour: bool = False,
    width: int | None = None,
) -> str:
    """The whole report. `every`: all metrics, and all lines of the PTX comparison. `width`: columns of a terminal that
    it must fit into."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=min(_WIDTH, width or _WIDTH),
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
    )
    old, new = comparison.old, comparison.new
    console.print(f"{old.name} -> {new.name}" if old else new.name)
    for side in (old, new):
        for note in side.notes if side else ():
            console.print(f"note: {side.name if side else ''}: {note}")
    for one in comparison.targets:
        console.print()
        if one.reason is not None:
            console.print(f"{one.target}: not available: {one.reason}")
            continue
        console.print(_table(one, comparison, every))
        for note in one.notes:
            console.print(f"  note: {note}")
    if old is not None:
        console.print()
        console.print("\n".join(summary_lines(comparison)))
        for change in code:
            console.print()
            _print_code(console, change, every)
    console.print()
    console.print("\n".join(verdict_lines(gates, verdict, comparison)))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _table(one: OnTarget, comparison: Comparison, every: bool) -> Table:
    table = Table(title=_title(one, comparison), title_justify="left", box=None, pad_edge=False)
    table.add_column("metric")
    pair = comparison.old is not None
    for name in ("old", "new", "Δ", "%") if pair else ("value",):
        table.add_column(name, justify="right")
    for row in shown_rows(one, pair, every):
        cells = [number(row.old), number(row.new), signed(row.delta), percent(row)] if pair else [number(row.new)]
        style = "red" if row.worse else "green" if row.changed and row.metric.worse else ""
        table.add_row(row.metric.name, *(Text(c, style=style) for c in cells))
    return table


def _title(one: OnTarget, comparison: Comparison) -> str:
    from ptx.accounting.account import Account

    def limiter(account: object) -> str:
        return " and ".join(account.limiters) if isinstance(account, Account) and account.limiters else "unknown"

    after = limiter(comparison.new.accounts.get(one.target))
    before = limiter(comparison.old.accounts.get(one.target)) if comparison.old else after
    return f"{one.target} (occupancy limited by {after if before == after else f'{before}, now {after}'})"


def shown_rows(one: OnTarget, pair: bool, every: bool) -> Iterable[Row]:
    """The rows of a target that a report for people has: headlines and changes; alone, what is not zero."""
    for row in one.rows:
        if every or row.metric.name in HEADLINE or (row.changed if pair else row.new):
            yield row


def number(value: Number | None) -> str:
    """A value, or 'none' where there is no such number."""
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def signed(value: Number | None) -> str:
    """A difference with its sign."""
    return "" if value is None else "0" if value == 0 else f"{value:+g}"


def percent(row: Row) -> str:
    """The relative difference, where there is one."""
    return f"{row.percent:+.1f}" if row.percent else ""


def summary_lines(comparison: Comparison) -> list[str]:
    """Which differences are the same on all targets, and which are not."""
    names = [t.target for t in comparison.measured]
    if not names:
        return ["no target was measured on both sides"]
    found = comparison.differences()
    if not found:
        return [f"no metric changed on {', '.join(names)}"]
    if len(names) == 1:
        return [f"{len(found)} metrics changed on {names[0]}; with one target nothing can be said about others"]
    out = []
    for same, words in (
        (True, f"the same on all of {', '.join(names)} (architecture-independent here):"),
        (False, "not the same on all targets:"),
    ):
        members = [d for d in found if bool(d.same) == same]
        if members:
            out += [words, *(f"  {difference_line(d)}" for d in members)]
    return out


def difference_line(d: Difference) -> str:
    """`launch__registers_per_thread: +3`, or each target's own."""
    if d.same:
        return f"{d.metric.name}: {signed(next(iter(d.deltas.values())))}"
    return f"{d.metric.name}: " + ", ".join(f"{t} {signed(v)}" for t, v in d.deltas.items())


def _print_code(console: Console, change: CodeChange, every: bool) -> None:
    console.print(f"PTX for {', '.join(change.targets)}: {change.summary()}")
    left = None if every else MOST_LINES
    for group in change.groups:
        if left is not None and left <= 0:
            console.print("  ... the rest is in --all, and in --format json")
            return
        console.print(f"  {heading(group)}")
        for step in group.changes:
            for line in lines(step):
                style = {"-": "red", "+": "green"}.get(line[0], "yellow")
                console.print(Text(f"    {line}", style=style), soft_wrap=True)
                left = None if left is None else left - 1


def verdict_lines(gates: Gates, verdict: Verdict, comparison: Comparison) -> list[str]:
    """What the limits say, last."""
    out = [f"FAILED {b.message}" for b in verdict.broken]
    out += [f"UNCHECKED {reason}" for reason in verdict.unchecked]
    if not out:
        count = len(comparison.measured)
        where = f"{count} target{'' if count == 1 else 's'}"
        out.append(f"all limits kept on {where}" if gates.any else f"measured on {where}; no limits set")
    return out
