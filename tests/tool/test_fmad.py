"""Contraction in the gate: `--fmad` reaches every launch, is told by every report and kept by replays.

The kernel adds to a quotient, which the assembler fuses; its reference is wrong on purpose, so that there is a replay.
"""

import json
from pathlib import Path

import msgspec
import pytest

from gpuemu.cli import main
from gpuemu.gate.cases import Case
from gpuemu.gate.discover import find_files, load_ops
from gpuemu.gate.results import SweepResult
from gpuemu.gate.sweep import Plan, sweep
from gpuemu.mutate.score import plant, score
from gpuemu.mutate.trial import Sweep
from gpuemu.replay.read import Replay, read_replay
from gpuemu.reports.jsonfile import json_report
from gpuemu.reports.mutation_text import mutation_json
from gpuemu.reports.sarif import sarif_report
from gpuemu.reports.text import text_report
from interp.launch import recording

pytest.importorskip("triton")

OPS = """
import numpy as np
import triton
import triton.language as tl
import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def kernel(x, y, n, d, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v / d + v, mask=at < n)


@gpuemu.op(
    dims={"N": (200,)}, dtypes=("float32",), inputs={"x": Input("N", largest=1e3)}, outputs={"y": Output("N")},
    reference=lambda x: REFERENCE, bound=bounds.elementwise(2),
)
def quotient(run, x, y):
    run(kernel, (2,), x, y, len(x), 3.0, BLOCK=128)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "wrong.py").write_text(OPS.replace("REFERENCE", "x"))
    return tmp_path


def run(fmad: str | None) -> tuple[SweepResult, Replay]:
    """The sweep of the wrong op, and the replay of its finding."""
    result = sweep(Plan(paths=("wrong.py",), distributions=("regular",), parallel=0, fmad=fmad))
    (case,) = result.of("finding")
    return result, read_replay(Path(".gpuemu", "replays", case.replay))


def after(replay: Replay) -> bytes:
    return b"".join(replay.array(b.after).tobytes() for b in replay.record.buffers if b.after)


def gpuemu(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as caught:
        main([*map(str, arguments)])
    return int(caught.value.code)


@pytest.mark.slow
def test_the_choice_reaches_launches_reports_and_replays(folder, capsys):
    plain, unfused = run(None)
    told = json.loads(json_report(plain))
    assert told["fmad"] is None and told["cases"][0]["exactness"] == ["contraction not modelled"]
    assert "fmad" not in json.loads(unfused.bytes_of("case.json"))["case"], "ids of older replays stay"

    fused_sweep, fused = run("plan")
    told = json.loads(json_report(fused_sweep))
    assert told["fmad"] == told["cases"][0]["fmad"] == "plan" and told["cases"][0]["exactness"] == []
    (log,) = json.loads(sarif_report(fused_sweep))["runs"]
    assert log["properties"]["fmad"] == "plan" and "fmad=plan" in log["results"][0]["message"]["text"]
    assert text_report(fused_sweep).endswith("(seed 0, fmad plan)\n")
    assert fused.record.case.seed == unfused.record.case.seed, "the inputs are the same"
    assert fused.record.launches[0].fmad.startswith("plan:kernel ")
    assert after(fused) != after(unfused), "one rounding less shows in some of 200 sums"

    off, separate = run("off")
    assert off.cases[0].exactness == () and after(separate) == after(unfused)
    assert len({r.record.id for r in (unfused, fused, separate)}) == 3

    said = {unfused.folder: "", separate.folder: ", no contraction"}
    said[fused.folder] = ", contraction as recorded (1 fused)"
    for place, words in said.items():
        capsys.readouterr()
        assert gpuemu("reproduce", place) == 1
        out = capsys.readouterr().out
        assert "bytes identical" in out and f"sm_80 arithmetic{words}\n" in out
        assert "the source as it is now fails too" in out


@pytest.mark.slow
def test_the_configuration_says_it_too(folder, capsys):
    (folder / "gpuemu.toml").write_text('fmad = "plan"\n')
    assert gpuemu("ci", "wrong.py", "--distribution", "regular", "--format", "json", "--no-alive-check") == 1
    assert json.loads(capsys.readouterr().out)["cases"][0]["fmad"] == "plan"


@pytest.mark.slow
def test_a_planted_bug_and_mutants_run_in_the_same_mode(folder):
    (folder / "right.py").write_text(OPS.replace("REFERENCE", "x / 3 + x"))
    result = sweep(Plan(paths=("right.py",), distributions=("regular",), parallel=0, fmad="plan", alive="alive"))
    assert result.exit_code == 0 and result.alive is not None and result.alive.proven
    ops, _ = load_ops(find_files([Path("right.py")]), ())
    asked = Sweep(distributions=("regular",), fmad="plan")
    planted = [p for p in plant(ops, folder / "mutants", asked, ptx=False) if p.kind == "mask"]
    with recording() as log:
        scored = score(ops, planted, asked, parallel=0)
    modes = [launch.fmad or "" for launch in log.launches]
    assert modes and all(m.startswith("plan:") for m in modes)
    assert scored.fmad == "plan" and json.loads(mutation_json(scored, folder))["fmad"] == "plan"


def test_a_case_without_a_choice_is_written_as_before():
    case = Case(
        index=0, op="o", file="f", dims={}, dtype="float32", distribution="regular", target="sm_80", device=None,
        option={}, seed=1,
    )  # fmt: skip
    assert "fmad" not in msgspec.to_builtins(case) and case.label() == "o  float32 regular sm_80"
    chosen = msgspec.structs.replace(case, fmad="plan")
    assert msgspec.convert(msgspec.to_builtins(chosen), Case) == chosen and chosen.label().endswith(" fmad=plan")
