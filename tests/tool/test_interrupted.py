"""What is lost when a sweep is stopped or the disk is full: nothing that was finished."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import bad_input
import fake_engine as fake
import pytest

from gpuemu.files import write_atomically
from gpuemu.gate.sweep import Plan, sweep
from gpuemu.replay import write
from gpuemu.reports.text import text_report
from ptx.errors import InvalidInput

ROOT = Path(__file__).parents[2]
BUG = bad_input.op(launch="run(kernel, (1,), x, y, 3, BLOCK=4)")
SLOW = """
import time
import gpuemu
from gpuemu import Input, Output, bounds

@gpuemu.op(dims={"N": (1,)}, inputs={"x": Input("N")}, outputs={"y": Output("N")}, reference=lambda x: x,
           bound=bounds.exact(), name="slow")
def slow(run, x, y):
    time.sleep(100)
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gpuemu", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.parametrize("how, whole_group", [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)])
def test_a_stopped_sweep_reports_what_it_finished(tmp_path, how, whole_group):
    pytest.importorskip("triton")
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.py").write_text(BUG)
    (tmp_path / "b.py").write_text(SLOW)
    (tmp_path / "report.json").write_text("old")
    running = start(tmp_path, "ci", ".", "--format", "json", "--output", "report.json", "--parallel", "2")
    for line in running.stderr:
        if line.startswith("3/"):
            break
    begin = time.monotonic()
    (os.killpg if whole_group else os.kill)(running.pid, how)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130 and time.monotonic() - begin < 30, err
    assert "Traceback" not in err and "FINDING a.py" in err and "interrupted after 3 of 12 cases" in err
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["interrupted"] is True and report["exit_code"] == 130
    assert [b["op"] for b in report["bugs"]] == ["copy"] and len(report["cases"]) == 3
    replays = list((tmp_path / ".gpuemu" / "replays").iterdir())
    assert len(replays) == 3 and all((r / "case.json").exists() for r in replays)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == [
        ".git", ".gpuemu", "a.py", "b.py", "report.json",
    ]  # fmt: skip


def test_a_reader_that_leaves_does_not_make_a_verdict_green(tmp_path):
    pytest.importorskip("triton")
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.py").write_text(BUG)
    running = start(tmp_path, "ci", ".")
    running.stdout.close()
    with running.stderr:
        err = running.stderr.read()
    assert running.wait(timeout=60) == 1 and "Traceback" not in err, err


def test_standard_output_on_a_full_disk(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "gpuemu", "ci", "."]
        done = subprocess.run(command, cwd=tmp_path, env=env, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "invalid input: cannot write the report to standard output: No space left on device"


def test_a_full_disk_costs_the_replay_and_not_the_finding(tmp_path, monkeypatch):
    fake.install(monkeypatch)
    fake.softmax_file(tmp_path, "k.py", "softmax", "0.0")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(write.os, "rename", full)
    plan = Plan(paths=(str(tmp_path),), root=str(tmp_path), replays=str(tmp_path / "replays"), parallel=0, quick=True)
    result = sweep(plan)
    assert result.exit_code == 1 and "replay: not written: No space left on device" in text_report(result)
    assert list((tmp_path / "replays").iterdir()) == []


def test_a_report_replaces_the_old_one_whole_or_not_at_all(tmp_path, monkeypatch):
    place = tmp_path / "r.txt"
    write_atomically(place, b"old")
    link = tmp_path / "link.txt"
    link.symlink_to(place)
    write_atomically(link, b"new")
    assert link.is_symlink() and place.read_bytes() == b"new"

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match=r"cannot write .*r\.txt: No space left on device"):
        write_atomically(place, b"newer")
    assert place.read_bytes() == b"new" and sorted(tmp_path.iterdir()) == [link, place]
