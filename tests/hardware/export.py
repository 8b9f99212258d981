"""Write launches for a real GPU: `python -m tests.hardware.export DIR [NAME ...]`, then `on_gpu.py DIR` there.

Each case runs a kernel on the emulator with recording on; every launch becomes one `.npz`: the same PTX assembled for
the GPU (`ptxas -arch=sm_90 -fmad=false`), its memory before, and the emulator's memory after it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from gpuemu.conform.bundle import write_launch
from interp.launch import LaunchRecord, recording
from tests.hardware.cases import CASES


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
        write_launch(options.folder, name, record, options.arch or record.device + special)
        print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
