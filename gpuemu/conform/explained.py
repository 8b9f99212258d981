"""Differences from a GPU that are known, and why: nothing else may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

NOT_ASKED = {
    "cvta": "the assembler does not take 32-bit addresses, and the windows of state spaces are the driver's choice",
    "mapa": "the assembler makes a byte permutation of it",
    "getctarank": "the assembler makes a shift of it",
    "isspacep": "the answer depends on where the driver lays the state spaces",
}
"""Instructions whose answers are not compared."""

_EXTENSION = "assembler 13.4 leaves out the zero extension of the 16-bit result that the text asks for behind it"
MERGED = {
    "cvt.sat.s16.s32": _EXTENSION,
    "cvt.sat.s16.s64": _EXTENSION,
    "mad.hi.sat.s32": "the assembler merges it with mad.hi.s32 of the same operands, losing the clamp; alone it clamps",
}
"""Opcodes that the assembler treats otherwise among their neighbours."""

UNDEFINED: dict[str, tuple[Callable[[Sequence[int]], bool], str]] = {
    "fns.b32": (lambda sources: sources[1] > 31, "the manual leaves a base above 31 open"),
}
"""Operands for which an answer is open, by opcode."""


def reason(opcode: str, sources: Sequence[int]) -> str | None:
    """Why a lane of an opcode may differ, or None."""
    name = opcode.partition(".")[0]
    if name in NOT_ASKED or opcode in MERGED:
        return NOT_ASKED.get(name) or MERGED[opcode]
    if opcode in UNDEFINED and UNDEFINED[opcode][0](sources):
        return UNDEFINED[opcode][1]
    return None
