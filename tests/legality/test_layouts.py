"""Texts in unusual layouts: gpuemu takes what ptxas takes. Its answers are stored; `make judges` asks it again."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from interp.ops import ISA
from ptx.carry import with_carry_flag
from ptx.errors import GpuemuError
from ptx.flatten import flatten
from ptx.parse import parse
from ptx.spaces import with_spaces
from ptx.verify import verify
from tests.legality.disagree import LAYOUTS
from tests.legality.layouts import Layout, layouts


def problem(text: str) -> str | None:
    """What gpuemu says against a text, in the order in which a launch would find it."""
    try:
        module = with_spaces(with_carry_flag(parse(text)))
        found = verify(module, ISA)
        if found:
            return found[0].what
        for kernel in module.kernels:
            if kernel.is_entry and kernel.blocks:
                flatten(module, kernel)
    except GpuemuError as error:
        return error.diagnostic.what
    return None


def test_gpuemu_takes_what_ptxas_takes_of_a_sample() -> None:
    differ = _differ(layouts()[::8])
    assert not {name: said for name, said in differ.items() if not any(re.match(p, name) for p in LAYOUTS)}


@pytest.mark.judge
def test_gpuemu_takes_what_ptxas_takes() -> None:
    differ = _differ(layouts())
    assert not {name: said for name, said in differ.items() if not any(re.match(p, name) for p in LAYOUTS)}
    assert not [p for p in LAYOUTS if not any(re.match(p, name) for name in differ)], "reasons that nothing needs"


def _differ(texts: list[Layout]) -> dict[str, str]:
    differ: dict[str, str] = {}
    for layout in texts:
        said = problem(layout.text)
        if (said is None) != layout.taken:
            differ[layout.name] = said or "taken here"
    return differ


@pytest.mark.judge
def test_the_stored_answers_are_those_of_ptxas(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    ptxas = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas-blackwell"
    if not ptxas.exists():
        pytest.skip("no ptxas of release 13.4 in this Triton")
    wrong = [layout.name for layout in layouts() if _taken(ptxas, layout, tmp_path) != layout.taken]
    assert not wrong


def _taken(ptxas: Path, layout: Layout, folder: Path) -> bool:
    source = folder / "k.ptx"
    source.write_bytes(layout.text.encode())
    target = re.search(r"\.target\s+(sm_\w+)", layout.text)
    known = target is not None and target[1] not in ("sm_50", "sm_60", "sm_80a", "sm_90f", "sm_99")
    arch = target[1] if known and target else "sm_90"
    command = [ptxas, "-w", "-c", "-arch", arch, source, "-o", folder / "k.cubin"]
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
