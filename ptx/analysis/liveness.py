"""Which registers hold a value that is still needed, at each place of a kernel.

`liveness(kernel, effects, cfg)` solves the usual backward equations over blocks with bit sets; `effects(inst)` says
which registers (names) an instruction reads and writes through its operands and comes from the instruction table. The
guard is added here: it is read, and a guarded instruction keeps the old value in the lanes where the guard is false, so
what it writes is also read and not killed.

The same holds, for lanes, of code that only some lanes of a warp run: a write kills in the lanes that run it, and the
lanes that wait elsewhere have live values of their own. Liveness is a property of one thread's path; an engine that
keeps warps in shared registers must mask its writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ptx import ir
from ptx.analysis.cfg import Cfg, control_flow

Effects = Callable[[ir.Inst], tuple[Iterable[str], Iterable[str]]]
"""effects(inst) -> (names of registers read, names of registers written), the guard left out."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """`live_in[b]`, `live_out[b]`: names of the registers live at a block's top and bottom."""

    live_in: tuple[frozenset[str], ...]
    live_out: tuple[frozenset[str], ...]
    _steps: tuple[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...], ...] = field(repr=False)

    def walk_back(self, block: int) -> Iterator[tuple[int, set[str]]]:
        """(index, registers live after that instruction), from the block's last instruction to its first.

        The set is one object that the walk keeps changing: copy it to keep it."""
        live = set(self.live_out[block])
        steps = self._steps[block]
        for i in range(len(steps) - 1, -1, -1):
            yield i, live
            reads, kills = steps[i]
            live.difference_update(kills)
            live.update(reads)

    def step(self, block: int, index: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(registers that an instruction needs, registers whose old value it ends): guards are taken into account."""
        return self._steps[block][index]

    def live_after(self, block: int, index: int) -> frozenset[str]:
        """Registers live just after one instruction. Walks the block from its end."""
        for i, live in self.walk_back(block):
            if i == index:
                return frozenset(live)
        raise IndexError(f"block {block} has no instruction {index}")

    def live_before(self, block: int, index: int) -> frozenset[str]:
        """Registers live just before one instruction."""
        reads, kills = self._steps[block][index]
        return (self.live_after(block, index) - set(kills)) | set(reads)


def liveness(kernel: ir.Kernel, effects: Effects, cfg: Cfg | None = None) -> Liveness:
    """Live registers of `kernel`, whose control flow is `cfg` (made here when None)."""
    cfg = cfg or control_flow(kernel)
    steps = []
    used: list[set[str]] = []  # by block: read before any write
    defined: list[set[str]] = []
    for block in kernel.blocks:
        block_steps = []
        exposed: set[str] = set()
        killed: set[str] = set()
        for inst in block.insts:
            reads, kills = map(tuple, effects(inst))
            if inst.guard is not None:
                reads, kills = (*reads, *kills, inst.guard.reg.name), ()
            block_steps.append((reads, kills))
            for name in reads:
                if name not in killed:
                    exposed.add(name)
            killed.update(kills)
        steps.append(tuple(block_steps))
        used.append(exposed)
        defined.append(killed)
    # Only registers that some block reads before writing can live across an edge: few, so the bit sets stay short.
    names = list(dict.fromkeys(name for exposed in used for name in sorted(exposed)))
    bits = {name: 1 << i for i, name in enumerate(names)}
    gen = [sum(bits[name] for name in exposed) for exposed in used]
    keep = [~sum(bits[name] for name in killed if name in bits) for killed in defined]
    live_in, live_out = _solve(gen, keep, cfg)
    return Liveness(
        tuple(_names(mask, names) for mask in live_in), tuple(_names(mask, names) for mask in live_out), tuple(steps)
    )


def _solve(gen: list[int], keep: list[int], cfg: Cfg) -> tuple[list[int], list[int]]:
    """Fixed point of in = gen | (out & keep), out = union of the successors' in, in postorder."""
    count = len(gen)
    live_in, live_out = [0] * count, [0] * count
    order = [*sorted(cfg.unreachable), *reversed(cfg.order)]
    changed = True
    while changed:
        changed = False
        for b in order:
            out = 0
            for s in cfg.successors[b]:
                out |= live_in[s]
            top = gen[b] | (out & keep[b])
            live_out[b] = out
            if top != live_in[b]:
                live_in[b], changed = top, True
    return live_in, live_out


def _names(mask: int, names: list[str]) -> frozenset[str]:
    found = []
    while mask:
        low = mask & -mask
        found.append(names[low.bit_length() - 1])
        mask ^= low
    return frozenset(found)
