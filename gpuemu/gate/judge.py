"""Compares one output with the FP64 reference under a bound. Classes first (NaN, +-Inf), then magnitudes.

For each element with exact value r, bound b (error before the final rounding) and result g:

    r NaN          g must be NaN
    r = +-Inf      g must be that infinity
    b not finite   not judged (the model says so); counted, and an output with nothing judged is not "checked"
    r finite       |g - r| <= b + half ulp of the output's format at |r| + b. An infinite g is right where |r| + b
                   reaches the format's overflow threshold, and required where |r| - b does.

An integer output is compared as integers where the reference gives integers, with |g - r| <= b otherwise.

An output in an 8-bit format saturates: a larger reference, an infinite one too, stands for the largest finite value.

The FP64 reference has rounding of its own, which differs between CPUs in the last bits; it is at most about 2**-29 of
any bound here. An excess within MARGIN of the bound is therefore 'borderline': reported, not a finding. Within
THRESHOLD_MARGIN of the overflow threshold both an infinity and the largest finite value are right.

An element that still holds a NaN poison of before the launch was not written, whatever the reference says: no result of
a modelled instruction and no generated input is that NaN. A finite poison counts only where it is wrong
(`gate/poison.py`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.dtypes import F64, FORMATS, quantum, to_float64
from gpuemu.gate.poison import Poison, holds

MARGIN = 2.0**-20
THRESHOLD_MARGIN = 2.0**-30


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of one output. `index` is the worst element; `got`, `expected`, `allowed` are its values."""

    output: str
    elements: int
    judged: int
    wrong: int
    borderline: int
    kind: str | None
    index: tuple[int, ...] | None
    got: str | None
    expected: str | None
    error: float | None
    allowed: float | None
    worst_ratio: float
    """Largest |error| / allowed over finite elements: how much of the bound was used."""
    dtype: str = ""
    ulps: float | None = None
    """Error of the worst element in units in the last place of the output's format at the reference; None for
    integers."""
    share: float = 0.0
    """Largest (|error| - half a unit in the last place) / bound: how much of the error model was used, the final
    rounding aside."""

    def words(self) -> str:
        """The finding in words, without location."""
        if self.kind is None or self.index is None:
            return f"{self.output}: {self.judged} elements within the bound (at most {self.worst_ratio:.2g} of it)"
        place = f"{self.output}[{', '.join(map(str, self.index))}]"
        share = f"{self.wrong} of {self.elements} elements wrong"
        if self.kind == "unwritten":
            return f"{place} was never written; {share}"
        if self.kind == "non-finite" or self.error is None:
            return f"{place} is {self.got}, expected {self.expected}; {share}"
        ulps = "" if self.ulps is None else f" = {self.ulps:.3g} ulp of {self.dtype}"
        return (
            f"{place} is {self.got}, expected {self.expected}: error {self.error:.3g}{ulps}, "
            f"allowed {self.allowed:.3g} ({self.ratio_words()} the bound); {share}"
        )

    def ratio_words(self) -> str:
        """The error in units of the bound."""
        if self.error is None or not self.allowed:
            return "no error is allowed, infinitely many times"
        return f"{self.error / self.allowed:.3g} times"


def compare(
    output: str,
    got: NDArray[Any],
    dtype: str,
    exact: F64,
    bound: F64,
    poison: Poison | None = None,
    whole: NDArray[Any] | None = None,
) -> Comparison:
    """Judge one output. `got`: array of the output's dtype; `exact`, `bound`: float64 of the same shape; `poison`: what
    it held before the launch, if that was a poison; `whole`: the reference of an integer output as integers of its
    dtype, since float64 holds them only up to 2**53."""
    held = holds(got, poison) if poison is not None else np.zeros(got.shape, np.bool_)
    if dtype in FORMATS:
        form = FORMATS[dtype]
        if form.saturates:
            exact = np.clip(exact, -form.largest, form.largest)
        value = to_float64(np.ascontiguousarray(got))
        with np.errstate(invalid="ignore", over="ignore"):
            reach = np.abs(exact) + bound
            spacing = quantum(np.where(np.isfinite(reach), np.minimum(reach, form.largest), 0.0), form)
            half = spacing / 2
            allowed = bound + half
            error = np.abs(value - exact)
        overflow = form.overflow
    else:
        value = to_float64(np.ascontiguousarray(got))
        allowed, error, overflow, half = bound, np.abs(value - exact), np.inf, np.zeros(())
        if whole is not None:
            error = np.where(got == whole, 0.0, np.maximum(error, 1.0))
    finite = np.isfinite(exact)
    judged = ~finite | np.isfinite(bound)
    nan_right = np.isnan(exact) & np.isnan(value)
    inf_right = np.isinf(exact) & (value == exact)
    with np.errstate(invalid="ignore"):
        may_overflow = np.abs(exact) + bound >= overflow * (1 - THRESHOLD_MARGIN)
        must_overflow = np.abs(exact) - bound >= overflow * (1 + THRESHOLD_MARGIN)
        overflow_right = np.isinf(value) & may_overflow & (np.sign(value) == np.sign(exact))
        within = np.isfinite(value) & ~must_overflow & (error <= allowed)
        near = np.isfinite(value) & ~must_overflow & finite & (error > allowed) & (error <= allowed * (1 + MARGIN))
    right = nan_right | inf_right | (finite & (overflow_right | within))
    wrong = judged & ~right & ~near
    if poison is not None and poison.certain:
        wrong = wrong | held
    held = held & wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, error / allowed)
        used = np.where((error <= half) | (bound == 0), 0.0, (error - half) / bound)
    measured = finite & np.isfinite(value) & judged & ~np.isnan(ratio)
    count = int(wrong.sum())
    common: dict[str, Any] = {
        "output": output,
        "elements": int(got.size),
        "judged": int(judged.sum()),
        "wrong": count,
        "borderline": int((near & judged & ~held).sum()),
        "worst_ratio": float(ratio[measured].max()) if measured.any() else 0.0,
        "share": float(used[measured & right].max(initial=0.0)),
        "dtype": dtype,
    }
    if not count:
        return Comparison(
            **common, kind=None, index=None, got=None, expected=None, error=None, allowed=None
        )  # fmt: skip
    # Rank: never written, then wrong class, then the largest share of the bound; the first of equals.
    class_wrong = wrong & ~(finite & np.isfinite(value) & ~must_overflow)
    rank = np.where(held, np.inf, np.where(class_wrong, 1e300, np.where(measured, np.minimum(ratio, 1e299), 1e300)))
    flat = int(np.argmax(np.where(wrong, rank, -1.0)))
    place = tuple(int(i) for i in np.unravel_index(flat, got.shape))
    kind = "unwritten" if held[place] else "non-finite" if class_wrong[place] else "wrong-value"
    plain = kind == "wrong-value"
    return Comparison(
        **common,
        kind=kind,
        index=place,
        got=format_value(float(value[place])),
        expected=format_value(float(exact[place])),
        error=float(error[place]) if plain else None,
        allowed=float(allowed[place]) if plain else None,
        ulps=float(error[place] / quantum(exact[place], FORMATS[dtype])) if plain and dtype in FORMATS else None,
    )


def format_value(value: float) -> str:
    """A float with 9 significant digits."""
    return f"{value:.9g}"
