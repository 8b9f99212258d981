"""A stand-in for the engine: kernels are Python functions on numpy arrays. Tests of the gate alone use it.

`write_files` makes op files whose launchers call `run` with such a function, and `install` replaces the engine's entry
points in this process (so sweeps run with parallel=0).
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import gpuemu
from gpuemu.gate import engine
from gpuemu.replay import launches

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


def fake_run(kernel: Any, grid: Any, *args: Any, **options: Any) -> Any:
    kernel(*args)
    return SimpleNamespace(findings=[], exactness="", ptx=f"// {kernel.__name__}", kernel=kernel)


@contextmanager
def fake_recording():
    yield SimpleNamespace(launches=[])


def fake_writer_of(log: Any, base: np.ndarray, offset: int) -> None:
    return None


def install(monkeypatch: Any) -> None:
    """Replace `gpuemu.run`, recording, and store tracing."""
    monkeypatch.setitem(vars(gpuemu), "run", fake_run)
    monkeypatch.setattr("gpuemu.gate.execute.recording", fake_recording)
    monkeypatch.setattr("gpuemu.gate.locate.writer_of", fake_writer_of)
    monkeypatch.setattr("gpuemu.replay.write.collect", lambda log: launches.Recorded())
    assert engine is not None
