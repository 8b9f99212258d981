"""Command-line options and values that several commands read the same way."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from typing import Any

import click

from ptx.errors import InvalidInput

LONGEST = 1e6
"""Seconds of a time limit: what the system's own waiting takes, a million, is twelve days."""


class FiniteRange(click.FloatRange):
    """A range of numbers that infinities and NaN do not lie in: as limits, they would switch the limit off."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


SECONDS = FiniteRange(min=0, max=LONGEST, min_open=True)
PERCENT = FiniteRange(min=0, max=100)
FMAD = click.option(
    "--fmad", type=click.Choice(["off", "plan"]), help="Contraction: none, or the assembler's own."
)
_TARGET = re.compile(r"sm_\d{2,3}[af]?")


def terminal_width(output: str | None) -> int | None:
    """Columns of the terminal that a report goes to; None where it goes to a file or a pipe."""
    return shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else None


def coloured(output: str | None) -> bool:
    """Whether a report may have colours: on a terminal that has them, unless NO_COLOR is set (no-color.org)."""
    return terminal_width(output) is not None and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def check_target(text: str) -> str:
    """A target or device name such as sm_80, of a device that is known. Raises InvalidInput."""
    from ptx.device import device

    if not _TARGET.fullmatch(text):
        raise InvalidInput(f"unknown target '{text}'", help="a target is sm_ and a number, for example sm_80 or sm_90a")
    device(text)
    return text
