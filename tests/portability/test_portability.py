"""The same output bytes whatever CPU the code is generated for: baseline x86-64 without FMA, AVX2, this host, and this
host without the instructions that LLVM is known to get wrong. Each CPU has a process and a cache of its own (an empty
one costs up to a minute of compiling: `make test` asks each for a few programs, `make judges` for all of them). Another
architecture is in `test_arm64.py`.

`expected.json` holds the digests, so that another machine is compared, too. A change there means that results changed:
say why in the commit that blesses it.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from ptx import cache
from tests.portability import programs

ROOT = Path(__file__).resolve().parents[2]
CPUS = {
    "host": {},
    "x86-64-v2": {"GPUEMU_CPU": "x86-64-v2"},
    "x86-64-v3": {"GPUEMU_CPU": "x86-64-v3"},
    "host-without-avx512": {"GPUEMU_CPU_FEATURES": "-avx512bf16,-avx512fp16"},
}
EXPECTED = json.loads(programs.EXPECTED.read_text())


def runs_here(cpu: str) -> bool:
    """Whether code for a CPU of the list can be executed on this one."""
    if cpu == "host":
        return True
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    import llvmlite.binding as llvm

    return cpu != "x86-64-v3" or bool(llvm.get_host_cpu_features().get("avx2"))


def skip_unless_it_tells(cpu: str) -> None:
    """Skip what this machine cannot run, or what would be the host's code once more."""
    if not runs_here(cpu):
        pytest.skip(f"this machine cannot run code for {cpu}")
    if cpu == "host-without-avx512":
        import llvmlite.binding as llvm

        features = llvm.get_host_cpu_features()
        if not (features.get("avx512bf16") or features.get("avx512fp16")):
            pytest.skip("this host has neither AVX512-BF16 nor AVX512-FP16: code without them is the host's")


def digests(cpu: str, names: tuple[str, ...], folder: Path) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUEMU_CPU")}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env.update(CPUS[cpu], PYTHONPATH=path)
    if cpu != "host":
        env["GPUEMU_CACHE_DIR"] = str(folder / cpu)
    command = [sys.executable, "-m", "tests.portability.programs", *names]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the caches of the CPUs lie: beside the user's, so that a second run is quick."""
    root = cache.directory()
    return root / "portability" if root is not None else tmp_path_factory.mktemp("portability")


@pytest.mark.slow
@pytest.mark.parametrize("cpu", CPUS)
def test_same_bytes(cpu: str, folder: Path) -> None:
    skip_unless_it_tells(cpu)
    names = programs.QUICK if cpu in ("host", "x86-64-v2") else programs.SHORT
    assert digests(cpu, names, folder) == {name: EXPECTED[name] for name in names}


@pytest.mark.judge
@pytest.mark.parametrize("cpu", CPUS)
def test_same_bytes_of_every_program(cpu: str, folder: Path) -> None:
    skip_unless_it_tells(cpu)
    assert digests(cpu, tuple(programs.PROGRAMS), folder) == EXPECTED


def test_every_program_has_a_digest() -> None:
    assert set(EXPECTED) == set(programs.PROGRAMS)
    assert EXPECTED["matmul_f16"] != EXPECTED["matmul_f16_on_sm90"], "the devices' tensor cores differ"
