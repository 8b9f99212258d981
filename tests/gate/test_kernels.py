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
    built = {"unary", "binary", "Schema", "gradient"}
    missing = [
        n for n in schemas.__all__
        if n not in built and f"schemas.{n}(" not in text and f'"{n}"' not in text
    ]  # fmt: skip
    assert not missing


def found_kinds(file, name, launcher, wanted, count=8):
    """Kinds of problems of a launcher in place of the correct one, over the cases that `wanted` chooses."""
    op = next(o for o in load_file(FOLDER / f"{file}.py") if o.name == name)
    broken = dataclasses.replace(op, launcher=launcher(op))
    runner = CaseRunner(Settings(root=str(FOLDER), replays=None), {(op.file, op.name): broken})
    cases = [c for c in enumerate_cases([op], seed=5, targets=["sm_80"]) if wanted(c)][:count]
    results = [runner(c) for c in cases]
    assert not [r.reason for r in results if r.verdict == "unchecked"]
    return {p.kind for r in results for p in r.problems}


def test_a_wrong_constant_in_place_is_found():
    def launcher(op):
        kernel = op.launcher.__globals__["axpy_kernel"]
        return lambda run, x, y: run(kernel, (1,), x, y, x.size, 1.75, BLOCK=128)

    assert "wrong-value" in found_kinds("elementwise", "axpy", launcher, lambda c: c.dims["N"] == 127)


def test_a_stride_that_is_taken_for_one_is_found():
    """An upstream gradient that is one number for all rows has stride 0; so had that of a loss that was summed."""

    def launcher(op):
        kernel = op.launcher.__globals__["cross_entropy_backward_kernel"]

        def launch(run, x, label, lse, dloss, dx):
            m, n = x.shape
            run(kernel, (m,), x, label, lse, dloss, dx, n, 1, BLOCK=1 << max(n - 1, 1).bit_length())

        return launch

    def wanted(c):
        return c.dims["M"] == 5 and c.dtype == "float32"

    assert "out-of-bounds" in found_kinds("losses", "cross_entropy_backward", launcher, wanted)


def test_a_scatter_without_atomics_loses_duplicates():
    def launcher(op):
        move = op.launcher.__globals__["move_rows"]
        return lambda run, x, index, y: move(run, x, index, y, "scatter")

    def wanted(c):
        return c.dims["N"] == 33 and c.dtype == "float32" and c.distribution == "exact"

    assert found_kinds("indexing", "scatter_add", launcher, wanted) == {"wrong-value"}
