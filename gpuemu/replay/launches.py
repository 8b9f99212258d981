"""From the engine's launch log to buffers and launches that can be written down.

The log keeps, for each launch, its arguments and the bytes of the memory that they lie in. Memory that overlaps, in one
launch or across several, becomes one buffer, with arguments as offsets into it, so that aliasing and alignment are the
same in the replay. What the host changed between two launches is found by comparing with what the launch before left.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.dtypes import name_of
from gpuemu.replay.format import Argument, ArrayArgument, Im2colWalk, ScalarArgument, TensorMapArgument


@dataclass(slots=True)
class RecordedBuffer:
    """A buffer over the whole log: where it was on the host, its bytes before its first launch and after the last."""

    host: int
    before: bytes
    after: bytes


@dataclass(slots=True)
class RecordedLaunch:
    """One launch with its arguments in terms of buffers. `sets`: bytes of buffers that the host changed before it."""

    ptx: str
    entry: str
    target: str | None
    device: str | None
    fmad: str | None
    engine: str
    fuel: int | None
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    ctas: tuple[tuple[int, int, int], ...] | None
    arguments: tuple[Argument, ...]
    asynchrony: str = "late"
    cluster: tuple[int, int, int] | None = None
    sets: tuple[tuple[int, bytes], ...] = ()


@dataclass(slots=True)
class Recorded:
    """The whole log."""

    buffers: list[RecordedBuffer] = field(default_factory=list)
    launches: list[RecordedLaunch] = field(default_factory=list)

    def find(self, view: NDArray[Any]) -> tuple[int | None, int]:
        """(buffer number, byte offset) of an array, or (None, 0) when it lies in no buffer of the log."""
        address = int(view.__array_interface__["data"][0])
        number = self.at(address)
        return (number, address - self.buffers[number].host) if number is not None else (None, 0)

    def at(self, address: int) -> int | None:
        """The buffer that holds a host address."""
        for number, buffer in enumerate(self.buffers):
            if buffer.host <= address < buffer.host + len(buffer.before):
                return number
        return None


def memory_of(launch: Any) -> tuple[bytes, ...]:
    """The bytes that a launch's storages hold now, in the order of `launch.storages`."""
    return tuple(ctypes.string_at(s.host, len(s.before)) for s in launch.storages)


def collect(launches: list[Any], after: list[tuple[bytes, ...]]) -> Recorded:
    """Buffers and launches of a log. `after`: `memory_of` each launch, taken when it ended."""
    recorded = Recorded()
    ranges = _merged([(s.host, s.host + len(s.before)) for launch in launches for s in launch.storages])
    state = [bytearray(high - low) for low, high in ranges]
    first = [bytearray(high - low) for low, high in ranges]
    seen = [bytearray(high - low) for low, high in ranges]

    def place(host: int) -> tuple[int, int]:
        number = next(i for i, (low, high) in enumerate(ranges) if low <= host < high)
        return number, host - ranges[number][0]

    for launch, left in zip(launches, after, strict=True):
        changed: dict[int, None] = {}
        for storage in launch.storages:
            number, at = place(storage.host)
            span = slice(at, at + len(storage.before))
            new = np.frombuffer(bytes(seen[number][span]), np.uint8) == 0
            given = np.frombuffer(storage.before, np.uint8)
            known = np.frombuffer(bytes(state[number][span]), np.uint8)
            if (given != known)[~new].any():
                changed[number] = None
            first[number][span] = np.where(new, given, np.frombuffer(bytes(first[number][span]), np.uint8)).tobytes()
            state[number][span] = storage.before
            seen[number][span] = b"\1" * len(storage.before)
        recorded.launches.append(_launch(launch, place, tuple((n, bytes(state[n])) for n in changed)))
        for storage, data in zip(launch.storages, left, strict=True):
            number, at = place(storage.host)
            state[number][at : at + len(data)] = data
    recorded.buffers = [
        RecordedBuffer(low, bytes(b), bytes(s)) for (low, _), b, s in zip(ranges, first, state, strict=True)
    ]
    return recorded


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges joined where they overlap, in the order in which they first appear."""
    joined: list[tuple[int, int]] = []
    for low, high in ranges:
        touching = [r for r in joined if r[0] < high and low < r[1]]
        whole = (min([low, *(r[0] for r in touching)]), max([high, *(r[1] for r in touching)]))
        if touching:
            joined[joined.index(touching[0])] = whole
            for other in touching[1:]:
                joined.remove(other)
        else:
            joined.append(whole)
    return joined


def _launch(launch: Any, place: Any, sets: tuple[tuple[int, bytes], ...]) -> RecordedLaunch:
    return RecordedLaunch(
        ptx=launch.ptx, entry=launch.entry, target=launch.target, device=launch.device, fmad=launch.fmad,
        engine=launch.engine, fuel=launch.fuel,
        asynchrony=launch.asynchrony, cluster=launch.cluster, grid=launch.grid, block=launch.block,
        shared=launch.shared, ctas=launch.ctas,
        arguments=tuple(_argument(a, launch, place) for a in launch.arguments), sets=sets,
    )  # fmt: skip


def _argument(given: Any, launch: Any, place: Any) -> Argument:
    if hasattr(given, "map"):
        m = given.map
        return TensorMapArgument(
            given.name,
            _array(given.memory, launch, place),
            m.shape,
            m.strides,
            m.box,
            m.element_type,
            m.swizzle,
            m.fill,
            m.steps,
            None if m.im2col is None else Im2colWalk(m.im2col.lower, m.im2col.upper, m.im2col.along),
        )
    if hasattr(given, "array"):
        return _array(given, launch, place)
    return scalar(given.name, given.value)


def _array(given: Any, launch: Any, place: Any) -> ArrayArgument:
    number, at = (0, 0) if given.storage is None else place(launch.storages[given.storage].host)
    offset = at + given.offset if given.storage is not None else 0
    return ArrayArgument(
        given.name, number if given.storage is not None else None, offset, name_of(given.dtype), given.shape,
        given.strides, given.writable,
    )  # fmt: skip


def scalar(name: str, value: Any) -> ScalarArgument:
    """A scalar argument as text (see ScalarArgument)."""
    if isinstance(value, np.generic):
        little = np.asarray(value).astype(np.asarray(value).dtype.newbyteorder("<"))
        return ScalarArgument(name, name_of(value.dtype), little.tobytes().hex())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ScalarArgument(name, "bytes", bytes(value).hex())
    if isinstance(value, float):
        return ScalarArgument(name, "float", value.hex())
    return ScalarArgument(name, "int", str(int(value)))
