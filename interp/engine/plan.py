"""How a kernel will be executed: regions, register slots, divergence. Facts only, nothing emitted.

A *region* is a straight line of at most `REGION_LENGTH` PTX instructions with one control transfer at its end; it
becomes one native function. Regions are the basic blocks of the kernel, cut further after every barrier (a warp leaves
the native code there and comes back at the next region), and, where a warp may diverge, before every instruction that
waits for other lanes.

Registers that are live across a region boundary have a *slot* in the warp's frame; slots are shared by registers that
are never live at the same boundary. That stays right under divergence: lanes that are elsewhere keep their part of a
slot, because in kernels that may diverge every store into a slot is blended by the active mask.

Registers that instructions update *in place* (accumulators of `wgmma`, see `ptx.record.Op.in_place`) must be in their
slots when that happens, which is at the instruction or at any later one that `settles`. So regions are cut round the
latter, and before an instruction that touches such a register which the region has already handed over or written; and
the settling instruction counts as a reader of all of them, which keeps their slots theirs until then.

Whether a warp may diverge is decided once for the kernel by the uniformity analysis; when it cannot, no masks are
blended and every branch is a plain jump. Lanes that execute one `.sync` instruction with different member masks part
there, too.

A *polling* edge closes a loop in which a lane may wait for another one: it reads memory atomically, or as volatile,
relaxed or acquire. The dispatcher is fair to other lanes there; elsewhere the order that brings lanes together counts
more.

Why functions of 32 instructions and not one function a kernel: compile time of one large function grows faster than its
length (5,700 instructions: 1.9 ms each as one function, 0.34 ms as functions of 32), and a yield is simply a return.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from interp.runtime.layout import WARP_WORDS
from ptx import ir
from ptx.analysis.cfg import Cfg, control_flow
from ptx.analysis.forms import Forms
from ptx.analysis.liveness import Effects, liveness
from ptx.analysis.uniformity import uniformity
from ptx.errors import Unsupported
from ptx.isa import Effect, Isa, Varies
from ptx.record import Form, place, registers
from ptx.types import width

REGION_LENGTH = 32
SLOT_BYTES = {1: 4, 8: 32, 16: 64, 32: 128, 64: 256}
_LANE_VARYING = ("%tid", "%laneid", *(f"%lanemask_{r}" for r in ("eq", "le", "lt", "ge", "gt")), "%clock")
_VARYING_SPACES = (".shared", ".shared::cta", ".local")


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: its ordinal in the kernel (`site`), and its form."""

    site: int
    inst: ir.Inst
    form: Form


@dataclass(frozen=True, slots=True)
class Region:
    """`steps` without the final control transfer `end` (None: falls through). `targets`: regions reached, taken branch
    first; `waits`: the first step is an instruction that needs lanes of a member mask together; `reads`/`keeps`:
    registers live at its top and at its bottom."""

    steps: tuple[Step, ...]
    end: Step | None
    targets: tuple[int, ...]
    waits: bool
    keeps: frozenset[str]

    @property
    def touches_machine(self) -> bool:
        """Whether running it can record a fault."""
        return any(s.form.op.effect is not Effect.NONE for s in self.steps)


@dataclass(frozen=True, slots=True)
class Plan:
    """`regions` in scheduling order (lowest first); `slots`: register → byte offset in the warp frame; `sites`:
    every instruction in text order; `guarded`: sites with a guard, in order (they have counters of their own), guarded
    branches and exits too;
    `entry_live`: registers that some path reads before it writes them; `polling`: the back edges of loops that may
    wait for a lane."""

    kernel: ir.Kernel
    regions: tuple[Region, ...]
    sites: tuple[ir.Inst, ...]
    slots: dict[str, int]
    registers_offset: int
    frame_bytes: int
    diverges: bool
    back_edges: frozenset[tuple[int, int]]
    polling: frozenset[tuple[int, int]]
    guarded: tuple[int, ...]
    entry_live: frozenset[str]

    @property
    def awaited(self) -> tuple[tuple[int, int], ...]:
        """(region in which parked lanes resume, site of the instruction that they wait at)."""
        found = {i: r.steps[0].site for i, r in enumerate(self.regions) if r.waits}
        for r in self.regions:
            if r.end is not None and r.end.form.op.effect is Effect.BARRIER and r.targets:
                found[r.targets[0]] = r.end.site
        return tuple(sorted(found.items()))

    def slot_bytes(self, register: str) -> int:
        """Bytes of a register's slot."""
        return SLOT_BYTES[width(self.kernel.registers[register])]


def make_plan(kernel: ir.Kernel, isa: Isa) -> Plan:
    """Plan a verified kernel. Raises Unsupported for control flow that the engine does not have."""
    forms = Forms(isa)
    diverges = _may_diverge(kernel, forms)
    cut = _cut(kernel, forms, diverges)
    cfg = control_flow(cut)
    live = liveness(cut, _effects(kernel, forms), cfg)
    rank = {block: i for i, block in enumerate(cfg.order)}
    sites = tuple(inst for block in kernel.blocks for inst in block.insts)
    first_site, at = [], 0
    for block in cut.blocks:
        first_site.append(at)
        at += len(block.insts)
    regions = []
    for b in cfg.order:
        steps = [Step(first_site[b] + i, inst, forms.match(inst)) for i, inst in enumerate(cut.blocks[b].insts)]
        end = steps.pop() if steps and _is_transfer(steps[-1].form) else None
        waits = diverges and bool(steps) and _needs_lanes(steps[0].form)
        targets = tuple(rank[s] for s in _ordered_targets(cut, cfg, b, end))
        regions.append(Region(tuple(steps), end, targets, waits, live.live_out[b]))
    offset = _align(WARP_WORDS * 8 + 12 * len(regions), 64)
    slots, frame_bytes = _assign_slots(cut, cfg, live.live_in, live.live_out, offset)
    back = frozenset((rank[a], rank[b]) for a, b in cfg.back_edges)
    ends = [r.end for r in regions if r.end is not None]
    guarded = tuple(s.site for s in (*(s for r in regions for s in r.steps), *ends) if s.inst.guard is not None)
    polls = [any(_polls(s.form) for s in r.steps) for r in regions]
    polling = frozenset((a, b) for a, b in back if any(polls[b : a + 1]))
    return Plan(
        kernel, tuple(regions), sites, slots, offset, frame_bytes, diverges, back, polling, tuple(sorted(guarded)),
        live.live_in[cfg.order[0]],
    )  # fmt: skip


def _may_diverge(kernel: ir.Kernel, forms: Forms) -> bool:
    cfg = control_flow(kernel)
    facts = uniformity(kernel, cfg, forms.reads_writes, lambda inst, any_varies: _varies(forms, inst, any_varies))
    if facts.divergent:
        return True
    together = (inst for block in kernel.blocks for inst in block.insts if _needs_lanes(forms.match(inst)))
    return any(
        spec.name == "members" and isinstance(operand, ir.Reg) and not facts.is_uniform(operand.name)
        for inst in together
        for spec, operand in forms.match(inst).bind(inst)
    )


def _varies(forms: Forms, inst: ir.Inst, any_varies: bool) -> bool:
    form = forms.match(inst)
    if form.op.varies is not Varies.WITH_INPUTS:
        return form.op.varies is Varies.ALWAYS
    if any(isinstance(o, ir.Special) and o.name.startswith(_LANE_VARYING) for o in inst.operands):
        return True
    if form.op.effect is Effect.LOAD and form.mods.get("ss", "") in (None, "local", "param::func"):
        return True  # thread-private memory, or a generic address that may point there
    return any_varies


def _polls(form: Form) -> bool:
    """Whether a loop round this instruction may be waiting for another thread."""
    effect, order = form.op.effect, form.mods.get("order")
    return (effect is Effect.ATOMIC and "d" in form.op.writes) or (
        effect is Effect.LOAD and order not in (None, "weak")
    )


def _is_transfer(form: Form) -> bool:
    return form.op.effect in (Effect.BRANCH, Effect.EXIT, Effect.BARRIER)


def awaits_cluster(form: Form) -> bool:
    """Whether a barrier is that of the cluster, which has no number."""
    return form.op.effect is Effect.BARRIER and not form.op.operands


def _needs_lanes(form: Form) -> bool:
    return form.op.effect is Effect.WARP and form.op.name != "activemask"


def _in_place(inst: ir.Inst, form: Form) -> frozenset[str]:
    """Registers that an instruction updates in place."""
    if not form.op.in_place:
        return frozenset()
    if inst.guard is not None:
        raise Unsupported(f"a guarded '{inst.opcode}' is not modelled", where=place(inst))
    bound = form.bind(inst)
    return frozenset(r.name for spec, operand in bound if spec.name in form.op.in_place for r in registers(operand))


def _effects(kernel: ir.Kernel, forms: Forms) -> Effects:
    """What each instruction reads and writes, settling instructions included."""
    insts = [(inst, forms.match(inst)) for block in kernel.blocks for inst in block.insts]
    held = tuple(sorted(frozenset().union(*(_in_place(inst, form) for inst, form in insts))))
    if not held:
        return forms.reads_writes

    def effects(inst: ir.Inst) -> tuple[tuple[str, ...], tuple[str, ...]]:
        reads, writes = forms.reads_writes(inst)
        return (reads + held if forms.match(inst).op.settles else reads), writes

    return effects


class _Held:
    """Registers of the region being cut that must not be held in vector registers across what comes next."""

    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        self.clear()

    def clear(self) -> None:
        self.handed_over: set[str] = set()
        self.written: set[str] = set()
        self.settled = False

    def needs_cut(self, inst: ir.Inst, form: Form) -> bool:
        """Whether the region must end before an instruction; then, or else, the instruction is noted."""
        mine = _in_place(inst, form)
        reads, writes = self.forms.reads_writes(inst)
        touched = {*reads, *writes} - mine
        cut = self.settled or form.op.settles or bool(mine & self.written) or bool(touched & self.handed_over)
        if cut:
            self.clear()
        self.handed_over |= mine
        self.written |= set(writes) - mine
        self.settled = form.op.settles
        return cut


def _cut(kernel: ir.Kernel, forms: Forms, diverges: bool) -> ir.Kernel:
    """The same kernel with blocks cut to regions."""
    held = _Held(forms)
    blocks: list[ir.Block] = []
    before: Form | None = None
    for block in kernel.blocks:
        labels, run = block.labels, list[ir.Inst]()
        held.clear()
        for inst in block.insts:
            form = forms.match(inst)
            apart = held.needs_cut(inst, form)
            if diverges and before is not None and before.op.effect is Effect.BARRIER and _needs_lanes(form):
                # lanes parked at the barrier resume in a region of their own: those parked for others may go on earlier
                blocks.append(ir.Block((), ()))
            before = form
            if run and (apart or len(run) == REGION_LENGTH or (diverges and _needs_lanes(form))):
                blocks.append(ir.Block(labels, tuple(run)))
                labels, run = (), []
            run.append(inst)
            if form.op.effect is Effect.BARRIER or (inst.guard is not None and form.op.effect is Effect.EXIT):
                blocks.append(ir.Block(labels, tuple(run)))
                labels, run = (), []
        if run or labels or not block.insts:
            blocks.append(ir.Block(labels, tuple(run)))
    return ir.Kernel(
        kernel.name, kernel.is_entry, kernel.params, kernel.registers, kernel.variables, tuple(blocks),
        kernel.directives, kernel.branch_targets, kernel.results, kernel.loc,
    )  # fmt: skip


def _ordered_targets(kernel: ir.Kernel, cfg: Cfg, block: int, end: Step | None) -> Iterable[int]:
    """Successor blocks, the branch target first, the next block after it."""
    successors = cfg.successors[block]
    if end is None or end.form.op.effect is not Effect.BRANCH:
        if end is not None and end.form.op.effect is Effect.BARRIER and end.inst.guard is not None:
            raise Unsupported("a guarded barrier is not modelled", where=place(end.inst))
        return successors
    target = end.inst.operands[0]
    if end.inst.op != "bra" or not isinstance(target, ir.Sym):
        raise Unsupported(f"'{end.inst.opcode}' is not modelled", where=place(end.inst))
    taken = next(i for i, b in enumerate(kernel.blocks) if target.name in b.labels)
    if end.inst.guard is not None and len(successors) == 1:
        return taken, taken
    return taken, *(s for s in successors if s != taken)


def _align(value: int, to: int) -> int:
    return (value + to - 1) // to * to


def _assign_slots(
    kernel: ir.Kernel,
    cfg: Cfg,
    live_in: tuple[frozenset[str], ...],
    live_out: tuple[frozenset[str], ...],
    offset: int,
) -> tuple[dict[str, int], int]:
    """Greedy colouring: two registers share a slot unless some boundary has both."""
    where: dict[str, int] = {}
    for i, b in enumerate(cfg.order):
        for name in live_in[b]:
            where[name] = where.get(name, 0) | 1 << (2 * i)
        for name in live_out[b]:
            where[name] = where.get(name, 0) | 1 << (2 * i + 1)
    # a register that is written and kept must not overwrite one that is read later in the same region: loads come
    # first and stores last in a region, so only boundaries matter
    pools: dict[int, list[tuple[int, int]]] = {}  # width -> [(boundaries, offset)]
    slots: dict[str, int] = {}
    for name in sorted(where, key=lambda r: (where[r] & -where[r], r)):
        n = width(kernel.registers[name])
        if n not in SLOT_BYTES:
            raise Unsupported(f"{n}-bit register {name} is not modelled")
        pool = pools.setdefault(n, [])
        for i, (used, at) in enumerate(pool):
            if not used & where[name]:
                pool[i] = (used | where[name], at)
                slots[name] = at
                break
        else:
            offset = _align(offset, min(SLOT_BYTES[n], 64))
            slots[name] = offset
            pool.append((where[name], offset))
            offset += SLOT_BYTES[n]
    return slots, _align(offset, 128)
