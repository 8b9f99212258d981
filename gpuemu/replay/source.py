"""Runs a replay's case from the kernel's source as it is now, where that source is at hand.

A replay alone answers "is this what was recorded?". After a fix the question is "does it pass now?": the same case
(same seed, so the same inputs) is run from the op's file in this checkout. Only a file inside the repository is loaded,
by the relative path in the record; without it, or without Triton, the answer is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpuemu.replay.format import ReplayRecord


@dataclass(frozen=True, slots=True)
class SourceRun:
    """`verdict` of the case as in a sweep, and a line of words."""

    verdict: str
    words: str


def run_source(record: ReplayRecord, root: Path) -> SourceRun | None:
    """Run the case from source; None when its file or its op is not in this repository."""
    from gpuemu.bounds import family_of
    from gpuemu.gate.discover import load_file
    from gpuemu.gate.execute import CaseRunner, Settings, reason_of

    file = (root / record.case.file).resolve()
    if not file.is_relative_to(root.resolve()) or not file.is_file():
        return None
    try:
        ops = {op.name: op for op in load_file(file)}
    except ImportError:
        return None
    except Exception as error:
        return SourceRun("unchecked", f"the source cannot be loaded now: {reason_of(error)}")
    op = ops.get(record.case.op)
    if op is None:
        return None
    case = msgspec.structs.replace(record.case, file=str(file))
    factors = {family: record.factor} if (family := family_of(op.bound)) is not None else {}
    result = CaseRunner(Settings(root=str(root), replays=None, factors=factors), {(str(file), op.name): op})(case)
    if result.verdict == "finding":
        return SourceRun("finding", f"the source as it is now fails too: {result.problems[0].message}")
    if result.verdict == "unchecked":
        return SourceRun("unchecked", f"the source as it is now could not be checked: {result.reason}")
    return SourceRun(result.verdict, "the source as it is now passes this case")
