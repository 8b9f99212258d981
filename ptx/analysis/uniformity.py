"""Which registers may differ between the lanes of a warp, and which branches may split it.

`uniformity(kernel, cfg, effects, varying)` starts from 'nothing varies' and grows until nothing changes:

* data: an instruction's results vary when `varying(inst, any_operand_varies)` says so. The caller knows the
  instructions: `%tid` always, `%ctaid` never, arithmetic when an operand does, loads, atomics and shuffles as their
  table entry says.
* guards: `@p` with a varying `p` writes in some lanes only, so the results vary.
* control: a branch whose guard or index varies sends lanes on different paths. Where two of its paths meet, a register
  varies if it was written on the way and is still live: lanes bring the values of different paths, or of different
  numbers of turns round a loop. Paths that never meet (`@p ret`, or a branch to a block that only returns) mix nothing.

What is not in `varying` is the same in all lanes **that are together at that place**, not in the whole warp: below a
divergent branch some lanes are elsewhere. `partial` has the blocks that may run with fewer lanes than the warp has.

`reconverges=True` takes it that the lanes which a branch split wait for each other at its immediate post-dominator.
An engine that may go on without them (one that rotates among waiting lanes to be fair, for instance) lets lanes meet
anywhere, also in different turns of one loop; for it `reconverges=False` follows paths to their end. So does a kernel
with a loop that has two ways in, where running the lowest block in `Cfg.order` first does not make lanes meet.

Registers that are never written count as uniform. Calls must be inlined, or `varying` must answer for their results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ptx import ir
from ptx.analysis.cfg import Cfg
from ptx.analysis.liveness import Effects, Liveness, liveness

Varying = Callable[[ir.Inst, bool], bool]
"""varying(inst, any_operand_varies) -> whether its results may differ between lanes. The guard is not an operand."""

_Facts = list[tuple[ir.Inst, tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Uniformity:
    """`varying`: registers that may differ between lanes. `divergent`: blocks whose last instruction may split a warp.
    `partial`: blocks that may run without some of the warp's lanes."""

    varying: frozenset[str]
    divergent: frozenset[int]
    partial: frozenset[int]

    def is_uniform(self, register: str) -> bool:
        """Whether a register has one value in all lanes that are together."""
        return register not in self.varying


def uniformity(
    kernel: ir.Kernel,
    cfg: Cfg,
    effects: Effects,
    varying: Varying,
    *,
    live: Liveness | None = None,
    reconverges: bool = True,
) -> Uniformity:
    """Solves the analysis for `kernel`. `live` is its liveness, made here when None."""
    reconverges = reconverges and cfg.reducible
    live = live or liveness(kernel, effects, cfg)
    facts: list[_Facts] = []
    for block in kernel.blocks:
        facts.append([(inst, *_names(effects, inst)) for inst in block.insts])
    written = [frozenset(w for _, _, writes in block for w in writes) for block in facts]
    vary: set[str] = set()
    divergent: set[int] = set()
    changed = True
    while changed:
        before = len(vary), len(divergent)
        for b in cfg.order:
            for inst, reads, writes in facts[b]:
                if writes and not vary.issuperset(writes):
                    guard_varies = inst.guard is not None and inst.guard.reg.name in vary
                    if guard_varies or varying(inst, not vary.isdisjoint(reads)):
                        vary.update(writes)
            if b not in divergent and _splits(facts[b], vary):
                divergent.add(b)
                passed, joins = _paths(cfg, b, cfg.ipdom[b] if reconverges else None)
                needed = frozenset().union(*(live.live_in[j] for j in joins))
                for p in passed:
                    vary |= written[p] & needed
        changed = before != (len(vary), len(divergent))
    partial: set[int] = set()
    for b in divergent:
        partial |= _partial(cfg, b, reconverges)
    return Uniformity(frozenset(vary), frozenset(divergent), frozenset(partial))


def _names(effects: Effects, inst: ir.Inst) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reads, writes = effects(inst)
    return tuple(reads), tuple(writes)


def _splits(facts: _Facts, vary: set[str]) -> bool:
    """Whether a block's last instruction may send lanes to different places, or end some of them."""
    if not facts:
        return False
    inst, reads, _ = facts[-1]
    if inst.op not in ("bra", "brx", "ret", "exit", "trap"):
        return False
    if inst.guard is not None and inst.guard.reg.name in vary:
        return True
    return inst.op == "brx" and not vary.isdisjoint(reads)


def _paths(cfg: Cfg, branch: int, stop: int | None) -> tuple[set[int], set[int]]:
    """Blocks passed on the way from a branch (`stop` itself left out), and blocks where two of its paths meet."""
    arms = Counter[int]()
    for s in cfg.successors[branch]:
        arms.update(_reach(cfg, s, stop))
    return {b for b in arms if b != stop}, {b for b, n in arms.items() if n > 1}


def _reach(cfg: Cfg, start: int, stop: int | None) -> set[int]:
    """Blocks reachable from `start`, itself included; nothing behind `stop`."""
    found: set[int] = set()
    work = [start]
    while work:
        b = work.pop()
        if b not in found:
            found.add(b)
            if b != stop:
                work += cfg.successors[b]
    return found


def _partial(cfg: Cfg, branch: int, reconverges: bool) -> set[int]:
    """Blocks that the lanes of a split warp may be in apart. Lanes that have ended are missing in all that follows."""
    join = cfg.ipdom[branch] if reconverges else None
    found: set[int] = set()
    for s in cfg.successors[branch]:
        found |= _reach(cfg, s, join)
    return found - {join} if join is not None else found
