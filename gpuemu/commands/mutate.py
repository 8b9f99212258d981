"""`gpuemu mutate`: plant bugs into the kernels of ops, run the ops' own sweep on each, say which it catches."""

from __future__ import annotations

import sys

import click

from gpuemu.commands.options import FMAD, PERCENT


@click.command(short_help="Plant bugs into kernels and count which of them the gate catches.")
@click.argument("paths", nargs=-1, required=True)
@click.option("--op", "ops", multiple=True, metavar="NAME", help="Only this op; may be repeated.")
@click.option("--parallel", type=click.IntRange(min=1), default=1, show_default=True, help="Worker processes.")
@click.option("--quick", is_flag=True, help="The cases of `gpuemu ci --quick`.")
@click.option("--target", "targets", multiple=True, metavar="sm_XX", help="Compile for this; may be repeated.")
@FMAD
@click.option("--dtype", "dtypes", multiple=True, metavar="NAME", help="Only this dtype; may be repeated.")
@click.option("--distribution", "distributions", multiple=True, metavar="NAME",
              help="Only regular, boundary, adversarial or exact values; may be repeated.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sweep.")
@click.option("--kind", "kinds", multiple=True, metavar="NAME", help="Only this kind of change; may be repeated.")
@click.option("--every", is_flag=True, help="List the caught mutants, too.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", type=click.Path(), metavar="FILE", help="File for the report (default: standard output).")
@click.option("--min-score", type=PERCENT, help="Exit with 1 below this percentage.")
def mutate(
    paths: tuple[str, ...],
    ops: tuple[str, ...],
    parallel: int,
    quick: bool,
    targets: tuple[str, ...],
    fmad: str | None,
    dtypes: tuple[str, ...],
    distributions: tuple[str, ...],
    seed: int,
    kinds: tuple[str, ...],
    every: bool,
    form: str,
    output: str | None,
    min_score: float | None,
) -> int:
    """Change the correct Triton kernels of the ops in PATHS, one place at a time, and sweep each change.

    A change that no case shows survives: it computes the same for all inputs, or the ops' shapes, dtypes and values
    leave a hole.

    Exit code: 0 scored, 1 the score is below --min-score, 2 usage, or an op is not clean itself, 3 no mutant ran.
    """
    from pathlib import Path

    from gpuemu.commands.options import check_target
    from gpuemu.files import check_writable, write_atomically, write_standard_output
    from gpuemu.gate.discover import find_files, load_ops
    from gpuemu.gate.dtypes import dtype_name
    from gpuemu.gate.sweep import find_root
    from gpuemu.gate.values import DISTRIBUTIONS
    from gpuemu.mutate.score import plant, score
    from gpuemu.mutate.trial import Sweep, Trial
    from gpuemu.replay.portable import portable_path
    from gpuemu.reports.mutation_text import mutation_json, mutation_text
    from ptx.errors import InvalidInput

    if output is not None:
        check_writable(Path(output))
    if unknown := set(distributions) - set(DISTRIBUTIONS):
        raise InvalidInput(f"unknown distribution '{sorted(unknown)[0]}'", help=f"one of {', '.join(DISTRIBUTIONS)}")
    root = find_root(Path.cwd())
    loaded, broken = load_ops(find_files([Path(p) for p in paths]), ops)
    if broken:
        raise InvalidInput(f"{portable_path(broken[0].file, root)} cannot be loaded: {broken[0].reason}")
    if not loaded:
        raise InvalidInput("no op was found", help="an op is a function under @gpuemu.op; `gpuemu init` writes one")
    sweep = Sweep(
        seed=seed, targets=tuple(check_target(t) for t in targets) or ("sm_80",), quick=quick,
        dtypes=tuple(dtype_name(d) for d in dtypes) or None, distributions=distributions or DISTRIBUTIONS, fmad=fmad,
    )  # fmt: skip
    planted = plant(loaded, root / ".gpuemu" / "mutants", sweep)
    known = list(dict.fromkeys(p.kind for p in planted))
    if wrong := [k for k in kinds if k not in known]:
        raise InvalidInput(f"no change of kind '{wrong[0]}' here", help=f"kinds: {', '.join(known)}")
    planted = [p for p in planted if not kinds or p.kind in kinds]

    def progress(done: int, total: int, trial: Trial) -> None:
        if done % max(total // 10, 1) == 0 or done == total:
            print(f"{done}/{total} mutants", file=sys.stderr, flush=True)

    result = score(loaded, planted, sweep, parallel=parallel, progress=progress)
    report = mutation_json(result, root) if form == "json" else mutation_text(result, root, every).encode()
    if output is None:
        write_standard_output(report)
    else:
        write_atomically(Path(output), report)
    if not result.of("caught") and not result.of("survived"):
        return 3
    return 1 if min_score is not None and 100 * result.share < min_score else 0
