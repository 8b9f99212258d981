"""Writing reports: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from ptx.errors import InvalidInput


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary file in the same folder, then replace. A failure leaves an existing file as it was.

    What is not a regular file (a pipe, /dev/stdout) is written to and never replaced; a link is followed. Raises
    InvalidInput when the place cannot be written.
    """
    temporary: str | None = None
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        final = path.resolve()
        handle, temporary = tempfile.mkstemp(prefix=f".{final.name}.", dir=final.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, final)
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


def write_standard_output(data: bytes) -> None:
    """Write a report to standard output.

    A reader that has gone (`| head`) is no error: the exit code still says the verdict. Raises InvalidInput when it
    cannot be written, because the disk behind it is full.
    """
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_standard_output()
    except OSError as error:
        _discard_standard_output()
        raise InvalidInput(f"cannot write the report to standard output: {error.strerror}") from error


def _discard_standard_output() -> None:
    """What is still buffered would fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
