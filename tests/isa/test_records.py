"""Every instruction record: documented, unambiguous, and true to its own examples on the exact kit."""

from __future__ import annotations

from collections import defaultdict

import pytest

import interp.runtime.functions  # noqa: F401  (declares the lane functions)
from gpuemu.conform.forms import exact_kit, lane_records, opcodes, vector_form
from interp.ops import ISA
from ptx.record import Op, Vector


def _examples() -> list[tuple[Op, Vector]]:
    return [(op, v) for op in ISA.ops for v in op.vectors]


def _name(value: object) -> str:
    return value.syntax if isinstance(value, Op) else ""


@pytest.mark.parametrize("op", ISA.ops, ids=_name)
def test_record_is_documented(op: Op) -> None:
    assert op.doc, f"{op.syntax}: the meaning has no docstring"
    assert op.ref
    for vector in op.vectors:
        assert vector.why


@pytest.mark.parametrize("op", lane_records(), ids=_name)
def test_lane_record_has_an_example(op: Op) -> None:
    if op.name in ("cvta", "isspacep"):
        pytest.skip("depends on where the state spaces lie; tested with memory")
    assert op.vectors


@pytest.mark.parametrize(("op", "vector"), _examples(), ids=lambda v: v.syntax if isinstance(v, Op) else v.mods)
def test_example_on_the_exact_kit(op: Op, vector: Vector) -> None:
    form, sources = vector_form(op, vector)
    outcome = op.meaning(exact_kit(op), **form.mods)(*form.operands(sources))
    results = outcome if isinstance(outcome, tuple) else (outcome,)
    assert [hex(w) for w in results] == [hex(w) for w in vector.results], vector.why


def test_no_opcode_matches_two_records_with_the_same_operands() -> None:
    found = defaultdict(list)
    for op in lane_records():
        shape = tuple(spec.form.replace("pair", "reg") for spec in op.operands)
        for opcode in opcodes(op):
            found[opcode, shape].append(op.syntax)
    assert {k: v for k, v in found.items() if len(v) > 1} == {}
