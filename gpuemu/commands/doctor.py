"""`gpuemu doctor`: what works on this machine, and why not."""

from __future__ import annotations

import click


@click.command(short_help="Say what works on this machine.")
def doctor() -> int:
    """Say what works on this machine, and what to do about what does not.

    Looks at versions, processor, cache, disk space and assembler, and runs a kernel of a few lines from PTX and from
    Triton. Changes nothing.

    Exit code: 0 kernels can be checked here, 3 they cannot.
    """
    from gpuemu.doctor import checks

    failed = limited = 0
    for check in checks():
        click.echo(f"{check.state:8} {check.name:14} {check.found}")
        if check.help is not None and check.state != "ok":
            click.echo(f"{'':23} help: {check.help}")
        failed += check.state == "fail"
        limited += check.state == "limited"
    if failed:
        click.echo(f"{failed} of what every run needs {'does' if failed == 1 else 'do'} not work")
        return 3
    click.echo("kernels can be checked on this machine" + (f"; {limited} limited, see above" if limited else ""))
    return 0
