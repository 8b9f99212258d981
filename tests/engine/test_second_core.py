"""The process that helps to fill an empty cache with runtime functions: each one comes, whoever compiles it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("warp_activemask", "read_clock", "warp_elect")
PROGRAM = """
import interp.runtime.functions
from interp.runtime import native, second_core
names = {names}
native.prefetch(names)
{between}
for name in (*names, *names):
    assert native.address(name)
print(sorted(set(names) & set(native._COMPILED)) == sorted(names))
"""


@pytest.mark.parametrize(
    "between",
    ["", "second_core._helper and second_core._helper._process.kill()", "second_core._helper = None"],
    ids=["both work", "the helper is killed", "there is none"],
)
def test_every_offered_function_is_compiled_once_it_is_needed(tmp_path, between):
    program = PROGRAM.format(names=NAMES, between=between)
    environment = {**os.environ, "GPUEMU_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "True", done.stderr


def test_what_the_helper_took_is_waited_for(tmp_path):
    """The queue is empty at once, the helper has everything: its results are loaded from the cache."""
    program = PROGRAM.format(names=NAMES, between="import time; time.sleep(8)")
    environment = {**os.environ, "GPUEMU_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "True", done.stderr
