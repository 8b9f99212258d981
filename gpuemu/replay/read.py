"""Finds and reads a replay: by case seed, folder or case.json; checks every byte against the hashes in the record.

Nothing from a replay is executed but its PTX, on the emulator, and nothing is unpickled. What does not parse, misses a
file, or has a format that this version does not know is an InvalidInput; a file whose bytes changed is listed in
`altered`, so that the caller can still run it and say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpuemu.files import unreadable
from gpuemu.replay.format import FORMAT, ReplayRecord, content_id, sha256
from ptx.errors import InvalidInput

_SEED = re.compile(r"(0x)?[0-9a-fA-F]{1,16}")
_NAME = re.compile(r"(arrays|after|ptx|exact|bound|sets)/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay that has been read. `altered`: what differs from what was written, in words."""

    folder: Path
    record: ReplayRecord
    altered: tuple[str, ...]

    def bytes_of(self, name: str) -> bytes:
        """The content of one of its files."""
        return (self.folder / name).read_bytes()

    def array(self, name: str) -> NDArray[Any]:
        """One of its arrays. Raises InvalidInput if the file is not a plain .npy array."""
        try:
            return np.load(self.folder / name, allow_pickle=False)  # type: ignore[no-any-return]
        except (ValueError, EOFError, OSError) as error:
            raise InvalidInput(f"{self.folder / name} cannot be read: {error}") from error


def find_replays(text: str, store: Path) -> list[Path]:
    """The replay folders that `text` names: a path (folder or case.json), a case seed, or (the start of) an id.

    Raises InvalidInput when there is none. Several replays have one seed when a kernel changed between runs; they come
    newest first.
    """
    path = Path(text)
    if path.is_file():
        if path.name != "case.json":
            raise InvalidInput(f"{path} is not a replay", help="a replay is a folder, or the case.json in it")
        return [path.parent]
    if (path / "case.json").is_file():
        return [path]
    found = []
    if re.fullmatch(r"[0-9a-fA-F]{8,64}", text) or _SEED.fullmatch(text):
        wanted = int(text, 16) if _SEED.fullmatch(text) else None
        for folder in sorted(p.parent for p in store.glob("*/case.json")):
            if folder.name.startswith(text.lower()) or (wanted is not None and _seed_in(folder) == wanted):
                found.append(folder)
    if not found:
        raise InvalidInput(
            f"no replay for '{text}'",
            notes=(f"looked for a folder, a case.json, and a seed or id in {store}",),
            help="give the path of the replay's folder, or run in the folder that holds .gpuemu/replays",
        )
    return sorted(found, key=lambda p: (p / "case.json").stat().st_mtime_ns, reverse=True)


class _Head(msgspec.Struct):
    case: dict[str, Any]


def _seed_in(folder: Path) -> int | None:
    try:
        seed = msgspec.json.decode((folder / "case.json").read_bytes(), type=_Head).case.get("seed")
    except (OSError, msgspec.MsgspecError):
        return None
    return seed if isinstance(seed, int) else None


def read_replay(folder: Path) -> Replay:
    """Read and check one replay folder."""
    source = folder / "case.json"
    try:
        data = source.read_bytes()
        version = msgspec.json.decode(data, type=dict[str, Any]).get("format")
        if version != FORMAT:
            raise InvalidInput(
                f"{source} has replay format {version}, this version reads {FORMAT}",
                help="use the version of gpuemu named in its 'tool' field",
            )
        record = msgspec.json.decode(data, type=ReplayRecord)
    except OSError as error:
        raise unreadable(source, error) from error
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{source} is not a replay: {error}") from error
    altered = []
    for name, wanted in record.files.items():
        if not _NAME.fullmatch(name) or ".." in name:
            raise InvalidInput(f"{source} names a file outside the replay: {name!r}")
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise InvalidInput(f"{folder} is not complete: {name}: {error.strerror}") from error
        if sha256(content) != wanted:
            altered.append(f"{name} is not the file that was written")
    used = [b.before for b in record.buffers] + [b.after for b in record.buffers if b.after]
    used += [launch.ptx for launch in record.launches] + [s for launch in record.launches for _, s in launch.sets]
    used += [f for o in record.outputs for f in (o.exact, o.bound)]
    if missing := [u for u in used if u not in record.files]:
        raise InvalidInput(f"{source} uses {missing[0]}, which it does not list")
    if content_id(record.case, record.launches, record.buffers, record.files) != record.id:
        altered.append("case.json is not the record that was written")
    return Replay(folder, record, tuple(altered))
