"""Launches kernels of the checked-in PTX corpus (tests/ptx): no Triton needed."""

from __future__ import annotations

from functools import cache
from typing import Any

from interp.launch import Entry, Module, Result
from tests.ptx import regenerate

SHARED = 96 * 1024
"""Dynamic shared memory, more than any kernel of the corpus asks for (the PTX does not say how much)."""


@cache
def entry(name: str, device: str | None = None) -> Entry:
    module = Module.from_ptx(regenerate.read(name), device=device, fmad="off")
    return module[regenerate.CORPUS[name]["kernel"]]


def launch(name: str, grid: Any, *args: Any, device: str | None = None, **options: Any) -> Result:
    """Launch with the block size of the text; the two hidden scratch arguments are null. The launch must be clean."""
    kernel = entry(name, device)
    (threads, *_) = kernel.kernel.directives[".reqntid"]
    result = kernel.launch(grid=grid, block=threads, args=[*args, 0, 0], shared=SHARED, **options)
    assert result.findings == ()
    return result
