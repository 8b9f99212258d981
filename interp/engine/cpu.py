"""The code generator's CPU: the host's, or what `GPUEMU_CPU` and `GPUEMU_CPU_FEATURES` say.

`GPUEMU_CPU` is an LLVM CPU name (`x86-64-v2`, `x86-64-v3`, `znver3` …), `GPUEMU_CPU_FEATURES` an LLVM feature string
(`-avx512bf16,-avx512fp16`); with a name alone, exactly that CPU's features are used. Results do not depend on the
choice: that is what the portability tests use it for. Cached code is keyed by name *and* full feature string, since a
name alone does not determine what the host has.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

import llvmlite.binding as llvm


@dataclass(frozen=True, slots=True)
class Cpu:
    """A target: LLVM CPU name and feature string, and whether it has a fused multiply-add on float and double."""

    name: str
    features: str
    has_fma: bool

    def target_machine(self) -> llvm.TargetMachine:
        """A fresh target machine; `opt=0` because compile time counts more than speed here (see
        `interp.engine.jit`)."""
        target = llvm.Target.from_default_triple()
        return target.create_target_machine(cpu=self.name, features=self.features, opt=0, jit=True)


@lru_cache(maxsize=1)
def initialise() -> None:
    """Register LLVM's native target, once a process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@lru_cache(maxsize=4)
def _cpu(name: str | None, features: str | None) -> Cpu:
    initialise()
    if name is None:
        host = llvm.get_host_cpu_features()
        flags = host.flatten() + (f",{features}" if features else "")
        has_fma = bool(host.get("fma")) or llvm.get_process_triple().startswith(("aarch64", "arm64"))
        return Cpu(llvm.get_host_cpu_name(), flags, has_fma and "-fma" not in flags.split(","))
    flags = features or ""
    has_fma = name not in ("x86-64", "x86-64-v2", "nehalem", "westmere", "sandybridge", "ivybridge", "generic")
    return Cpu(name, flags, (has_fma or "+fma" in flags.split(",")) and "-fma" not in flags.split(","))


def current() -> Cpu:
    """The CPU that code is generated for."""
    return _cpu(os.environ.get("GPUEMU_CPU") or None, os.environ.get("GPUEMU_CPU_FEATURES") or None)
