"""Mutants: each change is of one place, keeps the other lines, and is put where the op really runs it."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import fake_engine as fake
import pytest

from gpuemu.gate.sweep import Plan, sweep
from gpuemu.mutate.operators import mutants
from gpuemu.mutate.ptx_waits import Wait, waits, without

ROOT = Path(__file__).parents[2]
HEAD = "@triton.jit\ndef k(x, y, n, a_stride, b_stride, BLOCK: tl.constexpr):\n"


def changes(body: str) -> set[tuple[str, str]]:
    """(kind, changed statement) of every mutant of a kernel with one statement."""
    found = mutants(HEAD + f"    {body}\n")
    return {(m.kind, m.text.removeprefix(HEAD).strip()) for m in found}


@pytest.mark.parametrize(
    "body, expected",
    [
        ("inside = at < n", {("comparison", "inside = at <= n")}),
        ("acc += v", {("accumulation", "acc = v")}),
        ("acc = tl.dot(p, q, acc)", {("accumulation", "acc = tl.dot(p, q)")}),
        ("w = w * alpha", {("factor", "w = w"), ("operator", "w = (w + alpha)")}),
        ("e = tl.exp(v)", {("call", "e = tl.exp2(v)")}),
        ("z = v.to(tl.float32)", {("dtype", "z = v.to(tl.float16)")}),
        ("r = p.to(tl.int64)", {("width", "r = p")}),
        ("z = tl.where(c, p, q)", {("guard", "z = p")}),
        ("tl.debug_barrier()", {("barrier", "pass")}),
        ("c = 0.5", {("constant", "c = 0.505")}),
        (
            "v = tl.load(x, mask=m, other=0.0)",
            {
                ("mask", "v = tl.load(x)"), ("other", "v = tl.load(x, mask=m, other=1.0)"),
                ("constant", "v = tl.load(x, mask=m, other=1.0)"),
            },
        ),
        ("v = tl.load(x, mask=m, other=-float('inf'))", {
            ("mask", "v = tl.load(x)"), ("other", "v = tl.load(x, mask=m, other=0.0)"),
        }),
    ],
)  # fmt: skip
def test_the_changes_of_a_statement(body, expected):
    found = changes(body)
    # A text that two changes give is one mutant.
    assert {text for _, text in found} == {text for _, text in expected}
    assert found <= expected


def test_loops_lose_one_and_strides_are_exchanged():
    text = HEAD + "    for i in range(0, n, BLOCK):\n        p = i * a_stride + i * b_stride\n"
    found = {m.kind: m.text for m in mutants(text)}
    assert "range(0, n - 1, BLOCK)" in found["bound"]
    assert "i * b_stride) + i * b_stride" in found["strides"] or "i * a_stride)" in found["strides"]


def test_a_mutant_keeps_every_other_line_and_its_number():
    text = (ROOT / "examples" / "flash_attention.py").read_text()
    lines = text.splitlines()
    found = mutants(text)
    assert len(found) > 60 and len({m.text for m in found}) == len(found)
    for mutant in found:
        ast.parse(mutant.text)
        changed = mutant.text.splitlines()
        assert len(changed) == len(lines)
        different = [i for i, (a, b) in enumerate(zip(lines, changed, strict=True), 1) if a != b]
        assert different and different[0] == mutant.line
    assert {m.function for m in found} == {"flash_kernel"}


def test_barriers_of_a_line_are_taken_out_of_ptx():
    ptx = (ROOT / "tests" / "ptx" / "softmax_f32_sm80.ptx").read_text()
    found = waits(ptx)
    assert found and all(w.name.startswith("bar") and w.line > 0 for w in found)
    left = without(ptx, found[0])
    assert waits(left) == found[1:]
    assert len(left.splitlines()) == len(ptx.splitlines())
    assert without(ptx, Wait("bar.sync", "elsewhere.py", 1)) == ptx


def test_a_copy_is_waited_for_by_its_line():
    ptx = (
        '.file 1 "/a/k.py"\n.loc 1 7 0\ncp.async.wait_group 0x0;\n.loc 1 9 0\n@%p1 bra L;\nbar.sync 0;\n'
        "fence.proxy.async.shared::cta;\n@!complete bra.uni waitLoop;\n"
    )
    assert waits(ptx) == [
        Wait("cp.async.wait_group", "/a/k.py", 7), Wait("bar.sync", "/a/k.py", 9),
        Wait("fence.proxy.async.shared::cta", "/a/k.py", 9), Wait("mbarrier.try_wait", "/a/k.py", 9),
    ]  # fmt: skip


@pytest.fixture
def swept(tmp_path, monkeypatch):
    """A sweep of one clean op on the stand-in for the engine, with its planted bug."""
    fake.install(monkeypatch)
    (tmp_path / ".git").mkdir()
    file = fake.softmax_file(tmp_path, "k.py", "softmax", "-np.inf")

    def run():
        return sweep(Plan(paths=(str(file),), parallel=0, quick=True, replays=None, alive=str(tmp_path / "alive")))

    return run


def test_a_gate_that_sees_is_alive(swept):
    result = swept()
    assert result.exit_code == 0 and result.alive is not None and result.alive.proven
    assert "planted and found" in result.alive.words and not result.bugs


def test_a_gate_that_compares_a_result_with_itself_is_not_alive(swept, monkeypatch):
    from gpuemu.gate import judge, once

    def blind(output, got, dtype, exact, bound, poison=None, whole=None):
        return judge.compare(output, got, dtype, judge.to_float64(got), bound, poison)

    monkeypatch.setattr(once, "compare", blind)
    result = swept()
    assert result.exit_code == 3 and result.dead and "NOT FOUND" in result.alive.words


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, v + v, mask=at < n)
"""
OP = """
import triton
import gpuemu
from gpuemu import Input, Output, bounds
from own_kernels import double

@gpuemu.op(dims={"N": (1, 31, 40)}, inputs={"x": Input("N", largest=100.0)}, outputs={"y": Output("N")},
           reference=lambda x: 2 * x, bound=bounds.exact(), dtypes=("float32",))
def twice(run, x, y):
    run(double, (triton.cdiv(x.size, 32),), x, y, x.size, BLOCK=32)
"""


@pytest.mark.slow
def test_a_kernel_in_a_file_of_its_own_is_mutated_where_the_op_imports_it(tmp_path):
    pytest.importorskip("triton")
    (tmp_path / ".git").mkdir()
    (tmp_path / "own_kernels.py").write_text(KERNEL)
    (tmp_path / "own_op.py").write_text(OP)
    command = [sys.executable, "-m", "gpuemu", "mutate", "own_op.py", "--quick", "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {(m["kind"], m["change"]): m["verdict"] for m in json.loads(done.stdout)["mutants"]}
    assert all(m["file"] == "own_kernels.py" for m in json.loads(done.stdout)["mutants"])
    survived = {kind for (kind, _), verdict in found.items() if verdict == "survived"}
    # A masked lane stores nothing: what it loads is of no account.
    assert survived == {"other"}
    assert {kind for (kind, _), v in found.items() if v == "caught"} >= {"mask", "comparison", "operator"}
    (tmp_path / "own_op.py").write_text(OP.replace("2 * x", "3 * x"))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 2 and re.search("'twice' is not clean as it is", done.stderr)


def test_a_dead_gate_is_told_in_every_report(swept, monkeypatch):
    from gpuemu.gate import once
    from gpuemu.reports.sarif import sarif_report
    from gpuemu.reports.text import text_report

    before = json.loads(sarif_report(swept()))["runs"][0]
    assert before["invocations"][0]["executionSuccessful"] is True
    monkeypatch.setattr(once, "value_problems", lambda comparisons: ())
    result = swept()
    after = json.loads(sarif_report(result))["runs"][0]
    assert after["results"] == before["results"] == []
    assert after["invocations"][0]["executionSuccessful"] is False
    assert "the gate is not alive" in json.dumps(after["invocations"]) and "gate not alive" in text_report(result)
