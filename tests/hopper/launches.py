"""Launches of the kernels in `hopper_kernels`, with what they should give: name -> a function of (target, options of
`gpuemu.run`).

Used by the tests here, by the comparison with a real GPU (`tests/hardware`) and by measurements. Inputs are plain
normal numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import gpuemu
from tests.hopper import hopper_kernels as kernels

Array = npt.NDArray[Any]
Launch = Callable[..., "Outcome"]
describe = gpuemu.TensorDescriptor.from_array

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8,
}  # fmt: skip
UNITS = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8, np.dtype(np.float32): 2.0**-24}


@dataclass(frozen=True)
class Outcome:
    """A launch's result, the array it wrote, what exact arithmetic gives, and how far from it a right kernel may be."""

    result: Any
    got: Array
    exact: Array
    bound: Array

    def check(self) -> None:
        assert self.result.findings == ()
        wrong = np.abs(self.got.astype(np.float64) - self.exact) > self.bound
        assert not wrong.any(), f"{wrong.sum()} of {wrong.size} elements are wrong, first at {np.argwhere(wrong)[0]}"


def numbers(seed: int, shape: tuple[int, ...], dtype: Any) -> Array:
    rng = np.random.default_rng(seed)
    if dtype is np.int8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


def product(result: Any, a: Array, b: Array, c: Array, unit: float) -> Outcome:
    """Outcome of c = a b. unit: relative error of one accumulation step, truncation included."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    exact = a64 @ b64
    bound = unit * a.shape[1] * (np.abs(a64) @ np.abs(b64))
    return Outcome(result, c, exact, bound + np.abs(exact) * UNITS.get(c.dtype, 0.0))


def blocks(n: int, block: int) -> int:
    return (n + block - 1) // block


def matmul(
    dtype: str, target: str, *, shape: tuple[int, int, int] = (128, 96, 128), tile: tuple[int, int, int] = (64, 64, 32),
    stages: int = 3, precision: str | None = None, **options: Any,
) -> Outcome:  # fmt: skip
    m, n, k = shape
    bm, bn, bk = tile
    kind = DTYPES[dtype]
    out = np.int32 if dtype == "s8" else np.float32 if dtype in ("f32", "bf16") else np.float16
    a, b, c = numbers(1, (m, k), kind), numbers(2, (k, n), kind), np.zeros((m, n), out)
    result = gpuemu.run(
        kernels.matmul, (blocks(m, bm), blocks(n, bn)), a, b, c, m, n, k, k, 1, n, 1, n, 1, BM=bm, BN=bn, BK=bk,
        PRECISION=precision, STAGES=stages, target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    unit = 2.0**-12 if dtype in ("e4m3", "e5m2") else 2.0**-23
    return product(result, a, b, c, 2.0**-10 if precision == "tf32" else unit)


def scaled(target: str, **options: Any) -> Outcome:
    m, n, k = 64, 64, 96
    a, b, c = numbers(1, (m, k), np.float16), numbers(2, (n, k), np.float16), np.zeros((m, n), np.float16)
    result = gpuemu.run(
        kernels.matmul_scaled, (1, 1), a, b, c, m, n, k, k, k, n, 0.5, BM=64, BN=64, BK=32, STAGES=3, target=target,
        enable_fp_fusion=False, **options,
    )  # fmt: skip
    return product(result, (a * np.float16(0.5)).astype(np.float16), b.T, c, 2.0**-23)


def persistent(target: str, **options: Any) -> Outcome:
    m, n, k = 192, 128, 96
    a, b, c = numbers(1, (m, k), np.float16), numbers(2, (k, n), np.float16), np.zeros((m, n), np.float16)
    result = gpuemu.run(
        kernels.matmul_persistent, (4,), a, b, c, m, n, k, k, n, n, CTAS=4, BM=64, BN=64, BK=32, STAGES=3,
        target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    return product(result, a, b, c, 2.0**-23)


def host_descriptors(
    target: str, *, shape: tuple[int, int, int] = (128, 128, 128), stages: int = 3, bk: int = 64, **options: Any
) -> Outcome:
    m, n, k = shape
    a, b, c = numbers(1, (m, k), np.float16), numbers(2, (k, n), np.float16), np.zeros((m, n), np.float16)
    result = gpuemu.run(
        kernels.matmul_host_descriptors, (blocks(m, 64), blocks(n, 64)), describe(a, [64, bk]), describe(b, [bk, 64]),
        describe(c, [64, 64]), k, BM=64, BN=64, BK=bk, STAGES=stages, target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    return product(result, a, b, c, 2.0**-23)


def device_descriptors(target: str, *, specialise: bool = False, **options: Any) -> Outcome:
    m, n, k = 160, 128, 192
    a, b, c = numbers(1, (m, k), np.float16), numbers(2, (n, k), np.float16), np.zeros((m, n), np.float16)
    result = gpuemu.run(
        kernels.matmul_device_descriptors, (blocks(m, 128), blocks(n, 64)), a, b, c, m, n, k,
        BM=128, BN=64, BK=64, STAGES=3, SPECIALISE=specialise, target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    return product(result, a, b.T, c, 2.0**-23)


def persistent_descriptors(target: str, *, dtype: str = "f16", flatten: bool = False, **options: Any) -> Outcome:
    m, n, k = 256, 128, 256
    bk = 64 if dtype == "f16" else 128
    kind = DTYPES[dtype]
    a, b, c = numbers(1, (m, k), kind), numbers(2, (n, k), kind), np.zeros((m, n), np.float16)
    result = gpuemu.run(
        kernels.matmul_persistent_descriptors, (2,), describe(a, [128, bk]), describe(b, [64, bk]),
        describe(c, [128, 64]), m, n, k, CTAS=2, BM=128, BN=64, BK=bk, STAGES=3, SPECIALISE=False, FLATTEN=flatten,
        target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    return product(result, a, b.T, c, 2.0**-23 if dtype == "f16" else 2.0**-12)


def attended(result: Any, q: Array, k: Array, v: Array, out: Array) -> Outcome:
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 0.125
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    exact = p @ v.astype(np.float64)
    # probabilities are rounded to f16 before the second product
    bound = 2.0**-9 * (p @ np.abs(v.astype(np.float64))) + 2.0**-11 * np.abs(exact) + 2.0**-20
    return Outcome(result, out, exact, bound)


def attention(
    target: str, *, heads: int = 2, seq: int = 160, dim: int = 64, bn: int = 32, stages: int = 2, **options: Any
) -> Outcome:
    q, k, v = (numbers(s, (heads, seq, dim), np.float16) for s in (1, 2, 3))
    out = np.zeros_like(q)
    result = gpuemu.run(
        kernels.attention, (blocks(seq, 64), heads), q, k, v, out, seq, 0.125, BM=64, BN=bn, D=dim, STAGES=stages,
        target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    return attended(result, q, k, v, out)


def attention_descriptors(target: str, *, specialise: bool = False, **options: Any) -> Outcome:
    heads, seq, dim = 2, 128, 64
    q, k, v = (numbers(s, (heads, seq, dim), np.float16) for s in (1, 2, 3))
    out = np.zeros_like(q)
    maps = [describe(x.reshape(heads * seq, dim), [64, dim]) for x in (q, k, v, out)]
    result = gpuemu.run(
        kernels.attention_descriptors, (seq // 64, heads), *maps, seq, 0.125, BM=64, BN=64, D=dim, STAGES=2,
        SPECIALISE=specialise, target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    return attended(result, q, k, v, out)


def softmax(target: str, **options: Any) -> Outcome:
    x = numbers(1, (8, 1000), np.float32)
    out = np.zeros_like(x)
    result = gpuemu.run(
        kernels.softmax, (8,), x, out, 1000, 1000, BLOCK=1024, target=target, enable_fp_fusion=False, **options
    )
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    exact = e / e.sum(-1, keepdims=True)
    return Outcome(result, out, exact, 2.0**-19 * exact)


def layernorm(target: str, **options: Any) -> Outcome:
    x, w, b = numbers(1, (5, 1000), np.float16), numbers(2, (1000,), np.float16), numbers(3, (1000,), np.float16)
    out = np.zeros_like(x)
    result = gpuemu.run(
        kernels.layernorm, (5,), x, w, b, out, 1000, 1000, 1e-5, BLOCK=1024,
        target=target, enable_fp_fusion=False, **options,
    )  # fmt: skip
    x64 = x.astype(np.float64)
    normal = (x64 - x64.mean(-1, keepdims=True)) / np.sqrt(x64.var(-1, keepdims=True) + 1e-5)
    exact = normal * w.astype(np.float64) + b.astype(np.float64)
    bound = 2.0**-11 * np.abs(exact) + 2.0**-16 * (1 + np.abs(normal * w.astype(np.float64)))
    return Outcome(result, out, exact, bound)


def lock(target: str, **options: Any) -> Outcome:
    x = np.arange(2000, dtype=np.float32)
    out, mutex = np.zeros(1, np.float32), np.zeros(1, np.int32)
    result = gpuemu.run(
        kernels.sum_under_lock, (blocks(2000, 256),), x, out, mutex, 2000, BLOCK=256, target=target, **options
    )
    return Outcome(result, out, np.array([1999000.0]), np.zeros(1))


def tuned(f: Callable[..., Outcome], *first: Any, **fixed: Any) -> Launch:
    return functools.partial(f, *first, **fixed)


CASES: dict[str, Launch] = {
    **{f"matmul_f16_{s}_stages": tuned(matmul, "f16", stages=s) for s in (1, 2, 3, 4, 5)},
    "matmul_f16_tails": tuned(matmul, "f16", shape=(100, 77, 50)),
    "matmul_f16_8_warps": tuned(matmul, "f16", shape=(128, 128, 128), tile=(128, 128, 64), num_warps=8),
    "matmul_f16_no_wgmma": tuned(matmul, "f16", shape=(48, 32, 48), tile=(16, 16, 16)),
    "matmul_bf16": tuned(matmul, "bf16", tile=(128, 128, 64)),
    "matmul_tf32": tuned(matmul, "f32", precision="tf32"),
    "matmul_tf32x3": tuned(matmul, "f32", precision="tf32x3"),
    "matmul_e4m3": tuned(matmul, "e4m3", tile=(64, 64, 64)),
    "matmul_e5m2": tuned(matmul, "e5m2", tile=(64, 64, 64)),
    "matmul_s8": tuned(matmul, "s8", tile=(64, 64, 64)),
    "matmul_scaled": scaled,
    "matmul_persistent": persistent,
    "host_descriptors": host_descriptors,
    "host_descriptors_1_stage": tuned(host_descriptors, stages=1, bk=32),
    "host_descriptors_tails": tuned(host_descriptors, shape=(100, 72, 88)),
    "device_descriptors": device_descriptors,
    "device_descriptors_specialised": tuned(device_descriptors, specialise=True),
    "persistent_descriptors": persistent_descriptors,
    "persistent_descriptors_flattened": tuned(persistent_descriptors, flatten=True),
    "persistent_descriptors_e4m3": tuned(persistent_descriptors, dtype="e4m3"),
    "attention": attention,
    "attention_3_stages": tuned(attention, seq=256, stages=3),
    "attention_d128": tuned(attention, dim=128, seq=128),
    "attention_descriptors": attention_descriptors,
    "attention_descriptors_specialised": tuned(attention_descriptors, specialise=True),
    "softmax": softmax,
    "layernorm": layernorm,
    "lock": lock,
}

REFUSED = {
    # what Triton itself does not compile for a target
    ("matmul_e4m3", "sm_80"): "fp8e4nv not supported",
    ("persistent_descriptors_e4m3", "sm_80"): "fp8e4nv not supported",
}
