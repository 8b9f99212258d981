"""The one place where an error becomes text and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback

import click

from gpuemu.files import discard_standard_output
from ptx.errors import GpuemuError, InternalError, InvalidInput, LaunchFailure, Unsupported

CLEAN, FINDINGS, USAGE, UNCHECKED, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141

_CODES: tuple[tuple[type[GpuemuError], int], ...] = (
    (InvalidInput, USAGE),
    (LaunchFailure, USAGE),
    (Unsupported, UNCHECKED),
    (InternalError, UNCHECKED),
)


def exit_code_of(error: GpuemuError) -> int:
    """The command line's exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNCHECKED)


def usage_error(error: click.ClickException) -> InvalidInput:
    """What click says of a command line, in the form of all other errors."""
    said = error.format_message().rstrip(". \n")
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "gpuemu"
    return InvalidInput(said[:1].lower() + said[1:], help=f"`{path} --help` says what it takes")


def render_error(error: BaseException) -> int:
    """Write an error to standard error; returns the exit code. What is nobody's fault but ours shows its traceback."""
    if isinstance(error, GpuemuError):
        print(error.render(), file=sys.stderr)
        return exit_code_of(error)
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.format_message(), file=sys.stderr)
        return USAGE
    if isinstance(error, click.ClickException):
        return render_error(usage_error(error))
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FINDINGS
    if isinstance(error, BrokenPipeError):
        discard_standard_output()
        return BROKEN_PIPE  # never 0: whoever reads the exit code must not take a cut report for a clean one
    if isinstance(error, OSError) and error.filename is not None:
        return render_error(InvalidInput(f"cannot access {error.filename}: {error.strerror}"))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        discard_standard_output()
        return render_error(InvalidInput(f"cannot write: {error.strerror}", help="make room where the output goes"))
    if isinstance(error, MemoryError):
        what = f"this machine has not enough memory{f': {error}' if str(error) else ''}"
        return render_error(LaunchFailure(what, help="smaller arrays, or gpuemu.sparse() for huge ones"))
    traceback.print_exception(error, file=sys.stderr)
    print("gpuemu bug: this should not happen; please report it with the lines above", file=sys.stderr)
    return UNCHECKED
