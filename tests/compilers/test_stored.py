"""Texts that compilers made of `cuda/*.cu` and `numba_kernels.py`, kept in `stored/`: executed with expected results.

A text names its compiler in its head (nvcc 13.0 for the sources in CUDA C++,
NVVM and NVRTC 13.5 behind numba-cuda 0.30).
`test_cuda.py` and `test_numba.py` compile all of them again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compilers.device_cases import CASES as CUDA
from tests.compilers.numba_cases import CASES as NUMBA
from tests.compilers.runner import Case, run

STORED = Path(__file__).with_name("stored")
LAUNCHES: list[tuple[Case, list[Path]]] = [
    (case, [path]) for case in CUDA.values() for path in sorted(STORED.glob(f"{case.source}.sm_*.ptx"))
] + [
    (case, found) for name, case in NUMBA.items() if (found := sorted(STORED.glob(f"numba_{name}.sm_*.ptx")))
]  # fmt: skip


def _launches() -> list[tuple[Case, list[Path]]]:
    return [(c, p) for c, p in LAUNCHES if int("".join(filter(str.isdigit, p[0].suffixes[0]))) <= c.most]


def test_every_stored_text_is_launched() -> None:
    assert {path.name for _, paths in LAUNCHES for path in paths} == {path.name for path in STORED.iterdir()}


@pytest.mark.parametrize(("case", "paths"), _launches(), ids=lambda v: v.entry if isinstance(v, Case) else v[0].stem)
def test_launch(case: Case, paths: list[Path]) -> None:
    run(case, [path.read_text() for path in paths])
