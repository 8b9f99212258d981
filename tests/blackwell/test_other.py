"""What else came with sm_100 code: reductions of f32 across a warp and along lanes of tensor memory."""

from __future__ import annotations

import numpy as np
import pytest

import gpuemu
from tests.blackwell.snippets import WAIT, kernel, output

NAN, CANONICAL = np.uint32(0x7FC00001), 0x7FFFFFFF
VALUES = np.array([1.5, -2.0, 0.25, -0.0, 3.0, -7.5, 0.0, 2.0] * 4, np.float32)


def reduced(values: np.ndarray, opcode: str) -> np.ndarray:
    body = f"mul.wide.u32 %d0, %t, 4; add.u64 %d1, %in, %d0; add.u64 %d0, %out, %d0; ld.global.b32 %r0, [%d1]; {opcode}"
    return output(kernel(body + "st.global.b32 [%d0], %r1;", columns=0), values.view(np.uint32), 32, block=32)


@pytest.mark.parametrize(("op", "expected"), [("max", 3.0), ("min", -7.5), ("max.abs", 7.5), ("min.abs", 0.0)])
def test_redux_of_f32(op: str, expected: float) -> None:
    got = reduced(VALUES, f"redux.sync.{op}.f32 %r1, %r0, -1;")
    assert (got == np.float32(expected).view(np.uint32)).all()


def test_redux_of_zeros_and_nan() -> None:
    zeros = np.array([-0.0, 0.0] * 16, np.float32)
    assert (reduced(zeros, "redux.sync.max.f32 %r1, %r0, -1;") == 0).all()
    assert (reduced(zeros, "redux.sync.min.f32 %r1, %r0, -1;") == 0x80000000).all()
    some = VALUES.copy()
    some.view(np.uint32)[5] = NAN
    assert (reduced(some, "redux.sync.min.f32 %r1, %r0, -1;") == np.float32(-7.5).view(np.uint32)).all()
    assert (reduced(some, "redux.sync.min.NaN.f32 %r1, %r0, -1;") == CANONICAL).all()
    assert (reduced(np.full(32, np.nan, np.float32), "redux.sync.max.f32 %r1, %r0, -1;") == CANONICAL).all()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("max.f32", 0x40400000), ("min.f32", 0xC0F00000), ("max.abs.f32", 0x40F00000), ("min.u32", 0),
        ("max.s32", 0x40400000),
    ],
)
def test_a_load_with_a_reduction(op: str, expected: int) -> None:
    words = VALUES[:8].view(np.uint32)
    body = "".join(f"mov.u32 %v{i}, {int(w):#x};" for i, w in enumerate(words))
    registers = "{" + ", ".join(f"%v{i}" for i in range(8)) + "}"
    body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%mine], {registers}; tcgen05.wait::st.sync.aligned;"
    body += f"tcgen05.ld.red.sync.aligned.32x32b.x8.{op} {registers}, %r0, [%mine];"
    body += "mul.wide.u32 %d0, %t, 8; add.u64 %d0, %d0, %out; st.global.v2.b32 [%d0], {%r0, %v1};"
    got = output(kernel(body, target="sm_103a"), None, 256).reshape(128, 2)
    assert (got[:, 0] == expected).all() and (got[:, 1] == words[1]).all()


@pytest.mark.parametrize("group", ["", ".cta_group::1", ".cta_group::2"])
def test_a_tensor_load_for_a_pair(group: str) -> None:
    source = np.arange(1024, dtype=np.uint32).reshape(32, 32)
    opcode = f"cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes{group}"
    body = (
        f"mov.u64 %d1, p_map; cvta.param.u64 %d1, %d1; mov.u32 %r3, 0; add.u32 %r4, %s, 1024;"
        f"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;"
        f"@%first {opcode} [%r4], [%d1, {{%r3, %r3}}], [%bar]; {WAIT} setp.lt.u32 %p1, %t, 64;"
        "shl.b32 %r5, %t, 2; add.u32 %r5, %r5, %r4; ld.shared.u32 %r6, [%r5];"
        "mul.wide.u32 %d0, %t, 4; add.u64 %d0, %d0, %out; @%p1 st.global.b32 [%d0], %r6;"
    )
    text = kernel(body, columns=0).replace("p_out)", "p_out, .param .align 64 .b8 p_map[128])")
    out = np.zeros(64, np.uint32)
    map_ = gpuemu.TensorMap(source, (32, 32), (128,), (4, 16), "u32")
    result = gpuemu.Module.from_ptx(text)["k"].launch((1,), (128,), [source, out, map_])
    assert result.findings == ()
    np.testing.assert_array_equal(out, source[:4, :16].ravel())
