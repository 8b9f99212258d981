"""Run the cases of `tensor_copies` on a GPU: `python tensor_copies_on_gpu.py DIR OUT`. Needs numpy and a driver only.

DIR holds `cases.json` and `copies.cubin` (`python -m tests.hardware.tensor_copies DIR`). Some cases stop the GPU with
an illegal instruction, after which a process can do nothing more: the rest goes on in another one. Writes
`answers.npz`: what each case gave, `encodes`: the driver's return codes.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

GUARD, MEMORY = 1024, 8 << 20
"""Bytes in front of and behind a tensor, and in all."""


def content(kind: str, nbytes: int, seed: int) -> Any:
    """What memory holds: "index" the number of each 32-bit word, "bits" noise, "mild16", "mild32" floats near 1,
    "tiny32" subnormals, NaN and more, "ties32" what lies between tf32 numbers."""
    index = np.arange((nbytes + 3) // 4, dtype=np.uint64)
    if kind == "index":
        return index.astype(np.uint32).view(np.uint8)[:nbytes]
    low = np.uint64(0xFFFFFFFF)
    x = (index * np.uint64(2654435761) + np.uint64(seed * 40503 + 12345)) & low
    for shift, factor in ((15, 2246822519), (13, 3266489917)):
        x ^= x >> np.uint64(shift)
        x = x * np.uint64(factor) & low
    w = (x ^ x >> np.uint64(16)).astype(np.uint32)
    sign, infinite = w & np.uint32(0x80000000), np.uint32(0x7F800000)
    if kind == "mild32":
        w = (w & np.uint32(0x81FFFFFF)) | np.uint32(0x3E000000)
    if kind == "mild16":
        w = (w & np.uint32(0x87FF87FF)) | np.uint32(0x38003800)
    if kind == "tiny32":
        small = w & np.uint32(0x80FFFFFF)
        w = np.choose(w & 3, [w & np.uint32(0x807FFFFF), w | infinite, small, w]).astype(np.uint32)
    if kind == "ties32":
        k = (w >> 2) & 15
        w = (w & np.uint32(0xFFFFE000)) | np.array([0x1000, 0x0FFF, 0x1001, 0x1000], np.uint32)[w & 3]
        w = np.where(k == 0, (w | np.uint32(0x7F7FE000)) & np.uint32(0xFF7FFFFF), w)
        w = np.where(k == 1, sign | infinite, w)
        w = np.where(k == 2, w | infinite, w)
        w = np.where(k == 3, w & np.uint32(0x807FFFFF), w).astype(np.uint32)
    return w.view(np.uint8)[:nbytes]


def arguments(case: dict[str, Any], memory: int) -> Any:
    """The words of `args`."""
    numbers = [*(case["coords"] + [0] * 5)[:5], *(case["offsets"] + [0] * 3)[:3]]
    numbers += [case["expect"], case["dump"], case["shift"], 0, (memory + GUARD) & 0xFFFFFFFF, (memory + GUARD) >> 32]
    return np.array(numbers, np.int64).astype(np.uint32)


def entry(case: dict[str, Any]) -> str:
    return f"{case['op']}_{case['instr']}_{case['rank']}"


def loads(case: dict[str, Any]) -> bool:
    return case["op"] in ("load", "replace", "multi", "cta")


class Gpu:
    """Just enough of the driver API. RuntimeError for a CUDA error."""

    def __init__(self, folder: Path) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.check(self.cuda.cuInit(0))
        device, context, self.module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cuDeviceGet(ctypes.byref(device), 0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.check(self.cuda.cuCtxSetCurrent(context))
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.cuda.cuDeviceGetName(name, 100, device)
        self.cuda.cuDriverGetVersion(ctypes.byref(version))
        self.description = f"{name.value.decode()}, driver API {version.value}"
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), (folder / "copies.cubin").read_bytes()))
        self.memory, self.args, self.io = (self.allocate(n) for n in (MEMORY, 64, 1 << 20))

    def check(self, code: int) -> None:
        if code:
            raise RuntimeError(f"CUDA error {code}")

    def allocate(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)))
        return pointer.value

    def put(self, pointer: int, data: Any) -> None:
        data = np.ascontiguousarray(data)
        place = data.ctypes.data_as(ctypes.c_void_p)
        self.check(self.cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(pointer), place, ctypes.c_size_t(data.nbytes)))

    def get(self, pointer: int, size: int) -> Any:
        out = np.empty(size, np.uint8)
        place = out.ctypes.data_as(ctypes.c_void_p)
        self.check(self.cuda.cuMemcpyDtoH_v2(place, ctypes.c_uint64(pointer), ctypes.c_size_t(size)))
        return out

    def encode(self, m: dict[str, Any]) -> tuple[int, bytes]:
        """The driver's return code and the map."""
        rank = len(m["dims"])
        place = ctypes.create_string_buffer(256)
        at = (ctypes.addressof(place) + 63) & ~63
        words, halves, whole = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int
        head = (
            ctypes.c_void_p(at), m["dtype"], rank, ctypes.c_void_p(self.memory + GUARD + m.get("base", 0)),
            (words * rank)(*m["dims"]), (words * max(rank - 1, 1))(*m["strides"]),
        )  # fmt: skip
        steps, tail = (halves * rank)(*m["steps"]), (m["swizzle"], 0, m["fill"])
        if m["mode"] == "tile":
            box = (halves * rank)(*m["box"])
            code = self.cuda.cuTensorMapEncodeTiled(*head, box, steps, m["interleave"], *tail)
        elif m["mode"] == "im2col":
            corners = [(whole * 3)(*(m[c] + [0] * 3)[:3]) for c in ("lower", "upper")]
            code = self.cuda.cuTensorMapEncodeIm2col(
                *head, *corners, m["channels"], m["pixels"], steps, m["interleave"], *tail
            )
        else:
            corner, box = (m["lower"][0], m["upper"][0]), (m["channels"], m["pixels"])
            code = self.cuda.cuTensorMapEncodeIm2colWide(
                *head, *corner, *box, steps, m["interleave"], m["wide"], *tail
            )
        return code, ctypes.string_at(at, 128)

    def run(self, case: dict[str, Any]) -> Any:
        """Bytes of a load, what a store changed (exclusive or), or the driver's refusal of the map."""
        before = content(case["content"], case["bytes"], case["seed"])
        self.put(self.memory, before)
        code, block = self.encode(case["map"])
        if code:
            return f"encode {code}"
        self.put(self.args, arguments(case, self.memory))
        if not loads(case):
            self.put(self.io + 16, content(case["content"], case["dump"], case["seed"] + 1))
        function, params = ctypes.c_void_p(), ctypes.create_string_buffer(block, 128)
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, entry(case).encode()))
        self.check(self.cuda.cuFuncSetAttribute(function, 8, 200 * 1024))
        pointers = [ctypes.c_uint64(p) for p in (self.args, self.io)]
        each = (ctypes.c_void_p * 3)(ctypes.addressof(params), *map(ctypes.addressof, pointers))
        ctas = 2 if case["op"] == "multi" else 1
        shared = 1024 + case["dump"] + 65536
        self.check(self.cuda.cuLaunchKernel(function, ctas, 1, 1, 128, 1, 1, shared, None, each, None))
        self.check(self.cuda.cuCtxSynchronize())
        if not loads(case):
            return self.get(self.memory, case["bytes"]) ^ before
        parts = self.get(self.io, ctas * (16 + case["dump"])).reshape(ctas, -1)
        return parts[:, 16:].reshape(-1) if parts[:, 8].all() else "not done"


def worker(folder: Path, out: Path, start: int) -> None:
    """Cases from `start` on, up to the first that stops the GPU."""
    cases = json.loads((folder / "cases.json").read_text())["cases"]
    gpu = Gpu(folder)
    told: dict[str, str] = {}
    arrays = {}
    for number in range(start, len(cases)):
        try:
            answer = gpu.run(cases[number])
        except RuntimeError as error:
            told[str(number)] = str(error)
            break
        told[str(number)] = answer if isinstance(answer, str) else ""
        if not isinstance(answer, str):
            arrays[f"c{number}"] = answer
    np.savez_compressed(out / f"part{start:05}.npz", told=json.dumps(told), **arrays)


def main(folder: Path, out: Path) -> None:
    spec = json.loads((folder / "cases.json").read_text())
    told: dict[str, str] = {}
    arrays: dict[str, Any] = {}
    while len(told) < len(spec["cases"]):
        start = len(told)
        subprocess.run([sys.executable, __file__, str(folder), str(out), str(start)], timeout=100, check=True)
        part = out / f"part{start:05}.npz"
        with np.load(part) as z:
            told |= json.loads(str(z["told"]))
            arrays |= {name: z[name] for name in z.files if name != "told"}
        part.unlink()
    gpu = Gpu(folder)
    codes = [gpu.encode(m)[0] for m in spec["encodes"]]
    about = {"gpu": gpu.description, "date": date.today().isoformat()}
    np.savez_compressed(
        out / "answers.npz", about=json.dumps(about), told=json.dumps(told), encodes=np.array(codes), **arrays
    )


if __name__ == "__main__":
    where, target = Path(sys.argv[1]), Path(sys.argv[2])
    worker(where, target, int(sys.argv[3])) if len(sys.argv) > 3 else main(where, target)
