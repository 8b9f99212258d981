"""Asynchronous operations take effect at the wait that guarantees it: for each mechanism, the same kernel with its wait
and without."""

from __future__ import annotations

import numpy as np
import pytest

import gpuemu
from tests.hopper.snippets import kernel, launch, output, wait

WORDS = np.arange(100, 1124, dtype=np.uint32)
ONE_THREAD = "setp.eq.u32 %p0, %t, 0;"
INIT = f"{ONE_THREAD} @%p0 mbarrier.init.shared::cta.b64 [%s+4096], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+4096], {bytes};"
READ = "shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1]; st.global.u32 [%po], %r2;"
FILL = "shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s; st.shared.u32 [%r1], %t; bar.sync 0;"


def with_and_without(
    text: str, line: str, block: int, given: np.ndarray, count: int, *more: object
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of a kernel, and of the kernel without the lines of its wait; eagerly completed both are the same."""
    assert line in text
    without = text.replace(line, "")
    right = output(text, block, given, count, *more)
    np.testing.assert_array_equal(output(text, block, given, count, *more, asynchrony="eager"), right)
    np.testing.assert_array_equal(output(without, block, given, count, *more, asynchrony="eager"), right)
    return right, output(without, block, given, count, *more)


def test_cp_async() -> None:
    waiting = "cp.async.wait_group 0;"
    body = f"{FILL} cp.async.ca.shared.global [%r1], [%pi], 4; cp.async.commit_group; {waiting} bar.sync 0; {READ}"
    right, wrong = with_and_without(kernel(body), waiting, 64, WORDS, 64)
    np.testing.assert_array_equal(right, WORDS[:64])
    np.testing.assert_array_equal(wrong, np.arange(64))


def test_cp_async_through_an_mbarrier() -> None:
    init = INIT.replace("], 1;", "], 64;")
    waiting = wait(4096, 0)
    body = (
        f"{FILL} {init} cp.async.ca.shared.global [%r1], [%pi], 4;"
        f"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+4096]; {waiting} {READ}"
    )
    right, wrong = with_and_without(kernel(body), waiting, 64, WORDS, 64)
    np.testing.assert_array_equal(right, WORDS[:64])
    np.testing.assert_array_equal(wrong, np.arange(64))


def test_bulk_load() -> None:
    waiting = wait(4096, 0)
    load = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 256, [%s+4096];"
    body = f"{FILL} {INIT} {EXPECT.format(bytes=256)} {load} {waiting} {READ}".replace("[%s], [%in]", "[%r9], [%in]")
    body = "mov.u32 %r9, %s;" + body
    right, wrong = with_and_without(kernel(body), waiting, 64, WORDS, 64)
    np.testing.assert_array_equal(right, WORDS[:64])
    np.testing.assert_array_equal(wrong, np.arange(64))


def tensor_map(array: np.ndarray, box: tuple[int, int], **options: object) -> gpuemu.TensorMap:
    rows, columns = array.shape
    return gpuemu.TensorMap(array, (rows, columns), (columns * 4,), box, "u32", **options)  # type: ignore[arg-type]


MAP = ", .param .align 64 .b8 p_map[128]"
TAKE_MAP = "mov.u64 %d1, p_map; cvta.param.u64 %d1, %d1; mov.u32 %r3, 0;"


def test_tensor_load() -> None:
    waiting = wait(4096, 0)
    opcode = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
    load = f"@%p0 {opcode} [%s], [%d1, {{%r3, %r3}}], [%s+4096];"
    body = f"{FILL} {TAKE_MAP} {INIT} {EXPECT.format(bytes=256)} {load} {waiting} {READ}"
    source = WORDS.reshape(32, 32)
    right, wrong = with_and_without(kernel(body, MAP), waiting, 64, WORDS, 64, tensor_map(source, (4, 16)))
    np.testing.assert_array_equal(right, source[:4, :16].ravel())
    np.testing.assert_array_equal(wrong, np.arange(64))


@pytest.mark.parametrize(("column", "fine"), [(0, True), (-4, True), (4, True), (1, False), (-1, False), (2, False)])
def test_a_tile_begins_at_a_multiple_of_16_bytes(column: int, fine: bool) -> None:
    """Elsewhere an H200 stops with an illegal instruction."""
    opcode = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    body = f"""
        {FILL} {TAKE_MAP} {INIT} {EXPECT.format(bytes=256)} mov.u32 %r4, {column};
        @%p0 {opcode} [%s], [%d1, {{%r4, %r3}}], [%s+4096]; {wait(4096, 0)} {READ}
    """
    result, _ = launch(kernel(body, MAP), 64, WORDS, 64, tensor_map(WORDS.reshape(32, 32), (4, 16)))
    assert [f.kind for f in result.findings] == ([] if fine else ["bad-coordinate"])


@pytest.mark.parametrize("read", ["", ".read"])
def test_bulk_store(read: str) -> None:
    waiting = f"@%p0 cp.async.bulk.wait_group{read} 0;"
    store = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 256; @%p0 cp.async.bulk.commit_group;"
    overwrite = "bar.sync 0; mov.u32 %r5, 7; st.shared.u32 [%r1], %r5;"
    body = f"{FILL} {ONE_THREAD} fence.proxy.async.shared::cta; {store} {waiting} {overwrite}"
    right, wrong = with_and_without(kernel(body), waiting, 64, WORDS, 64)
    np.testing.assert_array_equal(right, np.arange(64))
    np.testing.assert_array_equal(wrong, np.full(64, 7))


def test_tensor_store_waits_for_the_right_group() -> None:
    store = (
        "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r3, %r4}], [%s];"
        "@%p0 cp.async.bulk.commit_group;"
    )
    body = (
        f"{FILL} {ONE_THREAD} {TAKE_MAP} mov.u32 %r4, 0; {store} mov.u32 %r4, 2; {store}"
        "@%p0 cp.async.bulk.wait_group 1; bar.sync 0; mov.u32 %r5, 7; st.shared.u32 [%r1], %r5;"
    )
    out = np.zeros((4, 32), np.uint32)
    result, _ = launch(kernel(body, MAP), 64, WORDS, 64, tensor_map(out, (2, 32)))
    assert result.findings == ()
    np.testing.assert_array_equal(out[:2].ravel(), np.arange(64))  # the first group was waited for
    np.testing.assert_array_equal(out[2:].ravel(), np.full(64, 7))  # the second was not


@pytest.mark.parametrize("op", ["add.u32", "max.u32", "xor.b32"])
def test_bulk_reduction(op: str) -> None:
    reduction = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%in], [%s], 256;"
    store = f"@%p0 {reduction} @%p0 cp.async.bulk.commit_group;"
    body = f"{FILL} mov.u32 %r5, 5; st.shared.u32 [%r1], %r5; bar.sync 0; {ONE_THREAD} {store}"  # at the end of the CTA
    data = WORDS.copy()
    output(kernel(body), 64, data, 64)
    assert data[64] == WORDS[64] and data[63] == {"add.u32": 168, "max.u32": 163, "xor.b32": 163 ^ 5}[op]


def test_seeds_choose_and_repeat() -> None:
    body = f"{FILL} cp.async.ca.shared.global [%r1], [%pi], 4; bar.sync 0; {READ}"  # no wait at all
    seen = {}
    for seed in range(8):
        a, b = (output(kernel(body), 32, WORDS, 32, asynchrony=f"seeded:{seed}") for _ in range(2))
        np.testing.assert_array_equal(a, b)
        seen[a.tobytes()] = seed
    assert len(seen) == 2  # the warp's copy happens at once, or not at all
    with pytest.raises(gpuemu.InvalidInput, match="asynchrony"):
        output(kernel(body), 32, WORDS, 32, asynchrony="sometimes")
