"""z = x + y, with every launch option that changes the code."""

import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@gpuemu.op(
    dims={"N": (1, 7, 127, 128, 129, 509, 1023, 1024)},
    inputs={"x": Input("N", nonfinite=("nan", "inf", "-inf")), "y": Input("N", nonfinite=("nan", "inf", "-inf"))},
    outputs={"z": Output("N")},
    reference=lambda x, y: x + y,
    bound=bounds.exact(),
    options=({"num_warps": 1}, {"num_warps": 8}),
)
def vector_add(run, x, y, z, num_warps):
    run(add_kernel, (triton.cdiv(x.size, 128),), x, y, z, x.size, BLOCK=128, num_warps=num_warps)
