"""`gpuemu calibrate`: measure on correct kernels how much of the error bounds they use, and keep it in a file."""

from __future__ import annotations

import sys

import click

from gpuemu.commands.options import SECONDS


@click.command(short_help="Measure how much of their bounds correct kernels use, and keep it in a file.")
@click.argument("paths", nargs=-1, required=True)
@click.option("--output", type=click.Path(), metavar="FILE", default="tolerances.toml", show_default=True,
              help="The file to write.")  # fmt: skip
@click.option("--parallel", type=click.IntRange(min=1), default=1, show_default=True, help="Worker processes.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the cases, and of which half an op is in.")
@click.option("--quick", is_flag=True, help="A pairwise cover of the cases.")
@click.option("--op", "ops", multiple=True, metavar="NAME", help="Only this op; may be repeated.")
@click.option("--target", "targets", multiple=True, metavar="sm_XX", default=("sm_80",), show_default=True,
              help="Compile for this; may be repeated.")  # fmt: skip
@click.option("--timeout", type=SECONDS, default=300.0, show_default=True, help="Seconds for one case.")
def calibrate(
    paths: tuple[str, ...],
    output: str,
    parallel: int,
    seed: int,
    quick: bool,
    ops: tuple[str, ...],
    targets: tuple[str, ...],
    timeout: float,
) -> int:
    """Sweep the correct kernels of PATHS, fit one factor a family of error models on half of the ops, try the factors
    on the other half, and write OUTPUT (`gpuemu ci --tolerances OUTPUT` uses it).

    Exit code: 0 written, and no held-out case is flagged; 1 written, but some are; 2 usage, or not all are correct
    kernels (nothing is written).
    """
    from pathlib import Path

    from gpuemu.commands.ci import progress_display
    from gpuemu.commands.options import check_target
    from gpuemu.files import check_writable
    from gpuemu.gate.sweep import Plan, sweep
    from gpuemu.gate.tolerances import calibrate as fit
    from gpuemu.gate.tolerances import table, write_tolerances
    from gpuemu.reports.text import nothing_words
    from ptx.errors import InvalidInput

    check_writable(Path(output))
    chosen = tuple(check_target(t) for t in targets)
    plan = Plan(
        paths=paths, seed=seed, targets=chosen, only=ops, quick=quick, parallel=parallel, timeout=timeout, replays=None
    )
    with progress_display() as progress:
        result = sweep(plan, progress)
    if result.planned is not None:
        print("interrupted: nothing is written", file=sys.stderr)
        return 130
    if not result.cases and not result.broken:
        raise InvalidInput(f"nothing to measure: {nothing_words(result)}")
    found = fit(result, chosen)
    write_tolerances(Path(output), found)
    print(table(found), end="")
    return 1 if found.held_out.flagged else 0
