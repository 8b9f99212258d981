"""The command line. Each command is a file of `gpuemu/commands/` that imports what it needs when it runs.

Exit codes of `ci`, `run` and `report`: 0 clean, 1 findings, 2 usage or configuration, 3 could not be checked (130:
Ctrl-C).
`conform`: 0 the same bits, 1 something differs, 2 usage, 3 could not be compared.
`calibrate`: 0 written, 1 written and a held-out control is flagged, 2 usage, or a control is wrong.
`diff`: 0 clean, 1 a limit is broken, 2 usage or configuration, 3 could not be measured.
`study`: 0, 1 a bug is missed or a control flagged, 2 usage, 3 something was not checked.
`mutate`: 0, 1 the score is below the one asked for, 2 usage, 3 no mutant ran.
`doctor`: 0 kernels can be checked here, 3 they cannot. `init`: 0, 2 usage. `isa`: 0, 3 no such form.
`reproduce`: 1 reproduced, 0 passes now, 2 usage, 3 cannot run (also: no such replay) or the bytes differ.
"""

from __future__ import annotations

import io
import sys
from typing import NoReturn

import click

from gpuemu.commands.calibrate import calibrate
from gpuemu.commands.ci import ci
from gpuemu.commands.conform import conform
from gpuemu.commands.diff import diff
from gpuemu.commands.doctor import doctor
from gpuemu.commands.init import init
from gpuemu.commands.isa import isa
from gpuemu.commands.mutate import mutate
from gpuemu.commands.report import report
from gpuemu.commands.reproduce import reproduce
from gpuemu.commands.run import run
from gpuemu.commands.study import study
from gpuemu.render import render_error


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="gpuemu")
def cli() -> None:
    """Execute GPU kernels' real PTX on the CPU, and check what they compute.

    Exit codes of most commands: 0 clean, 1 findings, 2 usage or configuration, 3 could not be checked. COMMAND --help
    says more.
    """


cli.add_command(calibrate)
cli.add_command(ci)
cli.add_command(conform)
cli.add_command(diff)
cli.add_command(doctor)
cli.add_command(init)
cli.add_command(isa)
cli.add_command(mutate)
cli.add_command(report)
cli.add_command(reproduce)
cli.add_command(run)
cli.add_command(study)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit; every error becomes one message on standard error and an exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that the terminal has not is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(args=arguments, prog_name="gpuemu", standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is an error now, not after the exit code
    except BaseException as error:
        code = render_error(error)
    sys.exit(code if isinstance(code, int) else 0)
