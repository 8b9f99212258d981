"""What nvcc makes of kernels that use what CUDA C++ offers, executed and checked: `make judges`."""

from __future__ import annotations

from functools import cache

import pytest

from tests.compilers.compilers import SOURCES, cuda_text
from tests.compilers.device_cases import CASES
from tests.compilers.inventory import inventory
from tests.compilers.runner import run

pytestmark = pytest.mark.judge
EXECUTED = ("sm_75", "sm_90a", "sm_120a")
ACCEPTED = ("sm_80", "sm_86", "sm_89", "sm_100a")
WIDE = {"halves": 80}
"""Lowest architecture whose headers compile a source."""

_text = cache(cuda_text)


def _arch(target: str) -> int:
    return int("".join(c for c in target if c.isdigit()))


@pytest.mark.parametrize("target", EXECUTED)
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, target: str) -> None:
    case = CASES[name]
    if not max(case.least, WIDE.get(case.source, 0)) <= _arch(target) <= case.most:
        pytest.skip(f"{name} is not for {target}")
    run(case, _text(case.source, target))


@pytest.mark.parametrize("target", (*EXECUTED, *ACCEPTED))
@pytest.mark.parametrize("source", SOURCES)
def test_every_entry_is_accepted(source: str, target: str) -> None:
    """Entries of CUB's device-wide algorithms among them, which no case launches."""
    if _arch(target) < WIDE.get(source, 0):
        pytest.skip(f"{source} is not for {target}")
    found = inventory([(source, _text(source, target))])
    assert not found.refused, found.render()


@pytest.mark.parametrize("options", [("-G",), ("-Xcicc", "-O0"), ("-lineinfo",), ("-rdc=true",)], ids=lambda o: o[-1])
@pytest.mark.parametrize("name", ["variables", "calls", "control", "by_value", "spaces", "templates", "printing"])
def test_without_optimisation_or_with_more_information(name: str, options: tuple[str, ...]) -> None:
    run(CASES[name], _text("language", "sm_90a", options))
