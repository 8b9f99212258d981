"""A folder that a machine with a GPU can run by itself: assembled forms, recorded launches, `on_gpu.py`.

Code is assembled here, by the assembler that comes with Triton, so that the GPU's driver may be older than the PTX: the
forms without contraction (`-fmad=false`), launches as they were recorded. Forms that the assembler refuses for the
target are found by halving their batch and listed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuemu.conform import matrices, on_gpu
from gpuemu.conform.answers import Answers
from gpuemu.conform.forms import Form, forms, lane_records, ptx
from gpuemu.conform.words import Words, inputs
from interp.arguments import parameter_block
from interp.record import ArrayArgument, LaunchRecord, ScalarArgument, TensorMapArgument
from interp.tensor_map import TensorMap
from ptx.errors import InvalidInput
from ptx.lower import toolchain

LANES, DRAWN, SEED, BATCH = 128, 1024, 7, 128


@dataclass(frozen=True)
class Bundle:
    """A written folder: the forms in it, by cubin, and those that the assembler refused."""

    folder: Path
    target: str
    words: Words
    batches: dict[str, list[Form]]
    refused: tuple[str, ...]


def assemble(text: str, arch: str, fmad: bool = False) -> bytes | None:
    """The cubin of PTX text, without contraction unless `fmad`, by the first assembler that takes it; None when none
    does."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text)
        for name in toolchain.assemblers(toolchain.architecture(arch)):
            command: list[str | Path] = [toolchain.tool(name), f"-arch={arch}", source, "-o", out]
            command += [f"-fmad={str(fmad).lower()}"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return out.read_bytes()
    return None


def write_forms(folder: Path, target: str) -> Bundle:
    """Every form of the lane instructions that `target` (`sm_90a`) has."""
    folder.mkdir(parents=True, exist_ok=True)
    arch = int("".join(c for c in target if c.isdigit()))
    items = [f for op in lane_records() if op.since[1] <= arch for f in forms(op)]
    words = inputs(SEED, DRAWN)[:LANES]
    np.save(folder / "words.npy", words)
    batches: dict[str, list[Form]] = {}
    refused: list[str] = []
    work = [items[i : i + BATCH] for i in range(0, len(items), BATCH)]
    while work:
        batch = work.pop()
        cubin = assemble(ptx(batch, LANES, target), target)
        if cubin is None:
            if len(batch) == 1:
                refused.append(batch[0].key)
            else:
                work += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
            continue
        name = f"forms{len(batches)}.cubin"
        (folder / name).write_bytes(cubin)
        batches[name] = batch
    listing = [
        {"cubin": n, "rows": sum(len(f.results) for f in b), "opcodes": [f.key for f in b]}
        for n, b in batches.items()
    ]
    (folder / "forms.json").write_text(json.dumps(listing))
    _write_matrices(folder, target)
    (folder / "about.json").write_text(json.dumps({"target": target, "refused": sorted(refused)}))
    shutil.copy(on_gpu.__file__, folder / "on_gpu.py")
    return Bundle(folder, target, words, batches, tuple(sorted(refused)))


def _write_matrices(folder: Path, target: str) -> None:
    """The matrix instructions of a target: code, operands and names of each batch."""
    listing = []
    for number, batch in enumerate(matrices.batches([c for c in matrices.cases() if c.target == target])):
        cubin = assemble(matrices.ptx(batch), target)
        if cubin is None:
            raise InvalidInput(f"the assembler refuses matrix instructions for {target}: {batch[0].name} and following")
        (folder / f"matrices{number}.cubin").write_bytes(cubin)
        given = [matrices.inputs(c, matrices.SEED).reshape(-1) for c in batch]
        np.save(folder / f"matrices{number}.npy", np.concatenate(given))
        words = sum(c.words[1] for c in batch) * 32 * matrices.WARPS
        listing.append({"words": words, "names": [c.name for c in batch]})
    (folder / "matrices.json").write_text(json.dumps({"warps": matrices.WARPS, "batches": listing}))


def read_forms(folder: Path) -> Bundle:
    """A bundle that was written before. InvalidInput when the folder is none, or its forms are not today's."""
    try:
        about = json.loads((folder / "about.json").read_text())
        listing = json.loads((folder / "forms.json").read_text())
        words = np.load(folder / "words.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        why = "there is none" if not folder.exists() else getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{folder} is not a folder of `gpuemu conform --export`: {why}") from error
    known = {f.key: f for op in lane_records() for f in forms(op)}
    batches = {b["cubin"]: [known.get(o) for o in b["opcodes"]] for b in listing}
    if any(None in b for b in batches.values()):
        raise InvalidInput(f"{folder} has instructions that this version does not know", help="export it anew")
    return Bundle(folder, about["target"], words, batches, tuple(about["refused"]))  # type: ignore[arg-type]


def collect(bundle: Bundle) -> Answers:
    """The answers that `on_gpu.py` left in a bundle's folder."""
    try:
        told = json.loads((bundle.folder / "results.json").read_text())
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{bundle.folder} has no answers of a GPU yet",
            help=f"on the machine with the GPU: python3 on_gpu.py {bundle.folder}",
        ) from error
    results: dict[str, Words] = {}
    with np.load(bundle.folder / "forms.npz", allow_pickle=False) as archive:
        for name, batch in bundle.batches.items():
            at, rows = 0, archive[name]
            for f in batch:
                results[f.key] = rows[at : at + len(f.results)]
                at += len(f.results)
    products: dict[str, np.ndarray[Any, Any]] = {}
    known = {c.name: c for c in matrices.cases()}
    listing = json.loads((bundle.folder / "matrices.json").read_text())["batches"]
    with np.load(bundle.folder / "matrices.npz", allow_pickle=False) as archive:
        for number, told_batch in enumerate(listing):
            asked = [known[n] for n in told_batch["names"]]
            parts = matrices.split(archive[f"matrices{number}"], asked)
            products |= {c.name: p for c, p in zip(asked, parts, strict=True)}
    return Answers(told["gpu"], told["date"], bundle.target, bundle.words, results, bundle.refused, products)


# ------------------------------------------------------------------------------------------------ launches
def write_launch(folder: Path, name: str, record: LaunchRecord, arch: str, **more: Any) -> None:
    """One recorded launch as a file for `on_gpu.py`; `more`: further arrays in it. InvalidInput when the assembler
    refuses the code."""
    folder.mkdir(parents=True, exist_ok=True)
    entry = record.module[record.entry]
    args: list[Any] = []
    pointers, scratch, maps = [], [], []
    for param, a in zip(entry.kernel.params, record.arguments, strict=True):
        if isinstance(a, ArrayArgument):
            args.append(0)
            if a.storage is not None:
                pointers.append((param.offset, a.storage, a.offset))
                scratch += [a.storage] if a.name.endswith(" scratch") else []
        elif isinstance(a, ScalarArgument):
            args.append(a.value)
        elif isinstance(a, TensorMapArgument):
            args.append(bytes(128))
            maps.append((param.offset, a.memory.storage, a.memory.offset, _described(a.map)))
    cubin = assemble(record.ptx, arch, fmad=record.fmad not in (None, "off"))
    if cubin is None:
        raise InvalidInput(f"the assembler refuses '{record.entry}' for {arch}", help="see ptxas's own message for why")
    arrays: dict[str, Any] = {f"before{i}": np.frombuffer(s.before, np.uint8) for i, s in enumerate(record.storages)}
    arrays |= {f"after{i}": np.frombuffer(b, np.uint8) for i, b in enumerate(record.after())}
    meta = {
        "entry": record.entry, "grid": record.grid, "block": record.block, "shared": record.shared,
        "storages": len(record.storages), "pointers": pointers, "scratch": scratch, "maps": maps,
        "offsets": [p.offset for p in entry.kernel.params],
    }  # fmt: skip
    np.savez_compressed(
        folder / f"launch-{name}.npz", meta=json.dumps(meta), cubin=np.frombuffer(cubin, np.uint8),
        params=np.frombuffer(bytes(parameter_block(entry.kernel, args, {})), np.uint8), **arrays, **more,
    )  # fmt: skip
    shutil.copy(on_gpu.__file__, folder / "on_gpu.py")


def _described(map_: TensorMap) -> dict[str, Any]:
    """A tensor map as `on_gpu.py` encodes it: innermost dimension first, as the driver takes it."""
    about: dict[str, Any] = {
        "type": map_.element_type, "shape": map_.shape[::-1], "strides": map_.strides[::-1], "box": map_.box[::-1],
        "swizzle": map_.swizzle, "fill": map_.fill, "steps": (map_.steps or (1,) * len(map_.shape))[::-1],
    }  # fmt: skip
    if map_.im2col is not None:
        walk = map_.im2col
        about["im2col"] = {"lower": walk.lower[::-1], "upper": walk.upper[::-1], "along": walk.along}
    return about


