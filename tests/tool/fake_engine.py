"""A stand-in for the engine: kernels are Python functions on numpy arrays. Tests of the gate alone use it.

`write_files` makes op files whose launchers call `run` with such a function, and `install` replaces the engine's entry
points in this process (so sweeps run with parallel=0).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import gpuemu
from interp import record

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


def fake_run(kernel: Any, grid: Any, *args: Any, target: str, **options: Any) -> Any:
    """Call the function; launches are noted by the engine's own recorder."""
    ptx = '.file 1 "/somewhere/site-packages/triton/x.py"'
    module = SimpleNamespace(ptx=ptx, target=target, device=SimpleNamespace(name=target), fmad=None)
    names = [f"a{i}" for i in range(len(args))]
    launch = {"grid": (1, 1, 1), "block": (128, 1, 1), "shared": 0, "ctas": None, "engine": "compiled", "fuel": None}
    record.begin(module, "kernel", names, args, **launch)
    kernel(*args)
    return SimpleNamespace(findings=[], exactness=(), ptx=ptx, counters=None)


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
    """Replace `gpuemu.run`, store tracing and the module loader."""
    monkeypatch.setitem(vars(gpuemu), "run", fake_run)
    monkeypatch.setattr("gpuemu.gate.locate.writer_of", lambda log, base, offset: None)
    monkeypatch.setattr("interp.launch.Module", FakeModule)
