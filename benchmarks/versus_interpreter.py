"""gpuemu against `TRITON_INTERPRET=1` on the same kernels and inputs, warm, one core, alternating in one run.

Triton's interpreter is what users have today for running a kernel without a GPU. It executes the Python source tile by
tile with numpy; gpuemu executes the PTX of sm_80 and of sm_90 with the bits of the hardware, so it does more. Every
side checks its result against numpy before anything is timed. The interpreter wants torch tensors; it gets an object
with the six methods it calls, over numpy memory, so that no torch is needed and nothing is copied.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.worker import best_of, pin_to_one_core, start, timed

ROUNDS = 2
SIDES = ("interpreter", "sm_80", "sm_90")
"""Triton's interpreter, then the targets whose PTX gpuemu executes."""
CASES = ("softmax 64x1000 f32", "matmul 256^3 f16 64x64x32", "flash attention 4x256x64 f16")


class HostTensor:
    """What Triton's interpreter asks of a torch tensor, over a numpy array; its storage is itself, on the CPU."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.dtype = {"float32": "fp32", "float16": "fp16"}[array.dtype.name]

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> HostTensor:
        return self

    def cpu(self) -> HostTensor:
        return self

    def new_empty(self, *_: object, **__: object) -> HostTensor:
        return HostTensor(self.array)

    def set_(self, *_: object) -> None: ...

    def copy_(self, _: object) -> None: ...

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)


Launcher = Callable[..., None]


def _softmax(launch: Launcher) -> tuple[Callable[[], None], Callable[[], None]]:
    from tests.ptx import kernels

    x = np.random.default_rng(0).standard_normal((64, 1000), np.float32)
    out = np.empty_like(x)

    def call() -> None:
        launch(kernels.softmax, (64,), [x, out], [1000, 1000], {"BLOCK": 1024})

    def check() -> None:
        e = np.exp(x - x.max(1, keepdims=True))
        np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)

    return call, check


def _matmul(launch: Launcher) -> tuple[Callable[[], None], Callable[[], None]]:
    from tests.ptx import kernels

    random = np.random.default_rng(0)
    a, b = (random.standard_normal((256, 256), np.float32).astype(np.float16) for _ in "ab")
    c = np.empty((256, 256), np.float16)
    sizes = [256, 256, 256, 256, 1, 256, 1, 256, 1]

    def call() -> None:
        constants = {"BM": 64, "BN": 64, "BK": 32, "PRECISION": None}
        launch(kernels.matmul, (4, 4), [a, b, c], sizes, constants)

    def check() -> None:
        want = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_allclose(c.astype(np.float32), want, rtol=2e-2, atol=2e-2)

    return call, check


def _attention(launch: Launcher) -> tuple[Callable[[], None], Callable[[], None]]:
    from tests.ptx import kernels

    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((4, 256, 64), np.float32).astype(np.float16) for _ in "qkv")
    out = np.empty_like(q)

    def call() -> None:
        constants = {"BM": 64, "BN": 32, "D": 64}
        launch(kernels.flash_attention, (4, 4), [q, k, v, out], [256, 0.125], constants)

    def check() -> None:
        s = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) * 0.125
        p = np.exp(s - s.max(2, keepdims=True))
        want = p / p.sum(2, keepdims=True) @ v.astype(np.float32)
        np.testing.assert_allclose(out.astype(np.float32), want, rtol=2e-2, atol=2e-2)

    return call, check


_MAKERS = dict(zip(CASES, (_softmax, _matmul, _attention), strict=True))


def _interpreter(kernel: Any, grid: tuple[int, ...], arrays: list[Any], scalars: list[Any], constants: Any) -> None:
    kernel[grid](*map(HostTensor, arrays), *scalars, **constants)


def _gpuemu(target: str) -> Callable[..., None]:
    def launch(kernel: Any, grid: tuple[int, ...], arrays: list[Any], scalars: list[Any], constants: Any) -> None:
        import gpuemu

        gpuemu.run(kernel, grid, *arrays, *scalars, target=target, enable_fp_fusion=False, **constants)

    return launch


def measure_side(side: str) -> dict[str, dict[str, float]]:
    """Seconds a launch of every case, in this process."""
    pin_to_one_core()
    found = {}
    for case, make in _MAKERS.items():
        call, check = make(_interpreter if side == "interpreter" else _gpuemu(side))
        call()
        check()
        found[case] = timed(call)
    return found


def measure() -> dict[str, dict[str, dict[str, float]]]:
    """{case: {side: {best, median}}} in seconds, sides alternating `ROUNDS` times."""
    rounds: dict[str, list[dict[str, dict[str, float]]]] = {side: [] for side in SIDES}
    for _ in range(ROUNDS):
        for side in SIDES:
            variables = {"TRITON_INTERPRET": "1" if side == "interpreter" else None}
            rounds[side].append(start("benchmarks.versus_interpreter", ["--side", side], variables))
    return {case: {side: best_of([r[case] for r in rounds[side]]) for side in rounds} for case in CASES}


def report() -> None:
    """Print one line a case: milliseconds of each side (best, median) and how many times faster gpuemu is."""
    heads = "".join(f"{side:>18}{'ratio' if side != SIDES[0] else '':>15}" for side in SIDES)
    print(f"{'warm launch, one core, CPU ms':32}{heads}")
    ratios: dict[str, list[float]] = {side: [] for side in SIDES[1:]}
    for case, sides in measure().items():
        line, slow = f"{case:32}", sides[SIDES[0]]
        for side in SIDES:
            best, median = sides[side]["best"], sides[side]["median"]
            line += f"{f'{1e3 * best:.2f} ({1e3 * median:.2f})':>18}"
            if side == SIDES[0]:
                line += " " * 15
                continue
            ratios[side].append(slow["median"] / median)
            times_best = slow["best"] / best
            line += f"{f'{times_best:.1f} ({ratios[side][-1]:.1f})':>15}"
        print(line)
    means = "  ".join(f"{side} {statistics.geometric_mean(found):.1f}" for side, found in ratios.items())
    print(f"best (median); geometric mean of the medians: {means}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=SIDES)
    side = parser.parse_args().side
    if side:
        print(json.dumps(measure_side(side)))
    else:
        report()
