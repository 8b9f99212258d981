"""The same bytes on arm64, under qemu-user (`tests/portability/arm64.py`; `make arm64`). Minutes each.

On 2026-12-01, with qemu 7.2, Python 3.11, numpy 2.4.6, numba 0.68.1 and llvmlite 0.50.0, all nine programs agreed on
the processor that qemu offers, `arithmetic` and `softmax_f32` also in code for `neoverse-v1` and in code without fused
multiply-add, and 348 instruction forms (49,408 words) with an H200's stored answers.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.portability import arm64, programs

EXPECTED = json.loads(programs.EXPECTED.read_text())
RICH = "neoverse-v1"
"""A CPU name with BF16, FP16 and SVE: instructions that LLVM could use for narrow floats."""
ONE_IN = 16
"""Of how many instruction forms one is compared."""

pytestmark = [
    pytest.mark.judge,
    pytest.mark.skipif(arm64.missing() is not None, reason=str(arm64.missing())),
]


def run(*words: str, cpu: str | None = None) -> dict[str, object]:
    env = {k: v for k, v in arm64.environment().items() if not k.startswith("GPUEMU_CPU")}
    if cpu is not None:
        env["GPUEMU_CPU"] = cpu
    done = subprocess.run(arm64.command(*words), cwd=arm64.ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_it_is_another_processor() -> None:
    assert arm64.versions()["machine"] == "aarch64"


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_same_bytes(name: str) -> None:
    assert run("-m", "tests.portability.programs", name) == {name: EXPECTED[name]}


@pytest.mark.parametrize("cpu", [RICH, "generic"])
@pytest.mark.parametrize("name", programs.SHORT)
def test_same_bytes_for_other_arm_processors(name: str, cpu: str) -> None:
    """`generic` by name is code without fused multiply-add: those are the runtime's own."""
    assert run("-m", "tests.portability.programs", name, cpu=cpu) == {name: EXPECTED[name]}


def test_instruction_forms_give_an_h200_s_bits() -> None:
    told = run("-m", "tests.portability.forms", str(ONE_IN))
    assert told["different"] == 0, told
    assert isinstance(told["forms"], int) and told["forms"] > 300, told
