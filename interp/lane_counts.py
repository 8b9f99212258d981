"""Executions lane by lane, for who asks: which of a warp's 32 lanes executed an instruction, and how often.

    counts = LaneCounts()
    entry.launch(..., engine="traced", hooks=counts)
    counts.table()            # int64 [instructions, 32], in text order

The sums over lanes are the `active_lanes` of `Counters`, which cost less and come with every launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.hooks import Branch, Hooks, Instruction
from ptx import ir

Table = np.ndarray[Any, np.dtype[np.int64]]


class LaneCounts(Hooks):
    """A hook that counts. One object counts the launches that it is given to, all of one kernel."""

    def __init__(self) -> None:
        self._rows: dict[int, Table] = {}
        self._insts: dict[int, ir.Inst] = {}

    def before_instruction(self, event: Instruction) -> None:
        """An instruction runs in the lanes of its mask."""
        self._add(event.site, event.inst, event.lanes, 1)

    def on_branch(self, branch: Branch) -> None:
        """Of a branch those count that take it, as everywhere else those whose guard holds."""
        self._add(branch.site, branch.inst, branch.lanes, -1)
        taken = (branch.taken >> np.arange(32) & 1).astype(bool)
        self._add(branch.site, branch.inst, taken, 1)

    def _add(self, site: int, inst: ir.Inst, lanes: np.ndarray[Any, np.dtype[np.bool_]], n: int) -> None:
        if inst.made:  # only carries out calls and the like
            return
        if site not in self._rows:
            self._rows[site], self._insts[site] = np.zeros(32, np.int64), inst
        self._rows[site][lanes] += n

    @property
    def instructions(self) -> tuple[ir.Inst, ...]:
        """The executed instructions, in text order; rows of `table`."""
        return tuple(self._insts[s] for s in sorted(self._insts))

    def table(self) -> Table:
        """Executions, int64 [executed instructions, 32]."""
        return np.array([self._rows[s] for s in sorted(self._rows)], np.int64).reshape(-1, 32)
