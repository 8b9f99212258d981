"""The first minute of a new user: empty caches, `import gpuemu`, the first softmax result.

Every cache is empty: gpuemu's, numba's and Triton's are pointed at new directories (Python's own byte code is not
counted as a cache). The second process shows what the caches are worth. Both engines, each with its own directories.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks.worker import start

ENGINES = ("compiled", "traced")


def measure_here(engine: str) -> dict[str, float]:
    """Seconds from before the imports, by step, in this process."""
    steps = {}
    before, processor = time.perf_counter(), time.process_time()
    import numpy as np

    import gpuemu

    steps["import gpuemu"] = time.perf_counter() - before
    from tests.ptx import kernels  # imports triton

    steps["import the kernel (triton)"] = time.perf_counter() - before
    x = np.linspace(-4, 4, 64 * 1000, dtype=np.float32).reshape(64, 1000)
    out = np.empty_like(x)
    gpuemu.run(kernels.softmax, 64, x, out, 1000, 1000, target="sm_80", engine=engine, BLOCK=1024)
    steps["first result"] = time.perf_counter() - before
    steps["first result, processor"] = time.process_time() - processor
    np.testing.assert_allclose(out.sum(1), 1, rtol=1e-5)
    warm = time.perf_counter()
    gpuemu.run(kernels.softmax, 64, x, out, 1000, 1000, target="sm_80", engine=engine, BLOCK=1024)
    steps["second launch alone"] = time.perf_counter() - warm
    return steps


def report() -> None:
    """Print seconds since the start, step by step, with empty and then with filled caches, for both engines."""
    columns: dict[str, dict[str, float]] = {}
    for engine in ENGINES:
        with tempfile.TemporaryDirectory() as empty:
            environment = {
                "GPUEMU_CACHE_DIR": str(Path(empty, "gpuemu")),
                "NUMBA_CACHE_DIR": str(Path(empty, "numba")),
                "TRITON_CACHE_DIR": str(Path(empty, "triton")),
            }
            for caches in ("empty", "filled"):
                columns[f"{engine}, {caches}"] = start("benchmarks.first_result", ["--here", engine], environment)
    print(f"{'softmax 64x1000 f32, seconds':32}" + "".join(f"{name:>18}" for name in columns))
    for step in next(iter(columns.values())):
        print(f"{step:32}" + "".join(f"{found[step]:18.4f}" for found in columns.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", choices=ENGINES)
    chosen = parser.parse_args().here
    if chosen:
        print(json.dumps(measure_here(chosen)))
    else:
        report()
