"""Write launches for a real GPU: `python -m tests.hardware.export DIR [NAME ...]`, then `on_gpu.py DIR` there.

Each case runs a kernel on the emulator with recording on; every launch becomes one `.npz`: the same PTX assembled for
the GPU (`ptxas -arch=sm_90 -fmad=false`), its memory before, and the emulator's memory after it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from interp.arguments import parameter_block
from interp.launch import LaunchRecord, recording
from interp.record import ArrayArgument, ScalarArgument, TensorMapArgument
from interp.tensor_map import TensorMap
from tests.hardware.cases import CASES


def assemble(ptx: str, arch: str) -> bytes:
    """The cubin of PTX text, by the assembler that Triton ships for that PTX version."""
    import triton

    folder = Path(triton.__file__).parent / "backends/nvidia/bin"
    version = re.search(r"\.version\s+(\d+)\.", ptx)
    tool = folder / ("ptxas-blackwell" if version and int(version[1]) >= 9 else "ptxas")
    with tempfile.TemporaryDirectory() as tmp:
        source, out = Path(tmp, "k.ptx"), Path(tmp, "k.cubin")
        source.write_text(ptx)
        subprocess.run([str(tool), f"-arch={arch}", "-fmad=false", str(source), "-o", str(out)], check=True)
        return out.read_bytes()


def described(map_: TensorMap) -> dict[str, Any]:
    """A tensor map as `on_gpu.py` encodes it: innermost dimension first, as the driver takes it."""
    return {
        "type": map_.element_type, "shape": map_.shape[::-1], "strides": map_.strides[::-1], "box": map_.box[::-1],
        "swizzle": map_.swizzle, "fill": map_.fill,
    }  # fmt: skip


def write(record: LaunchRecord, path: Path, arch: str, **more: Any) -> None:
    """One launch as a file for `on_gpu.py`; `more`: further arrays in it."""
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
            maps.append((param.offset, a.memory.storage, a.memory.offset, described(a.map)))
    result_bytes = record.after()
    arrays = {f"before{i}": np.frombuffer(s.before, np.uint8) for i, s in enumerate(record.storages)}
    arrays |= {f"after{i}": np.frombuffer(b, np.uint8) for i, b in enumerate(result_bytes)}
    meta = {
        "entry": record.entry, "grid": record.grid, "block": record.block, "shared": record.shared,
        "storages": len(record.storages), "pointers": pointers,
        "scratch": scratch, "maps": maps,
        "offsets": [p.offset for p in entry.kernel.params],
    }  # fmt: skip
    np.savez_compressed(
        path, meta=json.dumps(meta), params=np.frombuffer(bytes(parameter_block(entry.kernel, args, {})), np.uint8),
        cubin=np.frombuffer(assemble(record.ptx, arch), np.uint8), **arrays, **more,
    )  # fmt: skip


def records(names: list[str]) -> Iterator[tuple[str, LaunchRecord]]:
    """Every launch of the chosen cases."""
    for name, case in CASES.items():
        if names and not any(re.fullmatch(n, name) for n in names):
            continue
        with recording() as log:
            case()
        for i, record in enumerate(log.launches):
            if record.result is None or record.result.findings:
                raise SystemExit(f"{name}: the emulator reports {record.result and record.result.findings}")
            yield (f"{name}.{i}" if len(log.launches) > 1 else name), record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="regular expressions; all cases by default")
    parser.add_argument("--arch", default="", help="architecture to assemble for; default: the device of the launch")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, record in records(options.names):
        special = record.target[-1] if record.target[-1] in "af" else ""
        write(record, options.folder / f"{name}.npz", options.arch or record.device + special)
        print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
