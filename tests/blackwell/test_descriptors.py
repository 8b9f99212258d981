"""`tcgen05.mma` that is wrong: descriptors that hardware does not take, matrices that are elsewhere, waits that are
missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.blackwell.tcgen05_ptx import LANES, MODES, Placed, Product
from tests.blackwell.test_mma import descriptor, in_shared, result_words, scale_words, whole

F16 = "tcgen05.mma.cta_group::1.kind::f16"
TYPES = ("f32", "f16", "f16")


def product(m: int = 128, n: int = 16, **changes: Any) -> Product:
    """A correct product of f16."""
    (wa, _), (wb, _) = whole("f16", 1, m), whole("f16", 2, max(n, 8))
    c = result_words(np.random.default_rng(3).integers(-8, 8, (LANES, 16)), "f32")
    return replace(Product(F16, descriptor(m, n, TYPES), in_shared(wa, "f16"), in_shared(wb, "f16"), c), **changes)


def with_bits(placed: Any, mask: int, bits: int) -> Placed:
    assert isinstance(placed, Placed)
    return replace(placed, descriptor=placed.descriptor & ~mask | bits)


def _scaled(**changes: Any) -> Product:
    idesc = 1 << 7 | 1 << 10 | 2 << 17 | 1 << 23 | 1 << 27
    scales = scale_words(np.full((128, 4), 127, np.uint8))
    return product(
        **{"opcode": "tcgen05.mma.cta_group::1.kind::mxf4.block_scale", "idesc": idesc, "scale_a": scales,
           "scale_b": scales, **changes}
    )  # fmt: skip


GOOD = product()
TF32 = descriptor(128, 16, ("f32", "tf32", "tf32"), tb=1)
E2M1 = descriptor(128, 16, ("f32", "e4m3", "e2m1"), tb=1)
NVF4 = 1 << 7 | 1 << 10 | 2 << 17 | 1 << 27
WRONG: dict[str, tuple[Product, str]] = {
    "sparse": (product(idesc=GOOD.idesc | 4), "says sparse"),
    "f16 result of bf16": (product(idesc=descriptor(128, 16, ("f16", "bf16", "bf16"))), "types"),
    "tf32 as f16": (product(idesc=descriptor(128, 16, ("f32", "tf32", "tf32"))), "types"),
    "M = 96": (product(idesc=descriptor(96, 16, TYPES)), "M or N"),
    "M = 32": (product(idesc=descriptor(32, 16, TYPES)), "M or N"),
    "N = 0": (product(idesc=descriptor(128, 0, TYPES)), "M or N"),
    "N = 264": (product(idesc=descriptor(128, 264, TYPES)), "M or N"),
    "N = 40 of .ws": (
        product(opcode="tcgen05.mma.ws.cta_group::1.kind::f16", idesc=descriptor(128, 40, TYPES)), "M or N",
    ),
    "N = 40 of bytes": (
        product(opcode="tcgen05.mma.cta_group::1.kind::i8", idesc=descriptor(128, 40, ("s32", "s8", "s8"))), "M or N",
    ),
    "negated bytes": (
        product(opcode="tcgen05.mma.cta_group::1.kind::i8", idesc=descriptor(128, 16, ("s32", "s8", "s8")) | 1 << 13),
        "negates",
    ),
    **{
        f"swizzling mode {mode}": (product(b=with_bits(GOOD.b, 7 << 61, mode << 61)), "swizzling mode")
        for mode in (3, 5, 7)
    },
    "version": (product(a=with_bits(GOOD.a, 7 << 46, 0)), "0b001"),
    "base offset": (product(a=with_bits(GOOD.a, 0, 1 << 49)), "base offset"),
    "absolute stride": (product(a=with_bits(GOOD.a, 0, 1 << 52)), "absolute"),
    "32-byte atoms": (product(b=with_bits(GOOD.b, 7 << 61, MODES["128 by 32"] << 61)), "32-byte atoms"),
    "transposed tf32": (product(opcode="tcgen05.mma.cta_group::1.kind::tf32", idesc=TF32), "32-byte atoms"),
    "transposed e2m1": (product(opcode="tcgen05.mma.cta_group::1.kind::f8f6f4", idesc=E2M1), "transposed"),
    "transposed bytes, N = 24": (
        product(opcode="tcgen05.mma.cta_group::1.kind::f8f6f4", idesc=descriptor(128, 24, ("f32", "e4m3", "e4m3"),
        tb=1)), "multiple of 16",
    ),
    "ue4m3 for mxf4": (_scaled(idesc=NVF4), "scale type"),
    "scale number 1": (_scaled(idesc=_scaled().idesc | 1 << 29), "scale factor number"),
    "scale number of block 16": (
        _scaled(opcode="tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", idesc=NVF4 | 2 << 4),
        "scale factor number",
    ),
    "K = 96 of sm_100": (_scaled(idesc=_scaled().idesc | 1 << 31), "needs sm_103a"),
    "a shift of columns that is not announced": (
        product(
            opcode="tcgen05.mma.ws.cta_group::1.kind::f16", idesc=descriptor(128, 64, TYPES), tail=", %p9",
            before=f"mov.u64 %p9, {1 << 56};",
        ),
        "shifts B",
    ),
    "reserved bits of a zero-column mask": (
        product(
            opcode="tcgen05.mma.ws.cta_group::1.kind::f16", idesc=descriptor(128, 64, TYPES), tail=", %p9",
            before=f"mov.u64 %p9, {1 << 36};",
        ),
        "reserved bits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_descriptors(name: str) -> None:
    wrong, message = WRONG[name]
    (found,) = wrong.launch()[0].findings
    assert found.kind == "bad-tensor-operation" and message in found.message
    assert "tcgen05.mma" in found.evidence["instruction"]


def test_a_matrix_outside_shared_memory() -> None:
    far = with_bits(GOOD.b, 0x3FFF << 32, 0x3FFF << 32)
    (found,) = product(b=far).launch()[0].findings
    assert found.kind == "out-of-bounds" and "tcgen05.mma" in found.evidence["instruction"]


def test_accumulators_in_columns_that_are_not_allocated() -> None:
    (found,) = product(at=500).launch()[0].findings
    assert found.kind == "bad-tensor-memory" and "not allocated" in found.message


@pytest.mark.parametrize("lane", [16, 32])
def test_accumulators_in_a_lane_that_does_not_fit(lane: int) -> None:
    (found,) = product(at=lane << 16).launch()[0].findings
    assert found.kind == "bad-tensor-memory" and "lane" in found.message


def test_a_commit_on_what_is_not_a_barrier() -> None:
    (found,) = product(before="@%q1 mbarrier.inval.shared::cta.b64 [%bar];").launch()[0].findings
    assert found.kind == "bad-mbarrier" and "tcgen05.commit" in found.evidence["instruction"]


# ------------------------------------------------------------------------------------------------ asynchrony
def test_a_forgotten_wait_leaves_the_accumulators() -> None:
    right, wrong = product(), product(waits=False)
    good = right.run()
    np.testing.assert_array_equal(right.run(asynchrony="eager"), good)
    np.testing.assert_array_equal(wrong.run(asynchrony="eager"), good)
    np.testing.assert_array_equal(wrong.run(), wrong.c)


def test_an_operand_that_is_overwritten_before_the_wait() -> None:
    clear = "bar.sync 0; shl.b32 %t11, %t, 2; add.u32 %t11, %t11, %t2; st.shared.b32 [%t11], 0;"
    wrong = product(after=clear.replace("], 0", "], %t12").replace("bar.sync 0;", "mov.u32 %t12, 0; bar.sync 0;"))
    good = product().run()
    np.testing.assert_array_equal(wrong.run(asynchrony="eager"), good)
    assert (wrong.run() != good).any()


def test_accumulators_stored_without_their_wait() -> None:
    wrong = product(stored=False)
    np.testing.assert_array_equal(wrong.run(asynchrony="eager"), product().run())
    assert (wrong.run() != product().run()).any()


@pytest.mark.parametrize("mode", ["eager", "seeded:1", "seeded:2", "late"])
def test_products_on_the_same_accumulators_keep_their_order(mode: str) -> None:
    values = product(times=5).run(asynchrony=mode).view(np.float32)
    c = product().c.view(np.float32)
    np.testing.assert_array_equal(values - c, 5 * (product().run().view(np.float32) - c))


def test_both_engines_give_the_same() -> None:
    np.testing.assert_array_equal(product().run(engine="traced"), product().run())


def test_the_result_says_that_it_was_not_compared_with_hardware() -> None:
    result, _ = product().launch()
    assert result.exactness == ("tcgen05 modelled from publication",)
