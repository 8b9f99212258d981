"""Make `h200_forms.npz` and `h200_matrices.npz`: `python -m tests.isa.on_gpu write DIR`, then on a GPU
`python DIR/on_gpu.py run DIR FORMS.npz MATRICES.npz`.

`write` puts a PTX file for every batch of forms into DIR, with the input words and this file and the driver
interface. `run` needs numpy and a CUDA driver only; its outputs are the archives that the tests read.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import sys
from pathlib import Path

import numpy as np

LANES, DRAWN, SEED, BATCH = 128, 1024, 7, 128


def write(folder: Path) -> None:
    """Every form that the assembler for sm_90 takes."""
    import interp.runtime.functions  # noqa: F401
    from tests.isa.forms import asked, forms, inputs, lane_records, ptx

    folder.mkdir(parents=True, exist_ok=True)
    items = [
        f
        for op in lane_records()
        if asked(op)
        for f in forms(op)
        if not f.opcode.startswith("cvta") or ".u32" not in f.opcode
    ]
    np.save(folder / "words.npy", inputs(SEED, DRAWN)[:LANES])
    listing = []
    for number, start in enumerate(range(0, len(items), BATCH)):
        batch = items[start : start + BATCH]
        (folder / f"batch{number}.ptx").write_text(ptx(batch, LANES))
        listing.append([(f.opcode, len(f.results)) for f in batch])
    (folder / "listing.json").write_text(json.dumps(listing))
    write_matrices(folder)
    shutil.copy(__file__, folder / "on_gpu.py")
    shutil.copy(Path(__file__).parent.parent / "hardware" / "on_gpu.py", folder / "gpu.py")


def write_matrices(folder: Path) -> None:
    """The matrix instructions that sm_90 has, a file for each batch, and their operands."""
    from tests.isa.matrices import SEED as MATRIX_SEED
    from tests.isa.matrices import WARPS, cases, inputs, ptx

    chosen = [c for c in cases() if c.target == "sm_90a"]
    listing = []
    for number, start in enumerate(range(0, len(chosen), 20)):
        batch = chosen[start : start + 20]
        (folder / f"matrices{number}.ptx").write_text(ptx(batch))
        np.save(folder / f"matrices{number}.npy", np.concatenate([inputs(c, MATRIX_SEED).reshape(-1) for c in batch]))
        listing.append([(c.name, c.words[1]) for c in batch])
    (folder / "matrices.json").write_text(json.dumps({"warps": WARPS, "batches": listing}))


def run_matrices(gpu: object, folder: Path, target: Path) -> None:
    """Launch the matrix instructions and store their answers by name, u32 [lane, word]."""
    described = json.loads((folder / "matrices.json").read_text())
    warps, answers = described["warps"], {}
    for number, batch in enumerate(described["batches"]):
        source = gpu.upload(np.load(folder / f"matrices{number}.npy"))  # type: ignore[attr-defined]
        count = sum(words for _, words in batch) * 32 * warps
        pointer = gpu.upload(np.zeros(count, np.uint32))  # type: ignore[attr-defined]
        text = (folder / f"matrices{number}.ptx").read_bytes() + b"\0"
        parameters = bytes(ctypes.c_uint64(source)) + bytes(ctypes.c_uint64(pointer))
        gpu.launch(text, "matrices", [warps, 1, 1], [32, 1, 1], 0, parameters)  # type: ignore[attr-defined]
        out = gpu.download(pointer, count * 4).view(np.uint32)  # type: ignore[attr-defined]
        at = 0
        for name, words in batch:
            answers[name] = out[at : at + 32 * warps * words].reshape(32 * warps, words)
            at += 32 * warps * words
    np.savez_compressed(target, **answers)


def run(folder: Path, target: Path, matrices: Path) -> None:
    """Launch every batch and store the answers."""
    sys.path.insert(0, str(folder))
    from gpu import Gpu  # type: ignore[import-not-found]

    gpu = Gpu()
    run_matrices(gpu, folder, matrices)
    words = np.load(folder / "words.npy")
    source = gpu.upload(words)
    answers: dict[str, np.ndarray] = {}
    for number, batch in enumerate(json.loads((folder / "listing.json").read_text())):
        count = sum(results for _, results in batch)
        pointer = gpu.upload(np.zeros((count, LANES), np.uint64))
        text = (folder / f"batch{number}.ptx").read_bytes() + b"\0"
        parameters = bytes(ctypes.c_uint64(source)) + bytes(ctypes.c_uint64(pointer))
        gpu.launch(text, "forms", [LANES // 32, 1, 1], [32, 1, 1], 0, parameters)
        out = gpu.download(pointer, count * LANES * 8).view(np.uint64).reshape(count, LANES)
        at = 0
        for opcode, results in batch:
            answers[opcode] = out[at : at + results]
            at += results
    opcodes = sorted(answers)
    first = np.cumsum([0, *(len(answers[o]) for o in opcodes)])[:-1].astype(np.int32)
    rows = np.concatenate([answers[o] for o in opcodes])
    np.savez_compressed(target, words=words, opcodes=np.array(opcodes), first=first, answers=rows)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    else:
        run(Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
