"""From IR text to callable code, through an object cache that another process can use.

Text is compiled with code generation at O0 and no IR passes: the emitted code is straight lines of vector operations
already, and compile time is part of every gate run. Against O1, kernels run 2 to 5 % slower (softmax, matmul, flash
attention, gelu) and compile in 55 to 75 % of the time (a 6,410-instruction kernel: 0.61 against 1.11 ms an instruction,
one run on a busy AVX2 machine). The object refers to the runtime by symbol name only. It is linked without the
process's own symbols: besides the runtime functions that the kernel declares, only `memcpy`, `memset` and `memmove` are
offered, so code that would quietly call libm fails to link instead.

Objects are executable code: the cache directory must not be shared with writers that are not trusted (ptx/cache.py).
"""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from interp.engine.cpu import Cpu
from interp.runtime import native
from ptx.errors import InternalError

_LIBC = ("memcpy", "memset", "memmove")
_counter = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """Linked code: the address of `run_warp`, and what keeps it in memory."""

    run_warp: int
    owner: Any


def compile_object(text: str, cpu: Cpu) -> bytes:
    """Native object of an IR module's text."""
    machine = cpu.target_machine()
    header = f'target triple = "{llvm.get_process_triple()}"\ntarget datalayout = "{machine.target_data}"\n'
    try:
        module = llvm.parse_assembly(header + text)
    except RuntimeError as error:
        raise InternalError(f"the emitter produced invalid LLVM IR: {error}") from error
    return bytes(machine.emit_object(module))


def link(image: bytes, symbols: tuple[str, ...], cpu: Cpu) -> Loaded:
    """Link an object with the runtime functions that it calls."""
    global _counter
    import interp.runtime.functions  # noqa: F401  (declares every symbol)

    _counter += 1
    builder = llvm.JITLibraryBuilder().add_object_img(image).export_symbol("run_warp")
    for name in symbols:
        builder.import_symbol(name, native.address(name))
    for name in _LIBC:
        builder.import_symbol(name, _libc(name))
    compiler = llvm.create_lljit_compiler(cpu.target_machine(), use_jit_link=platform.system() != "Windows")
    try:
        library = builder.link(compiler, f"kernel{_counter}")
    except RuntimeError as error:
        raise InternalError(f"compiled code does not link: {error}") from error
    return Loaded(int(library["run_warp"]), (library, compiler))


def _libc(name: str) -> int:
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
