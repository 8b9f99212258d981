"""What works on this machine, and why not: the checks behind `gpuemu doctor`.

Each check looks at one thing and never raises; what it found is a `Check` with a state:

    ok        works, and is what the tests ran on
    limited   works in part, or works and costs time; the sentence says which
    fail      something that every run needs does not work

Nothing is installed, downloaded or changed. The last two checks are launches of a kernel of a few lines, once from PTX
and once from Triton source, whose results are compared.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ptx.errors import GpuemuError

TESTED: dict[str, tuple[str, str]] = {
    "numpy": ("2.0", "2.5"),
    "llvmlite": ("0.50", "0.51"),
    "numba": ("0.68", "0.69"),
    "lark": ("1.2", "2"),
    "click": ("8.1", "9"),
    "rich": ("13.7", "16"),
    "jinja2": ("3.1", "4"),
    "sarif-om": ("1.0.4", "2"),
    "ml_dtypes": ("0.5", "0.7"),
    "msgspec": ("0.19", "0.24"),
}
"""Package -> (from, below): the ranges of pyproject.toml, which a test compares."""
TRITON = ("3.9.0", "3.10")
PYTHON = (3, 11)
ROOM = 1 << 30
"""Bytes of free space below which caches and replays may not fit."""

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry double_it(.param .u64 x)
{
  .reg .b32 %r<3>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [x];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d2, %d0, %d1;
  ld.global.b32 %r1, [%d2];
  add.u32 %r2, %r1, %r1;
  st.global.b32 [%d2], %r2;
  ret;
}
"""
KERNEL = """import triton
import triton.language as tl


@triton.jit
def double_it(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) * 2)
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: its name, `state` (ok, limited, fail), what was found, what to do."""

    name: str
    state: str
    found: str
    help: str | None = None


def checks() -> Iterator[Check]:
    """All checks, in the order in which one failing explains the next."""
    yield check_python()
    yield from (check_package(name) for name in TESTED)
    yield check_triton()
    for check in (check_cpu, check_cache, check_space, check_ptxas, check_ptx_launch, check_triton_launch):
        yield _guarded(check)


def _guarded(check: Callable[[], Check]) -> Check:
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        return check()
    except GpuemuError as error:
        return Check(name, "fail", error.diagnostic.what, error.diagnostic.help)
    except Exception as error:
        return Check(name, "fail", f"{type(error).__name__}: {error}", "see the packages above; reinstall gpuemu")


def check_python() -> Check:
    """The interpreter's version."""
    found = f"{platform.python_implementation()} {platform.python_version()} on {sys.platform} {platform.machine()}"
    if sys.version_info < PYTHON:
        return Check("python", "fail", found, f"gpuemu needs Python {'.'.join(map(str, PYTHON))} or newer")
    return Check("python", "ok", found)


def check_package(name: str) -> Check:
    """Whether a package is installed in a version that the tests ran on."""
    low, high = TESTED[name]
    wanted = f"tested: {low} up to, not including, {high}"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, "fail", "not installed", f"pip install '{name}>={low},<{high}'")
    if not _numbers(low) <= _numbers(version) < _numbers(high):
        return Check(name, "limited", f"{version} ({wanted})", f"pip install '{name}>={low},<{high}'")
    return Check(name, "ok", version)


def check_triton() -> Check:
    """Whether Triton is there; without it everything that starts from PTX works."""
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:
        return Check(
            "triton", "limited", "not installed: Triton kernels cannot be compiled; PTX files and replays work",
            "pip install 'triton>=3.9,<3.10' (wheels: Linux on x86-64 and aarch64)",
        )  # fmt: skip
    if not _numbers(TRITON[0]) <= _numbers(version) < _numbers(TRITON[1]):
        return Check("triton", "fail", f"{version}: Triton kernels are refused", "pip install 'triton>=3.9,<3.10'")
    return Check("triton", "ok", version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(x) for x in re.findall(r"\d+", version)[:3])


def check_cpu() -> Check:
    """The processor, and what code is generated for."""
    from interp.engine.cpu import current

    cpu = current()
    wide = [f for f in ("avx512f", "avx2", "neon") if f"+{f}" in cpu.features.split(",")]
    vector = wide[0] if wide else "no wide vectors"
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = f"code generator for {cpu.name} ({vector}, {'fma' if cpu.has_fma else 'no fma'}), {count} processors"
    if forced := [name for name in ("GPUEMU_CPU", "GPUEMU_CPU_FEATURES") if os.environ.get(name)]:
        return Check("cpu", "limited", f"{found}; chosen by {' and '.join(forced)}", "results do not depend on it")
    if not cpu.has_fma:
        return Check("cpu", "limited", f"{found}: fused multiply-add is computed in integers, slowly")
    return Check("cpu", "ok", found)


def check_cache() -> Check:
    """The folder of compiled code: whether it can be written, and by whom else."""
    from ptx import cache

    place = cache.directory()
    if place is None:
        return Check("cache", "limited", "switched off: every process compiles anew", "unset GPUEMU_CACHE_DIR")
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = place.stat()
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".doctor-"):
            pass
    except OSError as error:
        return Check(
            "cache", "limited", f"{place} cannot be written ({error.strerror}): every process compiles anew",
            "set GPUEMU_CACHE_DIR to a folder of your own",
        )  # fmt: skip
    size = sum(f.stat().st_size for f in place.rglob("*") if f.is_file())
    found = f"{place}, {size / 2**20:.0f} MiB"
    if hasattr(os, "getuid") and status.st_uid not in (0, os.getuid()):
        return Check("cache", "fail", f"{found}: belongs to another user", "it holds executable code: use your own")
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return Check(
            "cache", "fail", f"{found}: everybody may write it, and it holds executable code", f"chmod go-w {place}"
        )
    return Check("cache", "ok", f"{found}, written by this user only")


def check_space() -> Check:
    """Free space where caches and replays go."""
    from ptx import cache

    places = [p for p in (Path.cwd(), cache.directory()) if p is not None and p.exists()]
    free = {str(p): shutil.disk_usage(p).free for p in places}
    found = ", ".join(f"{size / 2**30:.1f} GiB free in {place}" for place, size in free.items())
    if min(free.values()) < ROOM:
        return Check("space", "limited", found, "a full disk costs replays and compiled code, never a verdict")
    return Check("space", "ok", found)


def check_ptxas() -> Check:
    """NVIDIA's assembler; only reports about registers and machine code need one."""
    from ptx.lower import toolchain

    found, missing = [], ""
    for name in toolchain.TOOLS:
        try:
            place = toolchain.tool(name)
            found.append(f"{place} ({toolchain.release(place)})")
        except GpuemuError as error:
            missing = missing or error.diagnostic.what
    if missing:
        return Check("ptxas", "limited", f"{missing}: nothing that executes kernels needs it", "Triton's wheel has one")
    return Check("ptxas", "ok", ", ".join(found))


def check_ptx_launch() -> Check:
    """A kernel of a few instructions, from PTX text to its result."""
    import numpy as np

    import gpuemu

    start = time.perf_counter()
    x = np.arange(32, dtype=np.int32)
    result = gpuemu.Module.from_ptx(PTX)["double_it"].launch(grid=(1,), block=(32,), args=[x])
    if result.findings or not np.array_equal(x, 2 * np.arange(32)):
        return Check("ptx launch", "fail", "the self-test kernel gave a wrong result", "please report this")
    return Check("ptx launch", "ok", f"right result in {time.perf_counter() - start:.2f} s")


def check_triton_launch() -> Check:
    """The same from Triton source."""
    import numpy as np

    import gpuemu
    from gpuemu.gate.discover import load_module

    if check_triton().state == "limited":
        return Check("triton launch", "limited", "not tried: Triton is not installed")
    with tempfile.TemporaryDirectory(prefix="gpuemu-doctor-") as folder:
        file = Path(folder) / "kernel.py"
        file.write_text(KERNEL, encoding="utf-8")
        start = time.perf_counter()
        x = np.arange(32, dtype=np.float32)
        result = gpuemu.run(load_module(file).double_it, (1,), x, BLOCK=32, target="sm_80", num_warps=1)
    if result.findings or not np.array_equal(x, 2 * np.arange(32)):
        return Check("triton launch", "fail", "the self-test kernel gave a wrong result", "please report this")
    return Check("triton launch", "ok", f"right result in {time.perf_counter() - start:.2f} s, no GPU used")
