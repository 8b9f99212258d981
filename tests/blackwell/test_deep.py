"""K = 96 of kinds mxf4 and mxf4nvf4 (sm_103a): rows of 48 bytes that go on at an absolute address, three or six
scales."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.blackwell import law
from tests.blackwell.tcgen05_ptx import LANES, ROOM, Placed, Product, Words
from tests.blackwell.test_mma import accumulators, scaled_descriptor

LINE, NEXT = 128, ROOM // 2
"""Bytes of a row in a buffer with 128-byte swizzling; where the second buffer begins."""
DEEP = 1 << 31
HERE = "and.b64 %p6, {0}, 0x3ff8; add.u64 %p6, %p6, " + str(NEXT >> 4) + "; shl.b64 %p6, %p6, 16; or.b64 {0}, {0}, %p6;"
"""The leading dimension field becomes the address of the second buffer, from that of the first."""


def place(nibbles: np.ndarray, at: int, absolute: bool = True) -> Placed:
    """Rows of 96 numbers from byte `at` of each row of the first buffer on, the rest in the second buffer."""
    image = np.zeros(ROOM, np.uint8)
    packed = (nibbles[:, ::2] | nibbles[:, 1::2] << 4).astype(np.uint8)
    for row, line in enumerate(packed):
        for i, byte in enumerate(line):
            buffer, column = divmod(at + i, LINE)
            offset = row * LINE + column
            image[buffer * NEXT + (offset ^ (offset >> 7 & 7) << 4)] = byte
    return Placed(image, at >> 4 | (8 * LINE >> 4) << 32 | 1 << 46 | int(absolute) << 52 | 2 << 61)


def scale_words(scales: np.ndarray, first: int) -> Words:
    """Scale bytes [row, 3 or 6] from byte `first` on: four bytes in one block of columns, the others in the next."""
    out = np.zeros((LANES, 16), np.uint32)
    block = 4 if len(scales) <= 128 else 8
    for row, line in enumerate(scales):
        for i, byte in enumerate(line):
            word, part = divmod(first + i, 4)
            out[row % 32 :: 32, row // 32 + block * word] |= np.uint32(int(byte) << 8 * part)
    return out


def product(
    n: int, kind: str, per_scale: int, ids: tuple[int, int], at: tuple[int, int], **changes: Any
) -> tuple[Product, tuple[np.ndarray, ...]]:
    """An instruction, and its A, B, and scales of both."""
    rng = np.random.default_rng(21)
    ue8m0 = per_scale == 2
    a, b = rng.integers(0, 16, (128, 96)), rng.integers(0, 16, (n, 96))
    low, high = (120, 136) if ue8m0 else (0, 127)
    sa, sb = (rng.integers(low, high, (count, 6 // per_scale)) for count in (128, n))
    idesc = scaled_descriptor(n, 1, 1, ids, ue8m0) | DEEP
    made = Product(
        f"tcgen05.mma.cta_group::1.{kind}", idesc, place(a, at[0]), place(b, at[1]),
        accumulators("f32", rng, n, "close"), scale_a=scale_words(sa, ids[0]), scale_b=scale_words(sb, ids[1]),
        before=HERE.format("%da") + HERE.format("%db"), target="sm_103a",
    )  # fmt: skip
    return replace(made, **changes), (a, b, sa, sb)


FORMS = [
    (32, "kind::mxf4.block_scale.block32", 2, (0, 3), (0, 112)),
    (48, "kind::mxf4.block_scale", 2, (2, 1), (96, 48)),
    (144, "kind::mxf4nvf4.block_scale.block16", 1, (0, 2), (96, 64)),
    (16, "kind::mxf4nvf4.block_scale.block16", 1, (2, 0), (16, 64)),
]


@pytest.mark.parametrize(("n", "kind", "per_scale", "ids", "at"), FORMS)
def test_products(n: int, kind: str, per_scale: int, ids: tuple[int, int], at: tuple[int, int]) -> None:
    made, (a, b, sa, sb) = product(n, kind, per_scale, ids, at)
    got = made.run()
    rng = np.random.default_rng(22)
    for r, j in zip(rng.integers(0, 128, 60), rng.integers(0, n, 60), strict=True):
        scales = [(int(sa[r, g // per_scale]), int(sb[j, g // per_scale])) for g in range(6)]
        row, column = [int(w) for w in a[r]], [int(w) for w in b[j]]
        assert got[r, j] == law.grouped(row, column, int(made.c[r, j]), scales, per_scale == 1), (r, j)


def test_a_in_tensor_memory() -> None:
    made, (a, *_) = product(*FORMS[0][:4], (0, 0))
    words = np.ascontiguousarray((a[:, ::2] | a[:, 1::2] << 4).astype(np.uint8)).view(np.uint32)
    np.testing.assert_array_equal(replace(made, a=words, before=HERE.format("%db")).run(), made.run())


def test_a_row_that_does_not_leave_its_line_needs_no_address() -> None:
    made, (a, b, *_) = product(*FORMS[0][:4], (80, 0))
    relative = replace(made, a=place(a, 80, False), b=place(b, 0, False), before="")
    np.testing.assert_array_equal(relative.run(), made.run())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "beyond the line": ({"before": ""}, "absolute leading dimension"),
    "scales by number": ({"opcode": "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X"}, "'.block16'"),
    "N = 24": ({"idesc": scaled_descriptor(24, 1, 1, (0, 0), True) | DEEP}, "M or N"),
}


@pytest.mark.parametrize("name", WRONG)
def test_descriptors(name: str) -> None:
    made, (a, *_) = product(*FORMS[0][:4], (96, 0), **WRONG[name][0])
    if name == "beyond the line":
        made = replace(made, a=place(a, 96, False))
    (found,) = made.launch()[0].findings
    assert found.kind == "bad-tensor-operation" and WRONG[name][1] in found.message
