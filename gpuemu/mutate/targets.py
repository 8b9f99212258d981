"""Which Triton functions an op reaches: those its launcher names, and those that they call.

Functions of installed packages are left alone (a mutant of Triton's own library says nothing of the user's sweep).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from gpuemu.gate.declare import Op

_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Target:
    """A Triton function of a file, and the ops that reach it. `lines`: how long its source is."""

    file: str
    function: str
    lines: int
    ops: tuple[str, ...]


def targets_of(ops: Sequence[Op]) -> list[Target]:
    """All Triton functions that the ops reach, in the order of the ops."""
    found: dict[tuple[str, str], list[str]] = {}
    lengths: dict[tuple[str, str], int] = {}
    for op in ops:
        for function in reached(op.launcher):
            key = (str(Path(function.__code__.co_filename).resolve()), function.__name__)
            if op.name not in found.setdefault(key, []):
                found[key].append(op.name)
            lengths[key] = len(inspect.getsource(function).splitlines())
    return [Target(file, name, lengths[file, name], tuple(names)) for (file, name), names in found.items()]


def reached(launcher: Any) -> Iterator[FunctionType]:
    """The Python functions behind the Triton kernels that a launcher reaches."""
    seen: set[FunctionType] = set()
    waiting = [launcher]
    while waiting:
        function = waiting.pop(0)
        for value in _values(function):
            kernel = unwrapped(value)
            if kernel is not None:
                if kernel not in seen and not any(p in kernel.__code__.co_filename for p in _INSTALLED):
                    seen.add(kernel)
                    waiting.append(kernel)
                    yield kernel
            elif isinstance(value, FunctionType) and value not in seen and _near(value, function):
                seen.add(value)  # a plain function that launches
                waiting.append(value)


def _values(function: Any) -> list[Any]:
    """What a function's code names: globals, closure cells, defaults, and attributes of modules that it names."""
    code, known = function.__code__, function.__globals__
    named = _names(code)
    values = [known[n] for n in named if n in known]
    values += [c.cell_contents for c in function.__closure__ or () if _filled(c)]
    values += list(function.__defaults__ or ())
    for module in [v for v in values if inspect.ismodule(v)]:
        values += [vars(module)[n] for n in named if n in vars(module)]
    return values


def _names(code: Any) -> list[str]:
    """Names in a function's code and in that of functions within it."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names += _names(constant)
    return list(dict.fromkeys(names))


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _near(value: FunctionType, function: Any) -> bool:
    """Whether a plain function is the user's own."""
    file = value.__code__.co_filename
    return file == function.__code__.co_filename or not any(p in file for p in (*_INSTALLED, "<frozen", "/lib/python"))


def unwrapped(value: Any) -> FunctionType | None:
    """The Python function of a `@triton.jit` function, also inside autotune and heuristics; else None."""
    for _ in range(8):
        if not hasattr(value, "fn"):
            return None
        value = value.fn
        if isinstance(value, FunctionType):
            return value
    return None
