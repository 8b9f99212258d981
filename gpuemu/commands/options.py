"""Command-line values that several commands read the same way."""

from __future__ import annotations

import re

import click

from ptx.errors import InvalidInput

FMAD = click.option(
    "--fmad", type=click.Choice(["off", "plan"]), help="Contraction: none, or the assembler's own."
)
_TARGET = re.compile(r"sm_\d{2,3}[af]?")


def check_target(text: str) -> str:
    """A target or device name such as sm_80, of a device that is known. Raises InvalidInput."""
    from ptx.device import device

    if not _TARGET.fullmatch(text):
        raise InvalidInput(f"unknown target '{text}'", help="a target is sm_ and a number, for example sm_80 or sm_90a")
    device(text)
    return text
