"""The corpus: op files that are correct, and beside each a table of bugs planted into it.

    benchmarks/corpus/rows.py            controls: Triton kernels and their ops
    benchmarks/corpus/rows.bugs.toml     [[bug]] op, name, family, old, new, shows [, unreachable] [, unseen]
                                         [usual] op = {dim = size, ...}

A bug is one hunk: the text `old`, which stands exactly once in the file, becomes `new`. The file so changed is written
to a work folder (Triton reads a kernel's source from its file) and its op swept under the control's name, so that both
see the same inputs. A bug whose text is not found exactly once is an error: a table that has gone stale measures
nothing. A bug may instead be an op of its own (`of` names the control that it is a wrong version of).

`unreachable` argues that the change computes the same for every input that the schema allows. Such bugs are run and
listed, not dropped: one that is caught all the same refutes its argument, and the study fails. `unseen` says why this
gate cannot show a bug that is real: it counts as missed, and the study fails only for a miss that is not announced.

`usual` is the shape of a test with a single shape: whole blocks and powers of two; by default the largest power of two
up to each dim's largest candidate. `[published]` gives absolute tolerances that somebody published for an op.

Controls are split by a hash of their name into the half that constants may be calibrated on and the half held out; a
bug belongs to the half of its control.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpuemu.files import write_atomically
from gpuemu.gate.declare import Op
from gpuemu.gate.discover import find_files, load_file
from gpuemu.gate.tolerances import calibrates
from ptx.errors import InvalidInput

TABLE = ".bugs.toml"


class Bug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One planted bug. `shows`: what inputs should show it, in words."""

    op: str
    name: str
    family: str
    shows: str
    old: str | None = None
    new: str | None = None
    of: str | None = None
    unreachable: str | None = None
    unseen: str | None = None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bug: tuple[Bug, ...] = ()
    usual: dict[str, dict[str, int]] = {}
    published: dict[str, tuple[float, float]] = {}


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One op to be measured: a control (`family` None) or a bug.

    `key` is unique; `source` is the file in the corpus, `file` the one to load. `published`: absolute tolerances
    (float32, 16-bit formats).
    """

    key: str
    op: str
    control: str
    source: str
    file: str
    usual: dict[str, int]
    published: tuple[float, float] | None = None
    family: str | None = None
    shows: str = ""
    unreachable: str | None = None
    unseen: str | None = None

    @property
    def half(self) -> str:
        return half_of(self.control)


def half_of(control: str) -> str:
    """'calibrated' or 'held out': the half that a control belongs to, as `gpuemu calibrate` with seed 0 has it."""
    return "calibrated" if calibrates(control, 0) else "held out"


def patched(text: str, bug: Bug, table: Path) -> str:
    """The file's text with the bug. Raises InvalidInput where `old` does not stand there exactly once."""
    assert bug.old is not None and bug.new is not None
    if (count := text.count(bug.old)) != 1:
        raise InvalidInput(
            f"{table.name}: bug '{bug.name}' of op '{bug.op}': its text is found {count} times, not once",
            notes=(bug.old,), help="give more of the lines around it in `old` and `new`",
        )  # fmt: skip
    return text.replace(bug.old, bug.new)


def read_table(table: Path) -> _Table:
    """Read a table of bugs; one that is not there is empty. Raises InvalidInput for a wrong one."""
    if not table.exists():
        return _Table()
    try:
        read = msgspec.convert(tomllib.loads(table.read_text(encoding="utf-8")), _Table)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InvalidInput(f"{table} is not a table of bugs: {error}") from error
    for bug in read.bug:
        if (bug.old is None) != (bug.new is None) or (bug.old is None) == (bug.of is None):
            raise InvalidInput(f"{table.name}: bug '{bug.name}' of op '{bug.op}' needs old and new, or of")
    return read


def read_corpus(paths: Sequence[Path], work: Path) -> list[Subject]:
    """All controls and bugs of the op files under `paths`; changed files are written under `work`.

    Raises InvalidInput for a table that does not fit its file, two subjects of one key, or a path without ops.
    """
    subjects: dict[str, Subject] = {}
    for file in find_files(paths):
        ops = {op.name: op for op in load_file(file)}
        table = file.with_name(file.stem + TABLE)
        read = read_table(table)
        own = {bug.op: bug for bug in read.bug if bug.of is not None}
        named = {*(b.op for b in read.bug), *(b.of for b in read.bug if b.of), *read.usual, *read.published}
        if unknown := named - set(ops):
            raise InvalidInput(f"{table.name}: {file.name} declares no op '{sorted(unknown)[0]}'")
        text = file.read_text(encoding="utf-8")
        made = []
        for op in ops.values():
            bug = own.get(op.name)
            made.append(_subject(op, op.name, file, read, bug.of if bug and bug.of else op.name, bug))
        for bug in read.bug:
            if bug.old is not None:
                place = work / f"{file.stem}__{bug.op}__{bug.name}.py"
                changed = patched(text, bug, table)
                if not place.exists() or place.read_text(encoding="utf-8") != changed:
                    write_atomically(place, changed.encode())
                made.append(_subject(ops[bug.op], f"{bug.op}/{bug.name}", file, read, bug.op, bug, place))
        for subject in made:
            if subject.key in subjects:
                raise InvalidInput(f"two subjects of the corpus are named '{subject.key}'")
            subjects[subject.key] = subject
    if not subjects:
        raise InvalidInput("the corpus has no op files")
    return list(subjects.values())


def _subject(
    op: Op, key: str, source: Path, read: _Table, control: str, bug: Bug | None, place: Path | None = None
) -> Subject:
    return Subject(
        key=key, op=op.name, control=control, source=str(source), file=str(place or source),
        usual=read.usual.get(op.name) or usual_shape(op), published=read.published.get(control),
        family=bug.family if bug else None, shows=bug.shows if bug else "",
        unreachable=bug.unreachable if bug else None, unseen=bug.unseen if bug else None,
    )  # fmt: skip


def usual_shape(op: Op) -> dict[str, int]:
    """The largest power of two up to each dim's largest candidate. Raises InvalidInput where the op forbids it."""
    shape = {n: 1 << (max(max(sizes), 1).bit_length() - 1) for n, sizes in op.dims.items()}
    if op.shapes is not None or not op.holds(shape):
        raise InvalidInput(
            f"op '{op.name}': powers of two are not a shape of it", help="give one in [usual] of its table of bugs"
        )
    return shape
