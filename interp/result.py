"""What a launch reports: counters, findings, how exact the result is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptx import ir
from ptx.isa import Isa

if TYPE_CHECKING:
    from interp.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of the kernel that execution showed.

    `kind`: out-of-bounds, misaligned, read-only, barrier-deadlock, warp-deadlock, no-progress, trap, bad-member-mask,
    queue-full, mbarrier-deadlock, bad-mbarrier, bad-tensor-map, exited-cta, bad-cluster-barrier, assertion,
    bad-coordinate, bad-barrier, bad-tensor-memory, bad-tensor-operation, unmodelled. `file`, `line`: the user's source
    line. `array`, `index`: the argument nearest to the address and the element index relative to it (may lie outside
    its shape). `evidence`: addresses, thread, CTA and the like, JSON-able.
    """

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    array: str | None = None
    index: tuple[int, ...] | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """Executions of one PTX instruction by warps; summed over them, the lanes that came to it (`issued_lanes`) and
    those in which it took effect, because its guard held if it has one (`active_lanes`; of a branch: that took it)."""

    ptx_line: int
    opcode: str
    file: str | None
    line: int | None
    cost: str
    executions: int
    active_lanes: int
    issued_lanes: int


@dataclass(frozen=True, slots=True)
class Count:
    """Executions by warps and by lanes: `smsp__inst_executed`, `smsp__thread_inst_executed_pred_on` and
    `smsp__thread_inst_executed`."""

    executions: int
    active_lanes: int
    issued_lanes: int

    def __add__(self, other: Count) -> Count:
        return Count(
            self.executions + other.executions,
            self.active_lanes + other.active_lanes,
            self.issued_lanes + other.issued_lanes,
        )


class Counters:
    """Exact execution counts of a launch: two numbers a region and one a guarded instruction (from native code) times a
    static table."""

    def __init__(self, counts: list[tuple[ir.Inst, int, int, int]], isa: Isa) -> None:
        self._counts, self._isa = counts, isa

    @cached_property
    def instructions(self) -> tuple[InstructionCount, ...]:
        """Per PTX instruction, in text order; what only carries out calls and indexed branches is not counted."""
        out = []
        for inst, executions, lanes, issued in self._counts:
            if inst.made:
                continue
            user = inst.loc.user
            out.append(
                InstructionCount(
                    inst.loc.ptx_line,
                    inst.opcode,
                    user.file if user else None,
                    user.line if user else None,
                    self._isa.match(inst).op.cost.value,
                    executions,
                    lanes,
                    issued,
                )
            )
        return tuple(out)

    @cached_property
    def executed(self) -> int:
        """Instructions that all threads executed together; cheaper than `totals`."""
        return sum(lanes for inst, _, lanes, _ in self._counts if not inst.made)

    @cached_property
    def lines(self) -> dict[tuple[str | None, int | None], Count]:
        """Per source line (file, line)."""
        return self._sum(lambda c: (c.file, c.line))

    @cached_property
    def totals(self) -> dict[str, Count]:
        """Per instruction class (`ptx.isa.Cost`), and "all"."""
        return {
            **self._sum(lambda c: c.cost),
            "all": sum((_count(c) for c in self.instructions), Count(0, 0, 0)),
        }

    def _sum(self, key: Any) -> dict[Any, Count]:
        out: dict[Any, Count] = {}
        for c in self.instructions:
            out[key(c)] = out.get(key(c), Count(0, 0, 0)) + _count(c)
        return out


def _count(c: InstructionCount) -> Count:
    return Count(c.executions, c.active_lanes, c.issued_lanes)


@dataclass
class Result:
    """The outcome of a launch. Arrays were updated in place.

    `exactness`: what stands between these bytes and a GPU's, empty when nothing is known to: "partial" (not all CTAs
    ran), "contraction not modelled" (the assembler may fuse a bare mul and add), "contraction modelled in part" (of
    some additions its choice could not be read), "tcgen05 modelled from publication" (no Blackwell GPU was at hand to
    compare with), "clusters cancelled in launch order" (which one a CTA takes over depends on hardware's timing).
    `ttir`, `metadata`: of a Triton kernel. `resident`: most CTAs that were resident at once. `cancelled`: CTAs that
    never ran because others took them over. `printed`: what the kernel wrote with `printf`. `metrics`: of a launch with
    `metrics=True`.
    """

    counters: Counters | None
    findings: tuple[Finding, ...]
    exactness: tuple[str, ...]
    ptx: str
    ttir: str | None = None
    metadata: Mapping[str, Any] | None = None
    resident: int = 1
    cancelled: int = 0
    written_by: tuple[ir.Inst, tuple[int, int, int]] | None = None
    printed: str = ""
    metrics: Metrics | None = None


def count_instructions(
    regions: tuple[tuple[int, ...], ...],
    guarded: tuple[int, ...],
    sites: tuple[ir.Inst, ...],
    raw: np.ndarray[Any, Any],
) -> list[tuple[ir.Inst, int, int, int]]:
    """(instruction, executions, active lanes, issued lanes) from the raw counters; `regions`: the sites of each
    region."""
    executions, lanes = [0] * len(sites), [0] * len(sites)
    for r, members in enumerate(regions):
        for site in members:
            executions[site], lanes[site] = int(raw[2 * r]), int(raw[2 * r + 1])
    issued = list(lanes)
    for i, site in enumerate(guarded):
        lanes[site] = int(raw[2 * len(regions) + i])
    return [(inst, executions[i], lanes[i], issued[i]) for i, inst in enumerate(sites)]
