"""SARIF 2.1.0 for code scanning: one result a bug, with file, line, rule and stable fingerprints.

Built with sarif-om's classes. What GitHub requires of a result: a rule id, a message, a physical location with a
relative URI and a start line, and partial fingerprints that survive edits elsewhere in the file (made here from rule,
op, file and the text of the line, not its number). Cases that could not be checked become tool notifications with
`executionSuccessful: false`: an upload never looks clean because nothing ran.

Bytes are the same for the same sweep. Source: OASIS SARIF 2.1.0; GitHub "SARIF support for code scanning".
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gpuemu.gate.results import Bug, SweepResult
from gpuemu.replay.portable import portable_path
from gpuemu.replay.write import tool_version
from gpuemu.reports.rules import Rule, rule_of
from gpuemu.reports.text import replay_command

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "gpuemuBug/v1"


def sarif_report(result: SweepResult) -> bytes:
    """The report as UTF-8 JSON with a final newline."""
    import sarif_om as om

    root = Path(result.root)
    bugs = result.bugs
    rules: list[Rule] = list(dict.fromkeys(rule_of(b.kind) for b in bugs))
    driver = om.ToolComponent(
        name="gpuemu",
        semantic_version=tool_version() if tool_version() != "unknown" else None,
        rules=[
            om.ReportingDescriptor(
                id=r.id,
                name="".join(w.capitalize() for w in r.id.partition("/")[2].split("-")),
                short_description=om.MultiformatMessageString(text=r.title),
                full_description=om.MultiformatMessageString(text=f"{r.title}. {r.help}"),
                help=om.MultiformatMessageString(text=r.help),
                default_configuration=om.ReportingConfiguration(level="error"),
                properties={"tags": ["correctness", "gpu"], "precision": "very-high", "problem.severity": "error"},
            )
            for r in rules
        ],
    )
    run = om.Run(
        tool=om.Tool(driver=driver),
        invocations=[
            om.Invocation(
                execution_successful=result.exit_code in (0, 1) and not result.of("unchecked") and not result.broken,
                tool_execution_notifications=_notifications(result, root, om),
            )
        ],
        original_uri_base_ids={"SRCROOT": om.ArtifactLocation(description=om.Message(text="root of the repository"))},
        column_kind="unicodeCodePoints",
        results=[_result(b, result, rules, root, om) for b in bugs],
        properties={"seed": result.seed, "cases": len(result.cases)},
    )
    log = om.SarifLog(version="2.1.0", schema_uri=SCHEMA, runs=[run])
    return (json.dumps(plain(log), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _result(bug: Bug, sweep: SweepResult, rules: list[Rule], root: Path, om: Any) -> Any:
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
    for key, value in (("error", problem.error), ("allowed", problem.allowed), ("replay", shown.replay)):
        if value is not None:
            properties[key] = value
    uri = quote(portable_path(bug.file, root))
    return om.Result(
        rule_id=rule.id,
        rule_index=rules.index(rule),
        level="error",
        message=om.Message(text=text),
        locations=[
            om.Location(
                physical_location=om.PhysicalLocation(
                    artifact_location=om.ArtifactLocation(uri=uri, uri_base_id="SRCROOT"),
                    region=om.Region(start_line=bug.line or 1),
                ),
                logical_locations=[om.LogicalLocation(name=bug.op, kind="function")],
            )
        ],
        partial_fingerprints={FINGERPRINT: fingerprint(bug, root)},
        properties=properties,
    )


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


def _notifications(result: SweepResult, root: Path, om: Any) -> list[Any]:
    texts = [f"{portable_path(b.file, root)} could not be loaded: {b.reason}" for b in result.broken]
    texts += [f"{c.case.label()} was not checked: {c.reason}" for c in result.of("unchecked")]
    if result.planned is not None:
        texts.append(f"interrupted: {len(result.cases)} of {result.planned} cases were run")
    elif not result.cases and not result.broken:
        texts.append("nothing to run: no op was found")
    return [om.Notification(level="error", message=om.Message(text=t)) for t in texts]


def plain(value: Any) -> Any:
    """A sarif-om object as JSON data: SARIF's names, without empty and default fields."""
    import attr

    if attr.has(type(value)):
        out = {}
        for field in attr.fields(type(value)):
            item = getattr(value, field.name)
            default = field.default
            if item is None or (item == default and not field.metadata.get("required") and field.name != "rule_index"):
                continue
            out[field.metadata["schema_property_name"]] = plain(item)
        return out
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
