"""From the arguments of a call to what Triton compiles for: signature, constants, attributes.

A Triton kernel is compiled for types *and* for properties of values: integers equal to 1 become constants, integers and
addresses divisible by 16 are marked so, integers take the narrowest of i32, i64, u64. The rules live in Triton, partly
in C++ (`native_specialize_impl`), and they are called here, not copied: the binder that `JITFunction.create_binder`
would make is made for a backend without a driver.

Alignment is a property of the *device* address, which the caller supplies through `DevicePointer`: taking the host's
would make PTX depend on the host's allocator.

Source: triton 3.9.0 `runtime/jit.py`: `create_function_from_signature`, `JITFunction._pack_args`, `JITFunction.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from ptx.errors import InvalidInput, Where
from ptx.lower import toolchain

# numpy and ml_dtypes names -> Triton's. What is absent has no Triton type.
ELEMENT_TYPES: Mapping[str, str] = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}

Path = tuple[int | str, ...]


class DevicePointer:
    """An array as Triton's binder sees one: an element type (Triton's name) and a device address in bytes.

    `array` is the memory behind it and `owner` what the caller passed; neither is looked at here.
    """

    __slots__ = ("address", "array", "dtype", "owner")

    def __init__(self, dtype: str, address: int, array: object = None, owner: object = None) -> None:
        self.dtype = dtype
        self.address = address
        self.array = array
        self.owner = owner

    def data_ptr(self) -> int:
        return self.address

    def __repr__(self) -> str:
        return f"DevicePointer(*{self.dtype}, {self.address:#x})"


@dataclass(frozen=True, slots=True)
class Binding:
    """A call, bound: parameter values by name, and what the kernel is compiled for.

    `signature`: parameter -> type ("*fp32", "i32", "constexpr", or a tuple of them); `constexprs` and `attrs` are keyed
    by path: (parameter index, index inside a tuple ...). `memo` equals for calls that compile to the same code and is
    None when values cannot be hashed.
    """

    kernel: Any
    arch: int
    values: dict[str, Any]
    specialisation: tuple[tuple[Any, Any], ...]
    options: dict[str, Any]
    memo: Hashable | None

    def signature(self) -> dict[str, Any]:
        names = [p.name for p in self.kernel.params]
        return {name: s[0] for name, s in zip(names, self.specialisation, strict=True)}

    def constexprs(self) -> dict[Path | str, Any]:
        util = import_module("triton._utils")
        types = [s[0] for s in self.specialisation]
        values = list(self.values.values())
        paths = util.find_paths_if(types, lambda _, v: v == "constexpr")
        return {path: util.get_iterable_path(values, path) for path in paths}

    def attrs(self) -> dict[Path, Any]:
        util = import_module("triton._utils")
        parse = toolchain.backend(self.arch).parse_attr
        marks = ["" if s[0] == "constexpr" else s[1] for s in self.specialisation]
        paths = util.find_paths_if(marks, lambda _, v: isinstance(v, str))
        return {path: parse(util.get_iterable_path(marks, path)) for path in paths}


_binders: WeakKeyDictionary[Any, dict[int, Callable[..., Any]]] = WeakKeyDictionary()


def bind(kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], arch: int) -> Binding:
    """Bind a call of a `JITFunction` for compute capability `arch`.

    Arrays must already be `DevicePointer`s, numpy scalars plain Python numbers. Keyword arguments that are not
    parameters are compiler options. Raises `InvalidInput` for arguments that Triton would refuse.
    """
    binders = _binders.setdefault(kernel, {})
    binder = binders.get(arch)
    if binder is None:
        create = import_module("triton.runtime.jit").create_function_from_signature
        binder = binders[arch] = create(kernel.signature, kernel.params, toolchain.backend(arch))
    try:
        values, specialisation, options = binder(*args, **kwargs)
    except (TypeError, OverflowError) as e:
        raise _bad_call(kernel, e) from e
    check_globals(kernel)
    return Binding(
        kernel, arch, values, tuple(specialisation), options, _memo_key(arch, values, specialisation, options)
    )


def check_globals(kernel: Any) -> None:
    """Raises `InvalidInput` if a global that the kernel captured has changed since: Triton refuses it as well."""
    for (name, _), (value, scope) in kernel.used_global_vals.items():
        if name not in scope or scope[name] != value:
            raise InvalidInput(
                f"global {name} has changed since {kernel.__name__} was compiled: {value!r} -> {scope.get(name)!r}",
                where=where(kernel),
                help="pass it as a tl.constexpr parameter",
            )


def where(kernel: Any) -> Where:
    """The line of the kernel's `def`."""
    return Where(file=kernel.file_name, line=kernel.def_file_line_number)


def stable_text(value: Any) -> str | None:
    """Text that is equal only for equal constants, in every process; None if there is no such text for the value."""
    core = import_module("triton.language.core")
    jit = import_module("triton.runtime.jit")
    if value is None or type(value) in (bool, int, str, bytes):
        return f"{type(value).__name__}:{value!r}"
    if type(value) is float:
        return f"float:{value.hex()}"
    if isinstance(value, core.constexpr):
        text = stable_text(value.value)
        return None if text is None else f"constexpr({text})"
    if isinstance(value, core.dtype):
        return f"dtype:{value}"
    if isinstance(value, jit.JITCallable):
        return f"jit:{value.cache_key}:{sorted(source_files(value))}"
    if isinstance(value, Enum):
        return f"{type(value).__module__}.{type(value).__qualname__}.{value.name}"
    inner = value if isinstance(value, (tuple, list, core.tuple)) else None
    if is_dataclass(value) and type(value).__module__.startswith("triton."):  # a layout of Gluon
        inner = [getattr(value, part.name) for part in fields(value)]
    if inner is not None:
        parts = [stable_text(v) for v in inner]
        if any(p is None for p in parts):
            return None
        return f"{type(value).__qualname__}({','.join(map(str, parts))})"
    return None


def source_files(kernel: Any) -> set[str]:
    """Files of the kernel and of every jitted function it can reach by name; their paths end up in the PTX.

    Triton's `cache_key` covers the text of those functions but not where they are, and a report must name the file of
    this checkout, not of the one that filled the cache.
    """
    jit = import_module("triton.runtime.jit")
    seen: dict[int, Any] = {}
    todo = [kernel]
    while todo:
        function = todo.pop()
        if id(function) in seen:
            continue
        seen[id(function)] = function
        scope = function.get_capture_scope()
        names = function.fn.__code__.co_names + function.fn.__code__.co_freevars
        found = [scope[n] for n in names if n in scope]
        modules = [m for m in found if isinstance(m, ModuleType)]
        found += [getattr(m, n) for m in modules for n in names if hasattr(m, n)]
        todo += [f for f in found if isinstance(f, jit.JITCallable) and hasattr(f, "fn")]
    return {f.fn.__code__.co_filename for f in seen.values()}


def _memo_key(arch: int, values: dict[str, Any], specialisation: list[Any], options: dict[str, Any]) -> Hashable | None:
    # 1, True and 1.0, 0.0 and -0.0 are equal and hash alike, but compile differently: types, and the text of floats and
    # tuples, are part of the key.
    types: list[Any] = []
    for (kind, mark), value in zip(specialisation, values.values(), strict=True):
        if kind == "constexpr":
            types.append(repr(mark) if isinstance(mark, (float, tuple)) else type(mark))
        elif type(kind) is tuple:
            types.append((repr(mark), repr(value)))
    types += map(type, options.values())
    key = (arch, tuple(specialisation), tuple(types), tuple(options.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _bad_call(kernel: Any, error: Exception) -> InvalidInput:
    text = str(error).replace("dynamic_func()", f"{kernel.__name__}()")
    if "failed to specialize" in text:
        text += f" in a call of {kernel.__name__}"
    return InvalidInput(
        text,
        where=where(kernel),
        notes=(f"{kernel.__name__}{kernel.signature}",),
        help="arguments are arrays, ints, floats, bools, None, tuples of these, and constants for tl.constexpr",
    )
