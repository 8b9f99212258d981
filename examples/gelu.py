"""GELU with the error function, element by element, in float32."""

from math import erf

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def gelu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n).to(tl.float32)
    result = 0.5 * values * (1.0 + tl.erf(values * 0.7071067811865476))
    tl.store(y + at, result.to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(
    dims={"N": (1, 17, 127, 128, 129, 255, 257, 1000)},
    inputs={"x": Input("N", nonfinite=("nan",))},
    outputs={"y": Output("N")},
    reference=lambda x: 0.5 * x * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2))),
    bound=bounds.gelu("x"),
)
def gelu(run, x, y):
    run(gelu_kernel, (triton.cdiv(x.size, 128),), x, y, x.size, BLOCK=128)
