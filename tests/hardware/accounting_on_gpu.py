"""Registers and counts of a real GPU: `python accounting_on_gpu.py DIR`. Needs numpy and a CUDA driver only;
`on_gpu.py` must lie beside it. DIR was written by `export_accounting.py`.

    DIR/attributes/*.cubin, attributes.json   loaded; `cuFuncGetAttribute` of each kernel beside the expected numbers
    DIR/counts/*.npz                          launches whose code counts itself; counters beside the expected ones

Prints a line for each and writes `DIR/results.json`, which is what `h200_accounting.json` holds.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from on_gpu import Gpu, replay

ATTRIBUTES = {"max_threads": 0, "shared": 1, "const": 2, "local": 3, "registers": 4, "ptx": 5, "binary": 6}
"""CU_FUNC_ATTRIBUTE_*."""


def attributes(gpu: Gpu, cubin: bytes, entry: str) -> dict[str, int]:
    """What the driver says of a loaded kernel."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    gpu.check(gpu.cuda.cuModuleLoadData(ctypes.byref(module), cubin))
    gpu.check(gpu.cuda.cuModuleGetFunction(ctypes.byref(function), module, entry.encode()))
    found = {}
    for name, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        gpu.check(gpu.cuda.cuFuncGetAttribute(ctypes.byref(value), number, function))
        found[name] = value.value
    gpu.check(gpu.cuda.cuModuleUnload(module))
    return found


class Counting(Gpu):
    """A GPU that reads the counters back before it unloads a module."""

    counts = np.zeros(0, np.uint64)

    def launch(self, cubin: bytes, meta: dict[str, Any], params: bytes) -> None:
        """As `Gpu.launch`, then the module variable with the counters."""
        unload = self.cuda.cuModuleUnload

        def read_and_unload(module: Any) -> int:
            place, size = ctypes.c_uint64(), ctypes.c_size_t()
            self.check(
                self.cuda.cuModuleGetGlobal_v2(ctypes.byref(place), ctypes.byref(size), module, b"gpuemu_counts")
            )
            self.counts = self.download(place.value, size.value).view(np.uint64)
            return int(unload(module))

        self.cuda.cuModuleUnload = read_and_unload
        try:
            super().launch(cubin, meta, params)
        finally:
            self.cuda.cuModuleUnload = unload


def count(gpu: Counting, path: Path) -> dict[str, Any]:
    """One launch: its counters, and how many differ from what is expected; bytes that differ, too."""
    case = np.load(path, allow_pickle=False)
    meta = json.loads(str(case["meta"]))
    differing = sum(int((got != case[f"after{i}"]).sum()) for i, got in replay(gpu, case, meta))
    expected = case["expected"].astype(np.uint64)
    wrong = np.flatnonzero(gpu.counts != expected)
    return {
        "counters": len(expected), "counters_differing": len(wrong), "bytes_differing": differing,
        "first": [int(wrong[0]), int(gpu.counts[wrong[0]]), int(expected[wrong[0]])] if len(wrong) else None,
        "counts": [int(n) for n in gpu.counts],
    }  # fmt: skip


def main(folder: Path) -> int:
    gpu = Counting()
    results: dict[str, Any] = {"gpu": gpu.description, "attributes": {}, "counts": {}}
    listed = json.loads((folder / "attributes.json").read_text())
    for name, about in listed.items():
        try:
            cubin = (folder / "attributes" / f"{name}.cubin").read_bytes()
            told: dict[str, Any] = attributes(gpu, cubin, about["entry"])
        except Exception as error:  # one failing case must not hide the others
            told = {"error": str(error)}
        results["attributes"][name] = told
        different = {k: (told.get(k), n) for k, n in about["expected"].items() if told.get(k) != n}
        print("attributes", name, "equal" if not different else f"GPU, expected: {different}", flush=True)
    for path in sorted((folder / "counts").glob("*.npz")):
        try:
            told = count(gpu, path)
        except Exception as error:
            told = {"error": str(error)}
        name = path.stem.removeprefix("launch-")
        results["counts"][name] = told
        print("counts", name, {k: v for k, v in told.items() if k != "counts"}, flush=True)
    (folder / "results.json").write_text(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
