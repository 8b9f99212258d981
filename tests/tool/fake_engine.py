"""A stand-in for the engine: kernels are Python functions on numpy arrays. Tests of the gate alone use it.

`write_files` makes op files whose launchers call `run` with such a function, and `install` replaces the engine's entry
points in this process (so sweeps run with parallel=0).
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import gpuemu
from gpuemu.replay import launches
from gpuemu.replay.format import ArrayArgument

HEADER = """
import numpy as np
import gpuemu
from gpuemu import Input, Output, bounds
"""

SOFTMAX = (
    HEADER
    + """
def kernel(x, y):
    wide = np.concatenate([x, np.full((len(x), 3), FILL)], axis=1).astype(np.float32)
    with np.errstate(all="ignore"):
        e = np.exp(wide - np.fmax.reduce(wide, axis=1, keepdims=True))
        y[...] = (e / e.sum(axis=1, keepdims=True))[:, : x.shape[1]].astype(y.dtype)

@gpuemu.op(
    dims={"M": (1, 3), "N": (1, 5, 13, 64)},
    inputs={"x": Input("M N", padded=True)}, outputs={"y": Output("M N", padded=True)},
    reference=lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
    bound=bounds.softmax("x"),
    name="NAME",
)
def launcher(run, x, y):
    run(kernel, (len(x),), x, y)
"""
)


def softmax_file(folder: Path, file: str, name: str, fill: str) -> Path:
    """A file with one softmax op; `fill` is what lanes beyond the row hold."""
    path = folder / file
    path.write_text(SOFTMAX.replace("FILL", fill).replace("NAME", name))
    return path


_log: list[Any] | None = None


def fake_run(kernel: Any, grid: Any, *args: Any, **options: Any) -> Any:
    before = [np.array(a).tobytes() for a in args]
    kernel(*args)
    if _log is not None:
        _log.append((args, before, options))
    return SimpleNamespace(findings=[], exactness="", ptx=f"// {kernel.__name__}", kernel=kernel)


@contextmanager
def fake_recording():
    global _log
    _log = []
    try:
        yield SimpleNamespace(launches=_log)
    finally:
        _log = None


def fake_writer_of(log: Any, base: np.ndarray, offset: int) -> None:
    return None


def fake_collect(log: Any) -> launches.Recorded:
    """Every array argument is a buffer of its own (its rows packed)."""
    recorded = launches.Recorded()
    for args, before, options in log.launches:
        arguments = []
        for array, old in zip(args, before, strict=True):
            packed = np.ascontiguousarray(array)
            arguments.append(
                ArrayArgument(
                    len(recorded.buffers), 0, str(array.dtype), array.shape, packed.strides, f"a{len(arguments)}"
                )
            )
            memory = array.reshape(-1).view(np.uint8) if array.flags.c_contiguous else array.base.reshape(-1).view("u1")
            recorded.buffers.append(launches.RecordedBuffer(f"a{len(arguments)}", memory, old, packed.tobytes()))
        recorded.launches.append(
            launches.RecordedLaunch(
                ptx='.file 1 "/somewhere/site-packages/triton/x.py"', entry="kernel", target=options["target"],
                device=None, fmad=None, engine="compiled", grid=(1, 1, 1), block=(128, 1, 1), shared=0, ctas=None,
                arguments=tuple(arguments),
            )
        )  # fmt: skip
    return recorded


class FakeModule:
    """Stands for `interp.launch.Module`: its one kernel is the wrong softmax of these tests."""

    fill = 0.0

    @classmethod
    def from_ptx(cls, text: str, **options: Any) -> dict[str, Any]:
        return {"kernel": cls()}

    def launch(self, *, args: list[Any], **options: Any) -> Any:
        x, y = args
        wide = np.concatenate([x, np.full((len(x), 3), self.fill)], axis=1).astype(np.float32)
        with np.errstate(all="ignore"):
            e = np.exp(wide - np.fmax.reduce(wide, axis=1, keepdims=True))
            y[...] = (e / e.sum(axis=1, keepdims=True))[:, : x.shape[1]].astype(y.dtype)
        return SimpleNamespace(findings=[])


def install(monkeypatch: Any) -> None:
    """Replace `gpuemu.run`, recording, store tracing and the module loader."""
    monkeypatch.setitem(vars(gpuemu), "run", fake_run)
    monkeypatch.setattr("gpuemu.gate.execute.recording", fake_recording)
    monkeypatch.setattr("gpuemu.gate.locate.writer_of", fake_writer_of)
    monkeypatch.setattr("gpuemu.replay.write.collect", fake_collect)
    monkeypatch.setitem(sys.modules, "interp.launch", SimpleNamespace(Module=FakeModule))
