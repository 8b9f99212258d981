"""What stands round a function's body: performance directives and the parameter list (PTX ISA, 'Kernel and Function
Directives' and 'Performance-Tuning Directives'). Problems are told in words; ptxas 13.4 refuses the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptx import ir
from ptx.targets import Need, at

MOST_PARAMETER_BYTES = 32764


@dataclass(frozen=True, slots=True)
class Directive:
    """`numbers`: how many may follow, at least and at most; whether an entry and a function may have it; `need`."""

    numbers: tuple[int, int]
    entry: bool
    func: bool
    need: Need = Need()


_CLUSTERS = at((7, 8), 90)
DIRECTIVES = {
    ".maxntid": Directive((1, 3), True, False),
    ".reqntid": Directive((1, 3), True, False, at((2, 1))),
    ".minnctapersm": Directive((1, 1), True, False),
    ".maxnreg": Directive((1, 1), True, False),
    ".explicitcluster": Directive((0, 0), True, False, _CLUSTERS),
    ".reqnctapercluster": Directive((1, 3), True, False, _CLUSTERS),
    ".maxclusterrank": Directive((1, 1), True, False, _CLUSTERS),
    ".blocksareclusters": Directive((0, 0), True, False, at((9, 0), 90)),
    ".noreturn": Directive((0, 0), False, True, at((6, 4), 30)),
    ".abi_preserve": Directive((1, 1), False, True, at((9, 0), 80)),
    ".abi_preserve_control": Directive((1, 1), False, True, at((9, 0), 80)),
}


def directive_problems(kernel: ir.Kernel, version: tuple[int, int], target: str) -> Iterator[str]:
    """Directives that a kernel or function cannot have, or not with these numbers or beside each other."""
    given = kernel.directives
    what = "entry" if kernel.is_entry else "function"
    for name, values in given.items():
        known = DIRECTIVES.get(name)
        if known is None or not (known.entry if kernel.is_entry else known.func):
            yield f"`{name}` is no directive of {'an' if kernel.is_entry else 'a'} {what}"
            continue
        low, high = known.numbers
        if not low <= len(values) <= high:
            yield f"`{name}` takes {low if low == high else f'{low} to {high}'} numbers, not {len(values)}"
        elif any(v <= 0 for v in values) and known.entry:
            yield f"`{name}` takes numbers above 0"
        if lacks := known.need.problem(version, target):
            yield f"`{name}` needs {lacks}"
    if ".maxntid" in given and ".reqntid" in given:
        yield "`.maxntid` and `.reqntid` exclude each other"
    if ".blocksareclusters" in given and not {".reqntid", ".reqnctapercluster"} <= given.keys():
        yield "`.blocksareclusters` needs `.reqntid` and `.reqnctapercluster`"
    if ".noreturn" in given and kernel.results:
        yield "a function that does not return has no results"


def parameter_problems(kernel: ir.Kernel) -> Iterator[str]:
    """What is wrong with the parameters and results of a kernel or function."""
    everything = (*kernel.params, *kernel.results)
    names = [p.name for p in everything]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"parameter `{name}` is declared twice"
    if kernel.is_entry:
        if kernel.results:
            yield "an entry has no results"
        for p in kernel.params:
            if p.register:
                yield f"parameter `{p.name}` of an entry is in .param space"
            elif p.is_array and p.size == 0:
                yield f"parameter `{p.name}` of an entry has a size"
        last = max((p.offset + p.size for p in kernel.params), default=0)
        if last > MOST_PARAMETER_BYTES:
            yield f"the parameters take {last} bytes, {MOST_PARAMETER_BYTES} are the most"
        return
    for p in everything:
        if p.pointer_space is not None:
            yield f"`.ptr` is for parameters of entries, not of functions (`{p.name}`)"
        if p.name == "_":
            yield "a parameter of a function has a name"
    if len(kernel.results) > 1 and not all(p.register for p in kernel.results):
        yield "several results are in registers"
