"""`gpuemu diff` as a comment on a pull request: Markdown that GitHub shows, long parts folded."""

from __future__ import annotations

from collections.abc import Sequence

from gpuemu.accounting.code import CodeChange, heading, lines
from gpuemu.accounting.compare import Comparison
from gpuemu.accounting.gates import Gates, Verdict
from gpuemu.reports.diff_text import HEADLINE, MOST_LINES, number, percent, shown_rows, signed, verdict_lines


def diff_markdown(comparison: Comparison, code: Sequence[CodeChange], gates: Gates, verdict: Verdict) -> str:
    """The whole comment."""
    old, new = comparison.old, comparison.new
    out = [f"### Registers and instructions: `{old.name}` → `{new.name}`" if old else f"### `{new.name}`", ""]
    out += [f"- {line}" for line in verdict_lines(gates, verdict, comparison)]
    out.append("")
    out += _overview(comparison)
    if old is not None:
        out += _independence(comparison)
    for one in comparison.targets:
        if one.reason is not None:
            out += [f"**{one.target}**: not available: {one.reason}", ""]
            continue
        rows = list(shown_rows(one, old is not None, False))
        out += ["<details>", f"<summary>{one.target}: {len(rows)} metrics</summary>", ""]
        out += ["| metric | old | new | Δ | % |", "|---|--:|--:|--:|--:|"]
        out += [
            " | ".join(
                (f"| `{r.metric.name}`", number(r.old) if old else "", number(r.new), signed(r.delta), percent(r))
            )
            + " |"
            for r in rows
        ]
        out += ["", *(f"- {note}" for note in one.notes), *([""] if one.notes else []), "</details>", ""]
    for change in code:
        out += _code(change)
    return "\n".join(out).rstrip() + "\n"


def _overview(comparison: Comparison) -> list[str]:
    """One line a target, the headline metrics across."""
    measured = comparison.measured
    if not measured:
        return []
    known = {r.metric.name for one in measured for r in one.rows}
    names = [name for name in HEADLINE if name in known]
    out = ["| target | " + " | ".join(f"`{name}`" for name in names) + " |", "|---" + "|--:" * len(names) + "|"]
    for one in measured:
        rows = {r.metric.name: r for r in one.rows}
        cells = []
        for name in names:
            row = rows.get(name)
            if row is None:
                cells.append("none")
            elif comparison.old is None or not row.changed:
                cells.append(number(row.new))
            else:
                mark = "**" if row.worse else ""
                cells.append(f"{number(row.old)} → {mark}{number(row.new)}{mark}")
        out.append(f"| {one.target} | " + " | ".join(cells) + " |")
    return [*out, ""]


def _independence(comparison: Comparison) -> list[str]:
    names = [t.target for t in comparison.measured]
    found = comparison.differences()
    if not names or not found:
        return ["No metric changed." if names else "Nothing was measured on both sides.", ""]
    same = [d for d in found if d.same]
    other = [d for d in found if d.same is False]
    out = []
    if same:
        listed = ", ".join(f"`{d.metric.name}` {signed(next(iter(d.deltas.values())))}" for d in same)
        out += [f"**The same on {', '.join(names)}** (architecture-independent here): {listed}", ""]
    if other:
        out += ["| differs by target | " + " | ".join(names) + " |", "|---" + "|--:" * len(names) + "|"]
        for d in other:
            cells = [signed(d.deltas[n]) if n in d.deltas else "none" for n in names]
            out.append(f"| `{d.metric.name}` | " + " | ".join(cells) + " |")
        out.append("")
    return out


def _code(change: CodeChange) -> list[str]:
    out = ["<details>", f"<summary>PTX for {', '.join(change.targets)}: {change.summary()}</summary>", "", "```diff"]
    body: list[str] = []
    for group in change.groups:
        body.append(f"@@ {heading(group)} @@")
        for step in group.changes:
            # GitHub colours lines by their first sign; a changed operand is a removal and an addition there.
            for line in lines(step):
                now, was, before = line.partition("    // was: ")
                body += [f"- {before}", f"+ {now[2:]}"] if was else [line]
    if len(body) > MOST_LINES:
        body = [*body[:MOST_LINES], f"@@ {len(body) - MOST_LINES} more lines @@"]
    return [*out, *body, "```", "", "</details>", ""]
