"""What the assembler says of single lines: one file holds many of them, and its complaints name lines.

The last line of a file is wrong on purpose. That keeps the assembler from making code, which would take most of its
time, and its complaint proves that the whole file was read: some errors make the assembler stop where they stand, and
then the line is put aside and the rest is read again.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

BATCH = 20_000
CRASH = "the assembler crashes"
_COMPLAINT = re.compile(r"line (\d+); (error|fatal)\s*: (.*)")
_SENTINEL = "this_is_no_instruction;"


def complaints(
    ptxas: Path, lines: list[str], write: Callable[[list[str]], str], first: int, arch: str
) -> dict[int, str]:
    """Index of each line that is refused → why. `write`: lines → file; `first`: 1-based number of the first line."""
    if len(lines) > BATCH:
        out: dict[int, str] = {}
        for at in range(0, len(lines), BATCH):
            part = complaints(ptxas, lines[at : at + BATCH], write, first, arch)
            out |= {at + i: why for i, why in part.items()}
        return out
    refused: dict[int, list[str]] = {}
    now = list(lines)
    last = first + len(now)
    while True:
        text = write([*now, _SENTINEL])
        said = _run(ptxas, text, arch)
        found = [(int(n), kind, why) for n, kind, why in _COMPLAINT.findall(said)]
        outside = [f for f in found if not first <= f[0] <= last]
        if not said:  # it crashed: find the line that does it
            if len(lines) == 1:
                return {0: CRASH}
            half = len(lines) // 2
            early = complaints(ptxas, lines[:half], write, first, arch)
            late = complaints(ptxas, lines[half:], write, first, arch)
            return early | {half + i: why for i, why in late.items()}
        if outside or not found:
            raise AssertionError(f"the assembler complains about the file itself: {said[:600]}")
        if any(n == last for n, _, _ in found):
            for n, _, why in found:
                if n != last:
                    refused.setdefault(n - first, []).append(why)
            return {i: "; ".join(dict.fromkeys(why)) for i, why in refused.items()}
        n, _, why = max(found)
        refused.setdefault(n - first, []).append(why)
        now[n - first] = ""


def _run(ptxas: Path, text: str, arch: str) -> str:
    with tempfile.TemporaryDirectory(prefix="gpuemu-legality-") as folder:
        source = Path(folder) / "k.ptx"
        source.write_text(text)
        run = subprocess.run(
            [ptxas, "-w", f"-arch={arch}", source, "-o", Path(folder) / "k.cubin"],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    return run.stderr + run.stdout
