"""A line of instructions and labels → basic blocks (`ir.Block`): the parser and passes that change control flow cut
with the same rule.

A block ends after a control transfer and before a label that is branched to; a label that nobody names stays only where
a block starts anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptx import ir

_TRANSFERS = frozenset({"bra", "brx", "ret", "exit", "trap"})


def transfers(inst: ir.Inst) -> bool:
    """Whether an instruction may send control elsewhere. A `brx.idx` without its list only stands for the comparisons
    and branches that follow it (`ptx.flatten`); a `call` comes back."""
    return inst.op in _TRANSFERS and not (inst.op == "brx" and len(inst.operands) == 1)


def cut(stream: Iterable[ir.Inst | str], listed: Iterable[str] = ()) -> tuple[ir.Block, ...]:
    """Blocks of a body. `stream`: instructions, and labels as strings, in order; `listed`: labels that target lists
    name besides those of `bra`."""
    line = list(stream)
    targets = set(listed)
    for item in line:
        if not isinstance(item, str) and item.op == "bra":
            targets.update(o.name for o in item.operands if isinstance(o, ir.Sym))
    blocks: list[ir.Block] = []
    labels: list[str] = []
    insts: list[ir.Inst] = []
    for item in line:
        if not isinstance(item, str):
            insts.append(item)
            if transfers(item):
                blocks.append(ir.Block(tuple(labels), tuple(insts)))
                labels, insts = [], []
        elif not insts:
            labels.append(item)
        elif item in targets:
            blocks.append(ir.Block(tuple(labels), tuple(insts)))
            labels, insts = [item], []
    if insts or targets.intersection(labels) or not blocks:
        blocks.append(ir.Block(tuple(labels), tuple(insts)))
    return tuple(blocks)
