"""Tensor copies compared with a real GPU: maps of all ranks and types in tiled and im2col mode, loads, stores and
reductions, and what hardware and the driver refuse.

    python -m tests.hardware.tensor_copies DIR             cases of the stored answers, and their code, for a GPU
    python tensor_copies_on_gpu.py DIR OUT                 there
    python -m tests.hardware.tensor_copies DIR OUT         the answers that come back, into `h200_tensor_copies.npz`

A case is a dict: `map` (as the driver takes it, innermost dimension first, with its numbers), `op`, `instr` ("tile",
"im2col") and `rank` name the kernel (`tensor_ptx`), `coords`, `offsets`, `expect`, `dump`, `shift` go to it, `content`
and `seed` say what memory holds, `bytes` how much of it there is. Of what comes back a digest is kept, or the words
"fault" and "encode".
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import gpuemu
from gpuemu import Im2col, TensorMap
from gpuemu.conform.bundle import assemble
from interp.memory import plan_addresses
from tests.hardware.tensor_copies_on_gpu import GUARD, arguments, content, entry, loads
from tests.hardware.tensor_ptx import entries, module

STORED = Path(__file__).with_name("h200_tensor_copies.npz")
TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz")
"""Element types by the driver's numbers."""
REFUSED = (gpuemu.InvalidInput, gpuemu.Unsupported)


@lru_cache(maxsize=1)
def stored() -> dict[str, Any]:
    """`about`, `cases`, `answers` (a digest, "fault" or "encode" each), `encodes` and their `codes`."""
    with np.load(STORED, allow_pickle=False) as z:
        return dict(json.loads(zlib.decompress(z["stored"].tobytes())))


def digest(data: Any) -> str:
    return hashlib.blake2b(data.tobytes(), digest_size=8).hexdigest()


def described(m: dict[str, Any], storage: Any) -> TensorMap:
    """The map of a case. Raises what `TensorMap` raises; `Unsupported` for what it cannot say."""
    if m["interleave"] or m["swizzle"] > 3 or not 0 <= m["dtype"] < len(TYPES) or m["fill"] > 1:
        raise gpuemu.Unsupported("not modelled")

    def outer_first(values: list[int]) -> tuple[int, ...]:
        return tuple(reversed(values))

    walk = None
    if m["mode"] != "tile":
        along = "all" if m["mode"] == "im2col" else ("w", "w128", "unknown")[m["wide"]]
        count = 1 if m["mode"] == "wide" else len(m["dims"]) - 2
        lower, upper = ((m[corner] + [0] * 3)[:count] for corner in ("lower", "upper"))  # the driver reads no more
        walk = Im2col(outer_first(lower), outer_first(upper), along)
    return TensorMap(
        storage, outer_first(m["dims"]), outer_first(m["strides"]),
        outer_first(m["box"]) if walk is None else (m["pixels"], m["channels"]), TYPES[m["dtype"]],
        (0, 32, 64, 128)[m["swizzle"]], ("zero", "nan")[m["fill"]], outer_first(m["steps"]), walk,
    )  # fmt: skip


@cache
def kernel(name: str) -> Any:
    return gpuemu.Module.from_ptx(module(entries()[name]))[name]


def emulated(case: dict[str, Any]) -> Any:
    """What the emulator gives for a case, as the GPU's script has it; "fault" or "encode"."""
    memory = np.zeros(case["bytes"] + 256, np.uint8)
    memory = memory[-memory.ctypes.data % 256 :][: case["bytes"]]
    before = content(case["content"], case["bytes"], case["seed"])
    memory[:] = before
    try:
        map_ = described(case["map"], memory[GUARD:])
    except REFUSED:
        return "encode"
    ctas = 2 if case["op"] == "multi" else 1
    io = np.zeros(1 << 20 if case["op"] == "replace" else ctas * (16 + case["dump"]), np.uint8)
    if not loads(case):
        io[16 : 16 + case["dump"]] = content(case["content"], case["dump"], case["seed"] + 1)
    words = np.zeros(14, np.uint32)
    words[:] = arguments(case, plan_addresses([map_.array, words, io])[0] - GUARD)
    shared = 1024 + case["dump"] + 65536
    result = kernel(entry(case)).launch(grid=(ctas,), block=(128,), args=[map_, words, io], shared=shared)
    if result.findings:
        return "fault"
    if not loads(case):
        return memory ^ before
    return io[: ctas * (16 + case["dump"])].reshape(ctas, -1)[:, 16:].reshape(-1)


def write(folder: Path) -> None:
    """A folder for the GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    code = assemble(module(*entries().values()), "sm_90a")
    assert code is not None
    (folder / "copies.cubin").write_bytes(code)
    known = stored()
    (folder / "cases.json").write_text(json.dumps({"cases": known["cases"], "encodes": known["encodes"]}))


def keep(folder: Path, out: Path) -> None:
    """Store the answers of a folder's cases."""
    spec = json.loads((folder / "cases.json").read_text())
    with np.load(out / "answers.npz", allow_pickle=False) as z:
        told = json.loads(str(z["told"]))
        answers = []
        for number in range(len(spec["cases"])):
            name = f"c{number}"
            refusal = "encode" if "encode" in told[str(number)] else "fault"
            answers.append(digest(z[name]) if name in z.files else refusal)
        kept = {"about": json.loads(str(z["about"])), **spec, "answers": answers, "codes": z["encodes"].tolist()}
    data = zlib.compress(json.dumps(kept, separators=(",", ":")).encode(), 9)
    np.savez(STORED, stored=np.frombuffer(data, np.uint8))


if __name__ == "__main__":
    write(Path(sys.argv[1])) if len(sys.argv) == 2 else keep(Path(sys.argv[1]), Path(sys.argv[2]))
