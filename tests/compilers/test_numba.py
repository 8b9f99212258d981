"""What numba-cuda makes of kernels that use all it offers, executed and checked: `make judges`.

The compiler is asked in a process of its own, that of `GPUEMU_JUDGES_PYTHON` where that is set: an interpreter whose
environment has the packages of the optional group `judges`. Without them the tests skip and say so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compilers.compilers import numba_texts
from tests.compilers.numba_cases import CASES
from tests.compilers.runner import run

pytestmark = pytest.mark.judge
Texts = tuple[str, Path]


@pytest.fixture(scope="module", params=("7.5", "9.0", "12.0"))
def texts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Texts:
    """A target, and a folder with the texts of all kernels for it."""
    folder = tmp_path_factory.mktemp("numba")
    numba_texts(folder, [request.param])
    return "sm_" + request.param.replace(".", ""), folder


@pytest.mark.parametrize("name", CASES)
def test_kernel(texts: Texts, name: str) -> None:
    target, folder = texts
    found = sorted(folder.glob(f"{name}.{target}.*.ptx"))
    assert found, f"numba-cuda made no text of {name}"
    run(CASES[name], [path.read_text() for path in found])
