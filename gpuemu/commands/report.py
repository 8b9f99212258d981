"""`gpuemu report KERNEL`: one page about one kernel, from static numbers and a measured launch."""

from __future__ import annotations

import click

from gpuemu.commands.options import FMAD

FORMATS = ("text", "html", "json")


@click.command(short_help="Execute one kernel and show what it does, on one page.")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.argument("words", nargs=-1, metavar="NAME=VALUE...")
@click.option("--grid", required=True, metavar="X[,Y[,Z]]", help="Number of programs (CTAs).")
@click.option("--block", metavar="X[,Y[,Z]]", help="Threads of a CTA (PTX files).")
@click.option("--shared", type=click.IntRange(min=0), help="Bytes of dynamic shared memory (PTX files).")
@click.option("--target", "targets", multiple=True, metavar="sm_XX", help="Measure for this; may be repeated.")
@click.option("--device", metavar="sm_XX", help="Arithmetic of this device (default: the target's).")
@click.option("--num-warps", type=click.IntRange(min=1), default=4, show_default=True, help="Of a Triton program.")
@click.option("--num-stages", type=click.IntRange(min=1), default=3, show_default=True, help="Of Triton's pipelines.")
@click.option("--num-ctas", type=click.IntRange(min=1), default=1, show_default=True, help="CTAs of a cluster.")
@click.option("--cluster", metavar="X[,Y[,Z]]", help="CTAs of a cluster (PTX files that do not say it).")
@FMAD
@click.option("--fuel", type=click.IntRange(min=1), help="Loop iterations of all warps after which to give up.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of rand, boundary and adversarial arrays.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", type=click.Path(), metavar="FILE", help="File for the report (default: standard output).")
def report(
    kernel: str,
    words: tuple[str, ...],
    grid: str,
    block: str | None,
    shared: int | None,
    targets: tuple[str, ...],
    device: str | None,
    num_warps: int,
    num_stages: int,
    num_ctas: int,
    cluster: str | None,
    fmad: str | None,
    fuel: int | None,
    seed: int,
    form: str,
    output: str | None,
) -> int:
    """Execute one kernel and show what it does: roofline, counts and bytes by source line, registers along the program.

    The words are those of `gpuemu run`. A Triton kernel is compiled and executed for each target (default: sm_80,
    sm_89 and sm_90, as far as it can be); a PTX file is executed once and assembled for each target (default: its own).

    Exit code: 0 clean, 1 the emulator found something, 2 usage, 3 a target could not be measured.
    """
    from pathlib import Path

    from gpuemu.accounting.profile import profile
    from gpuemu.commands.options import check_target, coloured, terminal_width
    from gpuemu.commands.run import Launch
    from gpuemu.files import check_writable, write_atomically, write_standard_output
    from gpuemu.gate.sweep import find_root

    if output is not None:
        check_writable(Path(output))
    asked = [check_target(t) for t in targets]
    launch = Launch(
        kernel, words, grid, block, shared, device and check_target(device), num_warps, num_stages, num_ctas, cluster,
        fuel, seed, fmad,
    )  # fmt: skip
    found = profile(launch, asked, find_root(Path.cwd()))
    if form == "html":
        from gpuemu.reports.kernel_html import kernel_html

        page = kernel_html(found).encode()
    elif form == "json":
        from gpuemu.reports.kernel_json import kernel_json

        page = kernel_json(found)
    else:
        from gpuemu.reports.kernel_text import kernel_text

        page = kernel_text(found, coloured(output), terminal_width(output)).encode()
    if output is None:
        write_standard_output(page)
    else:
        write_atomically(Path(output), page)
    return found.exit_code(bool(asked))
