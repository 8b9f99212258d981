"""Makes PTX say the same on every machine: paths relative, no debugging sections.

Triton writes the absolute path of the kernel's file into `.file` directives, and the build folder, byte by byte, into
`.debug_info`. Neither is executed. A path under the root becomes relative to it; a path in an installed package loses
everything up to `site-packages`; any other keeps only its last part. `.debug_str` stays: `.loc` names it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"]*)"', re.MULTILINE)
_SECTION = re.compile(r"^\s*\.section\s+\.debug_(?!str)\w+\s*\{.*?\}[^\S\n]*\n?", re.MULTILINE | re.DOTALL)


def portable_ptx(text: str, root: Path) -> str:
    """The PTX without what depends on the machine or the folder."""
    without = _SECTION.sub("", text)
    return _FILE.sub(lambda m: f'{m.group(1)}"{portable_path(m.group(2), root)}"', without)


def portable_path(path: str, root: Path) -> str:
    """A path as it is written into a replay or a report: relative to the root, with forward slashes."""
    plain = path.replace("\\", "/")
    for package in ("site-packages/", "dist-packages/"):
        if package in plain:
            return plain.rpartition(package)[2]
    try:
        return Path(path).resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return PurePosixPath(plain).name
