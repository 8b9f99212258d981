"""A case is one launch of one entry of a compiled text, with what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.launch import Module
from interp.result import Result

Array = np.ndarray[Any, Any]
Check = Callable[[list[Any], list[Any], Result], None]


@dataclass(frozen=True)
class Case:
    """`entry` of the text `source`, launched as it says. `check(before, after, result)` raises AssertionError where
    the arguments after the launch are wrong. `finding`: the kind of defect that the launch must end with. `least`,
    `most`: architectures that have the entry."""

    source: str
    entry: str
    block: tuple[int, ...]
    args: Callable[[np.random.Generator], list[Any]]
    check: Check
    grid: tuple[int, ...] = (1,)
    shared: int = 0
    finding: str | None = None
    least: int = 75
    most: int = 1000


def entry_name(module: Module, name: str) -> str:
    """The entry itself, or the one whose mangled name holds it."""
    if name in module:
        return name
    (found,) = (n for n in module if f"{len(name)}{name}" in n)
    return found


def run(
    case: Case, text: str | Sequence[str], *, device: str | None = None, engine: str = "compiled", **options: Any
) -> Result:
    """Launch a case and check it."""
    module = Module.from_ptx(text, device=device, fmad=options.pop("fmad", "off"))
    args = case.args(np.random.default_rng(7))
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    flat = flattened(args) if case.source == "numba" else args
    result = module[entry_name(module, case.entry)].launch(
        _three(case.grid), _three(case.block), flat, case.shared, engine=engine, **options
    )
    kinds = [f.kind for f in result.findings]
    assert kinds == ([case.finding] if case.finding else []), (kinds, [f.message for f in result.findings])
    case.check(before, args, result)
    return result


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def flattened(args: Sequence[Any]) -> list[Any]:
    """Arguments as numba passes them: an array is two null pointers, its size, item size, data, shape and strides."""
    flat: list[Any] = []
    for a in args:
        if isinstance(a, np.ndarray):
            flat += [0, 0, a.size, a.itemsize, a, *a.shape, *a.strides]
        else:
            flat.append(a)
    return flat
