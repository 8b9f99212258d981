"""OLD and NEW of `gpuemu diff`: what they may be, and how each becomes PTX for every target.

    FILE.ptx[::entry]         one text, assembled for every target
    FILE.py::kernel           a Triton kernel, lowered for every target with the words after `--`
    REV:FILE.py::kernel       the same, from a git revision; also REV:FILE.ptx[::entry]
    FILE.json                 a baseline that `--save` wrote

A revision is taken whole: every Python file of that commit goes into a temporary folder, so that the kernel imports its
neighbours as they were. `git archive` does not touch the working tree.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpuemu.accounting.lowering import Lowering, Request, lower_elsewhere, measure_launch
from gpuemu.replay.portable import portable_path
from ptx.errors import InvalidInput

_FORM = re.compile(r"(?:(?P<revision>[^:]+):(?!:))?(?P<file>[^:]+?)(?:::(?P<name>\w+))?")
_FORMS = "FILE.ptx, FILE.py::kernel, REV:FILE.py::kernel, or a FILE.json that --save wrote"


@dataclass(frozen=True, slots=True)
class Spec:
    """A side as the command line names it. `kind`: the file's suffix, ptx, py or json."""

    text: str
    revision: str | None
    file: str
    name: str | None
    kind: str


@dataclass(frozen=True, slots=True)
class Options:
    """What a launch would say: words of the call; Triton's options; block, shared and contraction of PTX files. `grid`,
    `cta`: of a launch that is to be measured (`cta` as `--block` has it, for PTX files)."""

    words: tuple[str, ...] = ()
    num_warps: int = 4
    num_stages: int = 3
    block: int | None = None
    shared: int = 0
    fmad: bool = True
    seed: int = 0
    grid: str | None = None
    cta: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A side's PTX by target, and where its kernel stands: file (relative to the root) and line."""

    lowerings: dict[str, Lowering]
    file: str
    line: int | None
    notes: tuple[str, ...] = ()


def parse_side(text: str) -> Spec:
    """Read a side's name. Raises InvalidInput for one that is of no known form."""
    found = _FORM.fullmatch(text)
    kind = found["file"].rpartition(".")[2] if found else ""
    if found is None or kind not in ("ptx", "py", "json"):
        raise InvalidInput(f"cannot read '{text}' as a side of a comparison", help=f"a side is {_FORMS}")
    if kind == "py" and not found["name"]:
        raise InvalidInput(f"'{text}' does not name a kernel", help=f"for example {text}::kernel")
    if kind == "json" and (found["name"] or found["revision"]):
        raise InvalidInput(f"a baseline is a file: '{text}' says more", help=f"a side is {_FORMS}")
    return Spec(text, found["revision"], found["file"], found["name"], kind)


def words_of(words: Sequence[str], side: str) -> tuple[str, ...]:
    """The words that hold for one side: `BLOCK=64` for both, `old.BLOCK=64` and `new.BLOCK=128` for one each.

    A word for one side wins over the word of that name for both."""
    own = {w.partition("=")[0].removeprefix(f"{side}."): w for w in words if w.startswith(f"{side}.")}
    shared = [w for w in words if not w.startswith(("old.", "new.")) and w.partition("=")[0] not in own]
    return (*shared, *(w.removeprefix(f"{side}.") for w in own.values()))


def prepare(spec: Spec, targets: Sequence[str], options: Options, root: Path) -> Prepared:
    """The PTX of a side for each target. Raises InvalidInput for what is not there or cannot be read."""
    if spec.revision is None:
        return _prepare(spec, Path(spec.file), Path.cwd(), targets, options, root)
    with _checked_out(spec.revision, root) as folder:
        file = folder / portable_inside(Path(spec.file), root)
        if not file.is_file():
            raise InvalidInput(f"revision {spec.revision} has no file {spec.file}")
        return _prepare(spec, file, folder, targets, options, folder)


def _prepare(
    spec: Spec, file: Path, folder: Path, targets: Sequence[str], options: Options, root: Path
) -> Prepared:  # fmt: skip
    shown = portable_path(str(file.resolve()), root)
    if spec.kind == "ptx":
        text = _text(file, spec.file)
        lowering = Lowering(text, spec.name or "", options.block or 0, options.shared, options.fmad)
        if options.grid is not None:
            lowering = msgspec.structs.replace(lowering, **_launched(spec, file, options))
        return Prepared(dict.fromkeys(targets, lowering), shown, None)
    assert spec.name is not None
    if not file.is_file():
        raise InvalidInput(f"no such file: {spec.file}")
    reply = lower_elsewhere(
        Request(
            file=str(file.resolve()), kernel=spec.name, words=options.words, targets=tuple(targets), root=str(root),
            seed=options.seed, num_warps=options.num_warps, num_stages=options.num_stages, grid=options.grid,
        )
    )  # fmt: skip
    return Prepared(reply.lowerings, shown, reply.line, reply.notes)


def _launched(spec: Spec, file: Path, options: Options) -> dict[str, Any]:
    """The launch of a PTX file, on the device that its code is for."""
    from gpuemu.commands.run import Launch

    kernel = f"{file}::{spec.name}" if spec.name else str(file)
    return measure_launch(
        Launch(kernel, options.words, str(options.grid), options.cta, options.shared, seed=options.seed), None
    )  # fmt: skip


def _text(file: Path, shown: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"no such file: {shown}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{shown} is not PTX text: {error}") from error


def portable_inside(file: Path, root: Path) -> Path:
    """The path relative to the repository's root. Raises InvalidInput for one outside."""
    try:
        return (Path.cwd() / file).resolve().relative_to(root.resolve())
    except ValueError:
        raise InvalidInput(f"{file} is outside the repository {root}") from None


@contextmanager
def _checked_out(revision: str, root: Path) -> Iterator[Path]:
    """A folder with the Python and PTX files of a revision."""
    if revision.startswith("-"):
        raise InvalidInput(f"'{revision}' is not a revision")
    try:
        done = subprocess.run(
            ["git", "archive", "--format=tar", revision, "--", ":(glob)**/*.py", ":(glob)**/*.ptx"], cwd=root,
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode and b"did not match any files" in done.stderr:
            # git archive wants each pattern to match; a repository may have no PTX
            done = subprocess.run(
                ["git", "archive", "--format=tar", revision, "--", ":(glob)**/*.py"], cwd=root, capture_output=True,
                check=False,
            )  # fmt: skip
    except FileNotFoundError:
        raise InvalidInput("git is not installed, so a revision cannot be read") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InvalidInput(f"git has no files of revision '{revision}'", notes=tuple(said[:1]))
    with tempfile.TemporaryDirectory(prefix="gpuemu-revision-") as name:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(name, filter="data")
        yield Path(name).resolve()
