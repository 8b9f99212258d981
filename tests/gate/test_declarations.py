"""What an op can state: sizes, conditions, layouts, optional and in-place arguments, integers, the exact mode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuemu
from gpuemu import Input, Output, bounds
from gpuemu.gate.bits import Bits
from gpuemu.gate.cases import enumerate_cases
from gpuemu.gate.covering import pairwise
from gpuemu.gate.dims import names_in, size_of_axis, sizes
from gpuemu.gate.dtypes import FORMATS
from gpuemu.gate.execute import byte_problems, oracle
from gpuemu.gate.indices import integers
from gpuemu.gate.inputs import make_arguments
from gpuemu.gate.layouts import Layout
from gpuemu.gate.shapes import bytes_of, shapes_of
from gpuemu.gate.values import floats, whole_limit
from ptx.errors import InvalidInput


def make_op(launcher=None, **changes):
    fields = {
        "dims": {"M": (1, 3), "N": (1, 4, 5)},
        "inputs": {"x": Input("M N")},
        "outputs": {"y": Output("M N")},
        "reference": lambda x: x,
        "bound": bounds.exact(),
        "name": "copy",
        "dtypes": ("float32",),
    } | changes

    def nothing(run, **arguments): ...

    return gpuemu.op(**fields)(launcher or nothing)


def cases_of(op, **given):
    return enumerate_cases([op], seed=1, targets=["sm_80"], **given)


@pytest.mark.parametrize(
    "axis, size", [("N", 7), ("2*N", 14), ("N+1", 8), ("N/4", 2), ("N//4", 1), ("(N-1)*B", 18), ("5", 5)]
)
def test_an_axis_is_an_expression_of_dims(axis, size):
    assert size_of_axis(axis, {"N": 7, "B": 3}) == size
    assert names_in(axis) <= {"N", "B"}


@pytest.mark.parametrize("axis", ["N**2", "f(N)", "N.real", "1.5", "N+"])
def test_another_expression_is_refused(axis):
    with pytest.raises(InvalidInput, match="not an expression of dims"):
        size_of_axis(axis, {"N": 7})


def test_sizes_straddle_a_block_and_keep_to_their_multiples():
    assert {1, 127, 128, 129, 256, 257, 1000} <= set(sizes(1, 1000, block=128))
    assert sizes(0, 64, multiple_of=16) == (0, 16, 48, 64)
    with pytest.raises(InvalidInput, match="no sizes between"):
        sizes(3, 64, multiple_of=16)


@settings(max_examples=40)
@given(st.lists(st.fixed_dictionaries({k: st.integers(0, 3) for k in "abc"}), min_size=1, max_size=60))
def test_a_pairwise_cover_shows_every_pair_that_the_table_shows(rows):
    def pairs(chosen):
        return {(a, r[a], b, r[b]) for r in chosen for a, b in (("a", "b"), ("a", "c"), ("b", "c"))}

    chosen = [rows[i] for i in pairwise(rows)]
    assert pairs(chosen) == pairs(rows)
    assert len(chosen) == len({tuple(r.items()) for r in chosen})


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from("ABCD"), st.sets(st.integers(1, 40), min_size=1, max_size=7), min_size=2),
    st.integers(1, 3),
)
def test_no_candidate_is_dropped_that_the_condition_allows(dims, divisor):
    first, second = list(dims)[:2]

    def fits(**d):
        return d[first] % divisor == 0 or d[second] > d[first]

    op = make_op(
        dims={k: sorted(v) for k, v in dims.items()}, where=fits,
        inputs={"x": Input(first)}, outputs={"y": Output(first)},
    )  # fmt: skip
    possible = {d: set() for d in dims}
    for a in dims[first]:
        for b in dims[second]:
            if a % divisor == 0 or b > a:
                possible[first].add(a)
                possible[second].add(b)
    for other in list(dims)[2:]:
        possible[other] = dims[other] if possible[first] else set()
    if not possible[first]:
        with pytest.raises(InvalidInput, match="leaves no shape"):
            shapes_of(op)
        return
    shapes = shapes_of(op)
    assert {d: {s[d] for s in shapes} for d in dims} == possible
    assert all(fits(**s) for s in shapes)


def test_conditions_name_dims_and_options_and_memory_is_bounded():
    op = make_op(
        dims={"H": (1, 2, 4), "K": (1, 2, 3), "N": (8, 1024)},
        inputs={"x": Input("H K N")}, outputs={"y": Output("H K N")},
        where=(lambda H, K: H % K == 0, lambda N, fast: not fast or N < 100),
        options={"fast": (False, True)}, memory=32_768,
    )  # fmt: skip
    shapes = shapes_of(op)
    assert all(s["H"] % s["K"] == 0 and bytes_of(op, s) <= 32_768 for s in shapes)
    assert {s["N"] for s in shapes} == {8, 1024} and {s["K"] for s in shapes} == {1, 2}
    assert all(c.dims["N"] < 100 for c in cases_of(op) if c.option["fast"])
    assert any(c.dims["N"] > 100 for c in cases_of(op))


def test_options_are_swept_by_pairs_and_reach_reference_and_model():
    seen = []

    def model(run):
        seen.append(dict(run.options))
        return 0.0

    op = make_op(
        options={"a": (0, 1), "b": ("x", "y"), "c": (True, False)}, bound=model,
        reference=lambda x, a, b: x + a * len(b),
    )  # fmt: skip
    assert 4 <= len(op.options) <= 6
    for case in cases_of(op)[:8]:
        arguments = make_arguments(op, case)
        _, exact, _ = oracle(op, case, arguments)
        assert np.array_equal(exact["y"], arguments["x"].original.astype(float) + case.option["a"])
    assert {o["a"] for o in seen} == {0, 1}


def test_an_optional_input_is_there_in_some_cases_and_none_in_others():
    op = make_op(
        inputs={"x": Input("M N"), "bias": Input("N", optional=True)},
        reference=lambda x, bias: x if bias is None else x + bias,
    )
    given = {}
    for case in cases_of(op):
        arguments = make_arguments(op, case)
        oracle(op, case, arguments)
        given.setdefault("bias" in arguments, case.label())
    assert set(given) == {True, False} and "bias=False" in given[False]


def test_an_inplace_output_keeps_the_original_for_the_reference():
    op = make_op(outputs={"z": Output(inplace="x")}, reference=lambda x: x + 1, inputs={"x": Input("M N", padded=True)})
    for case in cases_of(op)[:12]:
        arguments = make_arguments(op, case)
        assert arguments["x"].view.flags.writeable and arguments["z"].view is arguments["x"].view
        before = arguments["x"].original.copy()
        arguments["x"].view[...] = 0
        _, exact, _ = oracle(op, case, arguments)
        assert np.array_equal(exact["z"], before.astype(np.float64) + 1)
        assert byte_problems(arguments) == []


def test_dtypes_of_arguments_follow_the_case_an_option_or_a_mapping():
    op = make_op(
        dtypes=("float16", "float32"), options={"kind": ("int8", "int32")},
        inputs={"x": Input("M N"), "w": Input("N", dtype="kind"), "s": Input("N", dtype={"float16": "float32"})},
    )  # fmt: skip
    for case in cases_of(op):
        made = make_arguments(op, case)
        assert made["w"].dtype == case.option["kind"] and made["s"].dtype == "float32"
        assert made["x"].dtype == case.dtype


@pytest.mark.parametrize("kind", ["dense", "padded", "transposed", "expanded", "scalar", "offset", "strided"])
@settings(max_examples=25)
@given(shape=st.lists(st.integers(0, 5), min_size=2, max_size=4), pad=st.sampled_from([7, 9]))
def test_layouts(kind, shape, pad):
    layout = Layout(kind, tuple(shape), pad)
    base = np.arange(np.prod(layout.base_shape), dtype=np.int32).reshape(layout.base_shape)
    view = layout.view(base)
    assert view.shape == tuple(shape) and layout.stored(base).shape == layout.stored_shape
    gap = layout.gap()
    assert gap.sum() == base.size - np.prod(layout.stored_shape)
    assert not set(view.reshape(-1).tolist()) & set(base[gap].tolist())
    if view.size and kind in ("expanded", "scalar"):
        assert view.strides[0] == 0 or shape[0] == 1
    if view.size and kind == "offset":
        assert (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) % 8 == 4


def test_every_stated_view_occurs_and_values_do_not_depend_on_it():
    views = ("padded", "transposed", "expanded", "offset", "strided")
    op = make_op(inputs={"x": Input("M N", views=views)}, outputs={"y": Output("M N", views=("transposed", "padded"))})
    kinds = {}
    for case in cases_of(op):
        made = make_arguments(op, case)
        kinds.setdefault("x", set()).add(made["x"].layout.kind)
        kinds.setdefault("y", set()).add(made["y"].layout.kind)
        assert np.array_equal(made["x"].view, made["x"].original, equal_nan=True)
        assert not made["x"].view.flags.writeable and made["y"].view.flags.writeable
    assert kinds == {"x": {"dense", *views}, "y": {"dense", "transposed", "padded"}}


def test_a_write_into_any_gap_is_found():
    op = make_op(outputs={"y": Output("M N", views=("offset", "strided", "padded"))})
    found = set()
    for case in cases_of(op):
        made = make_arguments(op, case)
        layout = made["y"].layout
        if layout.kind != "dense":
            assert byte_problems(made) == []
            made["y"].base[np.unravel_index(int(np.flatnonzero(layout.gap())[-1]), layout.base_shape)] = 1.0
            assert [p.kind for p in byte_problems(made)] == ["wrote-between-rows"]
            found.add(layout.kind)
    assert found == {"offset", "strided", "padded"}


@pytest.mark.parametrize("distribution", ["regular", "boundary", "adversarial", "exact"])
@pytest.mark.parametrize("kind", ["any", "duplicates", "sorted", "unique", "offsets", "lengths", "flags"])
@settings(max_examples=15)
@given(rows=st.integers(1, 4), row=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_integers_keep_their_promise(kind, distribution, rows, row, seed):
    made = integers(
        Input("R K", dtype="int32", kind=kind, low=0, high="N"), (rows, row), {"N": 12}, Bits(seed, "i"), distribution
    )
    assert made.dtype == np.int32 and made.shape == (rows, row)
    top = 12 if kind in ("offsets", "lengths") else 1 if kind == "flags" else 11
    assert made.min() >= 0 and made.max() <= top
    if kind in ("sorted", "offsets"):
        assert (np.diff(made, axis=1) >= 0).all()
    if kind == "offsets" and row > 1:
        assert (made[:, 0] == 0).all() and (made[:, -1] == 12).all()
    if kind == "unique":
        assert all(len(set(r)) == row for r in made.tolist())
        assert rows * row > 12 or len(set(made.reshape(-1).tolist())) == rows * row


def test_integers_of_a_swept_dtype_reach_both_ends():
    for dtype in ("int8", "uint8", "int32", "int64", "uint64"):
        found = integers(Input("N"), (400,), {}, Bits(5, "i"), "boundary", dtype)
        assert {found.min(), found.max()} == {np.iinfo(dtype).min, np.iinfo(dtype).max}
        small = integers(Input("N"), (400,), {}, Bits(5, "i"), "exact", dtype)
        assert np.abs(small.astype(np.float64)).max() <= 8


def test_segments_are_empty_in_some_cases():
    argument = Input("B+1", dtype="int32", kind="offsets", high="T")
    made = [integers(argument, (5,), {"T": 9}, Bits(s, "o"), "adversarial") for s in range(20)]
    assert any((np.diff(m) == 0).any() for m in made) and any((np.diff(m) == 9).any() for m in made)


def test_too_many_unique_values_are_refused():
    with pytest.raises(InvalidInput, match="13 different values"):
        integers(Input("N", dtype="int32", kind="unique", high=12), (13,), {}, Bits(1, "i"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("terms", [1, 64, 1000, 5000])
def test_exact_values_add_up_exactly_in_any_order(dtype, terms):
    form = FORMATS[dtype]
    whole = whole_limit(terms, 2, form)
    a = floats(Input("M K"), (4, terms), form, "exact", Bits(1, "a"), whole)
    b = floats(Input("K N"), (terms, 4), form, "exact", Bits(1, "b"), whole)
    assert np.array_equal(a, np.rint(a)) and np.abs(a).max() <= whole
    assert len(np.unique(a)) == 2 * whole + 1 or terms == 1
    size = (np.abs(a) @ np.abs(b)).max()
    assert size <= (2.0**12 if form.itemsize == 1 else 2.0**22) or whole == 1


def test_the_exact_distribution_belongs_to_linear_ops():
    assert {c.distribution for c in cases_of(make_op())} == {"regular", "boundary", "adversarial"}
    assert {c.distribution for c in cases_of(make_op(linear="N"))} == {"regular", "boundary", "adversarial", "exact"}
    with pytest.raises(InvalidInput, match="linear: 'K' is not a dim"):
        make_op(linear="K")


@pytest.mark.parametrize("within", [(0.0, 1.0), (-1.0, 1.0), (2.0**-14, np.inf), (0.5, 0.5), (-3.0, 2.5)])
@pytest.mark.parametrize("distribution", ["regular", "boundary", "adversarial", "exact"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
def test_values_stay_within_a_domain(within, distribution, dtype):
    if dtype == "float8_e4m3fn" and within[0] == 2.0**-14:
        pytest.skip("no such number")
    values = floats(Input("M N", within=within), (30, 40), FORMATS[dtype], distribution, Bits(4, "x"))
    assert (values >= within[0]).all() and (values <= within[1]).all()


def test_gradients_are_not_all_ones_and_scales_are_positive():
    form = FORMATS["float32"]
    rows = floats(Input("M N", kind="gradient"), (14, 50), form, "adversarial", Bits(4, "x"))
    assert any(np.array_equal(r, np.arange(50.0)) for r in rows) and not (rows == 1).all(axis=1).any()
    assert any((r != 0).sum() == 1 for r in rows)
    scales = floats(Input("M N", kind="scale"), (14, 50), form, "adversarial", Bits(4, "x"))
    assert (scales > 0).all() and scales.max() >= 2.0**20 and scales.min() <= 2.0**-19
    assert set(floats(Input("N", kind="scale"), (99,), form, "exact", Bits(4, "x"))) == {0.25, 0.5, 1.0, 2.0, 4.0}


def test_a_derived_input_follows_from_the_rounded_others():
    op = make_op(
        inputs={"x": Input("M N"), "top": Input("M", dtype="float32", derived=lambda x: x.max(axis=1))},
        dtypes=("float16",), reference=lambda x, top: x - top[:, None],
    )  # fmt: skip
    made = make_arguments(op, cases_of(op)[-1])
    assert np.array_equal(made["top"].view, made["x"].view.max(axis=1).astype(np.float32))


def test_a_schema_gives_fields_and_what_is_beside_it_wins():
    base = {"dims": {"M": (1,), "N": (2, 3)}, "inputs": {"x": Input("M N")}, "outputs": {"y": Output("M N")},
            "reference": lambda x: x, "bound": bounds.exact(), "linear": ""}  # fmt: skip

    @gpuemu.op(base, dims={"N": (7,)}, dtypes=("float16",))
    def one(run, x, y): ...

    assert one.dims == {"M": (1,), "N": (7,)} and one.dtypes == ("float16",) and one.linear == ()

    @gpuemu.op(**base)
    def two(run, x, y): ...

    assert two.dims == {"M": (1,), "N": (2, 3)}
    with pytest.raises(InvalidInput, match="no field 'shape'"):
        gpuemu.op(base | {"shape": 1})
    with pytest.raises(InvalidInput, match="op 'three': bound is missing"):

        @gpuemu.op({k: v for k, v in base.items() if k != "bound"})
        def three(run, x, y): ...


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"inputs": {"x": Input("M N", views=("sideways",))}}, "unknown view 'sideways'"),
        ({"inputs": {"x": Input("N", views=("transposed",))}}, "a transposed view"),
        ({"outputs": {"y": Output("M N", views=("expanded",))}}, "cannot have stride 0"),
        ({"inputs": {"x": Input("M N", kind="prime")}}, "unknown kind 'prime'"),
        ({"inputs": {"x": Input("M N", dtype="int32", kind="scale")}}, "floating-point inputs"),
        ({"inputs": {"x": Input("M N", within=(2.0, 1.0))}}, "is empty"),
        ({"outputs": {"y": Output(inplace="z")}}, "in place of 'z', which is not an input"),
        ({"inputs": {"x": Input("M Q+1")}}, "axis 'Q' is not a dim"),
        ({"inputs": {"x": Input("M N", derived=lambda z: z)}}, "derived takes 'z'"),
        ({"where": lambda Q: True}, "where takes 'Q'"),
        ({"inputs": {"x": Input("M N", dtype="int32", high="T")}}, "range end 'T' is not a dim"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes, message):
    with pytest.raises(InvalidInput, match=message):
        make_op(**changes)
