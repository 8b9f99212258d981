"""SARIF as code scanning wants it, the baseline, and grouping of cases into bugs."""

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from gpuemu.gate.cases import Case
from gpuemu.gate.results import BrokenFile, CaseResult, Problem, SweepResult
from gpuemu.reports.expected import compare_expected, read_expected
from gpuemu.reports.rules import rule_of
from gpuemu.reports.sarif import FINGERPRINT, sarif_report
from ptx.errors import InvalidInput


def case(index=0, op="softmax", dtype="float32", n=5):
    return Case(
        index=index, op=op, file="/r/op.py", dims={"N": n}, dtype=dtype, distribution="regular", target="sm_80",
        device=None, option={}, seed=0x1234 + index,
    )  # fmt: skip


def finding(root, index=0, line=3, kind="wrong-value", **given):
    problem = Problem(
        kind=kind, message=f"y[{index}] is 2, expected 1", file=f"{root}/kernels/a b.py", line=line, array="y",
        index=(index,), error=1.0, allowed=0.5,
    )  # fmt: skip
    return CaseResult(
        case=case(index, **given), verdict="finding", problems=(problem,), model="half an ulp", replay="ab" * 32
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a b.py").write_text("one\ntwo\n    tl.store(y)  # é\nfour\n")
    return tmp_path


def sweep(root, *cases, **given):
    return SweepResult(seed=0, root=str(root), cases=cases, **given)


def load(result):
    return json.loads(sarif_report(result))


def test_one_result_a_bug_with_what_code_scanning_requires(root):
    log = load(sweep(root, finding(root, 0, n=9), finding(root, 1), finding(root, 2, kind="non-finite")))
    run = log["runs"][0]
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    assert len(run["results"]) == 1
    result = run["results"][0]
    rules = run["tool"]["driver"]["rules"]
    assert result["level"] == "error" and rules[result["ruleIndex"]]["id"] == result["ruleId"] == "gpuemu/wrong-value"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "kernels/a%20b.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 3}
    text = result["message"]["text"]
    for part in ("expected 1", "3 of 3 cases", "half an ulp", "gpuemu reproduce 0000000000001234"):
        assert part in text
    assert result["properties"]["error"] == 1.0 and result["properties"]["allowed"] == 0.5
    assert re.fullmatch("[0-9a-f]{64}", result["partialFingerprints"][FINGERPRINT])
    for rule in rules:
        assert rule["shortDescription"]["text"] and rule["fullDescription"]["text"] and rule["help"]["text"]
        assert rule["defaultConfiguration"] == {"level": "error"} and rule["properties"]["precision"]
    assert run["invocations"][0]["executionSuccessful"] is True


def test_a_clean_run_has_an_empty_result_list(root):
    run = load(sweep(root, CaseResult(case=case(), verdict="pass")))["runs"][0]
    assert run["results"] == [] and run["invocations"][0]["executionSuccessful"] is True


def test_unchecked_never_looks_clean(root):
    unchecked = CaseResult(case=case(), verdict="unchecked", reason="unsupported: wgmma")
    for result in (
        sweep(root, unchecked),
        sweep(root),
        sweep(root, CaseResult(case=case(), verdict="pass"), broken=(BrokenFile(file="/r/x.py", reason="no"),)),
        sweep(root, finding(root), unchecked),
    ):
        invocation = load(result)["runs"][0]["invocations"][0]
        assert invocation["executionSuccessful"] is False and invocation["toolExecutionNotifications"]


def test_fingerprints_follow_the_text_of_the_line(root):
    def prints(line):
        return load(sweep(root, finding(root, line=line)))["runs"][0]["results"][0]["partialFingerprints"]

    before, other = prints(3), prints(4)
    file = root / "kernels" / "a b.py"
    file.write_text("zero\n" + file.read_text())
    assert prints(4) == before != other


def test_lines_and_classes_make_different_bugs(root):
    cases = (
        finding(root, 0),
        finding(root, 1, line=4),
        finding(root, 2, kind="out of bounds"),
        finding(root, 3, op="b"),
    )
    bugs = sweep(root, *cases).bugs
    assert [(b.op, b.line, b.kind) for b in bugs] == [
        ("softmax", 3, "wrong-value"), ("softmax", 4, "wrong-value"), ("softmax", 3, "out of bounds"),
        ("b", 3, "wrong-value"),
    ]  # fmt: skip
    assert rule_of("out of bounds").id == "gpuemu/out-of-bounds"


def test_lines_that_are_wrong_together_are_one_bug(root):
    """A statistic spoils two outputs; where only the second shows, it is the same bug still."""
    second = finding(root, 2, line=4)
    both = msgspec.structs.replace(finding(root, 1), problems=(finding(root, 1).problems[0], second.problems[0]))
    (bug,) = sweep(root, second, both, finding(root, 3)).bugs
    assert bug.line == 3 and len(bug.cases) == 3 and bug.problem.line == 3
    assert len(sweep(root, second, finding(root, 3)).bugs) == 2


def test_sarif_validates_against_the_official_schema(root):
    """Where a copy of the OASIS schema is at hand (GPUEMU_SARIF_SCHEMA); the other tests hold in any case."""
    place = os.environ.get("GPUEMU_SARIF_SCHEMA")
    if not place:
        pytest.skip("set GPUEMU_SARIF_SCHEMA to a copy of sarif-schema-2.1.0.json")
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(place).read_text())
    unchecked = CaseResult(case=case(5), verdict="unchecked", reason="timeout")
    for result in (sweep(root), sweep(root, finding(root), finding(root, 1, line=4), unchecked)):
        jsonschema.Draft7Validator(schema).validate(load(result))


BASELINE = """
[[finding]]
rule = "gpuemu/wrong-value"
op = "softmax"
file = "kernels/a b.py"
line = "tl.store(y)  # é"
"""


def test_a_baseline_wants_exactly_its_findings(root, tmp_path):
    (tmp_path / "expected.toml").write_text(BASELINE, encoding="utf-8")
    expected = read_expected(tmp_path / "expected.toml")
    assert compare_expected(sweep(root, finding(root)), expected).none
    assert compare_expected(sweep(root, finding(root, kind="non-finite")), expected).none
    assert not compare_expected(sweep(root, finding(root, kind="out-of-bounds")), expected).none
    gone = compare_expected(sweep(root), expected)
    assert not gone.none and gone.words().startswith("MISSING gpuemu/wrong-value")
    more = compare_expected(sweep(root, finding(root), finding(root, 1, line=4)), expected)
    assert [e.line for e in more.unexpected] == ["four"] and not more.missing


def test_a_baseline_may_leave_the_line_open(root, tmp_path):
    (tmp_path / "expected.toml").write_text(BASELINE.replace("line =", "# line ="), encoding="utf-8")
    assert compare_expected(sweep(root, finding(root, line=4)), read_expected(tmp_path / "expected.toml")).none


@pytest.mark.parametrize(
    "text", ["[[finding]]\nrule = 1\n", "[[finding]\n", "[[findings]]\n", "[[finding]]\nrule='a'\n"]
)
def test_a_wrong_baseline_is_an_error(tmp_path, text):
    (tmp_path / "expected.toml").write_text(text)
    with pytest.raises(InvalidInput):
        read_expected(tmp_path / "expected.toml")
