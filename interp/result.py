"""What a launch reports: counters, findings, how exact the result is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ptx import ir
from ptx.isa import Isa


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of the kernel that execution showed.

    `kind`: out-of-bounds, misaligned, read-only, barrier-deadlock, warp-deadlock, no-progress, trap, bad-member-mask,
    queue-full, mbarrier-deadlock, bad-mbarrier, bad-tensor-map, exited-cta, bad-cluster-barrier, bad-tensor-memory,
    bad-tensor-operation, unmodelled. `file`,
    `line`: the user's source line.
    `array`, `index`: the argument nearest to the address and the element index relative to it (may lie outside its
    shape). `evidence`: addresses, thread, CTA and the like, JSON-able.
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
    """Executions of one PTX instruction by warps, and the active lanes (thread-level executions) summed over them."""

    ptx_line: int
    opcode: str
    file: str | None
    line: int | None
    cost: str
    executions: int
    active_lanes: int


@dataclass(frozen=True, slots=True)
class Count:
    """Warp-level executions and thread-level executions (`smsp__inst_executed`, `smsp__thread_inst_executed`)."""

    executions: int
    active_lanes: int

    def __add__(self, other: Count) -> Count:
        return Count(self.executions + other.executions, self.active_lanes + other.active_lanes)


class Counters:
    """Exact execution counts of a launch: two numbers a region (from native code) times a static table."""

    def __init__(self, counts: list[tuple[ir.Inst, int, int]], isa: Isa) -> None:
        self._counts, self._isa = counts, isa

    @cached_property
    def instructions(self) -> tuple[InstructionCount, ...]:
        """Per PTX instruction, in text order."""
        out = []
        for inst, executions, lanes in self._counts:
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
                )
            )
        return tuple(out)

    @cached_property
    def lines(self) -> dict[tuple[str | None, int | None], Count]:
        """Per source line (file, line)."""
        return self._sum(lambda c: (c.file, c.line))

    @cached_property
    def totals(self) -> dict[str, Count]:
        """Per instruction class (`ptx.isa.Cost`), and "all"."""
        return {
            **self._sum(lambda c: c.cost),
            "all": sum((Count(c.executions, c.active_lanes) for c in self.instructions), Count(0, 0)),
        }

    def _sum(self, key: Any) -> dict[Any, Count]:
        out: dict[Any, Count] = {}
        for c in self.instructions:
            out[key(c)] = out.get(key(c), Count(0, 0)) + Count(c.executions, c.active_lanes)
        return out


@dataclass
class Result:
    """The outcome of a launch. Arrays were updated in place.

    `exactness`: what stands between these bytes and a GPU's, empty when nothing is known to: "partial" (not all CTAs
    ran), "contraction not modelled" (the assembler may fuse a bare mul and add), "tcgen05 modelled from publication"
    (no Blackwell GPU was at hand to compare with). `ttir`, `metadata`: of a Triton kernel. `resident`: most CTAs that
    were resident at once.
    """

    counters: Counters | None
    findings: tuple[Finding, ...]
    exactness: tuple[str, ...]
    ptx: str
    ttir: str | None = None
    metadata: Mapping[str, Any] | None = None
    resident: int = 1
    written_by: tuple[ir.Inst, tuple[int, int, int]] | None = None


def count_instructions(
    regions: tuple[tuple[int, ...], ...],
    guarded: tuple[int, ...],
    sites: tuple[ir.Inst, ...],
    raw: np.ndarray[Any, Any],
) -> list[tuple[ir.Inst, int, int]]:
    """(instruction, executions, active lanes) from the raw counters; `regions`: the sites of each region."""
    executions, lanes = [0] * len(sites), [0] * len(sites)
    for r, members in enumerate(regions):
        for site in members:
            executions[site], lanes[site] = int(raw[2 * r]), int(raw[2 * r + 1])
    for i, site in enumerate(guarded):
        lanes[site] = int(raw[2 * len(regions) + i])
    return [(inst, executions[i], lanes[i]) for i, inst in enumerate(sites)]
