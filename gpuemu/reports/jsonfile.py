"""The report for programs: a JSON object with the sweep's bugs, unchecked cases, and one line of facts for each case.

Bytes are the same for the same sweep: no times, no absolute paths, keys in a fixed order. Floats that JSON cannot hold
(infinities) are null. `format` rises when a field changes meaning.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gpuemu.gate.results import CaseResult, SweepResult
from gpuemu.replay.portable import portable_path
from gpuemu.reports.rules import rule_of
from gpuemu.reports.text import replay_command

FORMAT = 1


def json_report(result: SweepResult) -> bytes:
    """The report as UTF-8 JSON with a final newline."""
    root = Path(result.root)
    bugs = [
        {
            "rule": rule_of(bug.kind).id,
            "kind": bug.kind,
            "op": bug.op,
            "file": portable_path(bug.file, root),
            "line": bug.line,
            "message": bug.problem.message,
            "error": bug.problem.error,
            "allowed": bug.problem.allowed,
            "ulps": bug.problem.ulps,
            "model": bug.shown.model,
            "cases": [c.case.seed_text for c in bug.cases],
            "replay": bug.shown.replay,
            "reproduce": replay_command(bug),
        }
        for bug in result.bugs
    ]
    report: dict[str, Any] = {
        "format": FORMAT,
        "seed": result.seed,
        "fmad": result.fmad,
        "exit_code": result.exit_code,
        "interrupted": result.planned is not None,
        "bugs": bugs,
        "broken_files": [{"file": portable_path(b.file, root), "reason": b.reason} for b in result.broken],
        "ops": _ops(result),
        "cases": [_case(c) for c in result.cases],
    }
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def _ops(result: SweepResult) -> dict[str, dict[str, int]]:
    """By op: cases, and instructions that their threads executed."""
    found: dict[str, dict[str, int]] = {}
    for c in result.cases:
        op = found.setdefault(c.case.op, {"cases": 0, "instructions": 0})
        op["cases"] += 1
        op["instructions"] += c.instructions
    return found


def _case(result: CaseResult) -> dict[str, Any]:
    case = result.case
    return {
        "seed": case.seed_text,
        "op": case.op,
        "dims": case.dims,
        "dtype": case.dtype,
        "distribution": case.distribution,
        "target": case.target,
        "option": case.option,
        "fmad": case.fmad,
        "verdict": result.verdict,
        "reason": result.reason,
        "problems": [{"kind": p.kind, "message": p.message, "line": p.line} for p in result.problems],
        "worst_ratio": {c.output: c.worst_ratio for c in result.comparisons},
        "share": {c.output: c.share for c in result.comparisons},
        "layouts": result.layouts,
        "exactness": result.exactness,
        "instructions": result.instructions,
        "replay": result.replay,
    }
