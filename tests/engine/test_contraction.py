"""Fused additions: which may be, the plan as text, and the code with a plan applied against exact arithmetic.

What the assembler chooses is in tests/accounting and, against an H200, in tests/hardware."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from interp.launch import Module
from ptx.contraction.plan import Fusions, from_text, pairs, to_text
from ptx.errors import InvalidInput
from ptx.parse import parse
from tests.engine.assembly import text

LOAD = "mul.wide.u32 %rd2, %r0, 16; add.u64 %rd2, %rd0, %rd2; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd2];"
STORE = "st.global.f32 [%rd2], %f4; ret;"
FIRST = 11
"""Place of a body's first instruction behind LOAD."""


def kernel(body: str) -> str:
    return text(LOAD + body + STORE)


def candidates(body: str) -> list[tuple[int, list[int], bool]]:
    found = pairs(parse(kernel(body)).kernels[0])
    return [(a - FIRST - 1, [m - FIRST - 1 for m in ms], more) for a, ms, more in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mul.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;", [(1, [0], False)]),
        ("mul.f32 %f5, %f0, %f1; sub.f32 %f4, %f2, %f5;", [(1, [0], False)]),
        ("mul.f32 %f5, %f0, %f1; mul.f32 %f6, %f2, %f3; add.f32 %f4, %f5, %f6;", [(2, [0, 1], False)]),
        ("div.full.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;", [(1, [0], False)]),
        ("mul.rn.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;", []),
        ("mul.f32 %f5, %f0, %f1; add.rn.f32 %f4, %f5, %f2;", []),
        ("fma.rn.f32 %f5, %f0, %f1, %f2; add.f32 %f4, %f5, %f2;", []),
        ("div.rn.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;", []),
        # a product that comes by a copy or a sign may be fused, but not here
        ("mul.f32 %f5, %f0, %f1; neg.f32 %f6, %f5; add.f32 %f4, %f6, %f2;", [(2, [], True)]),
        ("mul.f32 %f5, %f0, %f1; mov.f32 %f6, %f5; add.f32 %f4, %f6, %f2;", [(2, [], True)]),
        # a factor is written again between
        ("mul.f32 %f5, %f0, %f1; mov.f32 %f0, %f2; add.f32 %f4, %f5, %f2;", [(2, [], True)]),
        # the last product before the addition counts
        ("mul.f32 %f5, %f0, %f1; mul.f32 %f5, %f2, %f3; add.f32 %f4, %f5, %f2;", [(2, [1], False)]),
        ("setp.lt.f32 %p1, %f0, %f1; @%p1 mul.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;", [(2, [], True)]),
        # one product here, another that comes by a copy
        ("mul.f32 %f5, %f0, %f1; mul.f32 %f6, %f2, %f3; mov.f32 %f7, %f5; add.f32 %f4, %f7, %f6;", [(3, [1], True)]),
        ("mov.f32 %f5, %f0; mul.f32 %f5, %f5, %f1; mul.f32 %f6, %f2, %f3; add.f32 %f4, %f5, %f6;", [(3, [2], True)]),
        # a factor is overwritten by the first of two destinations
        (
            "mul.f32 %f5, %f0, %f1; shfl.sync.bfly.b32 %f0|%p1, %f0, 1, 31, -1; add.f32 %f4, %f5, %f2;",
            [(2, [], True)],
        ),
        # through local memory, and by a choice
        (
            ".local .f32 y; mul.f32 %f5, %f0, %f1; st.local.f32 [y], %f5; ld.local.f32 %f6, [y];"
            "add.f32 %f4, %f6, %f2;",
            [(3, [], True)],
        ),
        ("setp.lt.f32 %p1, %f0, %f1; mul.f32 %f5, %f0, %f1; selp.f32 %f6, %f5, %f2, %p1; add.f32 %f4, %f6, %f2;",
         [(3, [], True)]),
    ],
)
def test_what_may_be_fused(body: str, expected: list[tuple[int, list[int], bool]]) -> None:
    assert candidates(body) == expected


def run(body: str, fmad: str | None, given: np.ndarray, engine: str = "compiled") -> tuple[np.ndarray, tuple[str, ...]]:
    data = given.copy()
    result = Module.from_ptx(kernel(body), fmad=fmad)["k"].launch((1,), (len(given),), [data], engine=engine)
    assert result.findings == ()
    return data[:, 0], result.exactness


def rounded(value: Fraction) -> np.float32:
    """Correctly rounded to f32 (through f64 with a sticky bit)."""
    if value == 0:
        return np.float32(0)
    exponent = math.frexp(float(value))[1] - 60
    scaled = value / Fraction(2) ** exponent
    whole = math.floor(scaled)
    whole |= scaled != whole
    bits = abs(whole).bit_length() - 24
    low, rest = abs(whole) >> bits, abs(whole) & ((1 << bits) - 1)
    half = 1 << (bits - 1)
    low += rest > half or (rest == half and low & 1)
    return np.float32(math.copysign(math.ldexp(low, bits + exponent), value))


@pytest.mark.parametrize("engine", ["compiled", "traced"])
@pytest.mark.parametrize(
    ("operation", "exact"),
    [
        ("add.f32 %f4, %f5, %f2", lambda a, b, c: a * b + c),
        ("add.f32 %f4, %f2, %f5", lambda a, b, c: a * b + c),
        ("sub.f32 %f4, %f5, %f2", lambda a, b, c: a * b - c),
        ("sub.f32 %f4, %f2, %f5", lambda a, b, c: c - a * b),
    ],
)
def test_a_fused_addition_rounds_once(operation: str, exact, engine: str) -> None:  # type: ignore[no-untyped-def]
    given = np.random.default_rng(1).standard_normal((64, 4)).astype(np.float32)
    given[:, 2] = -given[:, 0] * given[:, 1] if "add" in operation else given[:, 0] * given[:, 1]  # cancels
    body = f"mul.f32 %f5, %f0, %f1; {operation};"
    fused, exactness = run(body, f"plan:k {FIRST + 2}<{FIRST + 1}", given, engine)
    expected = [rounded(exact(*(Fraction(float(v)) for v in row[:3]))) for row in given]
    np.testing.assert_array_equal(fused, expected)
    assert exactness == ()
    apart, exactness = run(body, None, given, engine)
    assert exactness == ("contraction not modelled",) and (apart != fused).any()
    assert run(body, "off", given, engine)[1] == ()


def test_the_plan_belongs_to_the_key_of_compiled_code() -> None:
    """Also of a text that ends with debug data, which the key leaves out."""
    given = np.random.default_rng(1).standard_normal((64, 4)).astype(np.float32)
    given[:, 2] = -given[:, 0] * given[:, 1]
    ptx = kernel("mul.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;") + "\n\t.section\t.debug_macinfo\t{\t}\n"
    results = []
    for fmad in ("off", f"plan:k {FIRST + 2}<{FIRST + 1}", None):
        data = given.copy()
        Module.from_ptx(ptx, fmad=fmad)["k"].launch((1,), (64,), [data])
        results.append(data[:, 0].tobytes())
    assert results[0] == results[2] != results[1]


def test_nothing_to_fuse_is_exact_without_a_plan() -> None:
    given = np.ones((32, 4), np.float32)
    assert run("mul.f32 %f5, %f0, %f1; add.f32 %f6, %f2, %f3; max.f32 %f4, %f5, %f6;", None, given)[1] == ()


def test_unknown_choices_are_said() -> None:
    body = "mul.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;"
    assert run(body, f"plan:k ?{FIRST + 2}", np.ones((32, 4), np.float32))[1] == ("contraction modelled in part",)


def test_a_plan_as_text() -> None:
    plan = {"k": Fusions({12: 11, 40: 3}, (7,)), "other": Fusions({}, (1,))}
    assert to_text(plan) == "plan:k 12<11 40<3 ?7;other ?1"
    assert from_text(to_text(plan)) == plan and from_text("plan:") == {}


@pytest.mark.parametrize(
    "plan",
    [
        "plan:k 3<2", "plan:k 13<11", "plan:k x<y", "plan:k 12<", "on", "plan:k 999<998", "plan:other 12<11",
        "plan:k 13<12;k", "plan:k ?999", "plan:k ?0", "plan:k ١٣<١٢",
    ],
)  # fmt: skip
def test_a_plan_of_something_else(plan: str) -> None:
    with pytest.raises(InvalidInput):
        run("mul.f32 %f5, %f0, %f1; add.f32 %f4, %f5, %f2;", plan, np.ones((32, 4), np.float32))


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90"])
def test_the_assembler_s_choice_is_read(target: str) -> None:
    pytest.importorskip("triton")
    from ptx.contraction.read import read_plan

    body = (
        "mul.f32 %f5, %f0, %f1; add.f32 %f6, %f5, %f2; mul.f32 %f7, %f6, %f3; mul.f32 %f8, %f0, %f3;"
        "add.f32 %f4, %f7, %f8; mul.rn.f32 %f9, %f4, %f4; add.f32 %f4, %f9, %f0;"
    )
    plan = read_plan(kernel(body).replace("sm_80", target), target)
    (fusions,) = plan.values()
    assert fusions.unknown == () and set(fusions.fused) == {FIRST + 2, FIRST + 5}
    assert fusions.fused[FIRST + 2] == FIRST + 1


@pytest.mark.parametrize(
    ("body", "fused", "unknown"),
    [
        ("mul.f32 %f5, %f0, %f1; add.f32 %f4, %f5, 0f3F800000;", {2: 1}, ()),  # an addend of 1 is no factor of 1
        ("mul.f32 %f5, %f0, %f1; sub.f32 %f4, 0f3F800000, %f5;", {2: 1}, ()),
        ("mov.f32 %f5, %f0; mul.f32 %f5, %f5, %f1; mul.f32 %f6, %f2, %f3; add.f32 %f4, %f5, %f6;", {}, (4,)),
        ("mul.f32 %f5, %f0, %f1; max.f32 %f6, %f5, %f5; add.f32 %f4, %f6, %f2;", {}, (3,)),
        ("mul.f32 %f5, %f0, %f1; add.rn.f32 %f6, %f5, %f2; add.f32 %f4, %f6, %f3;", {}, ()),
    ],
)
def test_choices_that_are_read_and_that_are_not(body: str, fused: dict[int, int], unknown: tuple[int, ...]) -> None:
    pytest.importorskip("triton")
    from ptx.contraction.read import read_plan

    plan = read_plan(kernel(body), "sm_80").get("k", Fusions({}))
    assert plan.fused == {FIRST + a: FIRST + m for a, m in fused.items()}
    assert plan.unknown == tuple(FIRST + a for a in unknown)
