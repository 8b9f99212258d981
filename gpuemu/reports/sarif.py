"""SARIF 2.1.0 for code scanning: one result a bug, with file, line, rule and stable fingerprints.

Built with sarif-om's classes. What GitHub requires of a result: a rule id, a message, a physical location with a
relative URI and a start line, and partial fingerprints that survive edits elsewhere in the file (made here from rule,
op, file and the text of the line, not its number). Cases that could not be checked become tool notifications with
`executionSuccessful: false`: an upload never looks clean because nothing ran.

Bytes are the same for the same sweep. Source: OASIS SARIF 2.1.0; GitHub "SARIF support for code scanning".
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from gpuemu.gate.results import Bug, SweepResult
from gpuemu.replay.portable import portable_path
from gpuemu.reports.rules import Rule, rule_of
from gpuemu.reports.sarif_log import result_at, sarif_log
from gpuemu.reports.text import nothing_words, replay_command

FINGERPRINT = "gpuemuBug/v1"


def sarif_report(result: SweepResult) -> bytes:
    """The report as UTF-8 JSON with a final newline."""
    root = Path(result.root)
    bugs = result.bugs
    rules: list[Rule] = list(dict.fromkeys(rule_of(b.kind) for b in bugs))
    return sarif_log(
        rules, [_result(b, result, rules, root) for b in bugs], tag="correctness",
        successful=result.exit_code in (0, 1)
        and not (result.of("unchecked") or result.broken or result.dead),
        notifications=_notifications(result, root), properties={
            "seed": result.seed, "cases": len(result.cases), **({"fmad": result.fmad} if result.fmad else {}),
        },
    )  # fmt: skip


def _result(bug: Bug, sweep: SweepResult, rules: list[Rule], root: Path) -> Any:
    rule, shown, problem = rule_of(bug.kind), bug.shown, bug.problem
    same_op = sum(c.case.op == bug.op for c in sweep.cases)
    text = (
        f"{problem.message}. Op {bug.op}, {len(bug.cases)} of {same_op} cases; smallest: {shown.case.label()}. "
        f"Bound: {shown.model}."
    )
    if shown.exactness:
        text += f" Note: {'; '.join(shown.exactness)}."
    if shown.replay:
        text += f" Replay: {replay_command(bug)}"
    elif shown.replay_error:
        text += f" No replay was written: {shown.replay_error}."
    properties: dict[str, Any] = {
        "op": bug.op,
        "cases": [c.case.seed_text for c in bug.cases],
        "reproduce": replay_command(bug),
    }
    for key, value in (
        ("error", problem.error), ("allowed", problem.allowed), ("ulps", problem.ulps), ("replay", shown.replay),
    ):  # fmt: skip
        if value is not None:
            properties[key] = value
    return result_at(
        rule, rules.index(rule), text, file=portable_path(bug.file, root), line=bug.line, function=bug.op,
        fingerprints={FINGERPRINT: fingerprint(bug, root)}, properties=properties,
    )  # fmt: skip


def fingerprint(bug: Bug, root: Path) -> str:
    """What stays the same when code moves: rule, op, file, and the text of the line."""
    parts = (rule_of(bug.kind).id, bug.op, portable_path(bug.file, root), source_line(bug.file, bug.line))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def source_line(file: str, line: int | None) -> str:
    """The text of a source line without surrounding space; empty when it cannot be read."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return lines[line - 1].strip() if line and line <= len(lines) else ""


def _notifications(result: SweepResult, root: Path) -> list[str]:
    texts = [f"{portable_path(b.file, root)} could not be loaded: {b.reason}" for b in result.broken]
    texts += [f"{c.case.label()} was not checked: {c.reason}" for c in result.of("unchecked")]
    if result.planned is not None:
        texts.append(f"interrupted: {len(result.cases)} of {result.planned} cases were run")
    elif not result.cases and not result.broken:
        texts.append(f"nothing to run: {nothing_words(result)}")
    if result.alive is not None and result.dead:
        texts.append(f"the gate is not alive: {result.alive.words}")
    return texts
