"""Run a bundle (`bundle.py`) on a real GPU: `python on_gpu.py DIR`. Needs numpy and a CUDA driver only.

DIR holds assembled forms (`forms.json`, `words.npy`, cubins) and one `launch-*.npz` a launch: the cubin, the parameter
block with the places of its pointers, the memory before the launch, and the memory after it as the emulator left it.
Writes `forms.npz`, the result words of the forms, and `results.json`: the GPU, and for each launch how many bytes
differ and the digests of the GPU's memory.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]

TENSOR_TYPES = {
    "u8": 0, "u16": 1, "u32": 2, "s32": 3, "u64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9, "f32.ftz": 10,
    "tf32": 11, "tf32.ftz": 12,
}  # fmt: skip
"""CUtensorMapDataType."""


class Gpu:
    """Just enough of the CUDA driver API. Raises OSError without a driver, RuntimeError for a CUDA error."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.check(self.cuda.cuInit(0))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.check(self.cuda.cuDeviceGet(ctypes.byref(device), 0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.check(self.cuda.cuCtxSetCurrent(context))
        name = ctypes.create_string_buffer(100)
        self.cuda.cuDeviceGetName(name, 100, device)
        version = ctypes.c_int()
        self.cuda.cuDriverGetVersion(ctypes.byref(version))
        self.description = f"{name.value.decode()}, driver API {version.value}"

    def check(self, code: int) -> None:
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"CUDA error {code}: {text.value!r}")

    def upload(self, data: np.ndarray[Any, Any]) -> int:
        pointer = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(max(data.nbytes, 16))))
        self.check(
            self.cuda.cuMemcpyHtoD_v2(pointer, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes))
        )
        return pointer.value

    def download(self, pointer: int, size: int) -> np.ndarray[Any, Any]:
        out = np.empty(size, np.uint8)
        self.check(
            self.cuda.cuMemcpyDtoH_v2(
                out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(pointer), ctypes.c_size_t(size)
            )
        )
        return out

    def free(self, pointer: int) -> None:
        self.check(self.cuda.cuMemFree_v2(ctypes.c_uint64(pointer)))

    def tensor_map(self, address: int, about: dict[str, Any]) -> bytes:
        """The 128 bytes of a `CUtensorMap`; sizes, strides and box come innermost dimension first."""
        rank = len(about["shape"])
        place = ctypes.create_string_buffer(192)
        aligned = (ctypes.addressof(place) + 63) & ~63
        head = (
            ctypes.c_void_p(aligned), TENSOR_TYPES[about["type"]], rank, ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*about["shape"]), (ctypes.c_uint64 * 4)(*about["strides"]),
        )  # fmt: skip
        steps, interleave, promotion = (ctypes.c_uint32 * rank)(*about["steps"]), 0, 0
        swizzle, fill = {0: 0, 32: 1, 64: 2, 128: 3}[about["swizzle"]], int(about["fill"] == "nan")
        walk = about.get("im2col")
        if walk is None:
            box = (ctypes.c_uint32 * rank)(*about["box"])
            code = self.cuda.cuTensorMapEncodeTiled(*head, box, steps, interleave, swizzle, promotion, fill)
        elif walk["along"] == "all":
            corners = (ctypes.c_int * 3)(*walk["lower"]), (ctypes.c_int * 3)(*walk["upper"])
            code = self.cuda.cuTensorMapEncodeIm2col(
                *head, *corners, *about["box"], steps, interleave, swizzle, promotion, fill
            )
        else:
            corner, mode = (walk["lower"][0], walk["upper"][0]), ("w", "w128").index(walk["along"])
            code = self.cuda.cuTensorMapEncodeIm2colWide(
                *head, *corner, *about["box"], steps, interleave, mode, swizzle, promotion, fill
            )
        self.check(code)
        return ctypes.string_at(aligned, 128)

    def launch(self, cubin: bytes, meta: dict[str, Any], params: bytes) -> None:
        """Parameters go one by one: the assembler moves a block that begins with an aligned one."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), cubin))
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, meta["entry"].encode()))
        if meta["shared"] > 48 * 1024:
            self.check(self.cuda.cuFuncSetAttribute(function, 8, meta["shared"]))
        block = ctypes.create_string_buffer(params, max(len(params), 1))
        places = [ctypes.addressof(block) + at for at in meta["offsets"]]
        each = (ctypes.c_void_p * max(len(places), 1))(*places)
        self.check(
            self.cuda.cuLaunchKernel(function, *meta["grid"], *meta["block"], meta["shared"], None, each, None)
        )
        self.check(self.cuda.cuCtxSynchronize())
        self.check(self.cuda.cuModuleUnload(module))


def main(folder: Path) -> int:
    """Run everything in a folder."""
    gpu = Gpu()
    arrays: dict[str, Any]
    results: dict[str, Any] = {"gpu": gpu.description, "date": date.today().isoformat(), "launches": {}}
    if (folder / "forms.json").exists():
        arrays = run_forms(gpu, folder)
        np.savez_compressed(folder / "forms.npz", **arrays)
    if (folder / "matrices.json").exists():
        arrays = run_matrices(gpu, folder)
        np.savez_compressed(folder / "matrices.npz", **arrays)
    for path in sorted(folder.glob("launch-*.npz")):
        case = np.load(path, allow_pickle=False)
        meta = json.loads(str(case["meta"]))
        try:
            told = run_launch(gpu, case, meta)
        except Exception as error:  # one failing case must not hide the others
            told = {"error": str(error)}
        results["launches"][path.stem.removeprefix("launch-")] = told
        print(path.stem, {k: v for k, v in told.items() if k not in ("before", "after")}, flush=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1))
    return 0


def run_forms(gpu: Gpu, folder: Path) -> dict[str, Any]:
    """Result words of all forms, by the number of their batch: u64 [rows, lanes]."""
    words = np.load(folder / "words.npy")
    lanes = len(words)
    source = gpu.upload(words)
    answers = {}
    for batch in json.loads((folder / "forms.json").read_text()):
        pointer = gpu.upload(np.zeros((batch["rows"], lanes), np.uint64))
        params = source.to_bytes(8, "little") + pointer.to_bytes(8, "little")
        meta = {"entry": "forms", "grid": [lanes // 32, 1, 1], "block": [32, 1, 1], "shared": 0, "offsets": [0, 8]}
        gpu.launch((folder / batch["cubin"]).read_bytes(), meta, params)
        answers[batch["cubin"]] = gpu.download(pointer, batch["rows"] * lanes * 8).view(np.uint64).reshape(-1, lanes)
        gpu.free(pointer)
    return answers


def run_matrices(gpu: Gpu, folder: Path) -> dict[str, Any]:
    """Result words of the matrix instructions, by the number of their batch."""
    described = json.loads((folder / "matrices.json").read_text())
    answers = {}
    for number, batch in enumerate(described["batches"]):
        source = gpu.upload(np.load(folder / f"matrices{number}.npy"))
        pointer = gpu.upload(np.zeros(batch["words"], np.uint32))
        params = source.to_bytes(8, "little") + pointer.to_bytes(8, "little")
        meta = {
            "entry": "matrices", "grid": [described["warps"], 1, 1], "block": [32, 1, 1], "shared": 0,
            "offsets": [0, 8],
        }  # fmt: skip
        gpu.launch((folder / f"matrices{number}.cubin").read_bytes(), meta, params)
        answers[f"matrices{number}"] = gpu.download(pointer, batch["words"] * 4).view(np.uint32)
        gpu.free(pointer)
        gpu.free(source)
    return answers


def replay(gpu: Gpu, case: Any, meta: dict[str, Any]) -> list[tuple[int, Any]]:
    """Run one recorded launch: (number, bytes afterwards) of each storage but those that hold device addresses."""
    befores = [case[f"before{i}"] for i in range(meta["storages"])]
    pointers = [gpu.upload(b) for b in befores]
    params = bytearray(case["params"].tobytes())
    for at, storage, offset in meta["pointers"]:
        params[at : at + 8] = (pointers[storage] + offset).to_bytes(8, "little")
    for at, storage, offset, about in meta["maps"]:
        params[at : at + 128] = gpu.tensor_map(pointers[storage] + offset, about)
    gpu.launch(case["cubin"].tobytes(), meta, bytes(params))
    after = []
    for i, (pointer, before) in enumerate(zip(pointers, befores, strict=True)):
        if i not in meta["scratch"]:
            after.append((i, gpu.download(pointer, before.nbytes)))
        gpu.free(pointer)
    return after


def run_launch(gpu: Gpu, case: Any, meta: dict[str, Any]) -> dict[str, Any]:
    """Run one recorded launch and compare all memory with the emulator's."""
    differing = changed = 0
    first = None
    digests: dict[str, list[str]] = {"before": [], "after": []}
    for i, got in replay(gpu, case, meta):
        before, want = case[f"before{i}"], case[f"after{i}"]
        digests["before"].append(hashlib.sha256(before.tobytes()).hexdigest())
        digests["after"].append(hashlib.sha256(got.tobytes()).hexdigest())
        bad = np.flatnonzero(got != want)
        differing += len(bad)
        changed += int((want != before).sum())
        if len(bad) and first is None:
            first = [i, int(bad[0]), int(got[bad[0]]), int(want[bad[0]])]
    return {"bytes_changed": changed, "bytes_differing": differing, "first": first, **digests}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
