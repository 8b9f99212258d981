"""Writing reports: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from ptx.errors import InvalidInput


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary file in the same folder, then replace. A failure leaves an existing file as it was.

    Raises InvalidInput when the place cannot be written.
    """
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error


def check_writable(path: Path) -> None:
    """Refuse, before a long run, an output place that cannot be written. Raises InvalidInput."""
    if path.is_dir():
        raise InvalidInput(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise InvalidInput(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"cannot write {path}: no permission in {path.parent}")
