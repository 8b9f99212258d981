"""Matrix products on tensor cores or by fma, plain and with a scale, a bias and an activation after them.

tensor core   one block adds L products and the accumulator after truncating each to 2**(e-F), where 2**e <= the largest
              of them (subnormal operands counted as the smallest normal), then truncates to R fraction bits: (L+1) *
              2**-F + 2**-R of sum|a||b| a block. L, F and R by architecture (Fasi, Higham, Mikaitis, Pranesh 2021;
              Khattak and Mikaitis, arXiv 2512.07004): `tensor_core`. FP8 on Ada and Hopper keeps 13 bits: a long sum
              of 8-bit products is far from binary32 there, and rightly so.
tf32          inputs lose all but 11 significand bits: at most 2**-10 relative each when the hardware truncates them
              (2**-11 when they were rounded first; the bound allows both).
exact sums    where all inputs are integers (exact in the multiplier's format) and sum|a||b| <= 2**(R-1), every partial
              sum in any order is exact, in every model above: the bound is 0, any difference at all is a bug.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuemu.bounds.model import F64, LEAST32, TINY32, U32, Bound, Exact, Model, where_finite
from gpuemu.gate.dtypes import FORMATS

TENSOR_CORES: dict[int, tuple[int, int]] = {70: (8, 23), 75: (16, 24), 80: (16, 24), 90: (32, 25)}
"""From this sm on: (bytes of an operand row in one block, F). L = bytes / element size, R = 23."""

FP8_CORES: dict[int, tuple[int, int]] = {89: (16, 13), 90: (32, 13), 100: (32, 25)}
"""The same for 8-bit floats, with R = min(F, 23). Below sm_89 a kernel converts them to float16 first. On sm_90 those
of wgmma; `mma.sync` is expanded to float16 there and better."""


@dataclass(frozen=True, slots=True)
class Core:
    """The arithmetic of one block: L products, F bits of alignment, R fraction bits of the result."""

    length: int
    width: int
    kept: int

    @property
    def share(self) -> float:
        """Error of one block relative to sum|a||b|."""
        return (self.length + 1) * 2.0**-self.width + 2.0**-self.kept


def tensor_core(device: str, dtype: str) -> Core:
    """The arithmetic of `device` for inputs of `dtype` (float32 stands for tf32)."""
    number = int("".join(c for c in device if c.isdigit()) or 0)
    size = FORMATS[dtype].itemsize
    table = TENSOR_CORES
    if size == 1 and number >= min(FP8_CORES):
        table = FP8_CORES
    elif size == 1:
        size = 2
    row, width = table[max((k for k in table if k <= number), default=70)]
    return Core(row // size, width, min(width, 23))


def product_words(dtype: str, device: str, mode: str | None) -> str:
    """How products of `dtype` are made on `device`, for the verdict."""
    if dtype not in FORMATS:
        return "integer products"
    if mode is not None or dtype == "float32":
        return f"{mode or 'ieee'} products"
    core = tensor_core(device, dtype)
    if FORMATS[dtype].itemsize == 1 and core.width < 20:
        return f"{FORMATS[dtype].short} products of which {core.width} bits are kept while they are added"
    return f"{FORMATS[dtype].short} products accumulated in binary32"


def _size(x: F64, y: F64) -> F64:
    with np.errstate(invalid="ignore", over="ignore"):
        size: F64 = x @ y
    return size


def dot_bound(x: F64, y: F64, dtype: str, device: str, mode: str | None = None) -> F64:
    """Bound on the error of x @ y in binary32, [..., M, N]. `mode`: 'ieee', 'tf32' or None for the dtype's own."""
    x, y = np.abs(x), np.abs(y)
    size = _size(x, y)
    depth = x.shape[-1]
    mode = mode or ("ieee" if dtype == "float32" else "tensor core")
    bound: F64
    if mode == "ieee":
        bound = (depth + 1) * U32 * size * (1 + depth * U32) + depth * LEAST32
        whole, kept = 24, 23
    else:
        core = tensor_core(device, dtype)
        blocks = -(-depth // core.length)
        share = blocks * core.share
        # A subnormal operand counts with the exponent of the smallest normal number.
        least = FORMATS[dtype].smallest_normal
        aligned = _size(np.where(x > 0, np.maximum(x, least), x), np.where(y > 0, np.maximum(y, least), y))
        bound = share * (1 + share) * aligned + 2 * blocks * (core.length + 1) * LEAST32
        whole, kept = FORMATS[dtype].precision, core.kept
        if mode == "tf32":
            # Subnormal inputs lose more than that, or are flushed.
            flushed = depth * TINY32 * (x.max(initial=0.0) + y.max(initial=0.0))
            bound = bound + (2.0**-9 + 2.0**-20) * size + flushed
            whole = 11
    integral = _integral(x, whole) and _integral(y, whole)
    return where_finite(np.where(size <= 2.0 ** (kept - 1), 0.0, bound) if integral else bound, size)


def _integral(values: F64, precision: int) -> bool:
    whole = bool(np.all(np.isfinite(values)) and np.all(values == np.rint(values)))
    return whole and bool(values.max(initial=0.0) <= 2.0**precision)


def dot(
    a: str, b: str, *, precision: Mapping[str, str] | None = None, chunk: int | None = None, out: str | None = None
) -> Model:
    """The product of inputs `a` [..., M, K] and `b` [..., K, N], accumulated in binary32.

    `precision`: how float32 products are made: {'float32': 'tf32'} (Triton's default) or 'ieee' (fma; the default
    here). `chunk`: elements of K in one of several partial sums that are added up afterwards (split K). `out`: the
    output that is this product (None = every output).
    """
    modes = dict(precision or {})

    def evaluate(exact: Exact) -> Bound:
        x, y = exact.inputs[a], exact.inputs[b]
        bound = dot_bound(x, y, exact.dtype, exact.device, modes.get(exact.dtype))
        if chunk is not None:
            parts = -(-x.shape[-1] // chunk)
            bound = bound + np.where(bound > 0, parts * U32 * (_size(np.abs(x), np.abs(y)) + bound), 0.0)
        return {out: bound} if out else bound

    return Model(evaluate, f"sum of {a}*{b} in binary32", modes, "dot", product_words)


def fused_dot(
    a: str,
    b: str,
    *,
    scales: Sequence[str] = (),
    bias: str | None = None,
    slope: float = 1.0,
    ulps: float = 0.0,
    precision: Mapping[str, str] | None = None,
) -> Model:
    """activation((a @ b) * scales + bias), accumulated and finished in binary32.

    `scales`: inputs that broadcast to the product [M, N] (per tensor, per row [M, 1], per column). `slope`: the largest
    derivative of the activation (1 for none and relu, 1.13 for gelu, 1.1 for silu); `ulps`: its own error.

    The product's error grows with the scales; each scale and the bias add one rounding.
    """
    modes = dict(precision or {})

    def evaluate(exact: Exact) -> Bound:
        x, y = exact.inputs[a], exact.inputs[b]
        with np.errstate(invalid="ignore", over="ignore"):
            factor: F64 = np.ones(())
            for name in scales:
                factor = factor * np.abs(exact.inputs[name]) if name in exact.inputs else factor
            product = dot_bound(x, y, exact.dtype, exact.device, modes.get(exact.dtype))
            size = _size(np.abs(x), np.abs(y)) + product
            added = np.abs(exact.inputs[bias]) if bias is not None and bias in exact.inputs else 0.0
            rounding = (len(scales) + 1) * U32 * size * factor + U32 * added + LEAST32 * (size + 3)
            y_size = size * factor + added
            bound: F64 = slope * (product * factor + rounding) * (1 + 8 * U32) + 2 * ulps * U32 * y_size
        return bound

    words = f"sum of {a}*{b} in binary32" + (f", times {', '.join(scales)}" if scales else "")
    return Model(evaluate, words + (f", plus {bias}" if bias else ""), modes, "fused_dot", product_words)
