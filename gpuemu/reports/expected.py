"""A baseline: the findings that a sweep must have, no more and no less (`gpuemu ci --expect FILE`).

    [[finding]]
    rule = "gpuemu/wrong-value"
    op = "softmax_tail"
    file = "examples/softmax_bug.py"
    line = "tl.store(...)"            # optional: the text of the line, so that edits above it do not matter

Used where bugs are planted on purpose (examples, tests of the gate itself). Unlike a suppression list it also fails
when an expected finding is gone: a gate that stops seeing a planted bug is broken. A wrong number, a NaN and an element
that is never written are one rule here: which of them a bug shows most depends on the cases that were run.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpuemu.files import unreadable
from gpuemu.gate.results import VALUE_KINDS, SweepResult
from gpuemu.replay.portable import portable_path
from gpuemu.reports.rules import rule_of
from gpuemu.reports.sarif import source_line
from ptx.errors import InvalidInput


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding of the baseline."""

    rule: str
    op: str
    file: str
    line: str | None = None

    def words(self) -> str:
        return f"{self.rule} in {self.file}, op {self.op}" + (f", line: {self.line}" if self.line else "")


class _Baseline(msgspec.Struct, forbid_unknown_fields=True):
    finding: tuple[Expected, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Expected findings that are gone, and findings that nobody expects."""

    missing: tuple[Expected, ...]
    unexpected: tuple[Expected, ...]

    @property
    def none(self) -> bool:
        return not self.missing and not self.unexpected

    def words(self) -> str:
        lines = [f"MISSING {e.words()}" for e in self.missing] + [f"UNEXPECTED {e.words()}" for e in self.unexpected]
        return "\n".join(lines)


def read_expected(file: Path) -> tuple[Expected, ...]:
    """Read a baseline. Raises InvalidInput for a file that is missing or wrong."""
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _Baseline).finding
    except OSError as error:
        raise unreadable(file, error) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InvalidInput(f"{file} is not a baseline: {error}") from error


def compare_expected(result: SweepResult, expected: tuple[Expected, ...]) -> Difference:
    """What differs between a sweep's findings and the baseline."""
    root = Path(result.root)
    left = list(expected)
    unexpected = []
    for bug in result.bugs:
        found = Expected(rule_of(bug.kind).id, bug.op, portable_path(bug.file, root), source_line(bug.file, bug.line))
        match = next((e for e in left if _same(e, found)), None)
        if match is None:
            unexpected.append(found)
        else:
            left.remove(match)
    return Difference(tuple(left), tuple(unexpected))


def _same(expected: Expected, found: Expected) -> bool:
    rules = {rule_of(kind).id for kind in VALUE_KINDS}
    rule = expected.rule == found.rule or {expected.rule, found.rule} <= rules
    line = expected.line is None or expected.line == found.line
    return rule and line and (expected.op, expected.file) == (found.op, found.file)
