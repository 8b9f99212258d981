"""Files that a user names: reading them, and writing reports, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from ptx.errors import InvalidInput


def unreadable(path: Path | str, error: OSError) -> InvalidInput:
    """The error for a file of the user's that cannot be read, in the words that every command has for it."""
    if isinstance(error, FileNotFoundError):
        return InvalidInput(f"no such file: {path}")
    if isinstance(error, IsADirectoryError):
        return InvalidInput(f"cannot read {path}: it is a folder")
    return InvalidInput(f"cannot read {path}: {error.strerror or error}")


def read_text(path: Path | str) -> str:
    """A text file of the user's. Raises InvalidInput."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: {error.reason}") from error


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
    if str(path) == ".":
        raise InvalidInput("the name of the output file is empty")
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
        discard_standard_output()
    except OSError as error:
        discard_standard_output()
        raise InvalidInput(f"cannot write the report to standard output: {error.strerror}") from error


def discard_standard_output() -> None:
    """After a failure to write there: what is still buffered would fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
