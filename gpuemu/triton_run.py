"""`gpuemu.run`: a `@triton.jit` function launched on the CPU, as `kernel[grid](...)` would launch it on a GPU.

    arguments -> numpy views -> device addresses -> Triton's own specialisation -> PTX -> Module -> launch

Addresses are planned before lowering, because Triton compiles for their alignment: the plan depends on the order, sizes
and overlaps of the arrays only, so PTX does not depend on the host's allocator. Triton kernels take two hidden last
arguments, global scratch and profile scratch; both are supplied here.

Second and later calls with the same specialisation skip lowering and loading: an in-process memo, keyed like Triton's
own plus device and contraction mode, leaves the binder, the plan and the launch itself. It is bounded: a sweep goes
through thousands of specialisations.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from gpuemu.arrays import Array, as_array, as_scalar, element_type
from gpuemu.tensor_descriptor import base_array, for_binder, is_descriptor, tensor_map
from interp.hooks import Hooks
from interp.launch import Module, Result, base_symbols
from interp.memory import plan_addresses
from interp.runtime.native import prefetch
from ptx.errors import InvalidInput
from ptx.lower import specialise, toolchain, wrappers
from ptx.lower.specialise import Binding, DevicePointer
from ptx.lower.triton import Lowered, Param, lower_call

Grid = int | tuple[int, ...] | list[int] | Callable[[Mapping[str, Any]], Any]

_PLAIN = frozenset({int, float, bool, type(None)})
_DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A specialisation, lowered and loaded: what a repeated call needs."""

    lowered: Lowered
    entry: Any
    converters: tuple[Callable[[Mapping[str, Any]], Any], ...]
    names: tuple[str, ...]


KEPT = 32
"""Compiled kernels that stay in memory, those used last (a megabyte or several each). More are on disk."""
_memo: OrderedDict[Any, _Loaded] = OrderedDict()


def run(
    kernel: Any,
    grid: Grid,
    *args: Any,
    target: str = "sm_90",
    device: str | None = None,
    engine: str = "compiled",
    fmad: str | None = None,
    ctas: Iterable[tuple[int, int, int]] | None = None,
    num_warps: int = 4,
    num_stages: int = 3,
    num_ctas: int = 1,
    enable_fp_fusion: bool | None = None,
    hooks: Hooks | None = None,
    asynchrony: str = "late",
    fuel: int | None = None,
    metrics: bool = False,
    **constexprs: Any,
) -> Result:
    """Compile a Triton kernel for `target` with no GPU, execute its PTX on the CPU, update the arrays in place.

    `kernel`: a `@triton.jit` or `@gluon.jit` function, also inside `@triton.heuristics` or `@triton.autotune` (no
    timing: see `ptx/lower/wrappers.py`; a configuration's options win over this function's defaults). `grid`: int,
    tuple of up to three, or a function of the bound arguments. `args` and `constexprs` bind as in a launch: arrays are
    numpy, ml_dtypes or torch-CPU; keyword arguments that are not parameters are Triton options (`maxnreg` ...).
    `device`: whose arithmetic and limits, default the target's. `num_ctas`: a program is a cluster of so many CTAs
    along x. `ctas`: the (x, y, z) to run, whole clusters; others are skipped and the result says 'partial'.
    `enable_fp_fusion`: None is Triton's default. `hooks`: observers, with engine="traced". `fuel`: back edges taken
    without a CTA ending, after which the launch counts as endless. `asynchrony`: when asynchronous operations take
    effect, see `interp.launch.Entry.launch`. A tensor descriptor (`gpuemu.TensorDescriptor`, or Triton's over a CPU
    tensor) is an argument like any other. `metrics`: measure what `Result.metrics` says (`interp.metrics`).

    Raises `InvalidInput` (arguments, what Triton rejects), `Unsupported` (valid, but not modelled), `LaunchFailure`.
    """
    asked = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
    keywords = {**{k: v for k, v in asked.items() if v != _DEFAULTS[k]}, **constexprs}
    bound, notes = bind_call(kernel, args, keywords, asked, enable_fp_fusion, target)
    loaded = _load(bound, device, fmad, engine)
    grid3 = _grid(grid, bound)
    if 0 in grid3:  # Triton's launcher does nothing, and so does this; the result says so
        return _described(Result(None, (), ("empty grid: nothing ran",), loaded.lowered.ptx), loaded.lowered, notes)
    values = [convert(bound.values) for convert in loaded.converters]
    values += _scratch(loaded.lowered, grid3)
    across = int(loaded.lowered.metadata["num_ctas"])
    result = loaded.entry.launch(
        grid=(grid3[0] * across, grid3[1], grid3[2]),  # a cluster for each program, as Triton's launcher has it
        block=(loaded.lowered.threads, 1, 1),
        args=values,
        shared=int(loaded.lowered.metadata["shared"]),
        ctas=ctas,
        engine=engine,
        names=loaded.names,
        hooks=hooks,
        fuel=fuel,
        asynchrony=asynchrony,
        cluster=(across, 1, 1) if across > 1 else None,
        metrics=metrics,
    )
    return _described(result, loaded.lowered, notes)


def bind_call(
    kernel: Any,
    args: tuple[Any, ...],
    keywords: Mapping[str, Any],
    options: Mapping[str, Any],
    enable_fp_fusion: bool | None,
    target: str | int,
) -> tuple[Binding, tuple[str, ...]]:
    """What a call of a kernel, wrapped or not, is compiled for, and what its wrappers decided.

    `options`: Triton's, where neither `keywords` nor a wrapper say otherwise."""
    function, extended, notes = wrappers.unwrap(kernel, args, keywords)
    for name, value in options.items():
        extended.setdefault(name, value)
    extended["enable_fp_fusion"] = toolchain.fp_fusion(enable_fp_fusion)
    return bind_arrays(function, args, extended, target), notes


def bind_arrays(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], target: str | int) -> Binding:
    """`specialise.bind` for a call with arrays: they become `DevicePointer`s at planned addresses."""
    arrays: list[Array] = []
    pointers: list[DevicePointer] = []

    def convert(value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        array = as_array(value)
        if array is not None:
            pointer = DevicePointer(element_type(array), 0, array, value)
            arrays.append(array)
            pointers.append(pointer)
            return pointer
        if is_descriptor(value):
            base = base_array(value)
            pointer = DevicePointer(element_type(base), 0, base, value.base)
            arrays.append(base)
            pointers.append(pointer)
            return for_binder(value, pointer)
        if isinstance(value, tuple):
            inner = [convert(v) for v in value]
            return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
        return as_scalar(value)

    converted = tuple(convert(a) for a in args)
    # In the order of the parameters: the launch plans addresses in that order, too.
    names = [name for name in function.arg_names if name in keywords]
    named = {name: convert(keywords[name]) for name in names}
    named.update((name, value) for name, value in keywords.items() if name not in named)  # compiler options
    for pointer, address in zip(pointers, plan_addresses(arrays), strict=True):
        pointer.address = address
    return specialise.bind(function, converted, named, toolchain.architecture(target))


@contextmanager
def edited_ptx(name: Hashable, edit: Callable[[str], str]) -> Iterator[None]:
    """Within it, kernels run `edit(ptx)` in place of the PTX that Triton makes. `name`: equal for equal edits."""
    token = _edit.set((name, edit))
    try:
        yield
    finally:
        _edit.reset(token)


_edit: ContextVar[tuple[Hashable, Callable[[str], str]] | None] = ContextVar("gpuemu_ptx_edit", default=None)


def _load(bound: Binding, device: str | None, fmad: str | None, engine: str) -> _Loaded:
    edit = _edit.get()
    key = None if bound.memo is None else (bound.kernel, bound.memo, device, fmad, edit and edit[0])
    loaded = _memo.get(key) if key is not None else None
    if loaded is None:
        prefetch(base_symbols(engine))  # compiled on another core while Triton lowers the kernel
        lowered = lower_call(bound)
        if edit is not None:
            lowered = replace(lowered, ptx=edit[1](lowered.ptx))
        module = Module.from_ptx(lowered.ptx, device=device, fmad=fmad)
        converters = tuple(_converter(param, bound.kernel, lowered.metadata) for param in lowered.params)
        names = (*(p.name for p in lowered.params), "global scratch", "profile scratch")
        loaded = _Loaded(lowered, module[lowered.entry], converters, names)
    if key is not None:
        _memo[key] = loaded
        _memo.move_to_end(key)
        if len(_memo) > KEPT:
            _memo.popitem(last=False)
    return loaded


def _described(result: Result, lowered: Lowered, notes: tuple[str, ...]) -> Result:
    result.ttir = lowered.ttir
    result.metadata = {**lowered.metadata, "notes": list(notes)}
    return result


def _converter(param: Param, kernel: Any, metadata: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Any]:
    """A function from the bound values to what a launch wants for one parameter: array, tensor map, typed scalar."""
    name = kernel.params[param.path[0]].name
    rest = param.path[1:]
    if param.type == "nvTmaDesc":
        rest, number = rest[:-2], rest[-1]
    elif param.path[-1] in ("nan", "round"):
        rest = (*rest[:-1], {"nan": "padding", "round": "round_f32_to_tf32"}[str(param.path[-1])])

    def value_of(values: Mapping[str, Any]) -> Any:
        value = values[name]
        for index in rest:
            value = value[index] if isinstance(index, int) else getattr(value, index)
        return value == "nan" if isinstance(value, str) else value

    if param.type == "nvTmaDesc":
        about = metadata["tensordesc_meta"][number]
        return lambda values: tensor_map(value_of(values), about)

    if param.type.startswith("*"):

        def pointer(values: Mapping[str, Any]) -> Any:
            value = value_of(values)
            return value.array if isinstance(value, DevicePointer) else value

        return pointer
    make = _SCALARS[param.type]

    def scalar(values: Mapping[str, Any]) -> Any:
        value = value_of(values)
        try:
            return make(value)
        except (OverflowError, TypeError, ValueError) as e:
            raise InvalidInput(
                f"argument {param.name}={value!r} of {kernel.__name__} does not fit {param.type}: {e}",
                where=specialise.where(kernel),
            ) from e

    return scalar


# What a value is as an argument of each Triton scalar type. A bool is a byte, 0 or 1; floats round to nearest even.
# 16-bit floats are parameters of type `.b8[2]` in PTX: two bytes.
_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "u1": lambda v: np.uint8(bool(v)),
    "i1": lambda v: np.uint8(bool(v)),
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "fp16": lambda v: np.float16(v).tobytes(),
    "bf16": lambda v: ml_dtypes.bfloat16(v).tobytes(),
    "fp32": np.float32,
    "f32": np.float32,
    "fp64": np.float64,
}


def _grid(grid: Grid, bound: Binding) -> tuple[int, int, int]:
    """(x, y, z). A function gets the bound arguments by name, with the caller's arrays."""
    chosen: Any = grid
    if callable(grid):
        chosen = grid({k: getattr(v, "owner", v) for k, v in bound.values.items()})
    sizes = tuple(chosen) if isinstance(chosen, (tuple, list, np.ndarray)) else (chosen,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(s, (int, np.integer)) and s >= 0 for s in sizes):
        raise InvalidInput(
            f"grid {chosen!r} is not one to three whole numbers of at least 0", where=specialise.where(bound.kernel)
        )
    x, y, z = (*(int(s) for s in sizes), 1, 1)[:3]
    return x, y, z


def _scratch(lowered: Lowered, grid: tuple[int, int, int]) -> list[Any]:
    """The two hidden arguments: memory for each CTA of the grid, or a null pointer."""
    ctas = math.prod(grid) * int(lowered.metadata["num_ctas"])
    sizes = (int(lowered.metadata["global_scratch_size"]), int(lowered.metadata["profile_scratch_size"]))
    return [np.zeros(ctas * size, np.uint8) if size else 0 for size in sizes]
