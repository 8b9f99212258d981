"""Correct Triton kernels under the library's schemas: no finding, nothing unchecked, on every dtype and distribution.

The ordinary tests run a few cases of the kernels that show what an op can state (in place, optional, views, packed and
paged sequences, scales, gradients, atomics, random bits); the judge runs a pairwise cover of all of them.
"""

import dataclasses
from pathlib import Path

import pytest

from gpuemu.gate.cases import enumerate_cases
from gpuemu.gate.discover import load_file
from gpuemu.gate.execute import CaseRunner, Settings

pytest.importorskip("triton")

FOLDER = Path(__file__).parent / "kernels"
SHOWN = {
    "elementwise": ("axpy", "bias_add", "sigmoid", "integer_add"),
    "rows": ("logsumexp",),
    "norms": ("layer_norm_backward", "add_rms_norm"),
    "matmul": ("matmul", "grouped_matmul", "fused_relu", "fp8_blocks", "atomic_split_k_matmul"),
    "attention": ("attention_grouped", "attention_varlen", "attention_paged"),
    "losses": ("cross_entropy_backward_inplace", "rope_inplace"),
    "indexing": ("scatter_add", "top_k", "cumsum_reverse"),
    "sequences": ("quantise_int8", "dropout", "causal_conv", "moe_routing"),
}


def check(op, cases):
    runner = CaseRunner(Settings(root=str(FOLDER), replays=None), {(op.file, op.name): op})
    results = [runner(case) for case in cases]
    wrong = [(r.case.label(), r.reason or r.problems) for r in results if r.verdict not in ("pass", "borderline")]
    assert not wrong
    return results


@pytest.mark.parametrize("file, name", [(f, n) for f, names in SHOWN.items() for n in names])
def test_a_correct_kernel_passes(file, name):
    op = next(o for o in load_file(FOLDER / f"{file}.py") if o.name == name)
    cases = enumerate_cases([op], seed=5, targets=["sm_80"])
    # One shape in the middle for each dtype, so that little is compiled; each distribution and option on it.
    chosen = {}
    shapes = list(dict.fromkeys(tuple(c.dims.items()) for c in cases))
    for number, dtype in enumerate(op.dtypes):
        shape = dict(shapes[(len(shapes) // 2 + number) % len(shapes)])
        for case in cases:
            if case.dims == shape and case.dtype == dtype and case.target == cases[0].target:
                chosen.setdefault((dtype, case.distribution, *case.option.values()), case)
    assert {c.distribution for c in chosen.values()} >= {"regular", "boundary", "adversarial"}
    results = check(op, list(chosen.values())[:16])
    assert sum(c.elements for r in results for c in r.comparisons) > 0


@pytest.mark.judge
@pytest.mark.parametrize("file", sorted(p.stem for p in FOLDER.glob("*.py")))
def test_every_correct_kernel_passes_on_a_cover_of_its_cases(file):
    ops = load_file(FOLDER / f"{file}.py")
    assert len(ops) > 3
    for op in ops:
        check(op, enumerate_cases([op], seed=0, targets=["sm_80"], quick=True))


def test_every_schema_has_a_correct_kernel():
    from gpuemu import schemas

    text = "".join(p.read_text() for p in FOLDER.glob("*.py"))
    built = {"unary", "binary", "Schema"}
    missing = [
        n for n in schemas.__all__
        if n not in built and f"schemas.{n}(" not in text and f'"{n}"' not in text
    ]  # fmt: skip
    assert not missing


def test_a_wrong_kernel_is_found_under_a_schema():
    """The gate is alive: the same kernels with a constant or a mask changed."""
    op = next(o for o in load_file(FOLDER / "elementwise.py") if o.name == "axpy")

    def wrong(run, x, y):
        kernel = op.launcher.__globals__["axpy_kernel"]
        run(kernel, (1,), x, y, x.size, 1.75, BLOCK=128)

    broken = dataclasses.replace(op, launcher=wrong)
    runner = CaseRunner(Settings(root=str(FOLDER), replays=None), {(op.file, op.name): broken})
    cases = [c for c in enumerate_cases([op], seed=5, targets=["sm_80"]) if c.dims["N"] in (127, 129)]
    kinds = {p.kind for c in cases[:6] for p in runner(c).problems}
    assert "wrong-value" in kinds
