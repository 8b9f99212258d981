"""The report for people: each bug with its smallest case, then what was not checked, then a table of the ops."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gpuemu.gate.results import Bug, CaseResult, SweepResult
from gpuemu.replay.portable import portable_path
from gpuemu.reports.rules import rule_of


def replay_command(bug: Bug) -> str:
    """The line that executes the bug's shown case again."""
    return f"gpuemu reproduce {bug.shown.case.seed_text}"


def place_of(bug: Bug, root: str) -> str:
    """file:line relative to the root."""
    file = portable_path(bug.file, Path(root))
    return f"{file}:{bug.line}" if bug.line else file


def text_report(result: SweepResult) -> str:
    """The whole report, without times (it is the same for the same sweep)."""
    lines: list[str] = []
    for bug in result.bugs:
        lines += [*bug_lines(bug, result), ""]
    lines += unchecked_lines(result)
    lines += table_lines(result)
    lines.append(summary_line(result))
    return "\n".join(lines) + "\n"


def bug_lines(bug: Bug, result: SweepResult) -> list[str]:
    """One bug."""
    shown = bug.shown
    same_op = sum(c.case.op == bug.op for c in result.cases)
    lines = [
        f"FINDING {place_of(bug, result.root)}  {rule_of(bug.kind).id}",
        f"  op {bug.op}: {len(bug.cases)} of {same_op} cases",
        f"  {shown.problems[0].message}",
        f"  case:   {shown.case.label()}{layout_words(shown)}",
        f"  bound:  {shown.model}",
    ]
    lines += [f"  also:   {p.message}" for p in shown.problems[1:3]]
    lines += [f"  note:   {note}" for note in shown.exactness]
    if shown.replay:
        lines.append(f"  replay: {replay_command(bug)}")
    if shown.replay_error:
        lines.append(f"  replay: not written: {shown.replay_error}")
    return lines


def layout_words(shown: CaseResult) -> str:
    """How the arguments of a case lie in memory, where that is not dense."""
    kinds: dict[str, list[str]] = {}
    for name, kind in shown.layouts.items():
        kinds.setdefault(kind, []).append(name)
    words = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
    return f" ({words})" if words else ""


def unchecked_lines(result: SweepResult) -> list[str]:
    """What was not checked: each reason once, with how many cases and the first of them."""
    lines = [f"UNCHECKED {portable_path(b.file, Path(result.root))}: {b.reason}" for b in result.broken]
    reasons: dict[tuple[str, str], list[str]] = {}
    for case in result.of("unchecked"):
        reasons.setdefault((case.case.op, case.reason or ""), []).append(case.case.label())
    for (op, reason), labels in reasons.items():
        lines += [f"UNCHECKED op {op}, {len(labels)} cases: {reason}", f"  first: {labels[0]}"]
    if not result.cases and not result.broken and result.planned is None:
        lines.append(f"UNCHECKED: nothing to run: {nothing_words(result)}")
    return [*lines, ""] if lines else []


def nothing_words(result: SweepResult) -> str:
    """Why a sweep had no case."""
    if not result.ops:
        return "no op was found (an op is a function under @gpuemu.op; `gpuemu init` writes one)"
    own = f"op {result.ops[0]} has no case" if len(result.ops) == 1 else f"none of {len(result.ops)} ops has a case"
    return f"{own} with the dtypes, distributions and targets that were asked for"


def table_lines(result: SweepResult) -> list[str]:
    """One row for each op. 'of bound' is the largest share of the error bound that a passing case used."""
    rows = [("op", "cases", "pass", "borderline", "finding", "unchecked", "of bound")]
    for op in dict.fromkeys(c.case.op for c in result.cases):
        own = [c for c in result.cases if c.case.op == op]
        count = Counter(c.verdict for c in own)
        used = [x.worst_ratio for c in own if c.verdict in ("pass", "borderline") for x in c.comparisons]
        rows.append(
            (
                op, str(len(own)), str(count["pass"]), str(count["borderline"]), str(count["finding"]),
                str(count["unchecked"]), f"{max(used):.2f}" if used else "-",
            )
        )  # fmt: skip
    if len(rows) == 1:
        return []
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True)))
        for r in rows
    ] + [""]


def summary_line(result: SweepResult) -> str:
    """The last line."""
    bugs, unchecked = len(result.bugs), len(result.of("unchecked")) + len(result.broken)
    border = len(result.of("borderline"))
    of = "" if result.planned is None else f" of {result.planned}"
    words = [f"{len(result.cases)}{of} cases", f"{bugs} finding{'s' if bugs != 1 else ''}"]
    words += [f"{len(result.of('finding'))} cases wrong"] if bugs else []
    words += [f"{border} borderline"] if border else []
    words += [f"{unchecked} unchecked"] if unchecked else []
    verdict = {0: "clean", 1: "findings", 3: "not checked", 130: "interrupted"}[result.exit_code]
    words += ["gate not alive"] if result.dead else []
    fmad = f", fmad {result.fmad}" if result.fmad is not None else ""
    return f"{verdict}: {', '.join(words)} (seed {result.seed}{fmad})"
