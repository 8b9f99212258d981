"""The number formats that a sweep knows, described by their parameters.

A value of a format is handled as a float64 (each format here is a subset of float64, so nothing is lost) and its
bytes as unsigned words. `quantise` rounds by integer steps on the exponent (`frexp`, `rint`, `ldexp` are exact and the
same on every CPU), so that inputs never depend on a library's conversion.

Source: IEEE 754-2019 for binary16/32; bfloat16 as in PTX (binary32 truncated to 8 significand bits, subnormals kept);
the 8-bit formats: "FP8 Formats for Deep Learning" (arXiv 2209.05433) and PTX ISA, `cvt` (conversions to them are always
`.satfinite`: what is too large, an infinity included, becomes the largest finite value).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.errors import InvalidInput

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format with subnormals and NaN; with infinities unless it is `finite`.

    `precision`: significand bits with the hidden one. `emin`, `emax`: exponents of the smallest normal and of the
    largest finite binade. `word`: the numpy name of the unsigned word that holds it. `finite`: all bits one is the NaN
    and there is no infinity, so the largest binade ends one value earlier. `saturates`: conversions to it clamp.
    """

    name: str
    short: str
    precision: int
    emin: int
    emax: int
    word: str
    finite: bool = False
    saturates: bool = False

    @property
    def unit(self) -> float:
        """Unit roundoff u of round-to-nearest: 2**-precision."""
        return 2.0**-self.precision

    @property
    def largest(self) -> float:
        missing = 2 if self.finite else 1
        return (2.0 - missing * 2.0 ** (1 - self.precision)) * 2.0**self.emax

    @property
    def smallest_normal(self) -> float:
        return 2.0**self.emin

    @property
    def smallest(self) -> float:
        """The smallest subnormal."""
        return 2.0 ** (self.emin - self.precision + 1)

    @property
    def overflow(self) -> float:
        """Magnitudes from here on round to infinity (round to nearest, ties to even); infinity where none do."""
        return float("inf") if self.saturates else (2.0 - 2.0**-self.precision) * 2.0**self.emax

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy (or ml_dtypes) dtype."""
        if self.name.startswith(("bfloat16", "float8")):
            import ml_dtypes

            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.name))
            return found
        return np.dtype(self.name)

    @property
    def itemsize(self) -> int:
        return np.dtype(self.word).itemsize


FORMATS: dict[str, FloatFormat] = {
    f.name: f
    for f in (
        FloatFormat("float16", "f16", 11, -14, 15, "uint16"),
        FloatFormat("bfloat16", "bf16", 8, -126, 127, "uint16"),
        FloatFormat("float32", "f32", 24, -126, 127, "uint32"),
        FloatFormat("float64", "f64", 53, -1022, 1023, "uint64"),
        FloatFormat("float8_e4m3fn", "e4m3", 4, -6, 8, "uint8", finite=True, saturates=True),
        FloatFormat("float8_e5m2", "e5m2", 3, -14, 15, "uint8", saturates=True),
    )
}

INTEGERS: dict[str, str] = {
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i1",
}  # fmt: skip

_SHORT = {f.short: f.name for f in FORMATS.values()} | {short: name for name, short in INTEGERS.items()}


def dtype_name(text: str) -> str:
    """The full name of a dtype given in full ('float16') or short ('f16').

    Raises InvalidInput for a name that is neither.
    """
    name = _SHORT.get(text, text)
    if name not in FORMATS and name not in INTEGERS:
        known = ", ".join([*FORMATS, *INTEGERS])
        raise InvalidInput(f"unknown dtype '{text}'", help=f"known dtypes: {known}, and short forms such as f16, i32")
    return name


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a dtype name."""
    name = dtype_name(name)
    return FORMATS[name].numpy if name in FORMATS else np.dtype(name)


def name_of(dtype: Any) -> str:
    """The name of a numpy (or ml_dtypes) dtype."""
    return str(np.dtype(dtype).name)


def quantum(values: F64, form: FloatFormat) -> F64:
    """The spacing of `form` at each |value| (finite values; the spacing of the largest binade beyond it)."""
    _, exponent = np.frexp(values)
    exponent = np.where(values == 0, form.emin, np.clip(exponent - 1, form.emin, form.emax))
    return np.ldexp(1.0, (exponent - form.precision + 1).astype(np.int32))


def quantise(values: F64, form: FloatFormat) -> F64:
    """`values` rounded to `form` (nearest, ties to even), still as float64.

    Overflow goes to infinity, or in a format that saturates to the largest finite value (an infinity too).
    """
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    safe = np.where(finite, values, 0.0)
    step = quantum(safe, form)
    rounded = np.rint(safe / step) * step
    over = form.largest if form.saturates else np.inf
    rounded = np.where(np.abs(rounded) > form.largest, np.copysign(over, safe), rounded)
    rounded = np.copysign(rounded, safe)
    return np.where(finite, rounded, np.clip(values, -over, over))


def to_storage(values: F64, form: FloatFormat) -> NDArray[Any]:
    """Values that `form` holds exactly, as an array of its dtype. NaN becomes the canonical NaN of the format."""
    out = np.asarray(values, dtype=np.float64).astype(np.float32 if form.precision <= 24 else np.float64)
    stored = out.astype(form.numpy)
    nan = np.isnan(out)
    if nan.any():
        words = stored.view(form.word)
        words[nan] = canonical_nan(form)
    return stored


def canonical_nan(form: FloatFormat) -> int:
    """The word that stands for a NaN input: quiet, positive, only the top fraction bit set."""
    bits = 8 * form.itemsize
    if bits == 8:
        return 0x7F
    return (1 << (bits - 1)) - (1 << (form.precision - 2))


def to_float64(array: NDArray[Any]) -> F64:
    """The exact value of each element as float64 (floats and integers up to 32 bits; 64-bit integers round)."""
    if array.dtype == np.float64:
        return array
    with np.errstate(invalid="ignore"):  # a signaling NaN
        if array.dtype.kind in "iub" or array.dtype in (np.float16, np.float32):
            return array.astype(np.float64)
        return array.astype(np.float32).astype(np.float64)
