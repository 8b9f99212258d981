"""`gpuemu diff OLD NEW`: registers and instructions before and after a change, on targets that need not be here."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from ptx.errors import InvalidInput

if TYPE_CHECKING:
    from gpuemu.accounting.compare import Comparison
    from gpuemu.accounting.gates import Gates, Verdict

FORMATS = ("text", "json", "markdown", "html", "sarif")
_WORD = re.compile(r"(?:(?:old|new)\.)?[A-Za-z_]\w*=")


@click.command(short_help="Compare registers, spills and instructions of two versions of a kernel.")
@click.argument("sides", nargs=-1, metavar="[OLD] NEW [-- NAME=VALUE...]")
@click.option("--target", "targets", multiple=True, metavar="sm_XX", help="Measure for this; may be repeated.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", type=click.Path(), metavar="FILE", help="File for the report (default: standard output).")
@click.option("--save", type=click.Path(), metavar="FILE.json", help="Keep the numbers of NEW as a baseline.")
@click.option("--max-regs", type=click.IntRange(min=0), help="Most registers a thread of NEW.")
@click.option("--max-spills", type=click.IntRange(min=0), help="Most bytes of spill stores and loads of NEW.")
@click.option("--max-increase", multiple=True, metavar="METRIC=PERCENT", help="Most that METRIC may rise.")
@click.option("--max-decrease", multiple=True, metavar="METRIC=PERCENT", help="Most that METRIC may fall.")
@click.option("--explained", multiple=True, metavar="METRIC=REASON", help="A fall of METRIC is meant, and why.")
@click.option("--dynamic", is_flag=True, help="Launch both sides, too, and compare what they execute.")
@click.option("--grid", metavar="X[,Y[,Z]]", help="Number of programs (CTAs), with --dynamic.")
@click.option("--block", metavar="X[,Y[,Z]]", help="Threads of a CTA, for occupancy and --dynamic (PTX files).")
@click.option("--shared", type=click.IntRange(min=0), default=0, help="Bytes of dynamic shared memory (PTX files).")
@click.option("--no-fmad", is_flag=True, help="Assemble PTX files with -fmad=false.")
@click.option("--num-warps", type=click.IntRange(min=1), default=4, show_default=True, help="Of a Triton program.")
@click.option("--num-stages", type=click.IntRange(min=1), default=3, show_default=True, help="Of Triton's pipelines.")
@click.option("--all", "every", is_flag=True, help="All metrics and all PTX lines, changed or not.")
def diff(
    sides: tuple[str, ...],
    targets: tuple[str, ...],
    form: str,
    output: str | None,
    save: str | None,
    max_regs: int | None,
    max_spills: int | None,
    max_increase: tuple[str, ...],
    max_decrease: tuple[str, ...],
    explained: tuple[str, ...],
    dynamic: bool,
    grid: str | None,
    block: str | None,
    shared: int,
    no_fmad: bool,
    num_warps: int,
    num_stages: int,
    every: bool,
) -> int:
    """Compare registers, spills, instructions and occupancy of two versions of a kernel, by NVIDIA's own assembler.

    A side is FILE.ptx[::entry], FILE.py::kernel, REV:FILE.py::kernel from git, or a FILE.json that --save wrote. Words
    after -- are the arguments of the kernel as `gpuemu run` takes them; old.BLOCK=64 new.BLOCK=128 differ by side. One
    side alone is shown as it is. Nothing is executed, unless --dynamic asks for it: then both sides are launched on the
    CPU with these words, and instructions, bytes and operations of the launches are compared, too.

    Exit code: 0 clean, 1 a limit is broken, 2 usage or configuration, 3 something could not be measured.
    """
    from dataclasses import replace
    from pathlib import Path

    from gpuemu.accounting.code import code_changes
    from gpuemu.accounting.compare import compare
    from gpuemu.accounting.gates import Gates, check, parse_explanations, parse_increases
    from gpuemu.accounting.measure import measure_sides, write_baseline
    from gpuemu.accounting.side import Options, parse_side, words_of
    from gpuemu.commands.options import check_target, coloured, terminal_width
    from gpuemu.config import load_config
    from gpuemu.files import check_writable, write_atomically, write_standard_output
    from gpuemu.gate.sweep import find_root
    from ptx.accounting.assemble import TARGETS

    names, words = _split(sides)
    root = find_root(Path.cwd())
    config = load_config(Path.cwd(), root).diff
    gates = Gates(
        max_regs if max_regs is not None else config.max_regs,
        max_spills if max_spills is not None else config.max_spills,
        {**(config.max_increase if len(names) == 2 else {}), **parse_increases(max_increase)},
        {**(config.max_decrease if len(names) == 2 else {}), **parse_increases(max_decrease)},
        parse_explanations(explained),
    )
    asked = targets or config.targets
    chosen = [check_target(t) for t in asked] if asked else list(TARGETS)
    for place in (output, save):
        if place is not None:
            check_writable(Path(place))
    specs = [parse_side(name) for name in names]
    sides_ = ("old", "new") if len(names) == 2 else ("new",)
    kinds = {spec.kind for spec in specs}
    if words and "py" not in kinds and not dynamic:
        raise InvalidInput(
            f"no side is a Triton kernel, so nothing takes the argument '{words[0]}'",
            help="with --dynamic and --grid, PTX files are launched with them",
        )
    cta = _check_launch(dynamic, grid, block, kinds)
    if len(names) == 1 and (stray := [w for w in words if w.startswith("old.")]):
        raise InvalidInput(f"'{stray[0]}' is for the old side, and there is one side only")
    if (block is not None or shared or no_fmad) and "ptx" not in kinds:
        raise InvalidInput("--block, --shared and --no-fmad are for PTX files", help="a kernel takes --num-warps")
    wanted = []
    for spec, side in zip(specs, sides_, strict=True):
        own = words_of(words, side) if spec.kind == "py" or dynamic else ()
        ptx = spec.kind == "ptx"
        options = Options(
            own, num_warps, num_stages, cta if ptx else None, shared if ptx else 0, not no_fmad,
            grid=grid if dynamic else None, cta=block,
        )  # fmt: skip
        wanted.append((spec, options))
    measured = measure_sides(wanted, chosen, root)
    old, new = (measured[0], measured[1]) if len(measured) == 2 else (None, measured[0])
    comparison = compare(old, new)
    verdict = check(gates, comparison)
    complete = is_complete(comparison, verdict, bool(asked))
    code = 1 if verdict.broken else 0 if complete else 3
    changes = code_changes(old, new) if old is not None else ()
    if code == 3 and form not in ("json", "sarif"):  # these have a place of their own for it
        gone = (f"{t.target} was not measured: {t.reason}" for t in comparison.targets if t.reason is not None)
        verdict = replace(verdict, unchecked=(*verdict.unchecked, *gone))
    if save is not None:
        write_baseline(Path(save), new)
    if form == "json":
        from gpuemu.reports.diff_machine import diff_json

        report = diff_json(comparison, changes, verdict, code)
    elif form == "sarif":
        from gpuemu.reports.diff_machine import diff_sarif

        report = diff_sarif(comparison, verdict, complete)
    elif form == "html":
        from gpuemu.reports.diff_html import diff_html

        report = diff_html(comparison, changes, gates, verdict, every).encode()
    elif form == "markdown":
        from gpuemu.reports.diff_markdown import diff_markdown

        report = diff_markdown(comparison, changes, gates, verdict).encode()
    else:
        from gpuemu.reports.diff_text import diff_text

        colour, width = coloured(output), terminal_width(output)
        report = diff_text(comparison, changes, gates, verdict, every, colour, width).encode()
    if output is None:
        write_standard_output(report)
    else:
        write_atomically(Path(output), report)
        _say(gates, verdict, comparison)
    return code


def _check_launch(dynamic: bool, grid: str | None, block: str | None, kinds: set[str]) -> int | None:
    """Threads of a CTA as `--block` has them. Raises InvalidInput for launch options that do not fit."""
    from math import prod

    from gpuemu.commands.run import parse_sizes

    if dynamic and grid is None:
        raise InvalidInput("--dynamic launches: it needs --grid", help="for example --grid 64")
    if grid is not None and not dynamic:
        raise InvalidInput("--grid is for --dynamic")
    if dynamic and "ptx" in kinds and block is None:
        raise InvalidInput("a PTX kernel needs --block", help="threads of a CTA, for example --block 128")
    if grid is not None:
        parse_sizes("grid", grid)
    return None if block is None else prod(parse_sizes("block", block))


def _split(items: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(one or two sides, the words of the call). Raises InvalidInput."""
    first = next((i for i, item in enumerate(items) if _WORD.match(item)), len(items))
    names, words = items[:first], items[first:]
    if not 1 <= len(names) <= 2:
        raise InvalidInput(
            f"gpuemu diff takes one or two sides, not {len(names)}",
            help="gpuemu diff OLD NEW, where a side is FILE.ptx, FILE.py::kernel, REV:FILE.py::kernel or FILE.json",
        )
    return names, words


def is_complete(comparison: Comparison, verdict: Verdict, asked: bool) -> bool:
    """Whether everything was measured that was asked for.

    Without --target, targets that neither side can be made for are left out: an sm_90 kernel has no sm_80 numbers. One
    that only one side can be made for is never left out."""
    from ptx.accounting.account import Absent

    if verdict.unchecked or not comparison.measured:
        return False
    old, new = comparison.old, comparison.new
    for one in comparison.targets:
        if one.reason is None:
            continue
        on_new = isinstance(new.accounts[one.target], Absent)
        on_old = old is None or one.target not in old.accounts or isinstance(old.accounts[one.target], Absent)
        if asked or not (on_new and on_old):
            return False
    return True


def _say(gates: Gates, verdict: Verdict, comparison: Comparison) -> None:
    """The verdict on standard error, where the report goes to a file."""
    from gpuemu.reports.diff_text import verdict_lines

    for line in verdict_lines(gates, verdict, comparison):
        print(line, file=sys.stderr)
