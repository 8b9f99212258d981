"""`gpuemu diff`: sides, limits, exit codes, reports, baselines. PTX sides are measured by the real tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gpuemu.accounting import lowering
from gpuemu.accounting.compare import compare
from gpuemu.accounting.gates import Gates, check, parse_increases
from gpuemu.accounting.measure import Measured, read_baseline
from gpuemu.accounting.side import parse_side, words_of
from gpuemu.cli import main
from gpuemu.config import load_config
from ptx.accounting.account import Absent, Account
from ptx.errors import InvalidInput, Unsupported
from ptx.lower import toolchain
from tests.accounting.ptx_texts import many_live, tools
from tests.tool.test_report import Page

__all__ = ["tools"]

KERNEL = """import triton
import triton.language as tl
from neighbour import FACTOR


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)
"""
WORDS = ["--", "x=zeros:100:f32", "y=zeros:100:f32", "n=100", "BLOCK=128"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two PTX files: the second holds four more words at once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "old.ptx").write_text(many_live(20, ".reqntid 128"))
    (tmp_path / "new.ptx").write_text(many_live(24, ".reqntid 128"))
    return tmp_path


def gpuemu(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in arguments])
    return int(caught.value.code or 0)


# ------------------------------------------------------------------------------------------------ names and words
SIDES = [
    ("k.ptx", (None, "k.ptx", None, "ptx")),
    ("a/k.ptx::entry", (None, "a/k.ptx", "entry", "ptx")),
    ("k.py::f", (None, "k.py", "f", "py")),
    ("HEAD~1:a/k.py::f", ("HEAD~1", "a/k.py", "f", "py")),
    ("origin/main:k.ptx", ("origin/main", "k.ptx", None, "ptx")),
    ("base.json", (None, "base.json", None, "json")),
]


@pytest.mark.parametrize("text, expected", SIDES)
def test_a_side(text: str, expected: tuple[str | None, ...]) -> None:
    found = parse_side(text)
    assert (found.revision, found.file, found.name, found.kind) == expected


@pytest.mark.parametrize(
    "text, message",
    [
        ("k.cu", "cannot read 'k.cu' as a side"),
        ("k.py", "does not name a kernel"),
        ("HEAD:base.json", "a baseline is a file"),
        ("k.py::", "cannot read"),
        ("a:b:k.ptx", "cannot read"),
    ],
)
def test_a_wrong_side(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_side(text)


def test_words_may_differ_by_side() -> None:
    words = ["n=1", "B=64", "new.B=128", "old.C=2"]
    assert words_of(words, "old") == ("n=1", "B=64", "C=2")
    assert words_of(words, "new") == ("n=1", "B=128")


# ------------------------------------------------------------------------------------------------ limits, by hand
def side(regs: int, spills: int = 0, code: int = 0, **absent: str) -> Measured:
    metrics = {
        "launch__registers_per_thread": regs, "ptxas__spill_stores_bytes": spills, "ptxas__spill_loads_bytes": 0,
        "sass__code_bytes": code,
    }  # fmt: skip
    accounts: dict[str, Account | Absent] = {
        t: Account("k", t, t, "ptxas", dict(metrics), None) for t in ("sm_80", "sm_90") if t not in absent
    }
    accounts |= {t: Absent("k", t, reason) for t, reason in absent.items()}
    return Measured("k.ptx", "k", "k.ptx", 1, accounts, {})


_REGISTERS = "launch__registers_per_thread"
LIMITS = [
    (Gates(max_regs=40), 40, 0, 0, []),
    (Gates(max_regs=39), 40, 0, 0, ["40 registers a thread on sm_80, at most 39 are allowed"]),
    (Gates(max_spills=0), 40, 8, 0, ["8 bytes of spills on sm_80, at most 0 are allowed"]),
    (Gates(max_increase={"launch__registers_per_thread": 25.0}), 40, 0, 0, []),
    (
        Gates(max_increase={"launch__registers_per_thread": 24.0}),
        40,
        0,
        0,
        ["rose from 32 to 40 (+25.0 %), at most +24"],
    ),
    (Gates(max_increase={"sass__code_bytes": 1000.0}), 32, 0, 1, ["rose from 0 to 1 (from zero)"]),
    (Gates(max_decrease={_REGISTERS: 25.0}), 24, 0, 0, []),
    (Gates(max_decrease={_REGISTERS: 24.0}), 24, 0, 0, ["fell from 32 to 24 (-25.0 %), at most -24"]),
    (Gates(max_decrease={_REGISTERS: 0.0}, explained={_REGISTERS: "fewer tiles"}), 24, 0, 0, []),
]


@pytest.mark.parametrize("gates, regs, spills, code, broken", LIMITS)
def test_limits(gates: Gates, regs: int, spills: int, code: int, broken: list[str]) -> None:
    verdict = check(gates, compare(side(32), side(regs, spills, code)))
    on_80 = [b for b in verdict.broken if b.target == "sm_80"]
    assert len(on_80) == len(broken) and all(text in b.message for text, b in zip(broken, on_80, strict=True))
    assert verdict.unchecked == ()


def test_a_number_that_is_missing_is_unchecked() -> None:
    verdict = check(Gates(max_increase={"launch__occupancy_limit_warps": 0.0}), compare(side(32), side(32)))
    assert verdict.broken == () and len(verdict.unchecked) == 2
    verdict = check(Gates(max_increase={"smsp__inst_executed": 0.0}), compare(side(32), side(32)))
    assert verdict.unchecked[0] == "sm_80: smsp__inst_executed is not known on both sides: it is counted with --dynamic"


@pytest.mark.parametrize(
    "text, message",
    [("sass__inst", "PERCENT"), ("sass__inst=x", "cannot read"), ("regs=5", "unknown"), ("ptx__inst=-1", "at least")],
)  # fmt: skip
def test_a_wrong_limit(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_increases((text,))


def test_differences_that_all_targets_share() -> None:
    old, new = side(32, code=128), side(35, code=128)
    account = new.accounts["sm_90"]
    assert isinstance(account, Account)
    account.metrics["sass__code_bytes"] = 256
    found = {d.metric.name: (d.same, d.deltas) for d in compare(old, new).differences()}
    assert found == {
        "launch__registers_per_thread": (True, {"sm_80": 3, "sm_90": 3}),
        "sass__code_bytes": (False, {"sm_80": 0, "sm_90": 128}),
    }
    (only,) = compare(side(32, sm_90="no"), side(33, sm_90="no")).differences()
    assert only.same is None


def test_other_assemblers_are_named() -> None:
    old, new = side(32), side(32)
    changed = {t: Account("k", t, t, "ptxas 13", a.metrics, None) for t, a in old.accounts.items()}  # type: ignore[union-attr]
    assert (
        "part of the difference may be theirs"
        in compare(Measured("o", "k", "k", 1, changed, {}), new).targets[0].notes[0]
    )


# ------------------------------------------------------------------------------------------------ PTX files
def test_two_ptx_files(tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert gpuemu("diff", "old.ptx", "new.ptx", "--target", "sm_80", "--target", "sm_90") == 0
    out = capsysbinary.readouterr().out.decode()
    (line,) = {x for x in out.splitlines() if x.startswith("ptx__registers_live_max ")}
    assert line.split()[1:] == ["22", "26", "+4", "+18.2"]
    assert "the same on all of sm_80, sm_90 (architecture-independent here):" in out
    assert "PTX for sm_80, sm_90: 42 the same, 8 added" in out and "measured on 2 targets; no limits set" in out


def test_the_same_file_has_no_difference(tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert gpuemu("diff", "old.ptx", "old.ptx", "--target", "sm_80", "--max-increase", "sass__inst=0") == 0
    out = capsysbinary.readouterr().out.decode()
    assert "no metric changed on sm_80" in out and "all limits kept on 1 target\n" in out


_LAUNCH = [
    "old.ptx", "new.ptx", "--target", "sm_80", "--dynamic", "--grid", "2", "--block", "128", "--", "x=zeros:24:u32",
    "n=1",
]  # fmt: skip
CODES = [
    (["old.ptx", "new.ptx", "--target", "sm_80", "--max-regs", "10"], 1),
    (["old.ptx", "new.ptx", "--target", "sm_80", "--max-increase", "ptx__registers_live_max=5"], 1),
    (["old.ptx", "new.ptx", "--target", "sm_80", "--max-increase", "ptx__registers_live_max=20"], 0),
    (["old.ptx", "new.ptx", "--target", "sm_75"], 3),  # asked for, not to be had
    (["old.ptx", "new.ptx", "--target", "sm_80", "--target", "sm_75", "--max-regs", "10"], 1),  # broken wins
    (["old.ptx", "wrong.ptx", "--target", "sm_80"], 3),  # one side cannot be assembled
    (["none.ptx", "new.ptx"], 2),
    (["old.ptx"] * 3, 2),
    ([], 2),
    (["old.ptx", "new.ptx", "--target", "sm_8"], 2),
    (["old.ptx", "--max-increase", "ptx__inst=5", "--target", "sm_80"], 2),  # nothing to compare with
    (["old.ptx", "new.ptx", "--block", "64", "--target", "sm_80"], 2),  # against .reqntid
    (["old.ptx::other", "new.ptx", "--target", "sm_80"], 2),
    (["old.ptx", "new.ptx", "--output", "nowhere/x.json"], 2),
    (["HEAD:old.ptx", "new.ptx"], 2),  # not a repository
    (["old.ptx", "new.ptx", "--", "n=1"], 2),  # PTX takes no arguments
    (["k.py::f", "--block", "64"], 2),  # and a kernel no block
    (["old.ptx", "new.ptx", "--dynamic"], 2),  # of how many CTAs?
    (["old.ptx", "new.ptx", "--grid", "1"], 2),  # nothing is launched
    (["old.ptx", "new.ptx", "--dynamic", "--grid", "1"], 2),  # of how many threads?
    (["old.ptx", "new.ptx", "--dynamic", "--grid", "1", "--block", "128", "--target", "sm_80"], 2),  # no arguments
    (["--max-decrease", "smsp__inst_executed=0", *_LAUNCH], 0),
    (["--max-increase", "smsp__inst_executed=5", *_LAUNCH], 1),
    ([*_LAUNCH[:-2], "x=zeros:4:u32", "n=1"], 3),  # out of bounds: the launch says nothing
    (["old.ptx", "new.ptx", "--target", "sm_80", "--max-increase", "smsp__inst_executed=5"], 3),
    (["new.ptx", "old.ptx", "--target", "sm_80", "--max-decrease", "ptx__inst=0"], 1),
    (["new.ptx", "old.ptx", "--target", "sm_80", "--max-decrease", "ptx__inst=0", "--explained", "ptx__inst=meant"], 0),
    (["new.ptx", "old.ptx", "--target", "sm_80", "--explained", "ptx__inst"], 2),  # why?
    (["k.py::f", "--target", "sm_80", "--", "old.n=1"], 2),
    (["k.py::f", "--target", "sm_80"], 2),  # no such file
]


@pytest.mark.parametrize("arguments, code", CODES)
def test_exit_codes(tools: None, folder: Path, arguments: list[str], code: int) -> None:
    (folder / "wrong.ptx").write_text(many_live(2).replace("ret;", "frob.b32 %r0, %r1; ret;"))
    assert gpuemu("diff", *arguments) == code


def test_targets_that_no_side_can_have_are_left_out_by_default(
    tools: None, folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("ptx.accounting.assemble.TARGETS", ("sm_75", "sm_80"))
    assert gpuemu("diff", "old.ptx", "new.ptx") == 0
    assert b"sm_75: not available: the text is for sm_80" in capsysbinary.readouterr().out


def test_configuration(tools: None, folder: Path) -> None:
    (folder / "gpuemu.toml").write_text('[diff]\ntargets = ["sm_80"]\nmax_regs = 10\n')
    assert gpuemu("diff", "old.ptx", "new.ptx") == 1
    assert gpuemu("diff", "old.ptx", "new.ptx", "--max-regs", "100") == 0


@pytest.mark.parametrize(
    "text, message",
    [
        ("max_reg = 1", "unknown field `max_reg`"),
        ("max_regs = -1", "'diff.max_regs' must be at least 0"),
        ("max_increase = { regs = 5 }", "'diff.max_increase': unknown metric 'regs'"),
    ],
)
def test_a_wrong_configuration(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "gpuemu.toml").write_text(f"[diff]\n{text}\n")
    with pytest.raises(InvalidInput, match=message):
        load_config(tmp_path, tmp_path)


# ------------------------------------------------------------------------------------------------ reports, baselines
def test_reports(tools: None, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["diff", "old.ptx", "new.ptx", "--target", "sm_80", "--max-regs", "10"]
    assert gpuemu(*given, "--format", "json", "--output", "d.json") == 1
    assert "FAILED" in capsys.readouterr().err
    report = json.loads((folder / "d.json").read_bytes())
    assert report["exit_code"] == 1 and report["targets"]["sm_80"]["metrics"]["ptx__inst"] == {
        "old": 42,
        "new": 50,
        "delta": 8,
    }
    assert (
        report["ptx"][0]["counts"] == {"same": 42, "added": 8} and report["broken"][0]["rule"] == "too-many-registers"
    )
    assert str(folder) not in json.dumps(report)
    assert gpuemu(*given, "--format", "sarif", "--output", "d.sarif") == 1
    (run,) = json.loads((folder / "d.sarif").read_bytes())["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "gpuemu/too-many-registers"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "new.ptx" and place["region"]["startLine"] == 4
    assert run["invocations"][0]["executionSuccessful"] is True
    assert gpuemu(*given, "--target", "sm_75", "--format", "sarif", "--output", "d.sarif") == 1
    (run,) = json.loads((folder / "d.sarif").read_bytes())["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False and len(invocation["toolExecutionNotifications"]) == 1
    assert gpuemu(*given, "--format", "markdown", "--output", "d.md") == 1
    comment = (folder / "d.md").read_text()
    assert "### Registers and instructions: `old.ptx` → `new.ptx`" in comment and "- FAILED" in comment
    assert comment.count("<details>") == comment.count("</details>") == 2
    first = (folder / "d.json").read_bytes()
    assert gpuemu(*given, "--format", "json", "--output", "d.json") == 1 and (folder / "d.json").read_bytes() == first


def test_a_baseline_is_a_side(tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert gpuemu("diff", "old.ptx", "--save", "base.json", "--target", "sm_80") == 0
    assert b"launch__registers_per_thread" in capsysbinary.readouterr().out
    (folder / "old.ptx").unlink()
    assert gpuemu("diff", "base.json", "new.ptx", "--target", "sm_80") == 0
    assert b"PTX for sm_80: 42 the same, 8 added" in capsysbinary.readouterr().out
    assert gpuemu("diff", "base.json", "new.ptx", "--target", "sm_90") == 3
    assert b"sm_90: not available: old: the baseline has sm_80 only" in capsysbinary.readouterr().out
    assert str(folder).encode() not in (folder / "base.json").read_bytes()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1}', "not JSON"])
def test_a_wrong_baseline(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(InvalidInput, match="baseline"):
        read_baseline(tmp_path / "b.json")


def test_without_the_tools(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nowhere(name: str) -> Path:
        raise Unsupported(f"NVIDIA's {name} was not found")

    monkeypatch.setattr(toolchain, "tool", nowhere)
    assert gpuemu("diff", "old.ptx", "new.ptx") == 3
    assert "was not found" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ Triton kernels
def git(*arguments: str, folder: Path) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_revision_is_lowered_with_its_own_neighbours(
    tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "neighbour.py").write_text("import triton.language as tl\n\nFACTOR = tl.constexpr(2.0)\n")
    git("init", folder=tmp_path)
    git("add", ".", folder=tmp_path)
    git("commit", "-m", "first", folder=tmp_path)
    (tmp_path / "neighbour.py").write_text("import triton.language as tl\n\nFACTOR = tl.constexpr(3.0)\n")
    assert gpuemu("diff", "HEAD:k.py::scale", "k.py::scale", "--target", "sm_80", "--format", "json", *WORDS) == 0
    report = json.loads(capsysbinary.readouterr().out)
    assert report["old"]["file"] == report["new"]["file"] == "k.py" and report["new"]["line"] == 7
    changes = [c for g in report["ptx"][0]["lines"] for c in g["changes"]]
    assert changes and {g["line"] for g in report["ptx"][0]["lines"]} == {9}
    assert any("0f40400000" in (c["new"] or "") for c in changes)  # 3.0


def test_a_kernel_that_cannot_be_lowered_for_a_target_says_so(tools: None, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    text = KERNEL.replace("from neighbour import FACTOR\n", "").replace("* FACTOR", "* tl.missing")
    (tmp_path / "k.py").write_text(text)
    request = lowering.Request(str(tmp_path / "k.py"), "scale", tuple(WORDS[1:]), ("sm_80",), str(tmp_path))
    reply = lowering.answer(request)
    reason = reply.lowerings["sm_80"].reason
    assert reason is not None and "Triton cannot compile scale for sm_80" in reason and "k.py:8" in reason
    with pytest.raises(InvalidInput, match="no Triton kernel 'other'"):
        lowering.lower_elsewhere(lowering.Request(request.file, "other", request.words, ("sm_80",), request.root))


# ------------------------------------------------------------------------------------------------ launches and pages
def test_launches_are_compared(tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert gpuemu(*("diff", "--format", "json"), *_LAUNCH) == 0
    rows = json.loads(capsysbinary.readouterr().out)["targets"]["sm_80"]["metrics"]
    # 2 * 4 warps; 20 and 24 words loaded and stored, a parameter, a return
    assert rows["smsp__inst_executed"] == {"old": 8 * 42, "new": 8 * 50, "delta": 64}
    assert rows["ptx__bytes_global"] == {"old": 256 * 4 * 40, "new": 256 * 4 * 48, "delta": 8192}
    assert gpuemu("diff", "old.ptx", "--save", "kept.json", *_LAUNCH[2:]) == 0
    capsysbinary.readouterr()
    assert gpuemu("diff", "--max-decrease", "smsp__inst_executed=0", "kept.json", *_LAUNCH[1:]) == 0
    rows = [line.split() for line in capsysbinary.readouterr().out.decode().splitlines()]
    assert ["smsp__inst_executed", "336", "400", "+64", "+19.0"] in rows


def test_a_kernel_is_launched_by_its_words(
    tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    pytest.importorskip("triton")
    (folder / "neighbour.py").write_text("import triton.language as tl\nFACTOR = tl.constexpr(2.0)\n")
    (folder / "k.py").write_text(KERNEL)
    command = ["diff", "k.py::scale", "k.py::scale", "--dynamic", "--grid", "1", "--target", "sm_80"]
    words = [w.replace("x=zeros:100", "x=zeros:200").replace("y=zeros:100", "y=zeros:200") for w in WORDS[1:]]
    words = [*(w for w in words if not w.startswith("n=")), "old.n=100", "new.n=200"]
    assert gpuemu(*command, "--format", "json", "--", *(w.replace("BLOCK=128", "BLOCK=256") for w in words)) == 0
    rows = json.loads(capsysbinary.readouterr().out)["targets"]["sm_80"]["metrics"]
    assert rows["ptx__bytes_global"] == {"old": 800, "new": 1600, "delta": 800}


def test_a_page_of_a_comparison(tools: None, folder: Path) -> None:
    command = ["diff", "--format", "html", "--output", "diff.html", "--max-regs", "20", *_LAUNCH]
    assert gpuemu(*command) == 1
    text = (folder / "diff.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.loads == [] and "http" not in text and str(folder) not in text
    for words in ("old.ptx → new.ptx", "FAILED", "at most 20 are allowed", "smsp__inst_executed", "+64", "8 added"):
        assert words in page.text
    assert gpuemu(*command) == 1 and (folder / "diff.html").read_text(encoding="utf-8") == text


def test_sarif_validates_against_the_official_schema(tools: None, folder: Path) -> None:
    """Where a copy of the OASIS schema is at hand (GPUEMU_SARIF_SCHEMA); `test_reports` holds the form in any case."""
    place = os.environ.get("GPUEMU_SARIF_SCHEMA")
    if not place:
        pytest.skip("set GPUEMU_SARIF_SCHEMA to a copy of sarif-schema-2.1.0.json")
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(place).read_text())
    for limits in ([], ["--max-regs", "9"], ["--max-increase", "smsp__inst_executed=0"], ["--target", "sm_75"]):
        gpuemu("diff", "--format", "sarif", "--output", "log.sarif", *limits, *_LAUNCH)
        jsonschema.Draft7Validator(schema).validate(json.loads((folder / "log.sarif").read_text()))
