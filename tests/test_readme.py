"""The README is true: its files work, its commands give what it says, its support table is the one of the records."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuemu.commands.isa import support_table
from interp.ops import ISA

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [w for w in command.split() if w]
    assert words[0] == "gpuemu"
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the README has the reader write."""
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("newcomer")
    for body in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        text = re.sub(r"^   ", "", body, flags=re.MULTILINE)
        named = re.match(r"# (\w+\.py)\n", text)
        if named:
            (folder / named[1]).write_text(text)
    assert {p.name for p in folder.glob("*.py")} == {"mykernel.py", "mykernel_op.py"}
    return folder


def test_the_run_command_finds_the_write_outside(newcomer: Path) -> None:
    (command,) = re.findall(r"^ *(gpuemu run mykernel.py.*)$", README, re.MULTILINE)
    done = run(command, newcomer)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "out-of-bounds" in done.stdout + done.stderr
    assert "mykernel.py:11" in done.stdout + done.stderr


def test_the_gate_blocks_and_the_failure_is_reproduced(newcomer: Path) -> None:
    (command,) = re.findall(r"^ *(gpuemu ci mykernel_op.py.*)$", README, re.MULTILINE)
    done = run(command, newcomer)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mykernel.py:11" in done.stdout
    replay = re.search(r"gpuemu reproduce [0-9a-f]+", done.stdout)
    assert replay is not None
    again = run(replay[0], newcomer)
    assert again.returncode == 1, again.stdout + again.stderr


def test_the_corrected_kernel_passes(newcomer: Path, tmp_path: Path) -> None:
    for path in newcomer.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text().replace("mask=at <= n", "mask=at < n"))
    done = run("gpuemu ci mykernel_op.py --parallel 2", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_diff_command_compares_two_block_sizes(newcomer: Path) -> None:
    (command,) = re.findall(r"^ *(gpuemu diff mykernel.py.*)$", README, re.MULTILINE)
    done = run(command, newcomer)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "launch__registers_per_thread" in done.stdout and "measured on 2 targets; no limits set" in done.stdout


def test_the_support_table_is_that_of_the_records() -> None:
    assert support_table(ISA.ops) in README, "run: gpuemu isa --markdown"


def test_the_files_of_the_map_exist() -> None:
    for package, listed in re.findall(r"^(ptx|interp|gpuemu)/ .*\n((?:  .*\n)+)", README, re.MULTILINE):
        for name in re.findall(r"\b[\w/]+\.(?:py|lark)\b", listed):
            assert (ROOT / package / name).exists(), f"{package}/{name}"
        for name in re.findall(r"\b(\w+)/(?=[\s\w.]*?(?:  |$))", listed, re.MULTILINE):
            assert (ROOT / package / name).is_dir(), f"{package}/{name}/"


def test_the_long_support_table_is_generated() -> None:
    """`gpuemu isa --support > docs/support.md` after a change of the records or of the answers."""
    from gpuemu.conform.evidence import evidence, table

    assert (ROOT / "docs" / "support.md").read_text() == table(list(evidence()))
