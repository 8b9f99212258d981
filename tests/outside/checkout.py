"""Where outside test suites are: in a checkout that the user names, or in `.judges/`. Never copied here.

`GPUEMU_<NAME>` names a checkout; `make judges` clones the missing ones. Without one the tests skip, and say so.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SOURCES = {"ZLUDA": "https://github.com/vosen/ZLUDA", "PTX_TESTS": "https://github.com/vosen/ptx_tests"}


def checkout(name: str) -> Path:
    """The folder of an outside project; skips the test where there is none."""
    given = os.environ.get(f"GPUEMU_{name}")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / ".judges" / name
    if not folder.is_dir():
        pytest.skip(f"no checkout of {SOURCES[name]}: set GPUEMU_{name}, or run `make judges`", allow_module_level=True)
    return folder
