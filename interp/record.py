"""Recording launches, and asking afterwards which store wrote a byte.

    with recording() as log:
        ...                      # launches
    log.launches[-1].writer_of(array, byte_offset)

A record holds everything a launch depends on, with the bytes of its arrays before it, so that it can be repeated on
fresh memory: for a replay elsewhere, or with a watch on an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from interp.memory import extent, plan
from interp.result import Result
from interp.structure import Structure
from interp.tensor_map import TensorMap, memory_of
from ptx import ir
from ptx.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Storage:
    """One piece of host memory that arrays of a launch lie in: where it was, and its bytes before the launch."""

    host: int
    device: int
    before: bytes


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array: byte offset of its element 0 in a storage, and how it looks. `array` is the caller's own."""

    name: str
    storage: int | None
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    array: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class TensorMapArgument:
    """A tensor map; `memory` is the array that it describes."""

    name: str
    memory: ArrayArgument
    map: TensorMap


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number, or the bytes of a by-value parameter."""

    name: str
    value: Any


Argument = ArrayArgument | TensorMapArgument | ScalarArgument


@dataclass
class LaunchRecord:
    """A launch that was made; see the module docstring."""

    module: Any
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    ctas: tuple[tuple[int, int, int], ...] | None
    engine: str
    fuel: int | None
    storages: tuple[Storage, ...]
    arguments: tuple[Argument, ...]
    result: Result | None = None
    asynchrony: str = "late"
    cluster: tuple[int, int, int] | None = None
    counters: bool = True  # repeated as it was: the native code is there already

    @property
    def ptx(self) -> str:
        return str(self.module.ptx)

    @property
    def target(self) -> str:
        return str(self.module.target)

    @property
    def device(self) -> str:
        return str(self.module.device.name)

    @property
    def fmad(self) -> str | None:
        return self.module.fmad  # type: ignore[no-any-return]

    def after(self) -> tuple[bytes, ...]:
        """Bytes of each storage after the launch, from running it again on fresh memory."""
        fresh = [np.frombuffer(s.before, np.uint8).copy() for s in self.storages]
        self._launch(fresh, None)
        return tuple(f.tobytes() for f in fresh)

    def repeat(self, watch: tuple[int, int] | None = None) -> Result:
        """Run it again on fresh memory. `watch`: (storage, byte offset) whose last writer is wanted."""
        fresh = [np.frombuffer(s.before, np.uint8).copy() for s in self.storages]
        return self._launch(fresh, None if watch is None else self.storages[watch[0]].device + watch[1])

    def _launch(self, memory: Sequence[np.ndarray[Any, Any]], watch: int | None) -> Result:
        args = [self._argument(a, memory) for a in self.arguments]
        return self.module[self.entry].launch(  # type: ignore[no-any-return]
            grid=self.grid, block=self.block, args=args, shared=self.shared, ctas=self.ctas, engine=self.engine,
            fuel=self.fuel, watch=watch, counters=self.counters, asynchrony=self.asynchrony,
            cluster=self.cluster,
        )  # fmt: skip

    def _argument(self, a: Argument, memory: Sequence[np.ndarray[Any, Any]]) -> Any:
        if isinstance(a, TensorMapArgument):
            return replace(a.map, array=self._fresh(a.memory, memory))
        return self._fresh(a, memory) if isinstance(a, ArrayArgument) else a.value

    def _fresh(self, a: ArrayArgument, storages: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        if a.storage is None:
            return np.empty(a.shape, a.dtype)
        view = np.ndarray(a.shape, a.dtype, storages[a.storage].data, a.offset, a.strides)
        view.flags.writeable = a.writable
        return view

    def writer_of(self, array: np.ndarray[Any, Any], byte_offset: int = 0) -> ir.Frame | None:
        """Source position of the last store to the byte at `byte_offset` from element 0 of `array` in this launch;
        None when the launch did not write it, or its store has no source line."""
        host = extent(array).first + byte_offset
        for i, s in enumerate(self.storages):
            if s.host <= host < s.host + len(s.before):
                written = self.repeat((i, host - s.host)).written_by
                return written[0].loc.user if written else None
        return None


@dataclass
class Log:
    """Launches in the order they were made."""

    launches: list[LaunchRecord] = field(default_factory=list)


_logs: list[Log] = []


@contextmanager
def recording() -> Iterator[Log]:
    """Record every launch made inside the block (by this process)."""
    log = Log()
    _logs.append(log)
    try:
        yield log
    finally:
        _logs.remove(log)


def begin(module: Any, entry: str, names: Sequence[str], args: Sequence[Any], **launch: Any) -> LaunchRecord | None:
    """Note a launch that is about to be made, if anybody is recording."""
    if not _logs:
        return None
    if any(isinstance(a, Structure) for a in args):
        raise Unsupported(
            f"a recorded launch of '{entry}' with a structure",
            help="launch it outside `recording()`, or pass bytes: replays hold arrays, tensor maps and bytes",
        )
    arrays = [a for a in map(memory_of, args) if a is not None]
    addresses, allocations = plan(arrays)
    storages = tuple(Storage(a.host, a.low, _bytes_at(a.host, a.high - a.low)) for a in allocations)
    place = {member: i for i, a in enumerate(allocations) for member in a.members}
    arguments: list[Argument] = []
    seen = 0
    for name, value in zip(names, args, strict=True):
        array = memory_of(value)
        if array is None:
            arguments.append(ScalarArgument(name, value))
            continue
        home = place.get(seen)
        offset = extent(array).first - allocations[home].host if home is not None else 0
        seen += 1
        held = ArrayArgument(
            name, home, offset, array.dtype, array.shape, array.strides, bool(array.flags.writeable), array
        )
        arguments.append(TensorMapArgument(name, held, value) if isinstance(value, TensorMap) else held)
    record = LaunchRecord(module=module, entry=entry, storages=storages, arguments=tuple(arguments), **launch)
    for log in _logs:
        log.launches.append(record)
    return record


def _bytes_at(host: int, size: int) -> bytes:
    import ctypes

    return ctypes.string_at(host, size)
