"""`gpuemu reproduce`: execute a recorded failure again and say whether it is the same."""

from __future__ import annotations

import click


@click.command(short_help="Execute a recorded failure again.")
@click.argument("what", metavar="SEED_OR_FILE")
@click.option("--replays", type=click.Path(), help="Folder of replays.  [default: .gpuemu/replays]")
@click.option("--recorded-only", is_flag=True, help="Do not run the case from its source as it is now.")
def reproduce(what: str, replays: str | None, recorded_only: bool) -> int:
    """Execute a replay again: its PTX on its inputs. Needs neither Triton nor the kernel's source.

    Where the source is in this repository, the same case is then run from it, to say whether it passes now.

    SEED_OR_FILE is the seed that `gpuemu ci` printed, a replay's folder, or its case.json.

    Exit code: 1 reproduced, 0 passes now, 3 cannot run (also: no such replay) or the bytes differ.
    """
    from pathlib import Path

    from gpuemu.config import load_config
    from gpuemu.gate.sweep import find_root
    from gpuemu.render import UNCHECKED, render_error
    from gpuemu.replay.read import find_replays, read_replay
    from gpuemu.replay.reproduce import execute
    from gpuemu.replay.source import run_source
    from ptx.errors import InvalidInput

    root = find_root(Path.cwd())
    if replays is None:
        replays = load_config(Path.cwd(), root).replays or ".gpuemu/replays"
    try:
        folders = find_replays(what, Path(replays))
        if len(folders) > 1:
            click.echo(f"{len(folders)} replays have this seed; the newest is executed", err=True)
        outcome = execute(read_replay(folders[0]))
    except InvalidInput as error:
        render_error(error)
        return UNCHECKED
    if outcome.exit_code == 1 and not recorded_only:
        outcome.source = run_source(outcome.record, root)
    click.echo(outcome.words(), nl=False)
    return outcome.exit_code
