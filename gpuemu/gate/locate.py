"""Turns "element (i, j) of output y is wrong" into a source line: the line of the store that wrote it.

The failing case has been run again with its launches recorded; the engine re-executes the last launch that wrote the
byte, watching it. An element that nothing wrote points at the store that wrote its nearest written neighbour (its mask
or its grid is what is wrong); an output that nothing wrote at all, at the kernel that was launched. A problem that has
a line already (an engine finding) keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from gpuemu.gate.engine import Run, writer_of
from gpuemu.gate.inputs import Argument
from gpuemu.gate.poison import holds
from gpuemu.gate.results import Problem


def locate(problem: Problem, log: Any, arguments: Mapping[str, Argument], run: Run) -> Problem:
    """The problem with file and line filled in, as far as they can be found."""
    if problem.file is not None and problem.line is not None:
        return problem
    argument = arguments.get(problem.array or "")
    place: tuple[str | None, int | None] | None = None
    if argument is not None and problem.index is not None:
        index = problem.index
        if problem.kind == "unwritten":
            nearest = _nearest_written(argument, index)
            index = nearest if nearest is not None else ()
        if index:
            between = problem.kind in ("wrote-between-rows", "modified-input")  # their index is one of the buffer
            at = int(np.dot(index, argument.base.strides)) if between else _byte_of(argument, index)
            place = writer_of(log, argument.base, at)
    if place is None or place[0] is None:
        place = _kernel_place(run)
    return msgspec.structs.replace(problem, file=place[0], line=place[1]) if place else problem


def _byte_of(argument: Argument, index: tuple[int, ...]) -> int:
    """Byte offset of an element in the base buffer."""
    start = argument.view.__array_interface__["data"][0] - argument.base.__array_interface__["data"][0]
    return int(start + np.dot(index, argument.view.strides)) if index else int(start)


def _nearest_written(argument: Argument, index: tuple[int, ...]) -> tuple[int, ...] | None:
    """The written element closest to `index` in memory order."""
    if argument.poison is None:
        return index
    written = np.flatnonzero(~holds(argument.view, argument.poison).reshape(-1))
    if not written.size:
        return None
    flat = int(np.ravel_multi_index(index, argument.view.shape))
    best = int(written[np.argmin(np.abs(written - flat))])
    return tuple(int(i) for i in np.unravel_index(best, argument.view.shape))


def _kernel_place(run: Run) -> tuple[str | None, int | None] | None:
    for kernel in reversed(run.kernels):
        function = kernel
        while hasattr(function, "fn"):
            function = function.fn
        code = getattr(function, "__code__", None)
        if code is not None:
            return code.co_filename, code.co_firstlineno
    return None
