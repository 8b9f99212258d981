"""The one place where an error becomes text and an exit code."""

from __future__ import annotations

import sys
import traceback

import click

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


def render_error(error: BaseException) -> int:
    """Write an error to standard error; returns the exit code. What is nobody's fault but ours shows its traceback."""
    if isinstance(error, GpuemuError):
        print(error.render(), file=sys.stderr)
        return exit_code_of(error)
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show(file=sys.stderr)
        return USAGE
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FINDINGS
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE  # never 0: whoever reads the exit code must not take a cut report for a clean one
    if isinstance(error, OSError) and error.filename is not None:
        print(f"cannot access {error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE
    traceback.print_exception(error, file=sys.stderr)
    print("gpuemu bug: this should not happen; please report it with the lines above", file=sys.stderr)
    return UNCHECKED
