"""Threads and programs that wait for each other: a row moved within itself, a sum finished by the last program."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit(do_not_specialize=["n"])
def shift_kernel(y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    at = tl.arange(0, BLOCK)
    v = tl.load(y + row + at, mask=at < n)
    tl.debug_barrier()
    tl.store(y + row + at + 1, v, mask=at < n - 1)


@triton.jit(do_not_specialize=["n", "programs"])
def sum_kernel(x, parts, counter, y, n, programs, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    program = tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), axis=0)
    tl.store(parts + program, part)
    tl.debug_barrier()
    before = tl.atomic_add(counter, 1)
    if before == programs - 1:
        slot = tl.arange(0, WIDTH)
        tl.store(y, tl.sum(tl.load(parts + slot, mask=slot < programs, other=0.0), axis=0))


def shifted(old):
    return np.concatenate([old[:, :1], old[:, :-1]], axis=1)


@gpuemu.op(
    dims={"M": (1, 3), "N": (1, 2, 127, 128, 129, 250)}, dtypes=("float32", "float16"),
    inputs={"old": Input("M N", nonfinite=("nan", "inf"))}, outputs={"y": Output("M N")}, reference=shifted,
    bound=bounds.exact(),
)  # fmt: skip
def shift_in_place(run, old, y):
    y[...] = old
    run(shift_kernel, (len(y),), y, y.shape[1], BLOCK=256)


@gpuemu.op(
    dims={"N": (1, 63, 64, 65, 200, 500)}, inputs={"x": Input("N", largest=2.0**100)},
    outputs={"y": Output("1", "float32")}, reference=lambda x: np.array([x.sum()]),
    bound=bounds.absolute(lambda x: np.array([x.sum()]), roundings=2 * bounds.tree_depth(64)),
)  # fmt: skip
def sum_by_last_program(run, x, y, N):
    programs = triton.cdiv(N, 64)
    parts, counter = run.empty((programs,), "float32"), np.zeros(1, np.int32)
    run(sum_kernel, (programs,), x, parts, counter, y, N, programs, BLOCK=64, WIDTH=8)
