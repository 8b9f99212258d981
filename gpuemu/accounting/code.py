"""The PTX of two sides, compared instruction by instruction; once for all targets where the same came out.

The alignment is `ptx.accounting.alignment`; here the steps become lines that every report can print.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from gpuemu.accounting.measure import Measured
from interp.ops import ISA
from ptx import ir
from ptx.accounting.account import entry_of
from ptx.accounting.alignment import ADDED, IMMEDIATES, OPERANDS, REMOVED, SAME, Group, Step, align, changed
from ptx.decode import decode
from ptx.printer import print_instruction

MARKS = {REMOVED: "-", ADDED: "+", IMMEDIATES: "#", OPERANDS: "~"}
"""How a changed instruction is marked: `#` other literals, `~` other registers by data flow (both show the new one)."""


@dataclass(frozen=True, slots=True)
class CodeChange:
    """`targets`: those that it holds for. `counts`: kind of step -> number. `groups`: those that changed."""

    targets: tuple[str, ...]
    counts: dict[str, int]
    groups: tuple[Group, ...]

    def summary(self) -> str:
        """One line about all instructions."""
        words = {REMOVED: "removed", ADDED: "added", IMMEDIATES: "with other literals", OPERANDS: "with other operands"}
        parts = [f"{self.counts[k]} {text}" for k, text in words.items() if self.counts.get(k)]
        return ", ".join([f"{self.counts.get(SAME, 0)} the same", *parts])


def code_changes(old: Measured, new: Measured) -> tuple[CodeChange, ...]:
    """The changes between the texts that the sides have for each target."""
    texts: dict[tuple[str, str], CodeChange] = {}
    merged: dict[tuple[str, ...], CodeChange] = {}
    for target in new.accounts:
        if target not in old.texts or target not in new.texts:
            continue
        pair = old.texts[target], new.texts[target]
        if pair not in texts:
            steps = align(_kernel(pair[0], old.kernel), _kernel(pair[1], new.kernel), ISA)
            texts[pair] = CodeChange((), dict(Counter(s.kind for s in steps)), changed(steps))
        change = texts[pair]
        key = (change.summary(), *(line for g in change.groups for s in g.changes for line in (heading(g), *lines(s))))
        known = merged.get(key, change)
        merged[key] = replace(known, targets=(*known.targets, target))
    return tuple(merged.values())


def _kernel(text: str, name: str) -> ir.Kernel:
    return entry_of(decode(text), name or None)


def heading(group: Group) -> str:
    """Where a group stands: `softmax.py:16`."""
    place = f"{group.file}:{group.line}" if group.file is not None else "no source line"
    return f"{place} (of old)" if group.gone else place


def lines(step: Step) -> tuple[str, ...]:
    """A changed step as marked lines; a changed literal or operand shows what it was behind what it is."""
    mark = MARKS[step.kind]
    if step.old is None or step.new is None:
        one = step.old or step.new
        assert one is not None
        return (f"{mark} {print_instruction(one)}",)
    return (f"{mark} {print_instruction(step.new)}    // was: {print_instruction(step.old)}",)
