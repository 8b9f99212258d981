"""`gpuemu doctor`: the ranges it checks are those of pyproject.toml, and each failure has its state and its code."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from gpuemu import doctor
from gpuemu.cli import main

ROOT = Path(__file__).parents[2]


def run(capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["doctor"])
    return caught.value.code, capsys.readouterr().out


def test_the_ranges_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = {}
    for text in project["dependencies"]:
        name, low, high = re.match(r"([\w-]+)>=([\d.]+),<([\d.]+)", text).groups()
        ranges[name] = (low, high)
    assert ranges.pop("triton") == doctor.TRITON and ranges == doctor.TESTED
    assert project["requires-python"] == f">={'.'.join(map(str, doctor.PYTHON))}"


def test_this_machine_works(capsys):
    pytest.importorskip("triton")
    code, out = run(capsys)
    assert code == 0, out
    assert "ok       ptx launch     right result" in out and "ok       triton launch  right result" in out


def test_packages(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: "0.1")
    assert doctor.check_package("numba").state == "limited" and doctor.check_triton().state == "fail"

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert doctor.check_package("numba").state == "fail" and "pip install" in doctor.check_package("numba").help
    assert doctor.check_triton().state == "limited" and doctor.check_triton_launch().state == "limited"


def test_an_unsafe_cache_fails_and_none_is_limited(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEMU_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    assert doctor.check_cache().state == "ok"
    tmp_path.chmod(0o777)
    unsafe = doctor.check_cache()
    assert unsafe.state == "fail" and "everybody may write it" in unsafe.found
    monkeypatch.setenv("GPUEMU_CACHE_DIR", "")
    assert doctor.check_cache().state == "limited"


def test_a_full_disk_is_limited(monkeypatch):
    monkeypatch.setattr(doctor, "ROOM", 1 << 80)
    assert doctor.check_space().state == "limited"


def test_what_fails_gives_3_and_no_traceback(monkeypatch, capsys):
    def broken():
        raise OSError("no such library")

    broken.__name__ = "check_ptx_launch"
    monkeypatch.setattr(doctor, "check_ptx_launch", broken)
    monkeypatch.setattr(doctor, "check_triton_launch", lambda: doctor.Check("triton launch", "ok", ""))
    doctor.check_triton_launch.__name__ = "check_triton_launch"
    code, out = run(capsys)
    assert code == 3 and "fail     ptx launch     OSError: no such library" in out
