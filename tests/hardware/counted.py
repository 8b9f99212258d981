"""PTX that counts itself: an atomic counter before every stretch of code that all its lanes run to the end.

A *stretch* begins with a basic block and behind a guarded exit. Every lane that comes to it adds one to the stretch's
counter, and every lane whose guard holds adds one to the counter of a guarded instruction. So the GPU counts
thread-level executions of every instruction, whatever its scheduler does, and the counts must equal the emulator's.
The counters are a module variable, addressed by name: no register and no parameter is added.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from interp.ops import ISA
from interp.result import Counters
from ptx import ir
from ptx.decode import decode
from ptx.errors import Unsupported
from ptx.isa import Effect
from ptx.record import place

VARIABLE = "gpuemu_counts"
_GUARD = re.compile(r"\s*(@!?\s*[%$\w]+)\s")


@dataclass(frozen=True)
class Counted:
    """`points`: for each counter the instruction that it stands before, and whether it counts its guard only."""

    text: str
    points: tuple[tuple[int, bool], ...]

    def expected(self, counters: Counters) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """What the counters must hold after a launch that has these counts (of the text without counters)."""
        counts = counters.instructions
        return np.array(
            [counts[site].active_lanes if guard else counts[site].issued_lanes for site, guard in self.points], np.int64
        )


def with_counters(text: str, entry: str) -> Counted:
    """The text with counters in an entry. Raises Unsupported where two instructions of one line need one each."""
    kernel = decode(text).kernel(entry)
    sites = [inst for block in kernel.blocks for inst in block.insts]
    lines = text.split("\n")
    points: list[tuple[int, bool]] = []
    before: dict[int, list[str]] = {}
    crowded = {line for line, n in Counter(inst.loc.ptx_line for inst in sites).items() if n > 1}
    for site, starts in _starts(kernel):
        inst = sites[site]
        guard = inst.guard is not None
        if not (starts or guard):
            continue
        line = inst.loc.ptx_line
        source = lines[line - 1]
        if line in crowded or re.match(r"\s*[$%\w]+:\s*\S", source):
            raise Unsupported("a counter needs an instruction that has its line for itself", where=place(inst))
        if starts:
            before.setdefault(line, []).append(_count(len(points)))
            points.append((site, False))
        if guard:
            said = _GUARD.match(source)
            if said is None:
                raise Unsupported("a guard that does not begin its line", where=place(inst))
            before.setdefault(line, []).append(f"{said[1]} {_count(len(points))}")
            points.append((site, True))
    out: list[str] = []
    for number, source in enumerate(lines, 1):
        out += before.get(number, ())
        out.append(source)
        if source.startswith(".address_size"):
            out.append(f".visible .global .align 8 .u64 {VARIABLE}[{len(points)}];")
    return Counted("\n".join(out), tuple(points))


def _count(counter: int) -> str:
    return f"\tred.global.add.u64 [{VARIABLE}+{8 * counter}], 1;"


def _starts(kernel: ir.Kernel) -> list[tuple[int, bool]]:
    """Every instruction's number, and whether a stretch begins with it."""
    out = []
    starts = True
    for block in kernel.blocks:
        starts = True
        for inst in block.insts:
            out.append((len(out), starts))
            starts = inst.guard is not None and ISA.match(inst).op.effect in (Effect.EXIT, Effect.BRANCH)
    return out
