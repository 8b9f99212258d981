"""Executes a replay: the recorded launches on the recorded bytes, then compares and judges again.

Byte equality is the first question (same inputs, PTX and outputs on any machine), the verdict the second:

    bytes identical, still wrong        reproduced       exit 1
    the same, but the kernel's source as it is in this checkout passes     passes now     exit 0
    bytes identical, nothing wrong now  passes now       exit 0   (the judge or a check changed)
    bytes differ, or the replay was altered, or it cannot run     exit 3, with what differs
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.dtypes import FORMATS, INTEGERS, numpy_dtype
from gpuemu.gate.judge import compare
from gpuemu.gate.poison import poison_of
from gpuemu.replay.format import Argument, ArrayArgument, OutputRecord, ReplayRecord, TensorMapArgument
from gpuemu.replay.read import Replay
from gpuemu.replay.source import SourceRun
from interp.tensor_map import Im2col, TensorMap
from ptx.contraction.plan import from_text
from ptx.errors import GpuemuError, InvalidInput


@dataclass(slots=True)
class Outcome:
    """What came of a replay. `differences`: buffers whose bytes are not the recorded ones, in words."""

    record: ReplayRecord
    folder: str
    altered: tuple[str, ...] = ()
    cannot_run: str | None = None
    differences: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    compared: int = 0
    source: SourceRun | None = None

    @property
    def exit_code(self) -> int:
        if self.altered or self.cannot_run or self.differences:
            return 3
        return 1 if self.problems and not self.source_passes else 0

    @property
    def source_passes(self) -> bool:
        """Whether the case was run from source too, and passed."""
        return self.source is not None and self.source.verdict in ("pass", "borderline")

    def words(self) -> str:
        """The report: what was executed, whether the bytes are the same, whether it still fails."""
        record = self.record
        first = record.launches[0] if record.launches else None
        lines = [f"replay {record.id[:16]} of {record.case.label()} (seed {record.case.seed_text})"]
        if first is not None:
            on = first.device or first.target or record.case.target
            count = f"{len(record.launches)} launch{'es' if len(record.launches) != 1 else ''}"
            fused = contraction_words(first.fmad)
            lines.append(f"  {count}, {first.entry}: {record.case.target} code on {on} arithmetic{fused}")
        lines += [f"  ALTERED: {a}" for a in self.altered]
        if self.cannot_run is not None:
            return "\n".join([*lines, f"cannot run: {self.cannot_run}"]) + "\n"
        if self.differences:
            lines += [f"  DIFFERENT: {d}" for d in self.differences]
        else:
            lines.append(f"  bytes identical: {self.compared} bytes in {len(record.buffers)} buffers")
        lines += [f"  {p}" for p in self.problems] or ["  nothing is wrong with the outputs"]
        lines += [f"  recorded: {p.file}:{p.line} {p.kind}" for p in record.problems if p.file]
        if self.source is not None:
            lines.append(f"  {self.source.words}")
        if self.altered:
            verdict = "not the recorded case: the replay was altered"
        elif self.differences:
            verdict = "bytes differ: this machine or version does not compute what was recorded"
        else:
            verdict = "reproduced" if self.exit_code else "passes now"
        return "\n".join([*lines, verdict]) + "\n"


def contraction_words(fmad: str | None) -> str:
    """How a launch was contracted, where that was chosen: the replay holds the plan itself."""
    if fmad is None or fmad == "off":
        return "" if fmad is None else ", no contraction"
    count = sum(len(f.fused) for f in from_text(fmad).values())
    return f", contraction as recorded ({count} fused)"


def execute(replay: Replay) -> Outcome:
    """Run a replay. Errors of the engine are in the outcome; a malformed replay raises InvalidInput."""
    record = replay.record
    outcome = Outcome(record, str(replay.folder), replay.altered)
    memory = [load_buffer(replay, b.before, b.nbytes) for b in record.buffers]
    try:
        results = run_launches(replay, memory)
    except GpuemuError as error:
        outcome.cannot_run = error.diagnostic.render()
        return outcome
    for number, buffer in enumerate(record.buffers):
        wanted = load_buffer(replay, buffer.after or buffer.before, buffer.nbytes)
        outcome.compared += buffer.nbytes
        different = np.flatnonzero(wanted != memory[number])
        if different.size:
            name = buffer_name(record, number)
            outcome.differences.append(f"{name}: {different.size} of {buffer.nbytes} bytes, first at {different[0]}")
    for result in results:
        outcome.problems += [f"{f.kind}: {f.message}" for f in result.findings]
    outcome.problems += judge_outputs(replay, memory)
    return outcome


def buffer_name(record: ReplayRecord, number: int) -> str:
    """What the kernel calls a buffer: the name of the first argument that lies in it."""
    for launch in record.launches:
        for given in launch.arguments:
            array = given.memory if isinstance(given, TensorMapArgument) else given
            if isinstance(array, ArrayArgument) and array.buffer == number:
                return array.name
    return f"buffer {number}"


def load_buffer(replay: Replay, name: str, nbytes: int) -> NDArray[np.uint8]:
    """A buffer's bytes, writable."""
    array = replay.array(name)
    if array.dtype != np.uint8 or array.ndim != 1 or array.nbytes != nbytes:
        raise InvalidInput(f"{replay.folder / name} is not {nbytes} bytes")
    return np.array(array)


def run_launches(replay: Replay, memory: list[NDArray[np.uint8]]) -> list[Any]:
    """All launches in order, on the given buffers (changed in place)."""
    from interp.launch import Module

    modules: dict[tuple[str, str | None, str | None, str | None], Any] = {}
    results = []
    for launch in replay.record.launches:
        for number, name in launch.sets:
            memory[number][...] = load_buffer(replay, name, memory[number].nbytes)
        key = (launch.ptx, launch.target, launch.device, launch.fmad)
        if key not in modules:
            text = replay.bytes_of(launch.ptx).decode("utf-8")
            modules[key] = Module.from_ptx(text, target=launch.target, device=launch.device, fmad=launch.fmad)
        results.append(
            modules[key][launch.entry].launch(
                grid=launch.grid, block=launch.block, args=[argument(a, memory) for a in launch.arguments],
                shared=launch.shared, ctas=launch.ctas, engine=launch.engine,
                fuel=launch.fuel, asynchrony=launch.asynchrony, cluster=launch.cluster,
                names=[a.name for a in launch.arguments],
            )
        )  # fmt: skip
    return results


def argument(given: Argument, memory: list[NDArray[np.uint8]]) -> Any:
    """A launch argument from its record: a view of a buffer, a tensor map over one, or a scalar."""
    if isinstance(given, TensorMapArgument):
        walk = None if given.im2col is None else Im2col(given.im2col.lower, given.im2col.upper, given.im2col.along)
        return TensorMap(
            argument(given.memory, memory), given.map_shape, given.map_strides, given.box, given.element_type,
            given.swizzle, given.fill, given.steps, walk,
        )  # fmt: skip
    if isinstance(given, ArrayArgument):
        if given.buffer is None:
            return np.empty(given.shape, dtype_of(given.dtype))
        array = view(memory, given.buffer, given.offset, given.dtype, given.shape, given.strides)
        array.flags.writeable = given.writable
        return array
    try:
        if given.kind == "int":
            return int(given.value)
        if given.kind == "bytes":
            return bytes.fromhex(given.value)
        if given.kind == "float":
            return float.fromhex(given.value)
        return np.frombuffer(bytes.fromhex(given.value), dtype_of(given.kind))[0]
    except (ValueError, IndexError) as error:
        raise InvalidInput(f"the replay has a scalar that does not parse: {given}") from error


def view(
    memory: list[NDArray[np.uint8]],
    buffer: int,
    offset: int,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> NDArray[Any]:
    """An array inside a buffer. Raises InvalidInput when it does not lie in it."""
    try:
        return np.ndarray(shape, dtype_of(dtype), memory[buffer].data, offset, strides)
    except (ValueError, IndexError, TypeError) as error:
        raise InvalidInput(f"the replay has an array outside its buffer: {error}") from error


def dtype_of(name: str) -> np.dtype[Any]:
    """A dtype by name, including those of ml_dtypes (FP8 and the like)."""
    try:
        return numpy_dtype(name)
    except InvalidInput:
        import ml_dtypes

        kind = getattr(ml_dtypes, name, None) if name.isidentifier() else None
        if not isinstance(kind, type) or not issubclass(kind, np.generic):
            raise InvalidInput(f"the replay has an unknown dtype '{name}'") from None
        return np.dtype(kind)


def judge_outputs(replay: Replay, memory: list[NDArray[np.uint8]]) -> list[str]:
    """Compare the outputs with the recorded reference under the recorded bound."""
    words = []
    for output in replay.record.outputs:
        if output.buffer is None:
            continue
        got = view(memory, output.buffer, output.offset, output.dtype, output.shape, output.strides)
        whole = replay.array(output.exact) if output.dtype in ("int64", "uint64") else None
        if whole is not None and whole.dtype == got.dtype and whole.shape == output.shape:
            exact = whole.astype(np.float64)
        else:
            whole, exact = None, _doubles(replay, output, output.exact)
        bound = _doubles(replay, output, output.bound)
        dtype = output.dtype if output.dtype in FORMATS else "int64"
        known = any(dtype_of(output.dtype) == numpy_dtype(n) for n in (*FORMATS, *INTEGERS))
        poison = poison_of(replay.record.case.seed, output.dtype) if known else None
        comparison = compare(output.name, got, dtype, exact, bound, poison, whole)
        if comparison.kind is not None:
            words.append(comparison.words())
    return words


def _doubles(replay: Replay, output: OutputRecord, name: str) -> NDArray[np.float64]:
    array = replay.array(name)
    if array.dtype != np.float64 or array.shape != output.shape:
        raise InvalidInput(f"{replay.folder / name} does not fit output '{output.name}'")
    return array
