"""Extended-precision arithmetic: chains of instructions that pass a carry on, against Python's integers."""

from __future__ import annotations

import numpy as np

from tests.engine.assembly import launch

LOAD = """
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd2, %r0, 32, %rd2;
        ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd2];
        ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd2+16];
"""
STORE = """
        mad.wide.u32 %rd1, %r0, 16, %rd0;
        st.global.v4.u32 [%rd1], {%r30, %r31, %r32, %r33};
        ret;
"""
ENDS = [0, 1, 2**32 - 1, 2**32, 2**64 - 1, 2**96, 2**128 - 1]


def _run(body: str) -> list[tuple[int, int, int]]:
    """(a, b, result) of 128-bit numbers, a pair a thread."""
    random = np.random.default_rng(1)
    pairs = [(a, b) for a in ENDS for b in ENDS]
    pairs += [tuple(int.from_bytes(random.bytes(16), "little") for _ in range(2)) for _ in range(47)]  # type: ignore[misc]
    source = np.frombuffer(b"".join(n.to_bytes(16, "little") for pair in pairs for n in pair), np.uint32).copy()
    out = np.zeros(4 * len(pairs), np.uint32)
    assert launch(LOAD + body + STORE, out, source, block=len(pairs)).findings == ()
    results = [int.from_bytes(row.tobytes(), "little") for row in out.reshape(-1, 4)]
    return [(a, b, r) for (a, b), r in zip(pairs, results, strict=True)]


def test_128_bit_sum() -> None:
    body = """
        add.cc.u32 %r30, %r10, %r20;
        addc.cc.u32 %r31, %r11, %r21;
        addc.cc.u32 %r32, %r12, %r22;
        addc.u32 %r33, %r13, %r23;
    """
    assert all(r == (a + b) % 2**128 for a, b, r in _run(body))


def test_128_bit_difference_in_words_of_64_bits() -> None:
    body = """
        mov.b64 %rd4, {%r10, %r11};
        mov.b64 %rd5, {%r12, %r13};
        mov.b64 %rd6, {%r20, %r21};
        mov.b64 %rd7, {%r22, %r23};
        sub.cc.u64 %rd8, %rd4, %rd6;
        subc.s64 %rd9, %rd5, %rd7;
        mov.b64 {%r30, %r31}, %rd8;
        mov.b64 {%r32, %r33}, %rd9;
    """
    assert all(r == (a - b) % 2**128 for a, b, r in _run(body))


def test_product_of_64_bit_numbers() -> None:
    """Schoolbook: low words of a and b, the 128-bit product."""
    body = """
        mul.lo.u32 %r30, %r10, %r20;
        mul.hi.u32 %r31, %r10, %r20;
        mad.lo.cc.u32 %r31, %r10, %r21, %r31;
        madc.hi.u32 %r32, %r10, %r21, 0;
        mad.lo.cc.u32 %r31, %r11, %r20, %r31;
        madc.hi.cc.u32 %r32, %r11, %r20, %r32;
        addc.u32 %r33, 0, 0;
        mad.lo.cc.u32 %r32, %r11, %r21, %r32;
        madc.hi.u32 %r33, %r11, %r21, %r33;
    """
    assert all(r == (a % 2**64) * (b % 2**64) for a, b, r in _run(body))


def test_carry_outlives_branches_and_guards() -> None:
    """The flag is each lane's own, kept by lanes that are elsewhere and by instructions whose guard is false."""
    body = """
        add.cc.u32 %r30, %r10, %r20;
        setp.lt.u32 %p1, %r0, 40;
        @!%p1 bra JOIN;
        add.cc.u32 %r40, 0xFFFFFFFF, 1;
    JOIN:
        setp.eq.u32 %p2, %r0, 50;
        @%p2 add.cc.u32 %r40, 0, 0;
        addc.u32 %r31, 0, 0;
        mov.u32 %r32, 0;
        mov.u32 %r33, 0;
    """
    for i, (a, b, r) in enumerate(_run(body)):
        carry = 1 if i < 40 else 0 if i == 50 else (a % 2**32 + b % 2**32) >> 32
        assert r == (a + b) % 2**32 + (carry << 32)


def test_subtractions_and_additions_share_the_flag() -> None:
    """After a subtraction the flag says that nothing was borrowed, as an H200 has it."""
    body = """
        sub.cc.u32 %r30, %r10, %r20;
        addc.u32 %r31, 0, 0;
        add.cc.u32 %r32, %r10, %r20;
        subc.u32 %r33, 0, 0;
    """
    for a, b, r in _run(body):
        low_a, low_b = a % 2**32, b % 2**32
        words = [r >> 32 * i & 0xFFFFFFFF for i in range(4)]
        carry = low_a + low_b >= 2**32
        expected = [(low_a - low_b) % 2**32, int(low_a >= low_b), (low_a + low_b) % 2**32, 0 if carry else 0xFFFFFFFF]
        assert words == expected
