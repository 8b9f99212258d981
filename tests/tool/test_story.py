"""The story of examples/story/README.md, step by step, as its reader would do it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]
STORY = ROOT / "examples" / "story"


def steps() -> list[str]:
    """The commands of the README after its preparation, in order."""
    lines = (STORY / "README.md").read_text().splitlines()
    return [line.strip() for line in lines if re.match(r" {7}(gpuemu|git apply) ", line)]


@pytest.mark.slow
def test_the_story(tmp_path):
    for file in STORY.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def do(step: str) -> subprocess.CompletedProcess[str]:
        words = step.split()
        command = [sys.executable, "-m", *words] if words[0] == "gpuemu" else words
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)

    before, change, gate, replay, fix, again, after = steps()
    assert do(before).returncode == 0 and do(change).returncode == 0
    blocked = do(gate)
    assert blocked.returncode == 1, blocked.stderr
    shown = re.search(r"FINDING .*\n(?: {2}.*\n)+", blocked.stderr).group(0)
    readme = "\n".join(line.strip() for line in (STORY / "README.md").read_text().splitlines())
    assert "\n".join(line.strip() for line in shown.splitlines()) in readme, shown
    (result,) = json.loads((tmp_path / "gpuemu.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "fused_matmul.py"
    reproduced = do(replay)
    assert reproduced.returncode == 1 and "bytes identical" in reproduced.stdout and "\nreproduced" in reproduced.stdout
    assert do(fix).returncode == 0
    passes = do(again)
    assert passes.returncode == 0 and "the source as it is now passes this case" in passes.stdout
    clean = do(after)
    assert clean.returncode == 0 and "clean: 48 cases, 0 findings" in clean.stdout
