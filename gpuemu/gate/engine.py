"""The one place where the gate touches the engine: launch, record, and find out who wrote a byte.

A launcher gets a `Run`: `gpuemu.run` with the case's target and device filled in, which keeps every result. Options
that a launcher passes itself win, except target and device, which belong to the case.

Recording and store tracing re-execute: the first run of a case records nothing, a failing case is run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Op
from gpuemu.gate.dtypes import dtype_name, name_of, numpy_dtype
from gpuemu.gate.poison import fill, poison_of
from gpuemu.replay.launches import memory_of
from ptx.errors import InvalidInput


@dataclass(slots=True)
class Run:
    """What a launcher calls: `run(kernel, grid, *args, **options)`. Returns the engine's Result."""

    case: Case
    engine: str = "compiled"
    results: list[Any] = field(default_factory=list)
    kernels: list[Any] = field(default_factory=list)
    log: Any = None
    after: list[tuple[bytes, ...]] = field(default_factory=list)
    """With a log: what each launch of it left in memory, taken before the launcher goes on."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any = "float32") -> NDArray[Any]:
        """A new array that holds the case's poison: memory of a launcher's own that nobody has written yet."""
        name = dtype_name(dtype) if isinstance(dtype, str) else name_of(dtype)
        made = np.empty(shape, numpy_dtype(name))
        fill(made, poison_of(self.case.seed, name))
        return made

    def __call__(self, kernel: Any, grid: Any, *args: Any, **options: Any) -> Any:
        import gpuemu

        if self.case.fmad is not None:
            options.setdefault("fmad", self.case.fmad)
        for owned in ("target", "device", "engine"):
            if owned in options:
                raise InvalidInput(
                    f"op '{self.case.op}': the launcher passes {owned}=, which belongs to the sweep",
                    help="give targets=(...) in @gpuemu.op, or --target on the command line",
                )
        if isinstance(kernel, Op):
            raise InvalidInput(
                f"run() was given the op '{kernel.name}' where a kernel belongs",
                help="the op's function has the name of the kernel that its file imports: rename the function",
            )
        self.kernels.append(kernel)
        result = gpuemu.run(
            kernel, grid, *args, target=self.case.target, device=self.case.device, engine=self.engine, **options
        )
        self.results.append(result)
        if self.log is not None:
            self.after += [memory_of(launch) for launch in self.log.launches[len(self.after) :]]
        return result


@contextmanager
def recording() -> Iterator[Any]:
    """Record the launches made within; yields the log."""
    from interp import launch

    with launch.recording() as log:
        yield log


def writer_of(log: Any, base: NDArray[Any], offset: int) -> tuple[str | None, int | None] | None:
    """(file, line) of the last store to the byte at `offset` of the buffer `base`, over all recorded launches."""
    for record in reversed(log.launches):
        place = record.writer_of(base, offset)
        if place is not None:
            return place.file, place.line
    return None
