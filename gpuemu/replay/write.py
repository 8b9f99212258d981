"""Writes the replay of a failing case: all of the folder or nothing.

The folder is made under a temporary name beside its final one and renamed at the end, so a reader never sees half of
one; if the same replay exists already (the id is the content) nothing is written.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.cases import Case
from gpuemu.gate.dtypes import F64, name_of
from gpuemu.gate.inputs import Argument as CaseArgument
from gpuemu.gate.results import Problem
from gpuemu.replay.format import FORMAT, Buffer, Launch, OutputRecord, ReplayRecord, content_id, sha256
from gpuemu.replay.launches import collect
from gpuemu.replay.portable import portable_path, portable_ptx

SCRATCH = ".writing-"
"""How the name of a folder begins that holds a replay not yet finished."""


def write_replay(
    folder: Path,
    *,
    root: Path,
    case: Case,
    launches: list[Any],
    after: list[tuple[bytes, ...]],
    arguments: Mapping[str, CaseArgument],
    exact: Mapping[str, NDArray[Any]],
    bounds: Mapping[str, F64],
    problems: tuple[Problem, ...],
    model: str,
    factor: float = 1.0,
    scratch: str = SCRATCH,
) -> str:
    """Write the replay under `folder`; returns its id (the name of the new folder). Raises OSError."""
    files: dict[str, bytes] = {}
    recorded = collect(launches, after)
    texts: dict[str, str] = {}
    written: list[Launch] = []
    for number, launch in enumerate(recorded.launches):
        text = portable_ptx(launch.ptx, root)
        if text not in texts:
            texts[text] = f"ptx/{len(texts)}.ptx"
            files[texts[text]] = text.encode()
        sets = []
        for buffer, data in launch.sets:
            name = f"sets/{number}-{buffer}.npy"
            files[name] = npy_bytes(np.frombuffer(data, np.uint8))
            sets.append((buffer, name))
        written.append(
            Launch(
                ptx=texts[text], entry=launch.entry, target=launch.target, device=launch.device, fmad=launch.fmad,
                engine=launch.engine, fuel=launch.fuel,
                asynchrony=launch.asynchrony, cluster=launch.cluster, grid=launch.grid, block=launch.block,
                shared=launch.shared, ctas=launch.ctas, arguments=launch.arguments, sets=tuple(sets),
            )
        )  # fmt: skip
    buffers: list[Buffer] = []
    for number, kept in enumerate(recorded.buffers):
        name, changed = f"arrays/{number}.npy", f"after/{number}.npy"
        files[name] = npy_bytes(np.frombuffer(kept.before, np.uint8))
        if kept.after != kept.before:
            files[changed] = npy_bytes(np.frombuffer(kept.after, np.uint8))
        buffers.append(Buffer(len(kept.before), name, changed if kept.after != kept.before else None))
    outputs = []
    for name, argument in arguments.items():
        if argument.role != "output":
            continue
        place, offset = recorded.find(argument.view)
        files[f"exact/{name}.npy"] = npy_bytes(exact[name])
        files[f"bound/{name}.npy"] = npy_bytes(np.ascontiguousarray(bounds[name]))
        outputs.append(
            OutputRecord(
                name=name, buffer=place, offset=offset, dtype=name_of(argument.view.dtype),
                shape=argument.view.shape, strides=argument.view.strides,
                exact=f"exact/{name}.npy", bound=f"bound/{name}.npy",
            )
        )  # fmt: skip
    hashes = {k: sha256(v) for k, v in sorted(files.items())}
    portable_case = msgspec.structs.replace(case, file=portable_path(case.file, root), index=0)
    identity = content_id(portable_case, tuple(written), tuple(buffers), hashes)
    record = ReplayRecord(
        format=FORMAT, id=identity, tool=f"gpuemu {tool_version()}", case=portable_case, model=model,
        problems=tuple(_portable(p, root) for p in problems), buffers=tuple(buffers), launches=tuple(written),
        outputs=tuple(outputs), files=hashes, factor=factor,
    )  # fmt: skip
    files["case.json"] = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
    _publish(folder, identity, files, scratch)
    return identity


def _portable(problem: Problem, root: Path) -> Problem:
    file = portable_path(problem.file, root) if problem.file else None
    return msgspec.structs.replace(problem, file=file)


def npy_bytes(array: NDArray[Any]) -> bytes:
    """An array in numpy's .npy format (never pickled)."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def tool_version() -> str:
    """The installed version of gpuemu, or 'unknown' when it runs from a bare checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gpuemu")
    except PackageNotFoundError:
        return "unknown"


def remove_scratch(folder: Path, scratch: str) -> None:
    """Remove what writers of this sweep left unfinished under `folder`: they were ended in the middle of it."""
    for place in folder.glob(f"{scratch}*"):
        shutil.rmtree(place, ignore_errors=True)


def _publish(folder: Path, name: str, files: Mapping[str, bytes], scratch: str) -> None:
    final = folder / name
    if (final / "case.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=scratch, dir=folder))
    try:
        for file, data in files.items():
            path = temporary / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        temporary.chmod(0o755)
        try:
            os.rename(temporary, final)
        except OSError:
            if not (final / "case.json").exists():
                raise
    finally:
        if temporary.exists():
            shutil.rmtree(temporary, ignore_errors=True)
