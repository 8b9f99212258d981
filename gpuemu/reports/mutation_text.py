"""The report of a mutation score: survivors first, since they are what a reader acts on; then all by kind and place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gpuemu.mutate.score import Outcome, Score
from gpuemu.replay.portable import portable_path


def mutation_text(score: Score, root: Path, every: bool) -> str:
    """The whole report. `every`: also a line for each caught mutant."""
    lines: list[str] = []
    for verdict, heading in (("survived", "SURVIVED"), ("refused", "REFUSED"), ("caught", "caught")):
        for outcome in score.of(verdict) if verdict != "caught" or every else ():
            planted = outcome.planted
            lines.append(f"{heading} {place_of(outcome, root)}  {planted.kind}: {planted.words}")
            if verdict == "survived":
                lines.append(f"  {outcome.tried} cases of {', '.join(n for _, n in planted.ops)}: nothing found")
            elif outcome.message:
                lines.append(f"  {outcome.by + ': ' if outcome.by else ''}{outcome.message[:200]}")
    lines += ([""] if lines else []) + table(score)
    caught, survived, refused = (len(score.of(v)) for v in ("caught", "survived", "refused"))
    ran = caught + survived
    words = f"{caught} of {ran} caught ({100 * score.share:.1f} %)" if ran else "none ran"
    more = f", {refused} refused: they do not compile or could not be run" if refused else ""
    mode = f" (fmad {score.fmad})" if score.fmad is not None else ""
    lines.append(f"mutation score: {words}{more}{mode}")
    if survived:
        lines.append("a survivor computes the same for every input, or the sweep has no input that shows it")
    return "\n".join(lines) + "\n"


def table(score: Score) -> list[str]:
    """One row for each kind of change."""
    rows: list[tuple[str, ...]] = [("change", "mutants", "caught", "survived", "refused")]
    for kind in dict.fromkeys(o.planted.kind for o in score.outcomes):
        own = [o.verdict for o in score.outcomes if o.planted.kind == kind]
        rows.append((kind, str(len(own)), *(str(own.count(v)) for v in ("caught", "survived", "refused"))))
    widths = [max(len(r[i]) for r in rows) for i in range(5)]
    return [
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True)))
        for r in rows
    ] + [""]


def place_of(outcome: Outcome, root: Path) -> str:
    """file:line of the user's own file."""
    return f"{portable_path(outcome.planted.file, root)}:{outcome.planted.line}"


def mutation_json(score: Score, root: Path) -> bytes:
    """The report for programs: one object for each mutant."""
    report: dict[str, Any] = {
        "format": 1,
        "score": score.share if score.outcomes else None,
        "fmad": score.fmad,
        "mutants": [
            {
                "kind": o.planted.kind, "file": portable_path(o.planted.file, root), "line": o.planted.line,
                "function": o.planted.function, "change": o.planted.words, "ops": [n for _, n in o.planted.ops],
                "verdict": o.verdict, "case": o.by, "message": o.message, "cases": o.tried,
            }
            for o in score.outcomes
        ],
    }  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
