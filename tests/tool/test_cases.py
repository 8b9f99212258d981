"""Shapes and cases: coverage of candidates, independence of seeds, the quick subset."""

import itertools

import pytest

from gpuemu.gate.cases import enumerate_cases
from gpuemu.gate.declare import Input, Op, Output, collecting, op
from gpuemu.gate.shapes import shapes_of
from ptx.errors import InvalidInput


def make_op(**changes) -> Op:
    fields = {
        "dims": {"M": (1, 3, 16), "N": (1, 2, 13, 64, 127, 128, 129, 251, 257)},
        "inputs": {"x": Input("M N", padded=True)},
        "outputs": {"y": Output("M N")},
        "reference": lambda x: x,
        "bound": lambda run: 0.0,
        "name": "copy",
    } | changes

    def launcher(run, x, y): ...

    return op(**fields)(launcher)


def test_every_candidate_appears_and_the_corners_do():
    declared = make_op()
    shapes = shapes_of(declared)
    assert {s["M"] for s in shapes} == {1, 3, 16} and {s["N"] for s in shapes} == set(declared.dims["N"])
    assert shapes[0] == {"M": 1, "N": 1} and shapes[-1] == {"M": 16, "N": 257}
    assert 8 <= len(shapes) <= 16 and len({tuple(s.items()) for s in shapes}) == len(shapes)


def test_candidates_of_different_dims_are_mixed():
    shapes = shapes_of(make_op(dims={"M": (1, 2, 3, 4), "N": (1, 2, 3, 4)}, inputs={"x": "M N"}, outputs={"y": "M N"}))
    assert len(shapes) >= 8 and any(s["M"] > s["N"] for s in shapes) and any(s["M"] < s["N"] for s in shapes)


def test_a_condition_restricts_and_an_impossible_one_is_an_error():
    assert all(s["N"] >= 128 for s in shapes_of(make_op(where=lambda M, N: N >= 128)))
    with pytest.raises(InvalidInput, match="leaves no shape"):
        shapes_of(make_op(where=lambda M, N: False))


def test_explicit_shapes_are_taken_as_they_are():
    given = [{"M": 2, "N": 5}, {"M": 9, "N": 9}]
    assert shapes_of(make_op(shapes=given)) == given


def test_a_case_keeps_its_seed_when_other_ops_and_shapes_come_and_go():
    one, two = make_op(), make_op(name="other")
    alone = {c.label(): c.seed for c in enumerate_cases([one], seed=1, targets=["sm_80"])}
    both = {c.label(): c.seed for c in enumerate_cases([two, one], seed=1, targets=["sm_90", "sm_80"], quick=True)}
    shared = alone.keys() & both.keys()
    assert shared and all(alone[k] == both[k] for k in shared)


def test_seeds_differ_by_everything_that_a_case_is():
    cases = enumerate_cases([make_op(), make_op(name="b")], seed=1, targets=["sm_80", "sm_90"])
    other = enumerate_cases([make_op()], seed=2, targets=["sm_80"])
    assert len({c.seed for c in (*cases, *other)}) == len(cases) + len(other)
    assert {c.padded for c in cases} == {True, False}


def test_quick_keeps_every_pair_of_two_settings():
    """No size at a boundary of a dim, no dtype and no distribution may be dropped in silence."""
    whole = enumerate_cases([make_op(), make_op(name="b")], seed=1, targets=["sm_80", "sm_90"])
    kept = enumerate_cases([make_op(), make_op(name="b")], seed=1, targets=["sm_80", "sm_90"], quick=True)
    assert {c.seed for c in kept} <= {c.seed for c in whole} and len(kept) < len(whole) / 3
    assert [c.index for c in kept] == list(range(len(kept)))

    def pairs(cases):
        settings = [{**c.dims, "dtype": c.dtype, "distribution": c.distribution, "target": c.target} for c in cases]
        return {(c.op, p) for c, s in zip(cases, settings, strict=True) for p in itertools.combinations(s.items(), 2)}

    assert pairs(kept) == pairs(whole)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"outputs": {}}, "no outputs"),
        ({"dtypes": ("bool8",)}, "unknown dtype"),
        ({"dims": {"M": (-1,), "N": (1,)}}, "must be integers >= 0"),
        ({"inputs": {"x": "M K"}}, "axis 'K' is not a dim"),
        ({"inputs": {"x": Input("N", padded=True)}}, "padded rows"),
        ({"inputs": {"x": Input("N", nonfinite=("infinity",))}}, "nonfinite takes"),
        ({"shapes": [{"M": 1}]}, "does not give exactly the dims"),
        ({"reference": lambda z: z}, "reference takes 'z'"),
        ({"outputs": {"z": "M N"}, "inputs": {"x": "M", "y": "N"}}, "does not take the output 'z'"),
        ({"outputs": {"x": "M N"}}, "named twice"),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(changes, message):
    with pytest.raises(InvalidInput, match=message):
        make_op(**changes)


def test_declarations_are_collected_by_the_innermost_collector():
    with collecting() as outer:
        make_op()
        with collecting() as inner:
            make_op(name="b")
    assert [o.name for o in outer] == ["copy"] and [o.name for o in inner] == ["b"]


def test_padded_arguments_have_different_strides():
    from gpuemu.gate.inputs import make_arguments

    declared = make_op(outputs={"y": Output("M N", padded=True)})
    case = next(c for c in enumerate_cases([declared], seed=1, targets=["sm_80"]) if c.padded)
    made = make_arguments(declared, case)
    strides = {a.view.strides[0] // a.view.itemsize - case.dims["N"] for a in made.values()}
    assert strides == {7, 9} and not made["x"].view.flags.writeable and made["y"].view.flags.writeable
