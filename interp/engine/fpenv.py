"""The host's floating-point environment around native code: round to nearest, subnormals kept, no traps.

A host library may have set flush-to-zero (MXCSR.FTZ/DAZ, FPCR.FZ), which would change results. `ieee()` sets the IEEE
default for the duration of a launch and restores what was there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from interp.engine.cpu import initialise

_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i64 @swap(i64 %new) {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %old = load i32, ptr %p
  %word = trunc i64 %new to i32
  store i32 %word, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  %wide = zext i32 %old to i64
  ret i64 %wide
}
"""
_ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define i64 @swap(i64 %new) {
  %old = call i64 @llvm.aarch64.get.fpcr()
  call void @llvm.aarch64.set.fpcr(i64 %new)
  ret i64 %old
}
"""
_IEEE = {"x86": 0x1F80, "arm": 0}


@lru_cache(maxsize=1)
def _swap() -> tuple[Any, int, Any]:
    initialise()
    kind = "x86" if llvm.get_process_triple().startswith("x86") else "arm"
    module = llvm.parse_assembly(_X86 if kind == "x86" else _ARM)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("swap"))
    return function, _IEEE[kind], engine


@contextmanager
def ieee() -> Iterator[None]:
    """IEEE defaults inside the block."""
    swap, default, _ = _swap()
    old = swap(default)
    try:
        yield
    finally:
        swap(old)
