"""Zero-column masks and column shifts of `tcgen05.mma.ws`: the manual's examples, and products with columns of
zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from interp.runtime.tcgen05_rules import is_masked
from tests.blackwell.tcgen05_ptx import LANES, Product
from tests.blackwell.test_mma import descriptor, in_shared, lanes_of, result_words, whole


@dataclass(frozen=True)
class Mask:
    """Fields of a zero-column mask descriptor; counts are the fields, one less than the columns."""

    skip: int
    use: int
    start: tuple[int, ...] = (0, 0, 0, 0)
    first: tuple[int, ...] = (0, 0, 0, 0)
    on: bool = True
    shift: int = 0

    def word(self) -> int:
        bits = sum(s << 8 * i | f << (32 + i) for i, (s, f) in enumerate(zip(self.start, self.first, strict=True)))
        return bits | self.on << 39 | self.skip << 40 | self.use << 48 | self.shift << 56

    def columns(self, m: int, n: int) -> str:
        """A character a column, 1 for zeros, piece by piece."""
        out = ""
        for part in range(LANES // m):
            spans = ["0" * (self.use + 1), "1" * (self.skip + 1)]
            pattern = "".join(spans[::-1] if self.first[part] else spans) * n
            out += pattern[self.start[part] :][: n * m // LANES]
        return out if self.on else "0" * n


EXAMPLES = [
    (128, Mask(4, 3, on=False), ["0" * 128]),
    (128, Mask(2, 3), ["0000111" * 3]),
    (64, Mask(2, 3, first=(1, 0, 0, 0)), ["111" + "0000111" * 2, "0000111" * 2]),
    (32, Mask(2, 3, (0, 1, 2, 1), (1, 1, 0, 0), shift=2), ["1110000111", "110000111", "00111", "000111"]),
]
"""The manual's four examples, lowest column first."""


@pytest.mark.parametrize(("m", "mask", "pieces"), EXAMPLES)
def test_examples_of_the_manual(m: int, mask: Mask, pieces: list[str]) -> None:
    n = 128
    got = "".join(str(int(is_masked(mask.word(), m, n * m // LANES, j))) for j in range(n))
    for part, piece in enumerate(pieces):
        assert got[part * n * m // LANES :].startswith(piece)
    assert got == mask.columns(m, n)


@pytest.mark.parametrize(("m", "transposed"), [(128, False), (64, True), (32, False)])
def test_products(m: int, transposed: bool) -> None:
    n, shift = 64, 5
    types = ("f32", "f16", "f16")
    (wa, va), (wb, vb) = whole("f16", 1, m), whole("f16", 2, n + 8)
    mask = Mask(2, 6, (1, 4, 0, 8), (0, 1, 1, 0), shift=shift)
    c = result_words(np.random.default_rng(3).integers(-8, 8, (LANES, n)), "f32")
    got = Product(
        "tcgen05.mma.ws.cta_group::1.kind::f16", descriptor(m, n, types, tb=transposed, more=1 << 30),
        in_shared(wa, "f16"), in_shared(wb, "f16", 64, transposed), c, tail=", %p9",
        before=f"mov.u64 %p9, {mask.word():#x};",
    ).run()  # fmt: skip
    lane, column = lanes_of(m, n, stationary=True)
    used = np.array([x == "0" for x in mask.columns(m, n)])
    assert 0 < used.sum() < n
    expected = c.copy()
    values = c.view(np.float32)[lane, column] + (va @ vb[shift : shift + n].T) * used
    expected[lane, column] = result_words(values, "f32")
    np.testing.assert_array_equal(got, expected)
