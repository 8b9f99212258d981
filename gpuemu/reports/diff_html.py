"""`gpuemu diff` as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuemu.accounting.code import CodeChange, heading, lines
from gpuemu.accounting.compare import Comparison, OnTarget, Row
from gpuemu.accounting.gates import Gates, Verdict
from gpuemu.reports.diff_text import MOST_LINES, number, percent, shown_rows, signed, verdict_lines
from gpuemu.reports.page import render


def diff_html(
    comparison: Comparison, code: Sequence[CodeChange], gates: Gates, verdict: Verdict, every: bool = False
) -> str:
    """The whole page; the same comparison gives the same bytes. `every`: all metrics, and all lines of the PTX."""
    old, new = comparison.old, comparison.new
    measured = [t.target for t in comparison.measured]
    found = comparison.differences() if old is not None else ()
    return render(
        "diff.html",
        title=f"{old.name} → {new.name}" if old is not None else new.name,
        pair=old is not None,
        verdict=[
            {"text": line, "kind": "bad" if line.startswith(("FAILED", "UNCHECKED")) else "good"}
            for line in verdict_lines(gates, verdict, comparison)
        ],
        notes=[f"{side.name}: {note}" for side in (old, new) if side is not None for note in side.notes],
        measured=measured,
        same=[{"name": d.metric.name, "delta": signed(next(iter(d.deltas.values())))} for d in found if d.same],
        other=[
            {"name": d.metric.name, "cells": [signed(d.deltas[t]) if t in d.deltas else "none" for t in measured]}
            for d in found
            if not d.same
        ],
        targets=[_target(one, old is not None, every) for one in comparison.targets],
        code=[_code(change, every) for change in code],
    )


def _target(one: OnTarget, pair: bool, every: bool) -> dict[str, Any]:
    return {
        "name": one.target,
        "reason": one.reason,
        "notes": one.notes,
        "rows": [_row(row) for row in shown_rows(one, pair, every)],
    }


def _row(row: Row) -> dict[str, str]:
    return {
        "name": row.metric.name,
        "meaning": row.metric.meaning,
        "old": number(row.old),
        "new": number(row.new),
        "delta": signed(row.delta),
        "percent": percent(row),
        "kind": "bad" if row.worse else "good" if row.changed and row.metric.worse else "",
    }


def _code(change: CodeChange, every: bool) -> dict[str, Any]:
    body = []
    for group in change.groups:
        body.append({"kind": "head", "text": f"@@ {heading(group)} @@"})
        for step in group.changes:
            for line in lines(step):
                body.append({"kind": {"-": "del", "+": "add"}.get(line[0], ""), "text": line})
    if not every and len(body) > MOST_LINES:
        more = {"kind": "head", "text": f"@@ {len(body) - MOST_LINES} more lines, with --all @@"}
        body = [*body[:MOST_LINES], more]
    return {"targets": ", ".join(change.targets), "summary": change.summary(), "lines": body}
