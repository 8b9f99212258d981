"""The command line: exit codes, where output goes, messages; kernels are Python functions (see fake_engine)."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import fake_engine as fake
import pytest

from gpuemu.cli import main
from gpuemu.gate import sweep as sweep_module

PASSING, LEAKING = "-np.inf", "0.0"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    fake.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    # Workers are other processes, where the stand-in is not installed: run the cases in this one.
    real = sweep_module.run_cases
    monkeypatch.setattr(sweep_module, "run_cases", lambda *a, **k: real(*a, **{**k, "parallel": 0}))
    return tmp_path


def gpuemu(*arguments) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in arguments])
    return caught.value.code


@pytest.mark.parametrize("fill, code", [(PASSING, 0), (LEAKING, 1)])
def test_ci_exit_code_and_text(folder, capsysbinary, fill, code):
    fake.softmax_file(folder, "k.py", "softmax", fill)
    assert gpuemu("ci", ".", "--quick") == code
    out, err = capsysbinary.readouterr()
    assert (b"FINDING k.py" in out) == (code == 1) and b"seed 0" in out and b"cases, at softmax" in err


def test_ci_writes_reports(folder, capsys):
    fake.softmax_file(folder, "k.py", "softmax", LEAKING)
    assert gpuemu("ci", "k.py", "--format", "sarif", "--output", "x.sarif", "--quick") == 1
    assert json.loads((folder / "x.sarif").read_bytes())["runs"][0]["results"]
    out, err = capsys.readouterr()
    assert out == "" and "FINDING" in err
    assert gpuemu("ci", "k.py", "--format", "json", "--output", "x.json", "--quick", "--seed", "5") == 1
    assert json.loads((folder / "x.json").read_bytes())["seed"] == 5


def test_ci_filters(folder, capsysbinary):
    fake.softmax_file(folder, "a.py", "good", PASSING)
    fake.softmax_file(folder, "b.py", "bad", LEAKING)
    assert gpuemu("ci", "--quick") == 1
    assert gpuemu("ci", "--quick", "--op", "good") == 0
    capsysbinary.readouterr()
    assert gpuemu("ci", "--op", "good", "--dtype", "bf16", "--distribution", "boundary", "--format", "json") == 0
    cases = json.loads(capsysbinary.readouterr().out)["cases"]
    assert {(c["op"], c["dtype"], c["distribution"]) for c in cases} == {("good", "bfloat16", "boundary")}


def test_ci_against_a_baseline(folder, capsys):
    fake.softmax_file(folder, "b.py", "bad", LEAKING)
    entry = '[[finding]]\nrule = "gpuemu/wrong-value"\nop = "bad"\nfile = "b.py"\n'
    (folder / "expected.toml").write_text(entry)
    (folder / "none.toml").write_text("")
    assert gpuemu("ci", "--quick", "--expect", "expected.toml") == 0
    assert gpuemu("ci", "--quick", "--expect", "none.toml") == 1
    assert "UNEXPECTED gpuemu/wrong-value in b.py" in capsys.readouterr().err
    fake.softmax_file(folder, "b.py", "bad", PASSING)
    assert gpuemu("ci", "--quick", "--expect", "expected.toml") == 1
    assert "MISSING gpuemu/wrong-value in b.py" in capsys.readouterr().err
    (folder / "b.py").write_text("import gpuemu, missing\n@gpuemu.op()\ndef f(): ...\n")
    assert gpuemu("ci", "--quick", "--expect", "none.toml") == 3


def test_configuration_is_used_and_the_command_line_wins(folder, capsysbinary):
    fake.softmax_file(folder, "k.py", "softmax", PASSING)
    (folder / "gpuemu.toml").write_text('paths = ["k.py"]\nseed = 9\ntargets = ["sm_90"]\ndtypes = ["f32"]\n')
    assert gpuemu("ci", "--format", "json") == 0
    report = json.loads(capsysbinary.readouterr().out)
    assert report["seed"] == 9 and {(c["target"], c["dtype"]) for c in report["cases"]} == {("sm_90", "float32")}
    assert gpuemu("ci", "--format", "json", "--seed", "1", "--target", "sm_89", "--target", "sm_80") == 0
    report = json.loads(capsysbinary.readouterr().out)
    assert report["seed"] == 1 and {c["target"] for c in report["cases"]} == {"sm_80", "sm_89"}


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["ci", "nowhere"], 2, "no such file or folder: nowhere"),
        (["ci", "--op", "nothing"], 2, "unknown op 'nothing'"),
        (["ci", "--target", "h100"], 2, "unknown target 'h100'"),
        (["ci", "--format", "xml"], 2, "'xml' is not one of"),
        (["ci", "--distribution", "odd"], 2, "unknown distribution 'odd'"),
        (["ci", "--output", "missing/x.sarif"], 2, "cannot write missing/x.sarif"),
        (["ci", "--expect", "missing.toml"], 2, "no such file: missing.toml"),
        (["ci", "empty"], 3, ""),
        (["ci", ""], 2, "a path is empty"),
        (["ci", "--dtype", "float64"], 3, ""),
        (["ci", "--timeout", "nan"], 2, "invalid value for '--timeout': nan is not a finite number"),
        (["ci", "--timeout", "inf"], 2, "--timeout"),
        (["ci", "--quik"], 2, "no such option '--quik'. Did you mean '--quick'?\n  help: `gpuemu ci --help`"),
        (["mutate", "k.py", "--min-score", "nan"], 2, "invalid value for '--min-score': nan is not a finite number"),
        (["nothing"], 2, "invalid input: no such command 'nothing'\n  help: `gpuemu --help` says what it takes"),
        (["reproduce", "k.py"], 3, "k.py is not a replay"),
        (["study"], 2, "no corpus here"),
        (["study", ".", "--deltas", "gone"], 2, "no such file: gone"),
        (["conform", "--answers", "gone.npz"], 2, "no such file: gone.npz"),
        (["conform", "--answers", "empty"], 2, "cannot read empty: it is a folder"),
        (["conform", "--export", "k.py"], 2, "cannot write k.py: it is a file"),
        (["conform", "--collect", "gone"], 2, "gone is not a folder of `gpuemu conform --export`: there is none"),
        (["isa", "cvt.rn.f17"], 3, "nearest form: cvt.rnd{.ftz}{.sat}.dtype.atype: it has no .f17"),
        (["isa", "madd"], 3, "nearest instruction: mad"),
        (["reproduce", "0123456789abcdef"], 3, "no replay for '0123456789abcdef'"),
        (["reproduce", "empty"], 3, "no replay for 'empty'"),
        (["run", "k.py", "--grid", "1"], 2, "does not name a kernel"),
        (["run", "missing.py::k", "--grid", "1"], 2, "no such file: missing.py"),
        (["run", "k.py::k", "--grid", "1"], 2, "has no Triton kernel 'k'"),
        (["run", "k.py::k", "x=1"], 2, "missing option '--grid'"),
    ],
)
def test_wrong_input_has_its_code_and_its_message(folder, capsys, arguments, code, message):
    fake.softmax_file(folder, "k.py", "softmax", PASSING)
    (folder / "empty").mkdir()
    assert gpuemu(*arguments) == code
    assert message in capsys.readouterr().err


def test_an_op_without_a_case_is_not_an_op_that_was_not_found(folder, capsysbinary):
    fake.softmax_file(folder, "k.py", "softmax", PASSING)
    assert gpuemu("ci", "--dtype", "float64") == 3
    assert b"nothing to run: op softmax has no case with the dtypes" in capsysbinary.readouterr().out


@pytest.mark.parametrize("words", ["isa", "run k.ptx --grid 1 --block 32 x=zeros:32:f32", "--help", "ci --help"])
def test_a_full_disk_behind_standard_output_is_told(folder, words):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    (folder / "k.ptx").write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n  ret;\n}\n"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "gpuemu", *words.split()], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2 and done.stderr.decode().startswith("invalid input: cannot write: No space left")


def test_a_file_name_that_no_report_can_hold(folder, capsys):
    fake.softmax_file(folder, "b\udcff.py", "softmax", PASSING)
    assert gpuemu("ci", ".", "--format", "json") == 2
    assert "b\\udcff.py is not UTF-8" in capsys.readouterr().err


def test_isa_lists_the_forms_that_have_the_modifiers(folder, capsys):
    assert gpuemu("isa", "cvt.rn.f16.f32") == 0
    assert capsys.readouterr().out.startswith("cvt.rnd{.ftz}{.sat}.dtype.atype d, a\n")
    assert gpuemu("isa", "mul.hi") == 0
    assert [line.split(" ")[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "] == ["mul.hi.type"]


def test_a_configuration_that_does_not_parse_stops_everything(folder, capsys):
    (folder / "gpuemu.toml").write_text("paths = 3\n")
    assert gpuemu("ci") == 2 and "key 'paths'" in capsys.readouterr().err


def test_an_interruption_is_130(folder, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep_module, "run_cases", interrupted)
    fake.softmax_file(folder, "k.py", "softmax", PASSING)
    assert gpuemu("ci", "--output", "x.txt") == 130
    assert not (folder / "x.txt").exists() and capsys.readouterr().err.endswith("interrupted\n")


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys; import gpuemu.cli as c\n"
        "try: c.main(['ci', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'llvmlite', 'triton', 'rich', 'sarif_om', 'lark'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env=os.environ)
    assert done.returncode == 0 and "Exit code" in done.stdout, done.stderr


def test_python_m_gpuemu():
    root = Path(__file__).parents[2]
    run = partial(subprocess.run, capture_output=True, text=True, cwd=root)
    assert "reproduce" in run([sys.executable, "-m", "gpuemu", "--help"]).stdout
