"""What a replay is on disk: one folder of data, no code, enough to execute a failing case again without its source.

    <id>/case.json          this record (msgspec, validated when read)
    <id>/ptx/<n>.ptx        PTX of each kernel, with paths relative to the repository and without debugging sections
    <id>/arrays/<n>.npy     bytes of each buffer before its first launch, as uint8
    <id>/sets/<k>-<n>.npy   bytes that the host changed between launches, if it did
    <id>/after/<n>.npy      bytes of each buffer after the last launch, if they changed
    <id>/exact/<name>.npy   FP64 reference of each output (64-bit integers: as such); bound/<name>.npy: its error bound

`id` is the SHA-256 of everything that must be the same on every machine: the case, the launches, and the hashes of PTX,
arrays, sets and after. The reference and the bound have hashes of their own but stay out of the id: the last bits of an
FP64 `exp` differ between CPUs. `FORMAT` rises when the record changes meaning; a reader refuses what it does not know.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from gpuemu.gate.cases import Case
from gpuemu.gate.results import Problem

FORMAT = 1


class ArrayArgument(msgspec.Struct, frozen=True, tag="array", forbid_unknown_fields=True):
    """A pointer into buffer number `buffer` (None: an empty array), `offset` bytes from its start, and the layout of
    the array that the launch got."""

    name: str
    buffer: int | None
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool


class ScalarArgument(msgspec.Struct, frozen=True, tag="scalar", forbid_unknown_fields=True):
    """A scalar. `kind` 'int': decimal digits; 'float': `float.hex` text; 'bytes' (a by-value parameter): hexadecimal;
    a dtype's name: its bytes, little-endian, in hexadecimal. So NaN, infinities and every bit survive JSON."""

    name: str
    kind: str
    value: str


class Im2colWalk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a tensor map in im2col mode walks (`interp.tensor_map.Im2col`)."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    along: str


class TensorMapArgument(msgspec.Struct, frozen=True, tag="tensor_map", forbid_unknown_fields=True):
    """A tensor map over an array (`interp.tensor_map.TensorMap`); sizes outermost first, `map_strides` in bytes."""

    name: str
    memory: ArrayArgument
    map_shape: tuple[int, ...]
    map_strides: tuple[int, ...]
    box: tuple[int, ...]
    element_type: str
    swizzle: int
    fill: str
    steps: tuple[int, ...] = ()
    im2col: Im2colWalk | None = None


Argument = ArrayArgument | TensorMapArgument | ScalarArgument


class Buffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One buffer. `before`, `after`: file names (after: None = not changed)."""

    nbytes: int
    before: str
    after: str | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One launch, in order. `sets`: buffers whose bytes the host changed since the launch before (number, file)."""

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
    sets: tuple[tuple[int, str], ...] = ()


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an output lies (None buffer: the launcher made it on the host) and what it should be."""

    name: str
    buffer: int | None
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    exact: str
    bound: str


class ReplayRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """case.json."""

    format: int
    id: str
    tool: str
    case: Case
    model: str
    problems: tuple[Problem, ...]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    outputs: tuple[OutputRecord, ...]
    files: dict[str, str]
    """SHA-256 of every other file of the folder, by relative name."""
    factor: float = 1.0
    """The calibrated share of the error model that the recorded bounds are."""


def content_id(case: Case, launches: tuple[Launch, ...], buffers: tuple[Buffer, ...], files: dict[str, str]) -> str:
    """The id of a replay (see the module)."""
    identity = msgspec.structs.replace(case, index=0)
    shared = {k: v for k, v in sorted(files.items()) if not k.startswith(("exact/", "bound/"))}
    content: list[Any] = [FORMAT, identity, launches, buffers, shared]
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()


def sha256(data: bytes) -> str:
    """SHA-256 as hexadecimal text."""
    return hashlib.sha256(data).hexdigest()
