"""Observing a launch: typed events of single instructions, for debuggers, sanitizers and tracers.

    class Stores(Hooks):
        def on_write(self, access: Access) -> None:
            print(access.inst.opcode, access.addresses[access.lanes])

    entry.launch(..., engine="traced", hooks=Stores())

The engine knows no checker and has no policy: it reports what a warp does, in the order in which it happens, and a
hook looks. Only the methods that a class overrides cost anything. An exception in a hook ends the launch and reaches
its caller.

Events of one instruction come in this order: before_instruction, on_read, on_write, (the instruction),
after_instruction; for control transfers before_instruction, then on_branch or on_barrier. Lanes whose guard does not
hold are not in `mask`; an instruction that no lane executes is reported too, with an empty mask. After a fault
nothing is reported.

Arrays are copies of machine state: 32 words, one a lane, unsigned of the register's width; predicates are booleans.
Words of lanes outside the mask are what these registers hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptx import ir

Words = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """Who does it: CTA (x, y, z), warp of the CTA, lanes as a 32-bit mask; and what: the instruction and its ordinal
    in the kernel."""

    cta: tuple[int, int, int]
    warp: int
    mask: int
    site: int
    inst: ir.Inst

    @property
    def lanes(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """The mask as 32 booleans."""
        return (self.mask >> np.arange(32) & 1).astype(bool)


@dataclass(frozen=True, slots=True)
class Instruction(Event):
    """`operands`: what the source operands hold, in the order of the text, vectors flattened, an address operand as
    its base register; None for special registers. `results`: the destination registers, before or after the
    instruction."""

    operands: tuple[Words | None, ...]
    results: tuple[Words | None, ...]


@dataclass(frozen=True, slots=True)
class Access(Event):
    """`size` bytes at each lane's address in a state space ("global", "shared", "local", "generic", "const",
    "param"). Addresses are device addresses as the kernel computes them, not checked yet; in a cluster, shared ones
    have the rank of their CTA from bit 24 on. An asynchronous copy is reported when it is issued."""

    space: str
    addresses: np.ndarray[Any, np.dtype[np.uint64]]
    size: int


@dataclass(frozen=True, slots=True)
class Branch(Event):
    """`taken`: lanes that branch, or end."""

    taken: int


@dataclass(frozen=True, slots=True)
class Barrier(Event):
    """Arrival at CTA barrier `number`; `threads` release it, 0 = all. Number 16: waiting at the cluster's barrier."""

    number: int
    threads: int


class Hooks:
    """Override what you want to see."""

    def before_instruction(self, event: Instruction) -> None:
        """An instruction is about to run."""

    def after_instruction(self, event: Instruction) -> None:
        """It has run."""

    def on_read(self, access: Access) -> None:
        """Memory is about to be read."""

    def on_write(self, access: Access) -> None:
        """Memory is about to be written; the values are among the operands of before_instruction."""

    def on_branch(self, branch: Branch) -> None:
        """A warp is about to branch, or some of its lanes to end."""

    def on_barrier(self, barrier: Barrier) -> None:
        """Lanes arrive at a barrier of the CTA."""


__all__ = ["Access", "Barrier", "Branch", "Event", "Hooks", "Instruction"]
