"""Launches whose bytes are compared with a real GPU: name → a function that makes them with `device="sm_90"`.

PTX for sm_80 comes from the corpus in `tests/ptx`; kernels of other targets are compiled here. Inputs are plain normal
numbers and, where a kernel allows it, a row of extremes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import gpuemu
from tests.hardware import clusters, programs
from tests.ptx.regenerate import read

CASES: dict[str, Callable[[], None]] = {}
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def case(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def declare(function: Callable[[], None]) -> Callable[[], None]:
        CASES[name] = function
        return function

    return declare


def numbers(seed: int, shape: tuple[int, ...], dtype: Any, scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


def launch(name: str, grid: tuple[int, ...], args: list[Any], shared: int, warps: int = 4) -> None:
    module = gpuemu.Module.from_ptx(read(name), device="sm_90", fmad="off")
    (entry,) = module.values()
    entry.launch(grid=grid, block=(32 * warps, 1, 1), args=[*args, 0, 0], shared=shared)


def _softmax(name: str, dtype: str, seed: int) -> Callable[[], None]:
    def run() -> None:
        x = numbers(seed, (67, 1000), DTYPES[dtype], 3)
        x[3] = 0
        x[4, :] = -np.inf
        x[5, 7] = np.nan
        x[6] *= np.asarray(1000, x.dtype)
        x[7, 1:] = -np.inf
        launch(name, (67,), [x, np.zeros_like(x), 1000, 999], 64)

    return run


for _d in DTYPES:
    CASES[f"softmax_{_d}_sm80"] = _softmax(f"softmax_{_d}_sm80", _d, 1)


def _matmul(name: str, dtype: Any, scale: float, shape: tuple[int, int, int]) -> Callable[[], None]:
    def run() -> None:
        m, n, k = shape
        a, b = numbers(2, (m, k), dtype, scale), numbers(3, (k, n), dtype, scale)
        c = np.zeros((m, n), dtype)
        launch(name, ((m + 63) // 64, (n + 63) // 64), [a, b, c, m, n, k, k, n, n], 48 * 1024)

    return run


for _name, _dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("tf32", np.float32)):
    for _tag, _scale in (("", 1.0), ("_tiny", 2.0**-9), ("_large", 30.0)):
        CASES[f"matmul_{_name}{_tag}_sm80"] = _matmul(f"matmul_{_name}_sm80", _dtype, _scale, (256, 192, 256))


@case("layernorm_f16_sm80")
def layernorm() -> None:
    x, w, b = (numbers(s, (33, 512) if s == 4 else (512,), np.float16) for s in (4, 5, 6))
    launch("layernorm_f16_sm80", (33,), [x, w, b, np.zeros_like(x), 512, 500, 1e-5], 64)


@case("gelu_f32_sm80")
def gelu() -> None:
    x = numbers(7, (4000,), np.float32, 2)
    launch("gelu_f32_sm80", (8,), [x, np.zeros_like(x), 4000], 0)


@case("flash_attention_f16_sm80")
def flash() -> None:
    q, k, v = (numbers(s, (2, 256, 64), np.float16) for s in (8, 9, 10))
    launch("flash_attention_f16_sm80", (4, 2), [q, k, v, np.zeros_like(q), 256, 0.125], 64 * 1024)


@case("cumsum_sm80")
def cumsum() -> None:
    x = numbers(11, (16, 512), np.float32)
    launch("row_cumsum_sm80", (16,), [x, np.zeros_like(x), 512], 256)


@case("dropout_sm80")
def dropout() -> None:
    x = numbers(12, (4000,), np.float32)
    launch("dropout_sm80", (8,), [x, np.zeros_like(x), 4000, 0.3, 1234], 0)


def _hopper(name: str, target: str, **options: Any) -> Callable[[], None]:
    def run() -> None:
        from tests.hopper.launches import CASES as hopper

        hopper[name](target, device="sm_90", **options).check()

    return run


# The lock's sum depends on the CTAs' order.
HOPPER = (
    *(f"matmul_f16_{s}_stages" for s in (1, 2, 3, 4, 5)),
    "matmul_f16_tails", "matmul_f16_8_warps", "matmul_f16_no_wgmma",
    "matmul_bf16", "matmul_tf32", "matmul_tf32x3", "matmul_e4m3", "matmul_e5m2", "matmul_s8", "matmul_scaled",
    "matmul_persistent", "host_descriptors", "host_descriptors_1_stage", "host_descriptors_tails",
    "device_descriptors", "device_descriptors_specialised",
    "persistent_descriptors", "persistent_descriptors_flattened", "persistent_descriptors_e4m3",
    "attention", "attention_3_stages", "attention_d128", "attention_descriptors",
    "attention_descriptors_specialised", "softmax", "layernorm",
)  # fmt: skip
for _name in HOPPER:
    CASES[f"{_name}_sm90"] = _hopper(_name, "sm_90")
for _name in ("matmul_e5m2", "matmul_s8", "matmul_scaled", "attention", "layernorm"):
    CASES[f"{_name}_sm89"] = _hopper(_name, "sm_89")

# Each program is a cluster of CTAs.
CLUSTERS = (
    "softmax", "layernorm", "attention", "matmul_f16_3_stages", "matmul_f16_no_wgmma", "matmul_bf16", "matmul_tf32",
    "matmul_e4m3", "matmul_s8", "matmul_persistent", "host_descriptors", "device_descriptors", "persistent_descriptors",
    "attention_descriptors",
)  # fmt: skip
for _name in CLUSTERS:
    for _n in (2, 4):
        CASES[f"{_name}_{_n}ctas_sm90"] = _hopper(_name, "sm_90", num_ctas=_n)
for _name in clusters.BODIES:
    CASES[f"cluster_{_name}_sm90"] = clusters.case(_name)
CASES |= programs.programs()


def _columns(name: str) -> Callable[[], None]:
    def run() -> None:
        from tests.hopper.columns import CASES as columns

        columns[name](target="sm_90", device="sm_90")

    return run


# Gluon kernels with im2col descriptors (`tests/hopper/columns.py`).
COLUMNS = (
    "columns", "columns_tf32", "columns_nan", "convolution", "convolution_stride_2", "convolution_no_padding",
)  # fmt: skip
for _name in COLUMNS:
    CASES[f"gluon_{_name}_sm90"] = _columns(_name)
