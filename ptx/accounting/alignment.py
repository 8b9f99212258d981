"""Two versions of a kernel, instruction by instruction: what stayed, what changed, what came and went.

A compiler renumbers every register and label when one line changes, so names say nothing. Instructions are compared by
their *shape*: opcode, guard, and operands with registers reduced to their type, labels to 'a label', parameters to
their place. Steps:

1. Match sequences of equal shapes, literals included (`difflib`, after equal ends are cut off).
2. In what is left, match shapes without their literals (immediates, address offsets): `immediates`.
3. Walk the pairs in text order with a one-to-one map of registers, learnt from what each pair writes and first reads.
   A pair that reads other registers than the map says has the same shape and another data flow: `operands`. Without
   this step `add d, a, b` and `add d, a, a` would be equal.

The walk follows the text, not the loops: a register that is first read and later written in text order is taken as
found at that read. Grouping is by the source line of the user's file; a removed instruction is shown under the new
line that most instructions of its old line went to.

Source of the matching: Ratcliff and Metzener's 'gestalt' matching as in Python's difflib, which prefers long common
runs: for compiler output that keeps unchanged code together, where a shortest edit script would scatter it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from ptx import ir
from ptx.accounting.virtual import instructions, reads_writes
from ptx.isa import Isa

SAME, IMMEDIATES, OPERANDS, REMOVED, ADDED = "same", "immediates", "operands", "removed", "added"


@dataclass(frozen=True, slots=True)
class Step:
    """`kind`: see the module; `old` is None for what was added, `new` for what was removed."""

    kind: str
    old: ir.Inst | None
    new: ir.Inst | None


@dataclass(frozen=True, slots=True)
class Group:
    """The steps of one source line: of the new version, or of the old one where nothing of it is left (`gone`)."""

    file: str | None
    line: int | None
    gone: bool
    steps: tuple[Step, ...]

    @property
    def changes(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.kind != SAME)


def align(old: ir.Kernel, new: ir.Kernel, isa: Isa) -> tuple[Step, ...]:
    """The steps from `old` to `new`: those with `old` are its instructions in order, likewise for `new`."""
    return tuple(_with_data_flow(list(_matched(old, new)), isa))


def changed(steps: Sequence[Step]) -> tuple[Group, ...]:
    """What `align` gave, grouped by source line in order of first appearance; only groups with a change."""
    moved: dict[Any, Counter[Any]] = {}
    for s in steps:
        if s.old is not None and s.new is not None:
            moved.setdefault(_line(s.old), Counter())[_line(s.new)] += 1
    groups: dict[tuple[Any, bool], list[Step]] = {}
    for s in steps:
        if s.new is not None:
            key = (_line(s.new), False)
        else:
            assert s.old is not None
            went = moved.get(_line(s.old))
            key = (went.most_common(1)[0][0], False) if went else (_line(s.old), True)
        groups.setdefault(key, []).append(s)
    found = (Group(file, line, gone, tuple(steps)) for ((file, line), gone), steps in groups.items())
    return tuple(g for g in found if g.changes)


def _line(inst: ir.Inst) -> tuple[str | None, int | None]:
    user = inst.loc.user
    return (user.file, user.line) if user else (None, None)


# ------------------------------------------------------------------------------------------------ matching
def _matched(old: ir.Kernel, new: ir.Kernel) -> Iterator[Step]:
    a, b = list(instructions(old)), list(instructions(new))
    shape_a, shape_b = _Shapes(old), _Shapes(new)
    for tag, i, j, k, m in _opcodes([shape_a.of(x, True) for x in a], [shape_b.of(x, True) for x in b]):
        if tag:
            yield from (Step(SAME, x, y) for x, y in zip(a[i:j], b[k:m], strict=True))
            continue
        rough = _opcodes([shape_a.of(x, False) for x in a[i:j]], [shape_b.of(x, False) for x in b[k:m]])
        for like, p, q, r, s in rough:
            if like:
                yield from (Step(IMMEDIATES, x, y) for x, y in zip(a[i + p : i + q], b[k + r : k + s], strict=True))
            else:
                yield from (Step(REMOVED, x, None) for x in a[i + p : i + q])
                yield from (Step(ADDED, None, y) for y in b[k + r : k + s])


def _opcodes(a: Sequence[Hashable], b: Sequence[Hashable]) -> Iterator[tuple[bool, int, int, int, int]]:
    """(whether equal, from, to in `a`, from, to in `b`), in order, covering both."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    if head:
        yield True, 0, head, 0, head
    inner = SequenceMatcher(None, a[head : len(a) - tail], b[head : len(b) - tail], autojunk=False)
    for tag, i, j, k, m in inner.get_opcodes():
        yield tag == "equal", head + i, head + j, head + k, head + m
    if tail:
        yield True, len(a) - tail, len(a), len(b) - tail, len(b)


class _Shapes:
    """What of an instruction does not depend on the names that its kernel chose."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._labels = {label for block in kernel.blocks for label in block.labels}
        self._params = {p.name: i for i, p in enumerate(kernel.params)}

    def of(self, inst: ir.Inst, literals: bool) -> Hashable:
        guard = None if inst.guard is None else inst.guard.negated
        return inst.opcode, guard, tuple(self._operand(o, literals) for o in inst.operands)

    def _operand(self, operand: Any, literals: bool) -> Hashable:
        match operand:
            case ir.Reg(_, type):
                return type
            case ir.Imm(value, kind):
                return ("literal", kind, value) if literals else ("literal",)
            case ir.Sym(name, offset):
                known: Hashable = "label" if name in self._labels else self._params.get(name, name)
                return ("name", known, offset if literals else None)
            case ir.Special(name):
                return ("special", name)
            case ir.Not(register):
                return ("not", register.type)
            case ir.Part(register, selector, negated):
                return ("part", register.type, selector, negated)
            case ir.Sink():
                return "_"
            case ir.Mem(base, offset):
                return ("memory", self._operand(base, literals), offset if literals else None)
            case ir.Vec(items):
                return ("vector", *(self._operand(i, literals) for i in items))
            case ir.Pair(first, second):
                return ("pair", self._operand(first, literals), self._operand(second, literals))
            case ir.TensorMem(base, coords, offsets):
                inner = None if offsets is None else self._operand(offsets, literals)
                return ("tensor", self._operand(base, literals), self._operand(coords, literals), inner)
        raise TypeError(f"not an operand: {operand!r}")


# ------------------------------------------------------------------------------------------------ data flow
def _with_data_flow(steps: list[Step], isa: Isa) -> Iterator[Step]:
    forward: dict[str, str] = {}
    backward: dict[str, str] = {}

    def forget(old: str | None, new: str | None) -> None:
        if old is not None and (other := forward.pop(old, None)) is not None:
            backward.pop(other, None)
        if new is not None and (other := backward.pop(new, None)) is not None:
            forward.pop(other, None)

    for s in steps:
        old_reads, old_writes = _effects(s.old, isa)
        new_reads, new_writes = _effects(s.new, isa)
        kind = s.kind
        if s.old is not None and s.new is not None and len(old_reads) == len(new_reads):
            for a, b in zip(old_reads, new_reads, strict=True):
                if a not in forward and b not in backward:
                    forward[a], backward[b] = b, a
                elif forward.get(a) != b:
                    kind = OPERANDS
        for a in old_writes:
            forget(a, None)
        for b in new_writes:
            forget(None, b)
        if s.old is not None and s.new is not None:
            for a, b in zip(old_writes, new_writes, strict=False):
                forward[a], backward[b] = b, a
        yield Step(kind, s.old, s.new) if kind != s.kind else s


def _effects(inst: ir.Inst | None, isa: Isa) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if inst is None:
        return (), ()
    reads, writes = reads_writes(inst, isa)
    return (*reads, inst.guard.reg.name) if inst.guard is not None else reads, writes
