"""Barriers and waits taken out of PTX, by source line: what a kernel's author cannot write wrong, but a compiler can.

A mutant removes every instruction of one kind that a source line made, in whatever specialisation is run: `bar.sync`,
`barrier.cluster`, `cp.async.wait_group`, `wgmma.wait_group`, fences; of a wait on an mbarrier, the branch that repeats
it. Lines come from the `.loc` before an instruction.

The emulator runs warps in one fixed order and completes copies as late as allowed: a missing barrier shows where that
order exposes it. A survivor is therefore not proof that the barrier is not needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*inlined_at\s+(\d+)\s+(\d+))?")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_WAIT = re.compile(
    r"\s*(?:@!?%\w+\s+)?((?:bar(?:rier)?\.(?:warp\.)?sync|barrier\.cluster\.\w+|cp\.async\.wait_\w+|"
    r"cp\.async\.bulk\.wait_group|wgmma\.wait_group|wgmma\.fence|fence|membar)[\w.:]*)\b"
)
_REPEAT = re.compile(r"\s*@!\s*\w+\s+bra(?:\.uni)?\s+waitLoop\w*\s*;")


@dataclass(frozen=True, slots=True)
class Wait:
    """All instructions `name` that a line of a file made."""

    name: str
    file: str
    line: int


def waits(ptx: str) -> list[Wait]:
    """The waits and barriers of a module, each once, in order."""
    return list(dict.fromkeys(wait for _, wait in _found(ptx)))


def without(ptx: str, wait: Wait) -> str:
    """The module without one of them."""
    dropped = {at for at, other in _found(ptx) if other == wait}
    lines = ptx.split("\n")
    return "\n".join("" if i in dropped else line for i, line in enumerate(lines))


def _found(ptx: str) -> list[tuple[int, Wait]]:
    files: dict[str, str] = {}
    lines = ptx.split("\n")
    for line in lines:
        if named := _FILE.match(line):
            files[named[1]] = named[2]
    found = []
    file, number = "", 0
    for i, line in enumerate(lines):
        if place := _LOC.match(line):
            # A function of Triton's library stands at the line that called it.
            where, at = (place[3], place[4]) if place[3] else (place[1], place[2])
            if at != "0":
                file, number = files.get(where, ""), int(at)
        elif instruction := _WAIT.match(line):
            found.append((i, Wait(instruction[1], file, number)))
        elif _REPEAT.match(line):
            found.append((i, Wait("mbarrier.try_wait", file, number)))
    return found
