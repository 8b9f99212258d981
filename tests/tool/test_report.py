"""`gpuemu report`: one page about a kernel, in three formats, with honest gaps; rooflines against numbers by hand."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gpuemu.accounting.peaks import PEAKS, Roofline, roofline
from gpuemu.cli import main
from ptx.accounting.assemble import TARGETS
from ptx.accounting.metrics import SUMS
from ptx.device import DEVICES
from tests.accounting.counted_kernels import KERNELS
from tests.accounting.ptx_texts import tools

__all__ = ["tools"]

KERNEL = """import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)  # <b>&
    tl.store(y + at, v * 2.0, mask=at < n)
"""
WORDS = ["x=rand:256:f32", "y=zeros:256:f32", "n=250", "BLOCK=128"]
SCALE = ["report", "k.py::scale", "--grid", "2", "--target", "sm_90"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "k.py").write_text(KERNEL)
    for kernel in KERNELS:
        (tmp_path / f"{kernel.name}.ptx").write_text(kernel.ptx)
    return tmp_path


def gpuemu(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in arguments])
    return int(caught.value.code or 0)


def test_a_triton_kernel_line_by_line(tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    pytest.importorskip("triton")
    assert gpuemu(*SCALE, *WORDS) == 0
    out = capsysbinary.readouterr().out.decode()
    rows = [line.split() for line in out.splitlines() if "tl.load(" in line]
    (load,) = rows
    assert load[0] == "8" and "1,000" in load  # 250 words of 4 bytes
    assert "memory-bound" in out and "estimates from published peak figures" in out and "H200" in out
    assert "Registers that live at each instruction, sm_90" in out and "launch__registers_per_thread" in out


def test_json_has_every_number(tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    pytest.importorskip("triton")
    assert gpuemu(*SCALE, "--format", "json", *WORDS) == 0
    first = capsysbinary.readouterr().out
    told = json.loads(first)["targets"]["sm_90"]
    totals = told["dynamic"]["totals"]
    assert set(totals) >= {m.name for m in SUMS} and totals["ptx__flops_fp32"] == 256  # a lane computes, masked or not
    assert totals["ptx__bytes_global"] == 2000 and told["static"]["launch__registers_per_thread"] > 0
    assert told["roofline"]["bound"] == "memory" and told["roofline"]["operations"] == 256
    assert gpuemu(*SCALE, "--format", "json", *WORDS) == 0
    assert capsysbinary.readouterr().out == first


def test_what_one_target_cannot_do_is_said(
    tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    pytest.importorskip("triton")
    (folder / "k.py").write_text(KERNEL.replace("v * 2.0", "v.to(tl.float32) * 2.0"))
    command = ["report", "k.py::scale", "--grid", "1", "--target", "sm_80", "--target", "sm_90"]
    words = ["x=zeros:256:float8_e4m3fn", "y=zeros:256:f32", "n=250"]
    assert gpuemu(*command, *words, "BLOCK=128") == 3  # Triton has no e4m3 on sm_80
    out = capsysbinary.readouterr().out.decode()
    assert "UNCHECKED sm_80: Triton cannot compile scale for sm_80" in out and "H200" in out
    assert gpuemu(*command, *words, "BLOCK=48") == 2  # nor blocks of 48 anywhere


class Page(HTMLParser):
    """Balanced tags, and what the page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)
        self.loads += [str(v) for n, v in attributes if n in ("src", "href", "xlink:href")]
        assert tag not in ("script", "link", "img", "iframe")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        self.open.remove(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_stands_alone(tools: None, folder: Path) -> None:
    pytest.importorskip("triton")
    assert gpuemu(*SCALE, "--format", "html", "--output", "page.html", *WORDS) == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.loads == [] and "http" not in text and str(folder) not in text
    assert "# <b>&" in page.text and "k.py" in page.text and "operations a byte" in page.text
    assert text.count("<svg") == 2  # one roofline, one program


def test_a_ptx_file_is_executed_once_and_assembled_for_each_target(
    tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    arguments = ["--grid", "1", "--block", "32x32", "--format", "json", "out=zeros:1024:i32"]
    assert gpuemu("report", "transpose.ptx", "--target", "sm_90", "--target", "sm_100", *arguments) == 0
    told = json.loads(capsysbinary.readouterr().out)["targets"]
    assert told["sm_90"]["dynamic"]["totals"] == told["sm_100"]["dynamic"]["totals"]
    assert told["sm_90"]["static"]["launch__block_size"] == 1024
    assert told["sm_90"]["roofline"] == {"none": "the launch has no floating-point or tensor operations"}
    assert [line["file"] for line in told["sm_90"]["dynamic"]["lines"]] == [None]
    assert gpuemu("report", "transpose.ptx", "--target", "sm_80", *arguments) == 3  # cannot be assembled for it
    assert gpuemu("report", "transpose.ptx", *arguments) == 0


def test_contraction_is_stated(tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments = ["--grid", "1", "--block", "32x32", "--format", "json", "--fmad", "off", "out=zeros:1024:i32"]
    assert gpuemu("report", "transpose.ptx", *arguments) == 0
    assert json.loads(capsysbinary.readouterr().out)["launch"].endswith(" fmad=off")


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuemu.commands.options import coloured, terminal_width

    assert not coloured(None) and terminal_width(None) is None, "not a terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured(None) and terminal_width(None) == 44
    assert not coloured("report.txt") and terminal_width("report.txt") is None
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(None)
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not coloured(None)


def test_a_finding_is_said_and_is_the_exit_code(
    tools: None, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert gpuemu("report", "tree.ptx", "--grid", "1", "--block", "128", "out=zeros:0:i32") == 1
    assert "FINDING sm_90: out-of-bounds" in capsysbinary.readouterr().out.decode()


def test_rooflines_by_hand() -> None:
    totals = {m.name: 0 for m in SUMS} | {"ptx__bytes_global_sectors": 1000}
    vector = roofline("sm_90", {**totals, "ptx__flops_fp32": 2000})
    assert isinstance(vector, Roofline) and (vector.intensity, vector.bound) == (2.0, "memory")
    assert vector.ridge == pytest.approx(67 / 4.8) and vector.attainable == pytest.approx(2 * 4.8e12)
    products = roofline("sm_90a", {**totals, "ptx__tensor_ops_fp16": 10**6})
    assert isinstance(products, Roofline) and products.bound == "compute"
    assert products.ceiling == pytest.approx(989.5e12)
    # half of the work at each rate: the harmonic mean
    both = roofline("sm_80", {**totals, "ptx__flops_fp32": 10**6, "ptx__tensor_ops_fp16": 10**6})
    assert isinstance(both, Roofline) and both.ceiling == pytest.approx(2e12 / (1 / 19.5 + 1 / 312))
    assert roofline("sm_80", {**totals, "ptx__tensor_ops_fp8": 1}) == "no published rate for tensor_fp8"
    assert roofline("sm_90", totals) == "the launch has no floating-point or tensor operations"
    assert set(PEAKS) == set(TARGETS) <= set(DEVICES)
