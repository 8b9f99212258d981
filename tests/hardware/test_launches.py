"""Whole kernels against a real H200: the emulator's memory after a launch has the digests that the GPU's memory had.

`h200_launches.json` is `results.json` of `on_gpu.py` (GPU, driver, date). A case whose inputs cannot be regenerated on
this numpy is skipped by name. A few cases run always, all of them in `make judges`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")

from interp.launch import recording
from interp.record import ArrayArgument
from tests.hardware.cases import CASES

ANSWERS: dict[str, Any] = json.loads(Path(__file__).with_name("h200_launches.json").read_text())["launches"]
QUICK = {
    "softmax_f32_sm80",
    "matmul_f16_sm80",
    "matmul_bf16_sm80",
    "flash_attention_f16_sm80",
    "matmul_f16_3_stages_sm90",
    "matmul_e4m3_sm90",
}


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.judge) for n in sorted(ANSWERS) if n in CASES]
)
def test_memory_is_that_of_an_h200(name: str) -> None:
    with recording() as log:
        CASES[name]()
    (record,) = log.launches
    scratch = {a.storage for a in record.arguments if isinstance(a, ArrayArgument) and a.name.endswith(" scratch")}
    kept = [i for i in range(len(record.storages)) if i not in scratch]
    before = [hashlib.sha256(record.storages[i].before).hexdigest() for i in kept]
    if before != ANSWERS[name]["before"]:
        pytest.skip(f"{name}: numpy draws other inputs here than when the answers were taken")
    after = record.after()
    assert [hashlib.sha256(after[i]).hexdigest() for i in kept] == ANSWERS[name]["after"]


def test_every_answer_has_its_case() -> None:
    assert set(ANSWERS) <= set(CASES)
    assert set(ANSWERS) >= QUICK
    assert all(told["bytes_differing"] == 0 for told in ANSWERS.values())
