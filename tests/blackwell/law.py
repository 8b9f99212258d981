"""The arithmetic of a tensor core in exact rationals, written from its description alone (MMA-Sim, arXiv 2511.10909).

Nothing here is shared with `interp`. A number is (value, exponent): the exponent counts in the alignment, and is that
of the smallest normal number for subnormals, also of types of 4 and 6 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Number = tuple[Fraction, int]
FORMATS = {
    # exponent bits, fraction bits, bias, infinity and NaN: "ieee", "nan" (all ones only) or "none"
    "f16": (5, 10, 15, "ieee"), "bf16": (8, 7, 127, "ieee"), "f32": (8, 23, 127, "ieee"), "tf32": (8, 10, 127, "ieee"),
    "e4m3": (4, 3, 7, "nan"), "e5m2": (5, 2, 15, "ieee"), "e2m3": (2, 3, 1, "none"), "e3m2": (3, 2, 3, "none"),
    "e2m1": (2, 1, 1, "none"),
}  # fmt: skip
NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


def power(e: int) -> Fraction:
    return Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)


def number(kind: str, word: int) -> Number | str:
    """The number of a word, or "nan", "inf", "-inf". tf32 words are f32 words, whose low bits are dropped."""
    exponents, fractions, bias, specials = FORMATS[kind]
    if kind == "tf32":
        word >>= 13
    sign = -1 if word >> (exponents + fractions) & 1 else 1
    field, fraction = word >> fractions & ((1 << exponents) - 1), word & ((1 << fractions) - 1)
    if specials == "ieee" and field == (1 << exponents) - 1:
        return "nan" if fraction else "-inf" if sign < 0 else "inf"
    if specials == "nan" and field == (1 << exponents) - 1 and fraction == (1 << fractions) - 1:
        return "nan"
    exponent = max(field, 1) - bias
    significand = fraction + ((1 << fractions) if field else 0)
    return sign * significand * power(exponent - fractions), exponent


def toward_zero(x: Fraction, unit: Fraction) -> Fraction:
    q = abs(x) / unit
    return (q.numerator // q.denominator) * unit * (1 if x > 0 else -1)


def largest_power(x: Fraction) -> int:
    """e with 2**e <= x < 2**(e + 1)."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if power(e) <= x else e - 1


def rounded(total: Fraction, out: str) -> int:
    """f32 toward zero, overflow to infinity; f16 to nearest even. What is or becomes zero is +0."""
    exponents, fractions, bias, _ = FORMATS[out]
    if total == 0:
        return 0
    e = max(largest_power(abs(total)), 1 - bias)
    unit = power(e - fractions)
    steps = abs(total) / unit
    whole = steps.numerator // steps.denominator
    if out == "f16":
        rest = steps - whole
        whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
    word = whole + ((e + bias - 1) << fractions)
    word = min(word, ((1 << exponents) - 1) << fractions)
    if abs(total) >= power(bias + 1):
        word = ((1 << exponents) - 1) << fractions
    return word | (1 << (exponents + fractions) if total < 0 and word else 0)


def aligned(terms: Sequence[Number], fraction: int, floor: int, out: str) -> int:
    """Each term cut to a multiple of 2**(X - F), X the largest exponent of those that are not zero; summed; rounded."""
    top = max([floor, *(e for value, e in terms if value != 0)])
    return rounded(sum((toward_zero(v, power(top - fraction)) for v, _ in terms), Fraction(0)), out)


def dot(
    a: Sequence[int], b: Sequence[int], c: int, kinds: tuple[str, str], out: str, *, scale: int = 0, lower: int = 0
) -> int:
    """One block of a kind without block scaling, or with scales of 2**scale in all: F = 25, floor -133 or -21."""
    xs, ys, z = [number(kinds[0], w) for w in a], [number(kinds[1], w) for w in b], number(out, c)
    infinite = set()
    for x, y in [*zip(xs, ys, strict=True), (z, (Fraction(1), 0))]:
        if x == "nan" or y == "nan":
            return NAN[out]
        if isinstance(x, str) or isinstance(y, str):
            if (not isinstance(x, str) and x[0] == 0) or (not isinstance(y, str) and y[0] == 0):
                return NAN[out]
            signs = [v == "-inf" if isinstance(v, str) else v[0] < 0 for v in (x, y)]
            infinite.add(signs[0] != signs[1])
    if len(infinite) == 2:
        return NAN[out]
    if infinite:
        exponents, fractions = FORMATS[out][:2]
        return ((1 << exponents) - 1) << fractions | infinite.pop() << (exponents + fractions)
    assert not isinstance(z, str)
    terms = [
        (x[0] * y[0] * power(scale), x[1] + y[1] + scale)
        for x, y in zip(xs, ys, strict=True)
        if not isinstance(x, str) and not isinstance(y, str)
    ]
    terms.append((z[0] * power(-lower), z[1] - lower))
    return aligned(terms, 25, -133 if out == "f32" else -21, out)


def grouped(a: Sequence[int], b: Sequence[int], c: int, scales: Sequence[tuple[int, int]], ue4m3: bool) -> int:
    """kind::mxf4 and mxf4nvf4: 64 (96) products of e2m1 in groups of 16, each with its two scales: F = 35, floor
    -139."""
    z = number("f32", c)
    if z == "nan":
        return NAN["f32"]
    terms = [z] if not isinstance(z, str) else []
    for g in range(len(scales)):
        total, some = Fraction(0), False
        for x, y in zip(a[16 * g : 16 * g + 16], b[16 * g : 16 * g + 16], strict=True):
            p = number("e2m1", x)[0] * number("e2m1", y)[0]  # type: ignore[operator]
            total, some = total + p, some or p != 0
        exponent = 0
        for byte in scales[g]:
            if (ue4m3 and byte & 0x7F == 0x7F) or (not ue4m3 and byte == 0xFF):
                return NAN["f32"]
            value, e = number("e4m3", byte & 0x7F) if ue4m3 else (power(byte - 127), byte - 127)  # type: ignore[misc]
            total, exponent, some = total * value, exponent + e, some and value != 0
        if some:
            terms.append((total, exponent))  # also when it cancels to zero
    if isinstance(z, str):
        return c
    top = max([-139, *(e for v, e in terms[:1] if v != 0), *(e for _, e in terms[1:])])
    return rounded(sum((toward_zero(v, power(top - 35)) for v, _ in terms), Fraction(0)), "f32")
