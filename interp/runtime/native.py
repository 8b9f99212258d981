"""The registry of runtime symbols: numba functions, compiled to native code when a kernel first needs one.

Emitted code calls a symbol by name; `address(name)` compiles the function (or loads it from numba's disk cache) and
gives its address for the linker. Symbols are bound by name, never by address, so cached kernel objects stay valid in
another process.

The cache directory is named by a digest of the source files that native code comes from: numba itself only looks at the
file that holds the outermost function, and would otherwise run stale code after a change in a function that it calls.
It is set only while one of our functions is being declared, so numba code of the host application is not affected. With
an empty cache a second process helps (`prefetch`).

`GPUEMU_CPU` and `GPUEMU_CPU_FEATURES` apply to this code too (numba's own settings are used for it).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config as numba_config

from interp.engine import cpu as cpus
from interp.runtime import second_core
from ptx.cache import directory
from ptx.errors import InternalError

POINTER = "int64"
WARP_SIGNATURE = "void(" + ", ".join(["int64"] * 10) + ")"
"""(context, warp frame, site, active lane mask, results, operands, four parameters)."""
LANE_SIGNATURE = "void(int64, int64, int64, int64, int64)"
"""(results, operands, three parameters): 32 lanes of each, one vector after the other."""


@dataclass(frozen=True, eq=False)
class Native:
    """A runtime symbol before compilation."""

    name: str
    signature: str
    function: Callable[..., Any]


_REGISTRY: dict[str, Native] = {}
_COMPILED: dict[str, Any] = {}


_NATIVE_PACKAGES = ("runtime", "formats", "special", "tensorcore")


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Digest of all sources of `interp` and `ptx`: what compiled kernels depend on."""
    root = Path(__file__).resolve().parent.parent
    return _digest([root, root.parent / "ptx"])


@lru_cache(maxsize=1)
def runtime_digest() -> str:
    """Digest of the sources that native functions are compiled from."""
    root = Path(__file__).resolve().parent.parent
    return _digest([root / name for name in _NATIVE_PACKAGES])


def _digest(packages: list[Path]) -> str:
    """Digest of source files, and of the versions of what compiles them."""
    h = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for package in packages:
        for path in sorted(package.rglob("*")):
            if path.suffix in (".py", ".npz", ".lark"):
                h.update(path.relative_to(package.parent).as_posix().encode())
                h.update(path.read_bytes())
    return h.hexdigest()[:24]


def _cache_dir() -> str | None:
    root = directory()
    return None if root is None else str(root / "numba" / runtime_digest())


@contextmanager
def numba_settings(cache_dir: str | None) -> Iterator[None]:
    """numba's configuration for code of ours: where it caches, and for which CPU it compiles."""
    saved = numba_config.CACHE_DIR, numba_config.CPU_NAME, numba_config.CPU_FEATURES
    numba_config.CACHE_DIR = cache_dir or ""
    if os.environ.get("GPUEMU_CPU") or os.environ.get("GPUEMU_CPU_FEATURES"):
        cpu = cpus.current()
        numba_config.CPU_NAME, numba_config.CPU_FEATURES = cpu.name, cpu.features
    try:
        yield
    finally:
        numba_config.CACHE_DIR, numba_config.CPU_NAME, numba_config.CPU_FEATURES = saved


def symbol(name: str, signature: str = WARP_SIGNATURE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a runtime symbol. The function stays plain Python; it is compiled on first use."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in _REGISTRY:
            raise InternalError(f"runtime symbol {name} is declared twice")
        _REGISTRY[name] = Native(name, signature, function)
        return function

    return declare


def address(name: str) -> int:
    """Native address of a runtime symbol, compiled or loaded from the cache on first use."""
    if name not in _REGISTRY:
        raise InternalError(f"no runtime symbol {name}")
    for other in second_core.take_until(name):
        _compile(other)
    _compile(name)
    return int(_COMPILED[name].address)


def _compile(name: str) -> None:
    if name not in _COMPILED:
        entry = _REGISTRY[name]
        with numba_settings(_cache_dir()):
            _COMPILED[name] = numba.cfunc(entry.signature, cache=_cache_dir() is not None)(entry.function)
        _mark(name)


def prefetch(names: Iterable[str]) -> None:
    """Have symbols that are not in the cache compiled by another process while this one does something else, if it can
    be done (see `interp.runtime.second_core`); what it has not begun when `address` needs it is compiled there."""
    missing = [n for n in names if n in _REGISTRY and n not in _COMPILED and not _is_marked(n)]
    if missing and _cache_dir() is not None:
        second_core.offer({n: _REGISTRY[n].function.__module__ for n in missing})


def _marker(name: str) -> Path | None:
    """A file that says that this symbol is in the cache for the current CPU; only a hint."""
    root = _cache_dir()
    wanted = f"{os.environ.get('GPUEMU_CPU')} {os.environ.get('GPUEMU_CPU_FEATURES')}"
    cpu = hashlib.sha256(wanted.encode()).hexdigest()[:8]
    return None if root is None else Path(root) / f"{name}-{cpu}.done"


def _is_marked(name: str) -> bool:
    marker = _marker(name)
    return marker is not None and marker.exists()


def _mark(name: str) -> None:
    marker = _marker(name)
    if marker is not None:
        try:
            marker.touch()
        except OSError:
            return


def names() -> list[str]:
    """Every declared symbol."""
    return sorted(_REGISTRY)
