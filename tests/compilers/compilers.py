"""Where the compilers are: nvcc, and a Python with numba-cuda. Tests that need one skip where it is not, and say so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = tuple(sorted(p.stem for p in (HERE / "cuda").glob("*.cu")))


def nvcc() -> str:
    """The compiler of CUDA C++: `GPUEMU_NVCC`, or the one on the path."""
    found = os.environ.get("GPUEMU_NVCC") or shutil.which("nvcc")
    if not found:
        pytest.skip("no nvcc: install the group 'judges' and g++ (`make judges`), or set GPUEMU_NVCC")
    return found


def cuda_text(source: str, target: str, options: Sequence[str] = ()) -> str:
    """PTX of `cuda/<source>.cu`; fails with the compiler's messages."""
    command = [
        nvcc(),
        "-ptx",
        "-std=c++17",
        f"-arch={target}",
        *options,
        "-o",
        "-",
        str(HERE / "cuda" / f"{source}.cu"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def numba_texts(folder: Path, capabilities: Sequence[str]) -> None:
    """Writes the texts of `numba_kernels.py`; fails where a kernel does not compile."""
    python = os.environ.get("GPUEMU_JUDGES_PYTHON", sys.executable)
    probe = "import importlib.util as u; exit(0 if u.find_spec('numba_cuda') and u.find_spec('cuda') else 3)"
    if subprocess.run([python, "-c", probe]).returncode:
        pytest.skip("no numba-cuda: install the group 'judges' (`make judges`), or set GPUEMU_JUDGES_PYTHON")
    for capability in capabilities:
        command = [python, str(HERE / "numba_kernels.py"), str(folder), capability]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0 and not done.stdout, (done.stdout + done.stderr)[-2000:]
