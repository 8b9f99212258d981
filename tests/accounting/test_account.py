"""All numbers of a kernel on a target together: what is there, what is missing and why, and the cache."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interp.ops import ISA
from ptx.accounting import assemble
from ptx.accounting.account import Absent, Account, account
from ptx.accounting.metrics import BY_NAME, DYNAMIC, METRICS, markdown
from ptx.errors import InvalidInput, Unsupported
from ptx.lower import toolchain
from tests.accounting.ptx_texts import many_live, sample, text

SIMPLE = text("mov.u32 %r1, %tid.x; ret;", ".reqntid 64")


def measured(source: str, target: str, **options: object) -> Account:
    found = account(source, target, ISA, **options)  # type: ignore[arg-type]
    assert isinstance(found, Account), found
    return found


def test_every_number_of_a_kernel_is_in_the_table(tools: None) -> None:
    source = sample("matmul_f16_sm80")
    found = measured(source, "sm_80")
    assert set(found.metrics) == set(BY_NAME) and found.missing == {} and found.unknown == {}
    assert found.metrics["sass__inst_tensor"] == found.metrics["ptx__inst_tensor"] == source.count("mma.sync") == 16
    assert found.assembler.startswith("ptxas, release ") and found.assembled_for == "sm_80"


REFUSED = [
    (SIMPLE, "sm_75", "the text is for sm_80, which code for sm_75 cannot use"),
    (text("ret;", target="sm_90a"), "sm_100", "the text is for sm_90a and runs on that chip only"),
    (text("ret;", target="sm_100f", version="8.8"), "sm_120", "the text is for sm_100f and runs on that family only"),
    (text("frob.b32 %r1, %r2; ret;"), "sm_80", r"ptxas \(release .*\) refuses it: PTX line 7: error : Not a name"),
    (text("ret;", version="99.0"), "sm_80", r"ptxas-blackwell .* refuses it: PTX line 1: fatal : Unsupported .version"),
]


@pytest.mark.parametrize("source, target, reason", REFUSED)
def test_not_available_says_why(tools: None, source: str, target: str, reason: str) -> None:
    found = account(source, target, ISA)
    assert isinstance(found, Absent) and re.search(reason, found.reason), found


@pytest.mark.parametrize(
    "own, asked, used", [("sm_90a", "sm_90", "sm_90a"), ("sm_100f", "sm_103", "sm_103f"), ("sm_80", "sm_90a", "sm_90a")]
)
def test_suffixes(tools: None, own: str, asked: str, used: str) -> None:
    assert measured(text("ret;", target=own, version="8.8"), asked).assembled_for == used


def test_a_newer_text_is_assembled_by_the_newer_assembler(tools: None) -> None:
    assert measured(text("ret;", version="9.0"), "sm_80").assembler.startswith("ptxas-blackwell")


def test_occupancy_needs_a_block_size(tools: None) -> None:
    source = many_live(8)
    assert "launch__block_size" in measured(source, "sm_80").missing
    found = measured(source, "sm_80", threads=128, shared=60000)
    assert found.metrics["launch__occupancy_limit_shared_mem"] == 2 and found.limiters == ("shared_mem",)
    with pytest.raises(InvalidInput, match="a block of 128 threads: 'k' was compiled with .reqntid 64"):
        account(SIMPLE, "sm_80", ISA, threads=128)


def test_the_entry_is_named_or_the_only_one(tools: None) -> None:
    two = SIMPLE + text("ret;").replace("entry k(", "entry other(").partition(".address_size 64\n")[2]
    with pytest.raises(InvalidInput, match="the PTX has 2 entries"):
        account(two, "sm_80", ISA)
    assert measured(two, "sm_80", kernel="other").kernel == "other"
    with pytest.raises(InvalidInput, match="no entry 'none'"):
        account(two, "sm_80", ISA, kernel="none")


def test_the_second_time_no_tool_is_run(tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUEMU_CACHE_DIR", str(tmp_path))
    first = measured(SIMPLE, "sm_80")
    monkeypatch.setattr(assemble, "_run", lambda *_: pytest.fail("ran a tool"))
    assert measured(SIMPLE, "sm_80") == first
    with pytest.raises(pytest.fail.Exception):
        account(SIMPLE, "sm_80", ISA, fmad=False)


def test_contraction_is_the_assemblers(tools: None) -> None:
    body = "mul.f32 f, f, f; add.f32 f, f, g; ld.param.u64 %d1, [x]; st.global.f32 [%d1], f; ret;"
    source = text(f".reg .f32 f, g; ld.param.u64 %d1, [x]; ld.global.f32 f, [%d1]; ld.global.f32 g, [%d1+4]; {body}")
    assert measured(source, "sm_80").metrics["sass__inst_fp32"] == 1
    assert measured(source, "sm_80", fmad=False).metrics["sass__inst_fp32"] == 2


def test_without_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unsupported, match="NVIDIA's ptxas-blackwell was not found"):
        account(SIMPLE, "sm_80", ISA)


def test_the_metrics_are_those_of_the_docs() -> None:
    docs = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert markdown() in docs, "the table of docs/metrics.md is ptx.accounting.metrics.markdown()"
    assert markdown(DYNAMIC) in docs, "and the second one that of markdown(DYNAMIC)"
    assert len(BY_NAME) == len(METRICS)
