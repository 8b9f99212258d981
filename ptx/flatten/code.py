"""The line of instructions that a pass writes: made instructions, labels, registers and variables of its own.

Names that passes make contain `::`, which no PTX name does, so they never meet names of the text.
"""

from __future__ import annotations

from ptx import ir
from ptx.blocks import cut


class Code:
    """A kernel's body being written. `registers` and `variables` are those of the whole kernel."""

    def __init__(self) -> None:
        self._stream: list[ir.Inst | str] = []
        self.registers: dict[str, str] = {}
        self.variables: list[ir.Variable] = []
        self._count = 0

    def copy(self, inst: ir.Inst) -> None:
        """An instruction of the text."""
        self._stream.append(inst)

    def put(
        self, opcode: str, *operands: ir.Operand, at: ir.Loc, why: str, guard: ir.Guard | None = None
    ) -> None:
        """An instruction that is made here, for the one at `at`."""
        op, *mods = opcode.split(".")
        self._stream.append(ir.Inst(op, tuple(f".{m}" for m in mods), operands, at, guard, why))

    def label(self, name: str) -> None:
        """A place to branch to."""
        self._stream.append(name)

    def fresh_label(self, stem: str) -> str:
        """A label nobody else has; it still has to be placed."""
        self._count += 1
        return f"{stem}::{self._count}"

    def register(self, name: str, type: str) -> ir.Reg:
        """A register by a name of the caller's choice, declared."""
        self.registers[name] = type
        return ir.Reg(name, type)

    def fresh(self, type: str) -> ir.Reg:
        """A register nobody else has."""
        self._count += 1
        return self.register(f"%made::{self._count}", type)

    def variable(self, name: str, size: int, align: int) -> None:
        """A variable in local memory."""
        self.variables.append(ir.Variable(name, ".local", "b8", align, size))

    def blocks(self) -> tuple[ir.Block, ...]:
        """The body in basic blocks."""
        return cut(self._stream)
