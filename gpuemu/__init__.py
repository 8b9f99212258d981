"""gpuemu: executes the real PTX of GPU kernels on the CPU, and gates changes on the correctness of what they compute.

    gpuemu.run(kernel, grid, *args, target="sm_90")     a Triton kernel on numpy arrays, in place
    gpuemu.Module.from_ptx(text)["entry"].launch(...)   PTX text from anywhere
    @gpuemu.op(...)                                     declares an op for `gpuemu ci`
    gpuemu.schemas.softmax()                            a ready description of an op, for `gpuemu.op`
    gpuemu.TensorDescriptor(base, shape, ...)           a host-side tensor descriptor, as an argument
    gpuemu.sparse(shape, dtype)                         a huge array of which only touched pages exist

Names are imported on first use, so that `import gpuemu` (and `gpuemu --help`) cost next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuemu import bounds as bounds
    from gpuemu import schemas as schemas
    from gpuemu.gate.declare import Input as Input
    from gpuemu.gate.declare import Op as Op
    from gpuemu.gate.declare import Output as Output
    from gpuemu.gate.declare import op as op
    from gpuemu.gate.dims import sizes as sizes
    from gpuemu.gate.placeholder import fill_in as fill_in
    from gpuemu.tensor_descriptor import TensorDescriptor as TensorDescriptor
    from gpuemu.tensor_descriptor import TensorDescriptorIm2Col as TensorDescriptorIm2Col
    from gpuemu.triton_run import run as run
    from interp.lane_counts import LaneCounts as LaneCounts
    from interp.launch import Module as Module
    from interp.launch import Result as Result
    from interp.memory import sparse as sparse
    from interp.metrics import Metrics as Metrics
    from interp.structure import Structure as Structure
    from interp.tensor_map import Im2col as Im2col
    from interp.tensor_map import TensorMap as TensorMap
    from ptx.errors import GpuemuError as GpuemuError
    from ptx.errors import InvalidInput as InvalidInput
    from ptx.errors import LaunchFailure as LaunchFailure
    from ptx.errors import Unsupported as Unsupported
    from ptx.join import join as join

_HOME = {
    "Input": "gpuemu.gate.declare",
    "Op": "gpuemu.gate.declare",
    "Output": "gpuemu.gate.declare",
    "op": "gpuemu.gate.declare",
    "sizes": "gpuemu.gate.dims",
    "fill_in": "gpuemu.gate.placeholder",
    "run": "gpuemu.triton_run",
    "Module": "interp.launch",
    "Result": "interp.launch",
    "Metrics": "interp.metrics",
    "TensorDescriptor": "gpuemu.tensor_descriptor",
    "TensorDescriptorIm2Col": "gpuemu.tensor_descriptor",
    "LaneCounts": "interp.lane_counts",
    "Structure": "interp.structure",
    "Im2col": "interp.tensor_map",
    "TensorMap": "interp.tensor_map",
    "sparse": "interp.memory",
    "GpuemuError": "ptx.errors",
    "InvalidInput": "ptx.errors",
    "LaunchFailure": "ptx.errors",
    "Unsupported": "ptx.errors",
    "join": "ptx.join",
}

__all__ = ["bounds", "schemas", *_HOME]


def __getattr__(name: str) -> Any:
    if name in ("bounds", "schemas"):
        return import_module(f"gpuemu.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gpuemu' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
