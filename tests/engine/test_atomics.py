"""Atomic operations: types, operations, spaces, order, results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.engine.assembly import STORE, entry, launch, words

_I32 = [("add", "u32", 5, 5 + sum(range(64))), ("min", "s32", 7, 0), ("max", "u32", 7, 63), ("and", "b32", 0xFF, 0),
        ("or", "b32", 0x100, 0x13F), ("xor", "b32", 9, 9),
        ("inc", "u32", 0, None), ("dec", "u32", 3, None)]  # fmt: skip


def _model(op: str, start: int) -> int:
    """inc and dec wrap at each thread's own operand, threads in ascending order."""
    v = start
    for b in range(64):
        v = (0 if v >= b else v + 1) if op == "inc" else (b if v == 0 or v > b else v - 1)
    return v


@pytest.mark.parametrize(("op", "type", "start", "end"), _I32)
@pytest.mark.parametrize("form", ["atom", "red"])
def test_32_bit_operations(op: str, type: str, start: int, end: int | None, form: str) -> None:
    out = np.array([start], np.uint32)
    target = "%r3, " if form == "atom" else ""
    assert launch(f"{form}.global.{op}.{type} {target}[%rd0], %r0;\nret;", out, block=64).findings == ()
    assert out[0] == (_model(op, start) if end is None else end)


def test_results_are_the_words_found_lane_after_lane() -> None:
    counter = np.array([100], np.uint32)
    body = "ld.param.u64 %rd2, [p1];\natom.global.add.u32 %r3, [%rd2], 2;\n" + STORE
    assert (words(body, counter, block=70) == 100 + 2 * np.arange(70)).all()
    assert counter[0] == 240


def test_only_lanes_whose_guard_holds() -> None:
    counter = np.zeros(1, np.uint32)
    body = (
        "ld.param.u64 %rd2, [p1];\nmov.u32 %r3, 9;\nsetp.gt.u32 %p1, %r0, 28;\n"
        "@%p1 atom.global.add.u32 %r3, [%rd2], 1;\n" + STORE
    )
    assert (words(body, counter)[26:] == [9, 9, 9, 0, 1, 2]).all()
    assert counter[0] == 3


def test_exchange_and_compare_and_swap() -> None:
    cell = np.array([1000], np.uint32)
    body = "ld.param.u64 %rd2, [p1];\natom.global.exch.b32 %r3, [%rd2], %r0;\n" + STORE
    assert (words(body, cell) == [1000, *range(31)]).all() and cell[0] == 31
    cell = np.array([0], np.uint32)
    body = (
        "ld.param.u64 %rd2, [p1];\nadd.u32 %r4, %r0, 1;\natom.acq_rel.gpu.global.cas.b32 %r3, [%rd2], %r0, %r4;\n"
        + STORE
    )
    assert (words(body, cell) == np.arange(32)).all() and cell[0] == 32


def test_64_bit_operations() -> None:
    big = np.uint64(1 << 40)
    for op, type, start, operand, end in [
        ("add", "u64", 1, 1 << 33, 1 + 32 * (1 << 33)),
        ("max", "s64", -5, -3, -3),
        ("min", "s64", -5, -9, -9),
        ("max", "u64", 1 << 40, 1 << 39, int(big)),
        ("or", "b64", 1, 1 << 50, 1 | 1 << 50),
        ("exch", "b64", 1, 1 << 60, 1 << 60),
    ]:
        out = np.array([start % (1 << 64)], np.uint64)
        assert (
            launch(f"mov.u64 %rd4, {operand};\natom.global.{op}.{type} %rd5, [%rd0], %rd4;\nret;", out).findings == ()
        )
        assert out[0] == np.uint64(end % (1 << 64)), (op, type)
    out = np.array([7], np.uint64)
    assert launch("atom.global.cas.b64 %rd5, [%rd0], 7, 1;\nret;", out).findings == ()
    assert out[0] == 1


def test_f32_sum_is_rounded_at_each_step_in_lane_order() -> None:
    source = (np.random.default_rng(1).normal(size=96) * 1000).astype(np.float32)
    out = np.array([0.1], np.float32)
    body = """
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd3, %r0, 4, %rd2;
        ld.global.f32 %f1, [%rd3];
        red.global.add.f32 [%rd0], %f1;
        ret;
    """
    assert launch(body, out, source, block=96).findings == ()
    total = np.float32(0.1)
    for v in source:
        total = np.float32(total + v)
    assert out[0] == total


def test_f32_on_global_memory_flushes_subnormals_and_on_shared_keeps_them() -> None:
    body = """
        .shared .align 4 .b32 cell;
        mov.b32 %f1, 0x00000001;
        mov.u32 %r4, 3;
        st.shared.u32 [cell], %r4;
        atom.shared.add.f32 %f2, [cell], %f1;
        ld.shared.u32 %r5, [cell];
        st.global.u32 [%rd0+4], %r5;
        red.global.add.f32 [%rd0], %f1;
        mov.u32 %r6, cell;
        cvt.u64.u32 %rd6, %r6;
        cvta.shared.u64 %rd6, %rd6;
        atom.add.f32 %f2, [%rd6], %f1;
        ld.shared.u32 %r5, [cell];
        st.global.u32 [%rd0+8], %r5;
        ret;
    """
    out = np.array([3, 0, 0], np.uint32)
    assert launch(body, out, block=1).findings == ()
    assert list(out) == [0, 4, 5]


def test_f64_sum() -> None:
    out = np.array([0.5], np.float64)
    assert launch("mov.f64 %fd1, 0d3FB999999999999A;\nred.global.add.f64 [%rd0], %fd1;\nret;", out).findings == ()
    total = 0.5
    for _ in range(32):
        total += 0.1
    assert out[0] == total


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_16_bit_sums_round_at_each_step(type: str, dtype: type) -> None:
    source = np.random.default_rng(2).normal(size=32).astype(dtype)
    out = np.array([1.0, 0.0], dtype)
    body = f"""
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd3, %r0, 2, %rd2;
        ld.global.u16 %h1, [%rd3];
        atom.global.add.noftz.{type} %h2, [%rd0], %h1;
        ret;
    """
    assert launch(body, out, source, target="sm_90" if type == "bf16" else "sm_80").findings == ()
    total = dtype(1.0)
    for v in source:
        total = dtype(np.float32(total) + np.float32(v))
    assert out[0] == total and out[1] == 0


def test_packed_halves() -> None:
    out = np.array([0.5, 100.0], np.float16)
    assert launch("mov.b32 %r4, 0x40003C00;\nred.global.add.noftz.f16x2 [%rd0], %r4;\nret;", out).findings == ()
    assert list(out) == [32.5, 164.0]


def test_generic_and_shared_addresses() -> None:
    body = """
        .shared .align 4 .b32 cell;
        mov.u64 %rd4, cell;
        cvta.shared.u64 %rd5, %rd4;
        mov.u32 %r4, 0;
        st.shared.u32 [cell], %r4;
        bar.sync 0;
        atom.add.u32 %r5, [%rd5], 1;
        atom.shared::cta.add.u32 %r6, [cell], 100;
        bar.sync 0;
        ld.shared.u32 %r3, [cell];
    """
    assert (words(body + STORE, block=64) == 6464).all()


@pytest.mark.parametrize("engine", ["compiled", "traced"])
@pytest.mark.parametrize("order", ["{op}.{vec}.{type}", "{vec}.{type}.{op}"])
@pytest.mark.parametrize(
    ("type", "dtype", "op", "count"),
    [("f32", np.float32, "add", 4), ("f16", np.float16, "min.noftz", 8), ("bf16", ml_dtypes.bfloat16, "add.noftz", 2),
     ("f16x2", np.float16, "max.noftz", 4), ("bf16x2", ml_dtypes.bfloat16, "add.noftz", 4)],
)  # fmt: skip
def test_vectors(type: str, dtype: type, op: str, count: int, order: str, engine: str) -> None:
    """Thread t gives the vector of its own elements; two threads share a place."""
    elements = count * (2 if type.endswith("x2") else 1)
    size = elements * np.dtype(dtype).itemsize
    rng = np.random.default_rng(8)
    source = rng.normal(size=(32, elements)).astype(dtype)
    start = rng.normal(size=(16, elements)).astype(dtype)
    stem, bits = ("h", 16) if type in ("f16", "bf16") else ("r", 32)
    names = [f"%{stem}{4 + i}" for i in range(count)]
    loads = "\n".join(f"ld.global.b{bits} {n}, [%rd3+{i * bits // 8}];" for i, n in enumerate(names))
    opcode = "red.relaxed.gpu.global." + order.format(op=op, vec=f"v{count}", type=type)
    body = f"""
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd3, %r0, {size}, %rd2;
        {loads}
        and.b32 %r3, %r0, 15;
        mad.wide.u32 %rd4, %r3, {size}, %rd0;
        {opcode} [%rd4], {{{", ".join(names)}}};
        ret;
    """
    out = start.copy()
    kernel = entry(body, ["p1"], target="sm_90")
    result = kernel.launch(grid=1, block=32, args=[out, source], names=["out", "p1"], engine=engine)
    assert result.findings == ()
    expected = start.copy()
    for t in range(32):
        old, new = expected[t % 16].astype(np.float32), source[t].astype(np.float32)
        combined = {"add": np.add, "min": np.minimum, "max": np.maximum}[op[:3]](old, new)
        expected[t % 16] = combined.astype(dtype)
    assert (out.view(np.uint8) == expected.view(np.uint8)).all()


@pytest.mark.parametrize("engine", ["compiled", "traced"])
def test_old_elements_of_a_vector(engine: str) -> None:
    out = np.array([1, 2, 0, 0], np.float32)
    body = """
        mov.b32 %f1, 0x3f800000;
        atom.global.add.v2.f32 {%f2, %f3}, [%rd0], {%f1, %f1};
        st.global.f32 [%rd0+8], %f2;
        st.global.f32 [%rd0+12], %f3;
        ret;
    """
    kernel = entry(body, target="sm_90")
    assert kernel.launch(grid=1, block=1, args=[out], names=["out"], engine=engine).findings == ()
    assert list(out) == [2, 3, 1, 2]


def test_a_vector_is_aligned_as_a_whole() -> None:
    out = np.zeros(4, np.float32)
    kernel = entry("mov.b32 %f1, 0;\nred.global.add.v2.f32 [%rd0+4], {%f1, %f1};\nret;", target="sm_90")
    (finding,) = kernel.launch(grid=1, block=1, args=[out], names=["out"]).findings
    assert finding.kind == "misaligned"
