"""The study: patches apply or are errors, every way of testing counts what it should, the corpus is what it says."""

import ast
from pathlib import Path

import numpy as np
import pytest

from gpuemu.study.corpus import Bug, Subject, half_of, patched, read_corpus, read_table
from gpuemu.study.judgements import accepts, rejected
from gpuemu.study.measure import Measured
from gpuemu.study.strategies import STRATEGIES, Outcome, count, named
from gpuemu.study.tables import Report, json_report, text_table
from ptx.errors import InvalidInput

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "benchmarks"


def bug(old: str, new: str = "x", **fields) -> Bug:
    return Bug(op="op", name="name", family="f", shows="s", old=old, new=new, **fields)


def test_a_patch_is_applied_where_its_text_stands_once():
    assert patched("a b c", bug("b", "d"), Path("t")) == "a d c"


@pytest.mark.parametrize("old, times", [("q", 0), ("a", 2)])
def test_a_patch_that_does_not_stand_exactly_once_is_an_error(old, times):
    with pytest.raises(InvalidInput, match=f"found {times} times"):
        patched("a b a", bug(old), Path("t"))


@pytest.mark.parametrize(
    "text",
    [
        '[[bug]]\nop = "a"\nname = "b"\nfamily = "c"\nshows = "d"\n',
        '[[bug]]\nop = "a"\nname = "b"\nfamily = "c"\nshows = "d"\nold = "e"\n',
        '[[bug]]\nop = "a"\nname = "b"\nfamily = "c"\nshows = "d"\nold = "e"\nnew = "f"\nof = "g"\n',
        '[[bug]]\nop = "a"\n', "[[wrong]]\n", "[[",
    ],
)  # fmt: skip
def test_a_wrong_table_is_an_error(tmp_path, text):
    table = tmp_path / "x.bugs.toml"
    table.write_text(text)
    with pytest.raises(InvalidInput):
        read_table(table)


def test_the_corpus_is_large_enough_and_all_its_patches_apply(tmp_path):
    pytest.importorskip("triton")
    subjects = read_corpus([CORPUS / "corpus", CORPUS / "original26"], tmp_path)
    controls = [s for s in subjects if s.family is None]
    bugs = [s for s in subjects if s.family is not None]
    assert len(controls) >= 60 and len(bugs) >= 120
    assert len({s.family for s in bugs}) >= 15
    own = [s for s in subjects if s.published is not None]
    assert (sum(s.family is None for s in own), sum(s.family is not None for s in own)) == (16, 10)
    for subject in bugs:
        ast.parse(Path(subject.file).read_text())
        assert subject.shows and (subject.unreachable is None or len(subject.unreachable) > 40)
        assert subject.control in {s.op for s in controls}
    for half in ("held out", "calibrated"):
        assert sum(half_of(s.control) == half for s in controls) >= 20


def outcome(key: str, verdicts: dict[tuple[str, str], bool], family: str | None = None, **fields) -> Outcome:
    """An outcome from (source, distribution) -> whether ours rejects; allclose rejects nothing."""
    subject = Subject(
        key=key, op=key, control=key, source="s", file=key, usual={}, family=family,
        unreachable=fields.get("unreachable"),
    )  # fmt: skip
    measured = [
        Measured(
            source=source, draw=0, label="", dtype="float16", distribution=distribution,
            rejected={"derived fp64": hit, "allclose fp64": False},
        )
        for (source, distribution), hit in verdicts.items()
    ]  # fmt: skip
    return Outcome(subject, ("float16", "float32"), measured)


def test_a_strategy_counts_its_own_cases_only():
    seen = outcome("a", {("sweep", "regular"): False, ("sweep", "boundary"): True, ("usual", "regular"): False}, "f")
    verdicts = {s.name: seen.caught(s, "derived fp64") for s in STRATEGIES}
    assert verdicts == {
        "full sweep": True, "only regular": False, "only boundary": True, "only adversarial": None, "only exact": None,
        "usual shape, all dtypes": False, "one shape, one draw": False, "one shape, five draws": None,
    }  # fmt: skip
    assert seen.rate(named("full sweep"), "derived fp64") == (1, 2)


def test_counting_names_what_is_missed_and_leaves_nothing_out():
    good = outcome("a", {("sweep", "regular"): True}, "f")
    missed = outcome("b", {("sweep", "regular"): False}, "f")
    without = outcome("c", {}, "f")
    found = count([good, missed, without], named("full sweep"), "derived fp64")
    assert (found.hit, found.of, found.missed) == (1, 3, ("b", "c"))
    assert found.words() == "1/3 (33.3 %)"


def test_the_verdict_of_a_study():
    caught = outcome("a", {("sweep", "regular"): True}, "f")
    control = outcome("k", {("sweep", "regular"): False})
    assert Report([caught, control]).exit_code == 0
    assert Report([outcome("b", {("sweep", "regular"): False}, "f"), control]).exit_code == 1
    assert Report([caught, outcome("k", {("sweep", "regular"): True})]).exit_code == 1
    refuted = outcome("u", {("sweep", "regular"): True}, "f", unreachable="because")
    assert Report([caught, control, refuted]).refuted == ["u"]
    broken = Outcome(caught.subject, ("float16",), [*caught.measured, Measured(
        source="sweep", draw=0, label="l", dtype="float16", distribution="regular", rejected={}, reason="does not run"
    )])  # fmt: skip
    report = Report([broken, control])
    assert report.exit_code == 3 and "does not run" in text_table(report)
    assert json_report(report, "c") == json_report(report, "c")


@pytest.mark.parametrize(
    "got, want, absolute, relative, right",
    [
        ([1.0, 2.0], [1.0, 2.0], 0, 0, True),
        ([1.0, 2.1], [1.0, 2.0], 0, 0.04, False),
        ([1.0, 2.1], [1.0, 2.0], 0, 0.06, True),
        ([np.nan], [np.nan], 0, 0, True),
        ([np.nan], [1.0], 1e9, 0, False),
        ([np.inf], [-np.inf], 1e9, 0, False),
        ([np.inf], [np.inf], 0, 0, True),
    ],
)
def test_a_tolerance(got, want, absolute, relative, right):
    assert accepts(np.array(got), np.array(want), absolute, relative) is right


def test_every_scheme_is_judged_by_its_own_tolerance_and_oracle():
    got = np.array([1.0, 1.005], np.float16)
    exact = {"y": np.array([1.0, 1.0])}
    found = rejected({"y": (got, "float16")}, exact, {"y": np.array([1.0, 1.005])}, (1e-4, 1e-3))
    assert found == {
        "allclose fp64": False, "allclose same": False, "assert_close fp64": True, "assert_close same": False,
        "published fp64": True,
    }  # fmt: skip
