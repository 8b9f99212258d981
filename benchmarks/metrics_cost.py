"""What measuring costs: a launch with `metrics=True` against the same launch without.
`python -m benchmarks.metrics_cost`

Plain launches run other native code than measured ones, so they pay nothing. Warm, one core, processor time, the least
of several rounds in which the two take turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.versus_interpreter import _MAKERS
from benchmarks.worker import pin_to_one_core

ROUNDS = 25
TARGETS = ("sm_80", "sm_90")


def launcher(target: str, metrics: bool) -> Callable[..., None]:
    def launch(kernel: Any, grid: tuple[int, ...], arrays: list[Any], scalars: list[Any], constants: Any) -> None:
        import gpuemu

        gpuemu.run(
            kernel, grid, *arrays, *scalars, target=target, enable_fp_fusion=False, metrics=metrics, **constants
        )

    return launch


def seconds(call: Callable[[], None]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> int:
    pin_to_one_core()
    print("| launch | target | plain ms | measured ms | ratio |\n|---|---|--:|--:|--:|")
    for name, make in _MAKERS.items():
        for target in TARGETS:
            calls = [make(launcher(target, metrics))[0] for metrics in (False, True)]
            for call in calls:
                call()
            rounds = [[seconds(call) for call in calls] for _ in range(ROUNDS)]
            plain, measured = (1000 * min(column) for column in zip(*rounds, strict=True))
            print(f"| {name} | {target} | {plain:.2f} | {measured:.2f} | {measured / plain:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
