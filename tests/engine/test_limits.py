"""Comparisons with the limits of a type as immediates, on both engines: a code generator once took one for its wrap."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.assembly import launch


@pytest.mark.parametrize("engine", ["compiled", "traced"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sad.u64 %rd6, 18446744073709551615, %rd5, 0;", [2**64 - 1, 2**64 - 2, 1]),
        ("setp.lt.u64 %p1, 18446744073709551615, %rd5; selp.b64 %rd6, 1, 0, %p1;", [0, 0, 0]),
        ("setp.le.s64 %p1, -9223372036854775808, %rd5; selp.b64 %rd6, 1, 0, %p1;", [1, 1, 1]),
    ],
)
def test_a_limit_as_the_first_operand(text: str, expected: list[int], engine: str) -> None:
    out = np.array([0, 1, 2**64 - 2], np.uint64)
    body = f"""
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd4, %r1, 8;
        add.u64 %rd4, %rd0, %rd4;
        ld.global.b64 %rd5, [%rd4];
        {text}
        st.global.b64 [%rd4], %rd6;
        ret;
    """
    assert launch(body, out, block=3, engine=engine).findings == ()
    assert out.tolist() == expected
