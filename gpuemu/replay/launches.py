"""From the engine's launch log to buffers and launches that can be written down.

The log has one record a launch: PTX, entry, shape, arguments, and each array's bytes before it. Several array arguments
(of one launch or of several) may lie in one buffer; they are kept together, with offsets, so that aliasing and
alignment are the same in the replay. Bytes that the host changed between launches are found by comparing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.replay.format import Argument


@dataclass(slots=True)
class RecordedBuffer:
    """A buffer over the whole log: its bytes before its first launch, after its last one, and the memory it is."""

    name: str | None
    memory: NDArray[np.uint8]
    before: bytes
    after: bytes
    device: int | None = None


@dataclass(slots=True)
class RecordedLaunch:
    """One launch with its arguments in terms of buffers."""

    ptx: str
    entry: str
    target: str | None
    device: str | None
    fmad: str | None
    engine: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    ctas: tuple[tuple[int, int, int], ...] | None
    arguments: tuple[Argument, ...]
    sets: tuple[tuple[int, bytes], ...] = ()


@dataclass(slots=True)
class Recorded:
    """The whole log."""

    buffers: list[RecordedBuffer] = field(default_factory=list)
    launches: list[RecordedLaunch] = field(default_factory=list)

    def find(self, view: NDArray[Any]) -> tuple[int | None, int]:
        """(buffer number, byte offset) of an array, or (None, 0) when it lies in no buffer of the log."""
        address = int(view.__array_interface__["data"][0])
        for number, buffer in enumerate(self.buffers):
            start = int(buffer.memory.__array_interface__["data"][0])
            if start <= address < start + max(buffer.memory.nbytes, 1):
                return number, address - start
        return None, 0


def collect(log: Any) -> Recorded:
    """Read the engine's log (`interp.launch.recording`)."""
    raise NotImplementedError
