"""`gpuemu diff` for programs: JSON with everything, SARIF with the limits that were broken.

Bytes are the same for the same comparison: no times, no absolute paths. `format` of the JSON rises when a field changes
its meaning. In SARIF each broken limit is a result at the kernel; what could not be measured is a tool notification
with `executionSuccessful: false`, as in the report of a sweep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from gpuemu.accounting.code import CodeChange
from gpuemu.accounting.compare import Comparison
from gpuemu.accounting.gates import Broken, Verdict
from gpuemu.accounting.measure import Measured
from gpuemu.reports.rules import Rule
from gpuemu.reports.sarif_log import result_at, sarif_log
from ptx.accounting.account import Account
from ptx.printer import print_instruction

FORMAT = 1
FINGERPRINT = "gpuemuLimit/v1"

RULES = {
    "too-many-registers": Rule(
        "gpuemu/too-many-registers", "A kernel takes more registers than allowed",
        "More registers a thread mean fewer warps on a multiprocessor. The limit is --max-regs, or max_regs in "
        "[tool.gpuemu.diff]; `gpuemu diff` shows the instructions that changed, by source line.",
    ),
    "too-many-spills": Rule(
        "gpuemu/too-many-spills", "A kernel spills more registers than allowed",
        "Spilled registers live in local memory. The limit is --max-spills, or max_spills in [tool.gpuemu.diff].",
    ),
    "too-large-increase": Rule(
        "gpuemu/too-large-increase", "A metric of a kernel rose by more than allowed",
        "The limit is --max-increase METRIC=PERCENT, or max_increase in [tool.gpuemu.diff].",
    ),
    "unexplained-decrease": Rule(
        "gpuemu/unexplained-decrease", "A metric of a kernel fell by more than is allowed without a reason",
        "Work that is gone is often a bug: a term that is no longer added, a mask that hides too much. The limit is "
        "--max-decrease METRIC=PERCENT, or max_decrease in [tool.gpuemu.diff]; --explained METRIC=REASON says that the "
        "fall is meant.",
    ),
}  # fmt: skip


def diff_json(comparison: Comparison, code: Sequence[CodeChange], verdict: Verdict, exit_code: int) -> bytes:
    """The comparison as UTF-8 JSON with a final newline."""
    report: dict[str, Any] = {
        "format": FORMAT,
        "exit_code": exit_code,
        "old": _side(comparison.old) if comparison.old else None,
        "new": _side(comparison.new),
        "targets": {
            t.target: {
                "not_available": t.reason,
                "notes": t.notes,
                "metrics": {r.metric.name: {"old": r.old, "new": r.new, "delta": r.delta} for r in t.rows},
            }
            for t in comparison.targets
        },
        "differences": [
            {"metric": d.metric.name, "same_on_all_targets": d.same, "deltas": d.deltas}
            for d in (comparison.differences() if comparison.old else ())
        ],
        "ptx": [
            {
                "targets": c.targets,
                "counts": c.counts,
                "lines": [
                    {
                        "file": g.file,
                        "line": g.line,
                        "gone": g.gone,
                        "changes": [
                            {
                                "kind": s.kind,
                                "old": print_instruction(s.old) if s.old else None,
                                "new": print_instruction(s.new) if s.new else None,
                                "old_ptx_line": s.old.loc.ptx_line if s.old else None,
                                "new_ptx_line": s.new.loc.ptx_line if s.new else None,
                            }
                            for s in g.changes
                        ],
                    }
                    for g in c.groups
                ],
            }
            for c in code
        ],
        "broken": [
            {"rule": b.rule, "target": b.target, "metric": b.metric, "message": b.message} for b in verdict.broken
        ],
        "unchecked": verdict.unchecked,
    }
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def _side(side: Measured) -> dict[str, Any]:
    return {
        "name": side.name,
        "kernel": side.kernel,
        "file": side.file,
        "line": side.line,
        "notes": side.notes,
        "accounts": {
            target: {
                "assembler": a.assembler,
                "assembled_for": a.assembled_for,
                "occupancy_limited_by": a.limiters,
                "most_registers_live_at": a.peak,
                "unknown": a.unknown,
                "unclassified": a.unclassified,
                "missing": a.missing,
            }
            for target, a in side.accounts.items()
            if isinstance(a, Account)
        },
    }


def diff_sarif(comparison: Comparison, verdict: Verdict, complete: bool) -> bytes:
    """Broken limits as SARIF 2.1.0, UTF-8 with a final newline. `complete`: all that was asked for was measured."""
    rules = [RULES[r] for r in dict.fromkeys(b.rule for b in verdict.broken)]
    texts = [f"{t.target} was not measured: {t.reason}" for t in comparison.targets if t.reason is not None]
    texts += [f"limit not checked: {reason}" for reason in verdict.unchecked]
    return sarif_log(
        rules, [_result(b, comparison, rules) for b in verdict.broken], tag="performance", successful=complete,
        notifications=texts, level="note" if complete else "error",
    )  # fmt: skip


def _result(broken: Broken, comparison: Comparison, rules: list[Rule]) -> Any:
    rule, new = RULES[broken.rule], comparison.new
    account = new.accounts[broken.target]
    text = f"{new.kernel}: {broken.message}."
    if isinstance(account, Account) and account.peak is not None and account.peak.file is not None:
        text += f" Most registers live at {account.peak.file}:{account.peak.line}."
    parts = (rule.id, new.kernel, new.file, broken.metric, broken.target)
    return result_at(
        rule, rules.index(rule), text, file=new.file, line=new.line, function=new.kernel,
        fingerprints={FINGERPRINT: hashlib.sha256("\0".join(parts).encode()).hexdigest()},
        properties={"target": broken.target, "metric": broken.metric},
    )  # fmt: skip
