"""An arm64 Python on another machine: Debian's packages and PyPI's wheels unpacked into a folder, run by qemu-user.

    python -m tests.portability.arm64 --build                          makes .judges/arm64 (Debian, 360 MB, no root)
    python -m tests.portability.arm64 -m tests.portability.programs arithmetic
    GPUEMU_CPU=neoverse-v1 python -m tests.portability.arm64 ...       with BF16, FP16 and SVE instructions

`make arm64` builds it and runs `test_arm64.py`. Nothing is installed: apt works on state of its own in the folder, with
arm64 as its only architecture and no package installed, so that it resolves what Python needs; wheels are those of the
versions in the environment that runs this, so only the processor differs. Triton is left out: the programs start from
PTX. What is checked is code that LLVM makes for arm64, in the whole tool; qemu stands for a processor that follows the
Arm manual. Each function costs about ten times what it costs natively, compiling most of all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".judges" / "arm64"
READY = FOLDER / "ready.json"
"""Written last: the versions that the folder holds."""
PACKAGES = ("python3", "libstdc++6")
LEFT_OUT = frozenset({"triton"})
WHEELS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")


def missing() -> str | None:
    """Why there is no arm64 Python here; None where there is one."""
    return None if READY.is_file() else "no arm64 Python here: `make arm64` makes one from Debian's packages"


def versions() -> dict[str, str]:
    """Of qemu, Python and the packages in the folder."""
    return dict(json.loads(READY.read_text()))


def command(*words: str) -> list[str]:
    """The command line that runs the arm64 Python with these words."""
    return [str(_qemu()), "-L", str(FOLDER / "system"), str(_python()), *words]


def environment() -> dict[str, str]:
    """This process's environment, with modules of the folder, and a cache beside it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUEMU_", "PYTHON", "OPENBLAS_"))}
    kept |= {k: v for k, v in os.environ.items() if k.startswith("GPUEMU_CPU")}
    path = os.pathsep.join([str(ROOT), str(FOLDER / "modules")])
    return {**kept, "PYTHONPATH": path, "GPUEMU_CACHE_DIR": str(FOLDER / "cache"), "GPUEMU_CACHE_MIB": "16000"}


def build() -> None:
    """Make the folder anew; its cache stays. Raises CalledProcessError or OSError, with the tool's own words on
    standard error."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise OSError(f"no {tool}: this needs Debian, whose packages it unpacks")
    READY.unlink(missing_ok=True)
    for name in ("system", "emulator", "modules"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    _unpack("arm64", PACKAGES, FOLDER / "system")
    native = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    _unpack(native, ("qemu-user-static",), FOLDER / "emulator")
    for other in (p for p in (FOLDER / "emulator/usr/bin").iterdir() if p != _qemu()):
        other.unlink()  # emulators of other processors: most of the package
    release = _python().name.removeprefix("python")
    wanted = _wanted()
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-compile", "--target", str(FOLDER / "modules")]
    words += [f"--platform={name}" for name in WHEELS] + [f"--python-version={release}", "--only-binary=:all:"]
    subprocess.run([sys.executable, "-m", "pip", *words, *(f"{n}=={v}" for n, v in wanted.items())], check=True)
    told = subprocess.run([str(_qemu()), "--version"], capture_output=True, text=True, check=True).stdout.split()
    machine, python = _said("import platform; print(platform.machine(), platform.python_version())").split()
    READY.write_text(json.dumps({"machine": machine, "qemu": told[2], "python": python, **wanted}))


def _said(code: str) -> str:
    done = subprocess.run(command("-c", code), env=environment(), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _unpack(architecture: str, packages: tuple[str, ...], place: Path) -> None:
    """Debian packages and all that they depend on, unpacked into a folder."""
    apt = FOLDER / "apt" / architecture
    for name in ("state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "installed").write_text("")
    settings = {
        "APT::Architecture": architecture, "APT::Architectures": architecture, "APT::Sandbox::User": "root",
        "Dir::State": apt / "state", "Dir::State::status": apt / "installed", "Dir::Cache": apt / "cache",
        "Debug::NoLocking": "1",
    }  # fmt: skip
    get = ["apt-get", "--quiet=2", *(f"-o{k}={v}" for k, v in settings.items())]
    subprocess.run([*get, "update"], check=True)
    subprocess.run([*get, "install", "--yes", "--download-only", "--no-install-recommends", *packages], check=True)
    place.mkdir(parents=True)
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(place)], check=True)
    shutil.rmtree(apt)


def _wanted() -> dict[str, str]:
    """The project's dependencies, and those for tests of its own, at the versions that are installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [_name(r) for r in (*project["dependencies"], "pytest", "hypothesis")]
    found = {}
    for name in names:
        if name not in LEFT_OUT:
            try:
                found[name] = version(name)
            except PackageNotFoundError as error:
                raise OSError(f"{name} is not installed here: run this in the project's environment") from error
    return found


def _name(requirement: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else " " for c in requirement).split()[0]


def _python() -> Path:
    """The arm64 interpreter: python3.11, say."""
    found = sorted(p for p in (FOLDER / "system/usr/bin").glob("python3.*") if p.name[8:].isdigit())
    if not found:
        raise OSError(f"no Python was unpacked into {FOLDER / 'system'}")
    return found[-1]


def _qemu() -> Path:
    names = ("qemu-aarch64-static", "qemu-aarch64")
    found = [p for n in names if (p := FOLDER / "emulator/usr/bin" / n).is_file()]
    if not found:
        raise OSError(f"no qemu was unpacked into {FOLDER / 'emulator'}")
    return found[0]


if __name__ == "__main__":
    if sys.argv[1:] == ["--build"]:
        build()
        print(versions())
    elif (reason := missing()) is not None:
        raise SystemExit(reason)
    else:
        raise SystemExit(subprocess.run(command(*sys.argv[1:]), env=environment(), cwd=ROOT, check=False).returncode)
