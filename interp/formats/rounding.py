"""The one rounding core: exact numbers as (sign, exponent, significand) to words of any binary format, and back.

An exact number is sign * significand * 2**exponent with a 64-bit significand, whose lowest bit may be "sticky": set
when something non-zero was cut off below it. With at least two bits more than the target's precision above the sticky
bit, rounding is exact.

A format is given by precision p (bits of the significand, hidden bit included), emin and emax (exponents of the
smallest and largest normal number). Words have the IEEE layout: exponent field of value - emin + 1, all ones for Inf
and NaN.

Modes are those of PTX: RN nearest-even, RZ toward zero, RM toward -Inf, RP toward +Inf, RNA nearest with ties away.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.runtime.raw import leading_bit, native_inline

Word = Any

RN, RZ, RM, RP, RNA = 0, 1, 2, 3, 4
MODES = {"rn": RN, "rz": RZ, "rm": RM, "rp": RP, "rna": RNA, "rni": RN, "rzi": RZ, "rmi": RM, "rpi": RP}
"""PTX rounding modifier -> mode."""


@native_inline
def rounds_up(sign: Word, odd: Word, above_half: Word, half: Word, inexact: Word, mode: int) -> Word:
    """Whether a magnitude grows by one unit: `half` is the first dropped bit, `above_half` whether any later one is
    set."""
    nearest = half & (above_half | odd)
    away = half
    directed = inexact & (1 - sign) if mode == RP else inexact & sign
    up = nearest if mode == RN else (away if mode == RNA else directed)
    return 0 if mode == RZ else up


@native_inline
def shift_round(sign: Word, significand: Word, drop: Word, mode: int) -> Word:
    """significand * 2**-drop rounded to an integer, as uint64; drop >= 0, any size."""
    sig = np.uint64(significand)
    d = np.uint64(drop if drop < 63 else 63)
    kept = sig >> d if drop < 64 else np.uint64(0)
    rest = sig & ((np.uint64(1) << d) - np.uint64(1)) if drop < 64 else sig
    middle = (np.uint64(1) << d) >> np.uint64(1)
    # beyond 64 dropped bits everything is below half a unit
    half = 1 if (drop > 0) & (drop <= 63) & ((rest & middle) != np.uint64(0)) else 0
    if drop == 64:
        half = 1 if (sig >> np.uint64(63)) != np.uint64(0) else 0
        rest = sig
        middle = np.uint64(1) << np.uint64(63)
    lower = middle - np.uint64(1) if middle != np.uint64(0) else middle  # no wrap: plain Python warns
    above = 1 if (rest & lower) != np.uint64(0) else 0
    if drop > 64:
        half = 0
        above = 1 if sig != np.uint64(0) else 0
    inexact = half | above
    odd = np.int64(kept & np.uint64(1))
    return kept + np.uint64(rounds_up(sign, odd, above, half, inexact, mode))


@native_inline
def round_pack(sign: Word, exponent: Word, significand: Word, precision: int, emin: int, emax: int, mode: int) -> Word:
    """Magnitude word (no sign bit) of the number in a format, as uint64; overflow gives Inf or the largest finite
    number by mode."""
    sig = np.uint64(significand)
    top = exponent + leading_bit(sig)
    lowest = emin - (precision - 1)
    quantum = top - (precision - 1)
    quantum = lowest if quantum < lowest else quantum
    drop = quantum - exponent
    exact = sig << np.uint64(0 if drop > 0 else (-drop if drop > -64 else 63))
    kept = shift_round(sign, sig, drop, mode) if drop > 0 else exact
    word = (np.uint64(quantum - lowest) << np.uint64(precision - 1)) + kept
    inf = np.uint64(emax - emin + 2) << np.uint64(precision - 1)
    toward = (mode == RZ) | ((mode == RM) & (sign == 0)) | ((mode == RP) & (sign != 0))
    limit = inf - np.uint64(1) if toward else inf
    word = limit if word >= inf else word
    return word if sig != np.uint64(0) else np.uint64(0)


@native_inline
def significand_of(word: Word, precision: int) -> Word:
    """Significand of a finite word without its sign bit, hidden bit included, as uint64."""
    w = np.uint64(word)
    fraction = w & ((np.uint64(1) << np.uint64(precision - 1)) - np.uint64(1))
    hidden = np.uint64(1) << np.uint64(precision - 1)
    return fraction | hidden if (w >> np.uint64(precision - 1)) != np.uint64(0) else fraction


@native_inline
def exponent_of(word: Word, precision: int, emin: int) -> Word:
    """Exponent of a finite word's last significand bit, as int64; the word comes without its sign bit."""
    field = np.int64(np.uint64(word) >> np.uint64(precision - 1))
    field = field if field > 1 else np.int64(1)
    return field - 1 + emin - (precision - 1)


@native_inline
def normalise(significand: Word, position: int) -> Word:
    """The significand shifted so that its leading bit is at `position` (it must not be above); 0 stays 0."""
    sig = np.uint64(significand)
    up = position - leading_bit(sig)
    return sig << np.uint64(up if up < 63 else 63)


@native_inline
def shift_sticky(significand: Word, drop: Word) -> Word:
    """significand >> drop with everything that falls off kept as a sticky lowest bit; drop >= 0."""
    sig = np.uint64(significand)
    d = np.uint64(drop if drop < 63 else 63)
    kept = sig >> d
    lost = sig & ((np.uint64(1) << d) - np.uint64(1))
    return kept | np.uint64(1 if lost != np.uint64(0) else 0)
