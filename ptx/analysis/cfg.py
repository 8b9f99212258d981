"""Control flow of a kernel: which block may follow which, in what order to run them, what dominates what.

`control_flow(kernel)` gives a `Cfg`. Blocks are named by their index in `kernel.blocks`.

* Successors: the branch target(s), and the next block unless the last instruction leaves for certain. Falling off the
  end of the body ends the thread, as `ret` does.
* `order` is a reverse postorder that keeps loops together: what leaves a loop comes after everything inside it, also
  when the exit is in the middle. The engine runs waiting lanes in this order (thread frontiers: Diamos et al., 2011),
  so lanes that leave a loop early wait for the others. Every edge that does not go forward in `order` is a back edge:
  every cycle contains one, irreducible ones included.
* Dominators after Cooper, Harvey and Kennedy, 'A Simple, Fast Dominance Algorithm'. Post-dominators take a virtual
  exit; None means that exit (or, for a block from which no path leaves, that nothing is known).

Unreachable blocks have no place in `order`, come after all others in `index`, and have no dominators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptx import ir
from ptx.blocks import transfers
from ptx.errors import InvalidInput
from ptx.record import place

_LEAVES = frozenset({"ret", "exit", "trap"})


@dataclass(frozen=True, slots=True)
class Cfg:
    """Facts by block index; see the module's description.

    `successors[b]`, `predecessors[b]`: in text order, without repeats. `order`: reachable blocks in running order;
    `index[b]`: the place of `b` in it. `back_edges`: (from, to). `loop_depth[b]`: number of natural loops around `b`.
    `exits`: blocks in which the thread may end, guarded `ret` included.
    `idom[b]`, `ipdom[b]`: immediate dominator and post-dominator, None at the entry and the exit.
    """

    successors: tuple[tuple[int, ...], ...]
    predecessors: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    index: tuple[int, ...]
    back_edges: frozenset[tuple[int, int]]
    unreachable: frozenset[int]
    exits: frozenset[int]
    loop_depth: tuple[int, ...]
    idom: tuple[int | None, ...]
    ipdom: tuple[int | None, ...]

    @property
    def reducible(self) -> bool:
        """Whether every loop has one way in."""
        return all(self.dominates(to, start) for start, to in self.back_edges)

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path from the entry to `b` passes `a` (a block dominates itself)."""
        block: int | None = b
        while block is not None and block != a:
            block = self.idom[block]
        return block == a


def control_flow(kernel: ir.Kernel) -> Cfg:
    """The control-flow graph. InvalidInput for a branch to a label that the kernel does not have."""
    labels = {name: i for i, b in enumerate(kernel.blocks) for name in b.labels}
    successors = tuple(_successors(kernel, i, labels) for i in range(len(kernel.blocks)))
    count = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for b, following in enumerate(successors):
        for s in following:
            predecessors[s].append(b)
    exits = [b for b in range(count) if not successors[b] or _may_end(kernel.blocks[b])]
    first = _reverse_postorder(successors, [0] * count)
    idom = _dominators(first, predecessors, count)
    depth = _loop_depths(successors, predecessors, idom, first)
    order = _reverse_postorder(successors, depth)
    index = [count] * count
    unreachable = sorted(set(range(count)) - set(order))
    for i, b in enumerate([*order, *unreachable]):
        index[b] = i
    return Cfg(
        successors,
        tuple(tuple(p) for p in predecessors),
        tuple(order),
        tuple(index),
        frozenset((b, s) for b in order for s in successors[b] if index[s] <= index[b]),
        frozenset(unreachable),
        frozenset(exits),
        tuple(depth),
        tuple(idom),
        tuple(_post_dominators(successors, predecessors, exits)),
    )


def branch_labels(kernel: ir.Kernel, inst: ir.Inst) -> tuple[str, ...]:
    """The labels that an instruction may branch to: one for `bra`, the target list's for `brx.idx`."""
    if inst.op == "bra":
        return tuple(o.name for o in inst.operands if isinstance(o, ir.Sym))
    if inst.op == "brx" and transfers(inst):
        table = inst.operands[-1] if inst.operands else None
        if isinstance(table, ir.Sym) and table.name in kernel.branch_targets:
            return kernel.branch_targets[table.name]
        raise InvalidInput(
            f"`{inst.opcode}` needs the name of a .branchtargets list",
            where=place(inst),
        )
    return ()


def _successors(kernel: ir.Kernel, b: int, labels: dict[str, int]) -> tuple[int, ...]:
    insts = kernel.blocks[b].insts
    last = insts[-1] if insts else None
    found: list[int] = []
    if last is not None:
        for name in branch_labels(kernel, last):
            if name not in labels:
                raise InvalidInput(f"branch to label `{name}`, which `{kernel.name}` does not have", where=place(last))
            found.append(labels[name])
    goes_on = last is None or last.guard is not None or not (last.op in _LEAVES or found)
    if goes_on and b + 1 < len(kernel.blocks):
        found.append(b + 1)
    return tuple(dict.fromkeys(found))


def _may_end(block: ir.Block) -> bool:
    return bool(block.insts) and block.insts[-1].op in _LEAVES


def _reverse_postorder(successors: Sequence[Sequence[int]], depth: Sequence[int]) -> list[int]:
    """Depth-first from block 0. What is visited first comes last: exits to shallower loops, then later text."""
    if not successors:
        return []
    ordered = [sorted(s, key=lambda b: (depth[b], -b)) for s in successors]
    seen, postorder = {0}, []
    stack = [(0, iter(ordered[0]))]
    while stack:
        block, rest = stack[-1]
        for s in rest:
            if s not in seen:
                seen.add(s)
                stack.append((s, iter(ordered[s])))
                break
        else:
            stack.pop()
            postorder.append(block)
    return postorder[::-1]


def _dominators(order: Sequence[int], predecessors: Sequence[Sequence[int]], count: int) -> list[int | None]:
    spot = {b: i for i, b in enumerate(order)}
    idom: list[int | None] = [None] * count
    if not order:
        return idom
    root = order[0]
    idom[root] = root
    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            new: int | None = None
            for p in predecessors[b]:
                if p not in spot or idom[p] is None:
                    continue
                new = p if new is None else _meet(new, p, idom, spot)
            if idom[b] != new:
                idom[b], changed = new, True
    idom[root] = None
    return idom


def _meet(a: int, b: int, idom: Sequence[int | None], spot: dict[int, int]) -> int:
    while a != b:
        while spot[a] > spot[b]:
            a = idom[a]  # type: ignore[assignment]
        while spot[b] > spot[a]:
            b = idom[b]  # type: ignore[assignment]
    return a


def _loop_depths(
    successors: Sequence[Sequence[int]],
    predecessors: Sequence[Sequence[int]],
    idom: Sequence[int | None],
    order: Sequence[int],
) -> list[int]:
    """Natural loops around each block; loops with one header count once."""
    depth = [0] * len(successors)
    reachable = set(order)
    latches: dict[int, list[int]] = {}
    for b in order:
        for s in successors[b]:
            above: int | None = b
            while above is not None and above != s:
                above = idom[above]
            if above == s:
                latches.setdefault(s, []).append(b)
    for header, sources in latches.items():
        body, work = {header}, list(sources)
        while work:
            b = work.pop()
            if b not in body:
                body.add(b)
                work += [p for p in predecessors[b] if p in reachable]
        for b in body:
            depth[b] += 1
    return depth


def _post_dominators(
    successors: Sequence[Sequence[int]], predecessors: Sequence[Sequence[int]], exits: Sequence[int]
) -> list[int | None]:
    """Dominators of the reversed graph from a virtual exit, numbered after the last block."""
    count = len(successors)
    ends = set(exits)
    reverse = [*predecessors, list(exits)]
    order, seen = [], {count}
    stack = [(count, iter(reverse[count]))]
    while stack:
        block, rest = stack[-1]
        for s in rest:
            if s not in seen:
                seen.add(s)
                stack.append((s, iter(reverse[s])))
                break
        else:
            stack.pop()
            order.append(block)
    forward = [[*s, count] if b in ends else list(s) for b, s in enumerate(successors)] + [[]]
    found = _dominators(order[::-1], forward, count + 1)
    return [None if d == count else d for d in found[:count]]
