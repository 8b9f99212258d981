"""The outcome of a comparison as text: one row an instruction, one a kernel, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table

from gpuemu.conform.answers import Answers
from gpuemu.conform.compare import Outcome
from gpuemu.conform.launches import Kernel


def text(answers: Answers, found: Sequence[Outcome], kernels: Sequence[Kernel] = (), width: int = 110) -> str:
    """A report for people."""
    console = Console(file=StringIO(), width=width)
    console.print(f"answers: {answers.about}\n")
    console.print(_instructions(found))
    if kernels:
        console.print(_kernels(kernels))
    for o in found:
        if o.example:
            console.print(f"DIFFERENT {o.example}", soft_wrap=True, markup=False)
    for why in dict.fromkeys(o.why for o in found if o.explained and o.why):
        names = ", ".join(o.opcode for o in found if o.explained and o.why == why)
        console.print(f"explained: {names}: {why}", markup=False)
    console.print(summary(found, kernels))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def _instructions(found: Sequence[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("instruction", "forms", "compared", "words", "different", "explained"):
        table.add_column(name, justify="left" if name == "instruction" else "right")
    heads = dict.fromkeys(o.opcode.partition(".")[0] for o in found)
    for head in heads:
        mine = [o for o in found if o.opcode.partition(".")[0] == head]
        table.add_row(
            head, str(len(mine)), str(sum(o.compared > 0 for o in mine)), str(sum(o.compared for o in mine)),
            str(sum(o.different for o in mine)), str(sum(o.explained for o in mine)),
        )  # fmt: skip
    return table


def _kernels(kernels: Sequence[Kernel]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("kernel launch", "bytes written", "different"):
        table.add_column(name, justify="left" if name == "kernel launch" else "right")
    for k in kernels:
        table.add_row(k.name, str(k.changed), k.error or str(k.different))
    return table


def summary(found: Sequence[Outcome], kernels: Sequence[Kernel] = ()) -> str:
    """One line: what was compared and what differs."""
    compared = [o for o in found if o.compared]
    parts = [
        f"{len(compared)} of {len(found)} forms compared, {sum(o.compared for o in found)} words: "
        f"{sum(o.different for o in found)} different, {sum(o.explained for o in found)} explained"
    ]
    if kernels:
        failed = sum(k.error is not None for k in kernels)
        parts.append(
            f"{len(kernels)} launches, {sum(k.changed for k in kernels)} bytes written: "
            f"{sum(k.different for k in kernels)} different" + (f", {failed} did not run" if failed else "")
        )
    return "; ".join(parts)
