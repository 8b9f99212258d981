"""The hardware's single-instruction cases on the compiled engine, bit for bit.

A stored subset of lanes always, all 4,096 lanes of each case where the full answers are."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interp.launch import Module

FOLDER = Path(__file__).parent.parent / "hardware"
FULL = Path(__file__).parents[3] / "shared" / "h200"
BATCH = 24

ELSEWHERE = "wgmma"
"""Cases over shared-memory matrices have their own suite."""


@cache
def description() -> dict[str, dict[str, Any]]:
    """Case name -> kind, PTX body, kinds of input words, number of result words."""
    return json.loads((FOLDER / "h200_instructions.json").read_text())  # type: ignore[no-any-return]


def names() -> list[str]:
    return [n for n, d in description().items() if d["kind"] == "lanes"]


def kernel(batch: list[str], lanes: int) -> str:
    """PTX of many cases: parameters input and output, u32; words [lane, word] of one case behind those of another."""
    lines = [
        ".version 8.4", ".target sm_90a", ".address_size 64",
        ".visible .entry cases(.param .u64 input, .param .u64 output) {",
        ".reg .b32 %lane, %size, %cta; .reg .b64 %in, %out, %a, %b; .reg .b32 %t<16>;",
        "mov.u32 %cta, %ctaid.x; mov.u32 %size, %ntid.x; mov.u32 %lane, %tid.x; mad.lo.u32 %lane, %cta, %size, %lane;",
        "ld.param.u64 %in, [input]; ld.param.u64 %out, [output];",
    ]  # fmt: skip
    at_in = at_out = 0
    for name in batch:
        case = description()[name]
        n, m = len(case["inputs"]), case["outputs"]
        lines.append(f"{{ .reg .b32 %i<{n + 1}>; .reg .b32 %o<{m + 1}>;")
        lines.append(f"mad.wide.u32 %a, %lane, {4 * n}, %in; mad.wide.u32 %b, %lane, {4 * m}, %out;")
        lines += [f"ld.global.b32 %i{k}, [%a+{4 * (at_in + k)}];" for k in range(n)]
        lines.append(case["body"])
        lines += [f"st.global.b32 [%b+{4 * (at_out + k)}], %o{k};" for k in range(m)]
        lines.append("}")
        at_in, at_out = at_in + n * lanes, at_out + m * lanes
    return "\n".join([*lines, "ret;", "}", ""])


def differences(cases: Iterator[tuple[str, np.ndarray, np.ndarray]]) -> list[str]:
    """One line for each case with a lane whose result differs; all cases have the same number of lanes."""
    wrong: list[str] = []
    todo = list(cases)
    for start in range(0, len(todo), BATCH):
        batch = todo[start : start + BATCH]
        lanes = len(batch[0][1])
        given = np.concatenate([x.reshape(-1) for _, x, _ in batch]).astype(np.uint32)
        results = np.zeros(sum(y.size for _, _, y in batch), np.uint32)
        threads = 128 if lanes % 128 == 0 else lanes
        entry = Module.from_ptx(kernel([n for n, _, _ in batch], lanes))["cases"]
        done = entry.launch((lanes // threads,), (threads,), [given, results], counters=False)
        assert not done.findings
        at = 0
        for name, x, y in batch:
            got = results[at : at + y.size].reshape(y.shape)
            at += y.size
            for lane in np.nonzero((got != y).any(axis=1))[0][:1]:
                words = [[hex(int(w)) for w in a[lane]] for a in (x, got, y)]
                count = int((got != y).any(axis=1).sum())
                wrong.append(f"{name} {words[0]}: {words[1]}, H200 {words[2]}; {count} lanes")
    return wrong


def _whole(name: str, lanes: int) -> int:
    """The lanes that can be computed: whole warps, where lanes read each other."""
    crosses = "sync" in name or name.startswith(("vote", "match"))
    return lanes // 32 * 32 if crosses else lanes


@pytest.mark.judge
def test_stored_lanes() -> None:
    with np.load(FOLDER / "h200_instructions.npz", allow_pickle=False) as archive:
        words = {n: archive[n][: _whole(n, len(archive[n]))] for n in names()}
    sizes = {len(w) for w in words.values()}
    wrong = []
    for size in sizes:
        same = [n for n in words if len(words[n]) == size]
        count = {n: description()[n]["outputs"] for n in same}
        wrong += differences((n, words[n][:, : -count[n]], words[n][:, -count[n] :]) for n in same)
    assert wrong == []


@pytest.mark.judge
def test_all_lanes() -> None:
    if not (FULL / "instr_seed1.npz").exists():
        pytest.skip("the full answers are not beside the checkout")
    spec = importlib.util.spec_from_file_location("h200_instr", FULL / "instr.py")
    assert spec is not None and spec.loader is not None
    instr = importlib.util.module_from_spec(spec)
    sys.modules["h200_instr"] = instr
    spec.loader.exec_module(instr)
    answers = np.load(FULL / "instr_seed1.npz", allow_pickle=False)
    known = set(names())

    def cases() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for case in instr.CASES:
            if case[0] in known:
                yield case[0], instr.inputs(case, 1, len(answers[case[0]])), answers[case[0]]

    assert differences(cases()) == []


def test_every_case_is_accounted_for() -> None:
    run = set(names())
    rest = {n for n in description() if n not in run}
    assert {n for n in rest if not n.startswith(ELSEWHERE)} == set()
