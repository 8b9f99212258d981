"""The sweep without the engine (kernels are Python functions): verdicts, failing closed, names, order, replays."""

import json
import shutil
from pathlib import Path

import fake_engine as fake
import pytest

import gpuemu
from gpuemu.gate.results import SweepResult
from gpuemu.gate.sweep import Plan, sweep
from gpuemu.reports.jsonfile import json_report
from gpuemu.reports.sarif import sarif_report
from gpuemu.reports.text import text_report
from ptx.errors import InvalidInput, Unsupported


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, **changes) -> SweepResult:
    return sweep(Plan(paths=(str(folder),), parallel=0, root=str(folder), **changes))


def test_a_correct_op_is_clean(folder):
    fake.softmax_file(folder, "good.py", "good", "-np.inf")
    result = run(folder)
    assert result.exit_code == 0 and len(result.of("pass")) == len(result.cases) >= 72
    assert not (folder / ".gpuemu").exists()


def test_a_wrong_op_is_found_grouped_and_kept(folder):
    fake.softmax_file(folder, "bad.py", "bad", "0.0")
    result = run(folder)
    assert result.exit_code == 1 and len(result.bugs) == 1
    bug = result.bugs[0]
    assert bug.file.endswith("bad.py") and bug.kind == "wrong-value" and len(bug.cases) > 20
    kept = {p.parent.name for p in (folder / ".gpuemu/replays").glob("*/case.json")}
    assert kept == {c.replay for c in result.of("finding")}
    text = text_report(result)
    assert f"gpuemu reproduce {bug.shown.case.seed_text}" in text and "FINDING bad.py" in text


def test_names_of_files_and_ops_mean_nothing(folder):
    fake.softmax_file(folder, "softmax_bug.py", "softmax_bug", "-np.inf")
    fake.softmax_file(folder, "softmax.py", "softmax", "0.0")
    assert [Path(b.file).name for b in run(folder).bugs] == ["softmax.py"]


def test_the_same_sweep_gives_the_same_bytes(folder, tmp_path):
    fake.softmax_file(folder, "bad.py", "bad", "0.0")
    first, second = run(folder), run(folder)
    assert json_report(first) == json_report(second)
    (other := tmp_path / "elsewhere").mkdir()
    shutil.copy(folder / "bad.py", other)
    (folder / "bad.py").unlink()
    assert json_report(run(other)) == json_report(first), "the folder is not part of the result"


def test_another_seed_gives_other_cases(folder):
    fake.softmax_file(folder, "good.py", "good", "-np.inf")
    seeds = [{c.case.seed for c in run(folder, seed=s).cases} for s in (0, 1)]
    assert not seeds[0] & seeds[1]


def op_file(folder: Path, launcher: str, **fields: str) -> None:
    given = {
        "dims": '{"N": (4,)}',
        "inputs": '{"x": Input("N")}',
        "outputs": '{"y": Output("N")}',
        "reference": "lambda x: x",
        "bound": "bounds.exact()",
        "dtypes": '("float32",)',
    } | fields
    body = ", ".join(f"{k}={v}" for k, v in given.items())
    (folder / "op.py").write_text(
        fake.HEADER
        + "def copy(x, y): y[...] = x\n"
        + "def scribble(x): np.ndarray(x.shape, x.dtype, x.base.data).fill(7)\n"
        + f"@gpuemu.op({body})\ndef it(run, x, y):\n    {launcher}\n"
    )


@pytest.mark.parametrize(
    "launcher, fields, reason",
    [
        ("raise ValueError('no such grid')", {}, "raised: ValueError: no such grid"),
        ("y[...] = x", {}, "not judged: the launcher ran no kernel"),
        ("run(copy, (1,), x, y)", {"reference": "lambda x: 1 / 0"}, "no reference: the reference of op 'it' raised"),
        ("run(copy, (1,), x, y)", {"reference": "lambda x: x[:2]"}, "returned shape (2,)"),
        ("run(copy, (1,), x, y)", {"reference": "lambda x: (x, x)"}, "must return y"),
        ("run(copy, (1,), x, y)", {"bound": "lambda run: run.nothing"}, "the error model of op 'it' raised"),
        ("run(copy, (1,), x, y)", {"bound": "lambda run: -1.0"}, "negative bound"),
        ("run(copy, (1,), x, y)", {"bound": "lambda run: float('inf')"}, "judges no element"),
        ("run(copy, (1,), x, y, target='sm_90')", {}, "belongs to the sweep"),
    ],
)
def test_what_cannot_be_checked_is_unchecked(folder, launcher, fields, reason):
    op_file(folder, launcher, **fields)
    result = run(folder)
    assert result.exit_code == 3 and result.of("unchecked") == list(result.cases)
    assert reason in result.cases[0].reason
    assert "UNCHECKED op it, 3 cases" in text_report(result)


def test_unsupported_is_unchecked_with_its_reason(folder, monkeypatch):
    def refuse(*args, **options):
        raise Unsupported("wgmma.mma_async is not modelled")

    monkeypatch.setitem(vars(gpuemu), "run", refuse)
    op_file(folder, "run(copy, (1,), x, y)")
    assert run(folder).cases[0].reason == "unsupported: wgmma.mma_async is not modelled"


@pytest.mark.parametrize(
    "launcher, kind, index",
    [
        ("run(lambda x, y: None, (1,), x, y)", "unwritten", (0,)),
        ("run(lambda x, y: y[:3].__setitem__(slice(None), x[:3]), (1,), x, y)", "unwritten", (3,)),
        ("run(lambda x, y: (copy(x, y), scribble(x)), (1,), x, y)", "modified-input", (0,)),
        ("run(lambda x, y: y.__setitem__(slice(None), x + np.inf), (1,), x, y)", "non-finite", (0,)),
    ],
)
def test_kinds_of_findings(folder, launcher, kind, index):
    op_file(folder, launcher)
    result = run(folder)
    assert result.exit_code == 1
    assert {(p.kind, p.index) for p in result.cases[0].problems[:1]} == {(kind, index)}


def test_a_store_between_rows_is_found(folder):
    op_file(
        folder,
        "run(lambda x, y: (copy(x, y), y.base is not None and y.base[0, 4:].fill(1)), (1,), x, y)",
        dims='{"M": (2,), "N": (4,)}', inputs='{"x": Input("M N")}', outputs='{"y": Output("M N", padded=True)}',
    )  # fmt: skip
    kinds = {c.case.padded: [p.kind for p in c.problems] for seed in range(4) for c in run(folder, seed=seed).cases}
    assert kinds == {True: ["wrote-between-rows"], False: []}


def test_an_undetermined_launcher_is_unchecked(folder):
    op_file(folder, "run(lambda x, y: y.fill(np.random.default_rng().random()), (1,), x, y)")
    assert "two runs of this case gave different bytes" in run(folder).cases[0].reason


def test_findings_and_unchecked_together_give_1_and_list_both(folder):
    fake.softmax_file(folder, "bad.py", "bad", "0.0")
    op_file(folder, "raise ValueError('no')")
    result = run(folder)
    text = text_report(result)
    assert result.exit_code == 1 and "FINDING bad.py" in text and "UNCHECKED op it" in text


def test_nothing_to_run_is_unchecked(folder):
    assert run(folder).exit_code == 3
    assert "nothing to run" in text_report(run(folder))


def test_a_file_that_does_not_load_is_unchecked(folder):
    fake.softmax_file(folder, "good.py", "good", "-np.inf")
    (folder / "broken.py").write_text("import gpuemu, missing_module\n@gpuemu.op()\ndef f(run): ...\n")
    (folder / "syntax.py").write_text("import gpuemu\n@gpuemu.op(\n")
    result = run(folder)
    assert result.exit_code == 3 and [Path(b.file).name for b in result.broken] == ["broken.py", "syntax.py"]
    assert "missing_module" in result.broken[0].reason


def test_an_unfinished_file_is_unchecked_and_the_others_run(folder):
    fake.softmax_file(folder, "good.py", "good", "-np.inf")
    (folder / "begun.py").write_text(fake.HEADER + '@gpuemu.op(dims=gpuemu.fill_in("sizes"))\ndef f(run): ...\n')
    result = run(folder, quick=True)
    assert result.exit_code == 3 and len(result.of("pass")) == len(result.cases) > 10
    assert "UNCHECKED begun.py: begun.py still has 1 place to fill in (line 5: sizes)" in text_report(result)
    notes = json.loads(sarif_report(result))["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert "still has 1 place to fill in" in notes[0]["message"]["text"]


def test_files_without_ops_are_not_executed(folder):
    (folder / "other.py").write_text("raise SystemExit('executed')  # gpuemu op(\n")
    fake.softmax_file(folder, "good.py", "good", "-np.inf")
    assert run(folder, quick=True).exit_code == 0


def test_wrong_names_and_paths_are_errors(folder):
    fake.softmax_file(folder, "a.py", "same", "-np.inf")
    with pytest.raises(InvalidInput, match="unknown op 'other'"):
        run(folder, only=("other",))
    fake.softmax_file(folder, "b.py", "same", "-np.inf")
    with pytest.raises(InvalidInput, match="two ops are named 'same'"):
        run(folder)
    with pytest.raises(InvalidInput, match="no such file or folder"):
        run(folder / "nowhere")


def test_json_report_is_json_without_absolute_paths(folder):
    fake.softmax_file(folder, "bad.py", "bad", "0.0")
    report = json_report(run(folder))
    data = json.loads(report)
    assert str(folder).encode() not in report
    assert data["exit_code"] == 1 and len(data["bugs"]) == 1 and data["bugs"][0]["file"] == "bad.py"
    assert {c["verdict"] for c in data["cases"]} <= {"pass", "finding", "borderline"}
