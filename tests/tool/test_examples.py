"""The whole path on the real engine: Triton kernels of `examples/`, compiled, executed, judged, located, replayed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
STORES = {
    "softmax_bug.py": "tl.store(y + row * y_stride",
    "matmul_bug.py": "tl.store(c + m[:, None] * c_stride",
}


def gpuemu(folder: Path, *arguments: str, code: str = "from gpuemu.cli import main; main()"):
    """The command line in another process and folder."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=500)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """(folder, SARIF) of one quick sweep over a copy of two examples and their controls."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / ".git").mkdir()
    (folder / "examples").mkdir()
    for file in STORES:
        shutil.copy(EXAMPLES / file, folder / "examples")
        shutil.copy(EXAMPLES / file.replace("_bug", ""), folder / "examples")
    done = gpuemu(folder, "ci", "examples", "--quick", "--parallel", "2", "--format", "sarif", "--output", "x.sarif")
    assert done.returncode == 1, done.stderr
    return folder, json.loads((folder / "x.sarif").read_text())


def test_only_the_planted_bugs_are_found_at_their_stores(swept):
    folder, sarif = swept
    run = sarif["runs"][0]
    found = {}
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        file = place["artifactLocation"]["uri"]
        found[Path(file).name] = (folder / file).read_text().splitlines()[place["region"]["startLine"] - 1].strip()
    assert found.keys() == STORES.keys() and len(run["results"]) == 2
    for name, line in found.items():
        assert line.startswith(STORES[name])
    assert run["invocations"][0]["executionSuccessful"] is True


def test_a_failure_is_replayed_elsewhere_without_triton(swept, tmp_path):
    folder, sarif = swept
    for result in sarif["runs"][0]["results"]:
        seed = re.search(r"gpuemu reproduce ([0-9a-f]{16})", result["message"]["text"]).group(1)
        assert gpuemu(folder, "reproduce", seed, "--recorded-only").returncode == 1
        place = tmp_path / seed
        shutil.copytree(folder / ".gpuemu" / "replays" / result["properties"]["replay"], place)
        no_triton = "import sys; sys.modules['triton'] = None; from gpuemu.cli import main; main()"
        done = gpuemu(tmp_path, "reproduce", seed, code=no_triton)
        assert done.returncode == 1 and "bytes identical" in done.stdout, done.stdout + done.stderr
        data = bytearray((place / "arrays" / "0.npy").read_bytes())
        data[-1] ^= 1
        (place / "arrays" / "0.npy").write_bytes(data)
        done = gpuemu(tmp_path, "reproduce", seed, code=no_triton)
        assert done.returncode == 3 and "ALTERED: arrays/0.npy" in done.stdout


def test_names_mean_nothing_and_workers_change_nothing(tmp_path):
    """Control and twin with each other's file names, in one and in two workers."""
    reports = []
    for parallel in ("1", "2"):
        folder = tmp_path / parallel
        (folder / ".git").mkdir(parents=True)
        shutil.copy(EXAMPLES / "softmax.py", folder / "softmax_bug.py")
        shutil.copy(EXAMPLES / "softmax_bug.py", folder / "softmax.py")
        arguments = ["--quick", "--dtype", "f32", "--distribution", "adversarial", "--format", "json"]
        done = gpuemu(folder, "ci", ".", "--parallel", parallel, *arguments)
        assert done.returncode == 1, done.stderr
        report = json.loads(done.stdout)
        assert [b["file"] for b in report["bugs"]] == ["softmax.py"]
        reports.append((done.stdout, sorted(p.name for p in (folder / ".gpuemu" / "replays").iterdir())))
    assert reports[0] == reports[1]


def test_every_op_of_the_examples_has_the_shapes_that_the_gate_promises():
    from gpuemu.gate.discover import find_files, load_ops
    from gpuemu.gate.shapes import shapes_of

    ops, broken = load_ops(find_files([EXAMPLES]))
    assert not broken and len(ops) >= 20
    for op in ops:
        shapes = shapes_of(op)
        assert len(shapes) >= 8
        assert {d: {s[d] for s in shapes} for d in op.dims} == {d: set(v) for d, v in op.dims.items()}, op.name
        assert {"float16", "bfloat16"} <= set(op.dtypes) or set(op.dtypes) == {"float8_e4m3fn", "float8_e5m2"}


def test_a_bug_is_expected_in_every_twin_and_nowhere_else():
    from gpuemu.reports.expected import read_expected

    expected = read_expected(EXAMPLES / "expected.toml")
    assert sorted(e.file for e in expected) == sorted(f"examples/{p.name}" for p in EXAMPLES.glob("*_bug.py"))
    for entry in expected:
        lines = (ROOT / entry.file).read_text().splitlines()
        assert entry.line in [line.strip() for line in lines]


@pytest.mark.slow
def test_every_planted_bug_and_no_control_is_found(tmp_path):
    """The examples that `swept` leaves out, on the values that show the most; `make demo` does all of it."""
    (tmp_path / ".git").mkdir()
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--quick", "--distribution", "adversarial", "--dtype", "f16", "--dtype", "e5m2", "--parallel", "2"]
    done = gpuemu(tmp_path, "ci", "examples", *options, "--expect", "examples/expected.toml")
    assert done.returncode == 0, done.stderr


def test_run_executes_one_kernel(tmp_path):
    words = ["x=rand:4x100:f32", "y=nan:4x100:f32", "x_stride=100", "y_stride=100", "n=100", "BLOCK=128"]
    target = f"{EXAMPLES}/softmax.py::softmax_kernel"
    done = gpuemu(tmp_path, "run", target, "--grid", "4", "--target", "sm_80", "--save", "o.npz", *words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"y: float32 4x100, [\d.e-]+ … [\d.e-]+\n", done.stdout)
    import numpy as np

    saved = np.load(tmp_path / "o.npz")
    assert np.allclose(saved["y"].sum(axis=1), 1, atol=1e-6)
    done = gpuemu(tmp_path, "run", target, "--grid", "5", "--target", "sm_80", *words)
    assert done.returncode == 1 and "softmax.py:" in done.stdout and "out-of-bounds" in done.stdout
