"""The form of each instruction of one kernel, and the registers it reads and writes, each found once.

Several analyses ask for these of the same instructions. `ptx.isa.Isa` finds a form by what the instruction says; here
the answer is kept by the instruction object itself, for as long as the analyses of its kernel run.
"""

from __future__ import annotations

from ptx import ir
from ptx.isa import Isa
from ptx.record import Form

Names = tuple[str, ...]


class Forms:
    """Answers of an instruction table about instructions that stay alive: those of one kernel."""

    def __init__(self, isa: Isa) -> None:
        self._isa = isa
        self._forms: dict[int, Form] = {}
        self._effects: dict[int, tuple[Names, Names]] = {}

    def match(self, inst: ir.Inst) -> Form:
        """`Isa.match`, and its errors."""
        form = self._forms.get(id(inst))
        if form is None:
            form = self._forms[id(inst)] = self._isa.match(inst)
        return form

    def reads_writes(self, inst: ir.Inst) -> tuple[Names, Names]:
        """`Isa.reads_writes`: register names, the guard not included."""
        effects = self._effects.get(id(inst))
        if effects is None:
            effects = self._effects[id(inst)] = self._isa.reads_writes(inst)
        return effects
