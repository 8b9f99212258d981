"""Bit-exact tensor-core arithmetic, f16 inputs to f32 results, against numpy's f32 matmul (its BLAS) in one run.

Each side on one core, with operands that stay in the cache: `mma.m16n8k16` (one warp's instruction by itself, and in a
PTX kernel whose four warps chain sixteen accumulators each) with sm_80's arithmetic, and the part of one warp in
`wgmma.m64n128k16` with sm_90's. numpy multiplies 512 x 512 matrices. The results of the instructions are those of the
hardware, with its block sums and truncation (`interp/tensorcore/rows.py`); BLAS rounds as it likes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numba
import numpy as np

from benchmarks.worker import best_of, pin_to_one_core, start, timed

ROUNDS = 3
REPEATED = 400
"""Instructions of one timed call."""
_TILES = 16
_CHAIN = 16
_STEPS = 100

_PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p;
    .reg .b32 %i, %t, %a<4>, %b<2>;
    .reg .f32 %c<{registers}>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [out];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %rd1, %t, 4, %rd0;
    {start}
    mov.u32 %i, 0;
LOOP:
    {steps}
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, {count};
    @%p bra LOOP;
    {sum}
    st.global.f32 [%rd1], %c0;
    ret;
}}
"""


def kernel_text() -> str:
    """A kernel of `_STEPS` times `_CHAIN` independent `mma.m16n8k16`, operands from the thread index."""
    start = [f"mad.lo.u32 %{r}, %t, {0x00070003 + 0x10005 * i}, 0x3c003c00;" for i, r in enumerate(
        [*(f"a{i}" for i in range(4)), *(f"b{i}" for i in range(2))])]  # fmt: skip
    start += [f"mov.f32 %c{i}, 0f00000000;" for i in range(4 * _CHAIN)]
    steps = []
    for n in range(_CHAIN):
        c = ", ".join(f"%c{4 * n + i}" for i in range(4))
        steps.append(
            f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{c}}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{{c}}};"
        )
    total = [f"add.rn.f32 %c0, %c0, %c{i};" for i in range(1, 4 * _CHAIN)]
    return _PTX.format(
        registers=4 * _CHAIN, start="\n".join(start), steps="\n".join(steps), count=_STEPS, sum="\n".join(total)
    )


def measure_here() -> dict[str, dict[str, float]]:
    """Floating-point operations and seconds of every side, in this process."""
    from interp.launch import Module
    from interp.tensorcore import fast
    from interp.tensorcore.table import plan

    pin_to_one_core()
    rng = np.random.default_rng(0)

    def halves(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float16)

    mma, wgmma = fast.mma, fast.mma_tiles
    old = tuple(plan(80, "m16n8k16", "f16", "f16", "f32").arguments)
    new = tuple(plan(90, "m16n8k16", "f16", "f16", "f32").arguments)

    @numba.njit  # type: ignore[untyped-decorator]
    def one(out: int, a: int, b: int, c: int, count: int) -> None:
        for _ in range(count):
            mma(out, a, b, c, *old)

    @numba.njit  # type: ignore[untyped-decorator]
    def wide(out: int, a: int, b: int, c: int, count: int) -> None:
        for _ in range(count):
            wgmma(out, a, b, c, _TILES, *new)

    a, b = halves(16 * 16), halves(_TILES * 16 * 8)
    c = rng.standard_normal(_TILES * 16 * 8).astype(np.float32)
    out = np.zeros_like(c)
    at = tuple(int(array.ctypes.data) for array in (out, a, b, c))
    entry = Module.from_ptx(kernel_text())["k"]
    result = np.zeros(128, np.float32)
    left, right = (rng.standard_normal((512, 512)).astype(np.float32) for _ in range(2))
    product = np.empty_like(left)
    instruction = 2 * 16 * 8 * 16
    sides = {
        "mma.m16n8k16, sm_80": (instruction * REPEATED, lambda: one(*at, REPEATED)),
        "the same in a PTX kernel": (
            instruction * _CHAIN * _STEPS * 4,
            lambda: entry.launch(grid=1, block=128, args=[result], names=["out"]),
        ),
        "wgmma.m64n128k16, sm_90": (instruction * _TILES * REPEATED, lambda: wide(*at, REPEATED)),
        "numpy f32 matmul": (2 * 512**3, lambda: np.matmul(left, right, out=product)),
    }
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, (_count, function) in sides.items():
            rounds[name].append(timed(function, 0.5))
    return {name: {"operations": sides[name][0], **best_of(rounds[name])} for name in sides}


def report() -> None:
    """Print GFLOP/s (best and median of a call) of each side, and its ratio to numpy's."""
    found = start("benchmarks.matrix_product", ["--here"], {})
    print(f"{'f16 to f32 products, one core':32} {'GFLOP/s':>10} {'median':>10} {'of numpy':>10}")
    best = {name: f["operations"] / f["best"] / 1e9 for name, f in found.items()}
    for name, f in found.items():
        median = f["operations"] / f["median"] / 1e9
        print(f"{name:32} {best[name]:10.2f} {median:10.2f} {best[name] / best['numpy f32 matmul']:10.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true")
    if parser.parse_args().here:
        print(json.dumps(measure_here()))
    else:
        report()
