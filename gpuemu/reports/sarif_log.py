"""What the SARIF reports share: the log round their results, and a result at a line.

Built with sarif-om's classes; source: OASIS SARIF 2.1.0, GitHub "SARIF support for code scanning". Bytes are the same
for the same content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gpuemu.replay.write import tool_version
from gpuemu.reports.rules import Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(
    rules: Sequence[Rule],
    results: Sequence[Any],
    *,
    tag: str,
    successful: bool,
    notifications: Sequence[str],
    level: str = "error",
    properties: Mapping[str, Any] | None = None,
) -> bytes:
    """The log as UTF-8 JSON with a final newline. `tag`: of its rules; `notifications`: texts about the run, of one
    `level`; `successful`: everything that was asked for was done."""
    import sarif_om as om

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
                properties={"tags": [tag, "gpu"], "precision": "very-high", "problem.severity": "error"},
            )
            for r in rules
        ],
    )
    run = om.Run(
        tool=om.Tool(driver=driver),
        invocations=[
            om.Invocation(
                execution_successful=successful,
                tool_execution_notifications=[
                    om.Notification(level=level, message=om.Message(text=text)) for text in notifications
                ],
            )
        ],
        original_uri_base_ids={"SRCROOT": om.ArtifactLocation(description=om.Message(text="root of the repository"))},
        column_kind="unicodeCodePoints",
        results=list(results),
        properties=None if properties is None else dict(properties),
    )
    log = om.SarifLog(version="2.1.0", schema_uri=SCHEMA, runs=[run])
    return (json.dumps(plain(log), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def result_at(
    rule: Rule,
    index: int,
    text: str,
    *,
    file: str,
    line: int | None,
    function: str,
    fingerprints: Mapping[str, str],
    properties: Mapping[str, Any],
) -> Any:
    """A result of the rule at `index` of the log's rules. `file`: relative to the root of the repository."""
    import sarif_om as om

    return om.Result(
        rule_id=rule.id,
        rule_index=index,
        level="error",
        message=om.Message(text=text),
        locations=[
            om.Location(
                physical_location=om.PhysicalLocation(
                    artifact_location=om.ArtifactLocation(uri=quote(file), uri_base_id="SRCROOT"),
                    region=om.Region(start_line=line or 1),
                ),
                logical_locations=[om.LogicalLocation(name=function, kind="function")],
            )
        ],
        partial_fingerprints=dict(fingerprints),
        properties=dict(properties),
    )


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
