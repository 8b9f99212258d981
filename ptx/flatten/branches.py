"""A branch to one of several labels by an index, as comparisons and guarded branches.

PTX ISA 'Control Flow Instructions: brx.idx': `brx.idx index, list` branches to `list[index]`; an index outside the list
is undefined there and a trap here. With more than LINEAR labels the list is halved first, so that n labels take about
log2(n) branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptx import ir
from ptx.flatten.code import Code

LINEAR = 4


def branch_by_index(code: Code, index: ir.Reg, labels: Sequence[str], at: ir.Loc, why: str, first: int = 0) -> None:
    """Go to `labels[index - first]`; an index outside goes on behind. `index`: a 32-bit register."""
    if len(labels) > LINEAR:
        middle = len(labels) // 2
        upper = code.fresh_label(f"{labels[middle]}::from")
        above = code.fresh("pred")
        code.put("setp.ge.u32", above, index, ir.Imm(first + middle), at=at, why=why)
        code.put("bra", ir.Sym(upper), at=at, why=why, guard=ir.Guard(above))
        past = code.fresh_label("past")
        branch_by_index(code, index, labels[:middle], at, why, first)
        code.put("bra", ir.Sym(past), at=at, why=why)
        code.label(upper)
        branch_by_index(code, index, labels[middle:], at, why, first + middle)
        code.label(past)
        return
    for i, label in enumerate(labels):
        equal = code.fresh("pred")
        code.put("setp.eq.u32", equal, index, ir.Imm(first + i), at=at, why=why)
        code.put("bra", ir.Sym(label), at=at, why=why, guard=ir.Guard(equal))
