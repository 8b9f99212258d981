"""What an instruction should return, on words as Python integers: the judge's side of `test_ptx_tests.py`.

Independent of the emulator: exact integer arithmetic, and the double-precision functions of Python's `math` where only
an error bound is tested. A finite number is an integer at scale 2**-149 (`SCALE`), the smallest f32.

Stricter than the suite's own functions in three points: `fma` must be exact (there: within one unit), zeros must have
the right sign, and what `.ftz` flushes is judged as an H200 does (`_tiny`).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

SCALE = 149
NAN = 0x7FFF_FFFF
SIGN = 0x8000_0000
ONE = 0x3F80_0000


@dataclass(frozen=True)
class Format:
    """An IEEE format: bits of the significand with the leading one, exponent of the smallest normal number, width.
    `largest`: the word of the largest finite number where that is not the one below infinity (e4m3 has none)."""

    precision: int
    least: int
    bits: int
    largest: int | None = None

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1

    @property
    def infinity(self) -> int:
        """What comes after the largest finite number."""
        return self.largest + 1 if self.largest else self.sign - (1 << self.precision - 1)

    def is_nan(self, word: int) -> bool:
        magnitude = word & self.sign - 1
        return magnitude == self.sign - 1 if self.largest else magnitude > self.infinity

    def is_infinite(self, word: int) -> bool:
        return not self.largest and word & self.sign - 1 == self.infinity

    def is_subnormal(self, word: int) -> bool:
        return 0 < word & self.sign - 1 < 1 << self.precision - 1

    def number(self, word: int) -> int:
        """The value of a finite word at scale 2**-SCALE."""
        magnitude = word & self.sign - 1
        exponent, fraction = magnitude >> self.precision - 1, magnitude & (1 << self.precision - 1) - 1
        if exponent:
            fraction |= 1 << self.precision - 1
        shift = max(exponent, 1) - 1 + self.least - (self.precision - 1) + SCALE
        value = fraction << shift
        return -value if word & self.sign else value

    def same(self, expected: int, word: int) -> bool:
        """Equal words; any NaN is as good as any other."""
        return expected == word or self.is_nan(expected) and self.is_nan(word)


F16, F32, F64 = Format(11, -14, 16), Format(24, -126, 32), Format(53, -1022, 64)
E4M3, E5M2 = Format(4, -6, 8, 0x7E), Format(3, -14, 8)
FORMATS = {"f16": F16, "f32": F32, "f64": F64, "e4m3": E4M3, "e5m2": E5M2}


def signed(word: int, bits: int) -> int:
    return word - (1 << bits) if word >> bits - 1 else word


def integer(word: int, type: str) -> int:
    """The number that a word of an integer type stands for."""
    return signed(word, int(type[1:])) if type[0] == "s" else word


def limits(type: str) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    n = int(type[1:])
    return (-(1 << n - 1), (1 << n - 1) - 1) if type[0] == "s" else (0, (1 << n) - 1)


def clamp(value: int, type: str) -> int:
    least, largest = limits(type)
    return min(max(value, least), largest)


def as_float(word: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", word))[0])


def rounded(value: int, scale: int, to: Format, mode: str, negative: bool, sticky: bool = False) -> int:
    """The word nearest to |value| * 2**-scale in the direction of `mode` (rn, rz, rm, rp), with the sign `negative`.

    `sticky`: the exact number is larger than |value| by less than one unit; the caller keeps enough bits for that."""
    value = abs(value)
    exponent = max(value.bit_length() - 1 - scale, to.least)
    drop = exponent - (to.precision - 1) + scale
    kept = value >> drop if drop > 0 else value << -drop
    rest, half = (value - (kept << drop), 1 << drop - 1) if drop > 0 else (0, 1)
    nearest = rest > half or rest == half and bool(sticky or kept & 1)
    away = {"rn": nearest, "rz": False, "rm": negative, "rp": not negative}[mode] and bool(rest or sticky)
    word = (exponent - to.least << to.precision - 1) + kept + away
    finite = to.largest or to.infinity - 1
    if word > finite:
        outward = mode == "rn" or mode == ("rm" if negative else "rp")
        word = to.infinity if outward else finite
    return word | to.sign if negative else word


def flushed(word: int, ftz: bool = True, format: Format = F32) -> int:
    return word & format.sign if ftz and format.is_subnormal(word) else word


def saturated(word: int, format: Format = F32) -> int:
    """`.sat`: to [+0, 1], a NaN to +0."""
    one = (1 - format.least) << format.precision - 1
    if format.is_nan(word) or word & format.sign:
        return 0
    return min(word, one)


def fma(a: int, b: int, c: int | None, mode: str, ftz: bool, sat: bool) -> int:
    """a * b + c in f32; the product alone where c is None."""
    words = [flushed(w, ftz) for w in (a, b, *(() if c is None else (c,)))]
    word = _fma(*words, mode=mode, ftz=ftz)
    return saturated(word) if sat else word


def _fma(a: int, b: int, c: int | None = None, *, mode: str, ftz: bool) -> int:
    sign = (a ^ b) & SIGN
    if any(F32.is_nan(w) for w in (a, b, 0 if c is None else c)):
        return NAN
    if F32.is_infinite(a) or F32.is_infinite(b):
        if not a & ~SIGN or not b & ~SIGN or c is not None and F32.is_infinite(c) and c & SIGN != sign:
            return NAN
        return F32.infinity | sign
    if c is not None and F32.is_infinite(c):
        return c
    value = F32.number(a) * F32.number(b)
    if c is not None:
        value += F32.number(c) << SCALE
    if value == 0:
        exact_zero = c is None or not c & ~SIGN and c & SIGN == sign
        return sign if exact_zero else SIGN if mode == "rm" else 0
    if ftz and _tiny(value, mode):
        return SIGN if value < 0 else 0
    return rounded(value, 2 * SCALE, F32, mode, value < 0)


def _tiny(value: int, mode: str) -> bool:
    """Whether a number at scale 2**(-2 * SCALE) counts as subnormal: below the smallest normal number after rounding
    as if the exponent had no end. So an H200 judges; the suite's own functions judge before rounding or on the
    subnormal grid, which differs on about one in 2**32 of its inputs."""
    unbounded = Format(F32.precision, -2 * SCALE, 64)
    word = rounded(value, 2 * SCALE, unbounded, mode, value < 0) & ~unbounded.sign
    return word >> F32.precision - 1 < F32.least - unbounded.least + 1


def divided(a: int, b: int, mode: str, ftz: bool) -> int:
    """a / b in f32; `.ftz` looks at the exact quotient."""
    a, b = flushed(a, ftz), flushed(b, ftz)
    sign = (a ^ b) & SIGN
    if F32.is_nan(a) or F32.is_nan(b) or F32.is_infinite(a) and F32.is_infinite(b) or not (a | b) & ~SIGN:
        return NAN
    if F32.is_infinite(a) or not b & ~SIGN:
        return F32.infinity | sign
    if F32.is_infinite(b) or not a & ~SIGN:
        return sign
    scale = 600
    quotient, rest = divmod(abs(F32.number(a)) << scale, abs(F32.number(b)))
    if ftz and quotient.bit_length() - 1 - scale < F32.least:
        return sign
    return rounded(quotient, scale, F32, mode, bool(sign), rest != 0)


def square_root(a: int, mode: str, ftz: bool) -> int:
    a = flushed(a, ftz)
    if not a & ~SIGN:
        return a
    if F32.is_nan(a) or a & SIGN:
        return NAN
    if F32.is_infinite(a):
        return a
    scale = 300
    square = F32.number(a) << 2 * scale - SCALE
    root = math.isqrt(square)
    return rounded(root, scale, F32, mode, False, root * root != square)


def to_integral(value: int, mode: str) -> int:
    """A number at scale 2**-SCALE as an integer, rounded as `rni`, `rzi`, `rmi` or `rpi` say."""
    unit = 1 << SCALE
    below, rest = divmod(value, unit)
    if mode == "rni":
        return below + (rest * 2 > unit or rest * 2 == unit and below & 1)
    up = {"rzi": value < 0, "rmi": False, "rpi": True}[mode] and rest != 0
    return below + up


def converted(word: int, source: str, target: str, rounding: str, ftz: bool, sat: bool) -> int | None:
    """`cvt`. `rounding` may be empty. None where the suite accepts any result: an integer of a NaN."""
    if source in FORMATS:
        word = flushed(word, ftz and source == "f32" and target != "f16")
    if target not in FORMATS:
        return _to_integer(word, source, target, rounding, sat)
    to = FORMATS[target]
    if source not in FORMATS:
        value = integer(word, source)
        result = rounded(value, 0, to, rounding or "rn", value < 0) if value else 0
    else:
        result = float_to_float(word, FORMATS[source], to, rounding)
    result = flushed(result, ftz and target == "f32", to)
    return saturated(result, to) if sat else result


def float_to_float(word: int, source: Format, to: Format, rounding: str) -> int:
    """`cvt` between float formats, without flushing; `rounding`: empty where the target is no narrower."""
    negative = bool(word & source.sign)
    sign = to.sign if negative else 0
    if source.is_nan(word):
        return to.sign - 1
    if source.is_infinite(word):
        return to.infinity | sign
    value, scale = source.number(word), SCALE
    if rounding.endswith("i"):
        value, scale, rounding = to_integral(value, rounding), 0, "rn"
    return rounded(value, scale, to, rounding or "rn", negative) if value else sign


def _to_integer(word: int, source: str, target: str, rounding: str, sat: bool) -> int | None:
    bits = int(target[1:])
    if source not in FORMATS:
        value = integer(word, source)
        return (clamp(value, target) if sat else value) % (1 << bits)
    format = FORMATS[source]
    if format.is_nan(word):
        return None
    if format.is_infinite(word):
        return limits(target)[0 if word & format.sign else 1] % (1 << bits)
    return clamp(to_integral(format.number(word), rounding), target) % (1 << bits)


def to_tiny(word: int, target: str) -> int:
    """f32 to an 8-bit float with `.satfinite`."""
    to = FORMATS[target]
    finite = to.largest or to.infinity - 1
    if F32.is_nan(word):
        return to.sign - 1
    negative = bool(word & SIGN)
    sign = to.sign if negative else 0
    if F32.is_infinite(word):
        return finite | sign
    if not (value := F32.number(word)):
        return sign
    result = rounded(value, SCALE, to, "rn", negative)
    return min(result & ~sign, finite) | sign


def ordered(word: int) -> int:
    """f16 words in the order of their numbers, -0 before +0."""
    return -(word & 0x7FFF) - 1 if word & 0x8000 else word


def least_or_largest(a: int, b: int, largest: bool, nan: bool, ftz: bool) -> int:
    """min and max of f16."""
    a, b = flushed(a, ftz, F16), flushed(b, ftz, F16)
    if F16.is_nan(a) or F16.is_nan(b):
        if nan or F16.is_nan(a) and F16.is_nan(b):
            return 0x7FFF
        return b if F16.is_nan(a) else a
    return (max if largest else min)(a, b, key=ordered)


def _place(position: int, length: int, bits: int) -> tuple[int, int]:
    """32-bit forms look at the low bytes of position and length, 64-bit forms at all of them (found on hardware by
    the authors of the suite); beyond twice the width nothing changes any more."""
    if bits == 32:
        position, length = position & 0xFF, length & 0xFF
    return min(position, 2 * bits), min(length, 2 * bits)


def field(value: int, position: int, length: int, bits: int, is_signed: bool) -> int:
    """`bfe`: a field of a word, behind it zeros or its sign."""
    position, length = _place(position, length, bits)
    number = signed(value, bits) if is_signed else value
    if length == 0:
        return 0
    last = min(position + length - 1, bits - 1)
    fill = -(value >> last & 1) if is_signed else 0
    kept = max(min(length, bits - position), 0)
    return ((number >> position) & (1 << kept) - 1 | fill << kept) % (1 << bits)


def inserted(a: int, b: int, position: int, length: int, bits: int) -> int:
    """`bfi`: low bits of a into b."""
    position, length = _place(position, length, bits)
    mask = ((1 << length) - 1 << position) % (1 << bits)
    return b & ~mask | a << position & mask


SELECTED = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""Bytes that the modes of `prmt` take, lowest first, by the two low bits of the selector (the manual's table)."""


def permuted(a: int, b: int, selector: int, mode: str) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    if mode:
        return int.from_bytes(bytes(source[i] for i in SELECTED[mode][selector & 3]), "little")
    nibbles = [selector >> 4 * i & 0xF for i in range(4)]
    parts = [source[n & 7] if n < 8 else 0xFF * (source[n & 7] >> 7) for n in nibbles]
    return int.from_bytes(bytes(parts), "little")


def compared(comparison: str, a: float, b: float) -> bool:
    """The comparison operators of `set`, of numbers; the unsigned and the unordered names, too."""
    nan = a != a or b != b
    if comparison in ("num", "nan"):
        return nan == (comparison == "nan")
    if len(comparison) == 3:
        return nan or compared(comparison[:2], a, b)
    name = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(comparison, comparison)
    results = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    return not nan and results[name]


def dot(a: int, b: int, c: int, a_signed: bool, b_signed: bool, half: str) -> int:
    """`dp4a`, or with a half `dp2a`."""
    bits = 16 if half else 8
    first = [a >> i & (1 << bits) - 1 for i in range(0, 32, bits)]
    second = [b >> i & 0xFF for i in range(0, 32, 8)]
    if half:
        second = second[2:] if half == "hi" else second[:2]
    first = [signed(x, bits) for x in first] if a_signed else first
    second = [signed(x, 8) for x in second] if b_signed else second
    return (c + sum(x * y for x, y in zip(first, second, strict=True))) % (1 << 32)
