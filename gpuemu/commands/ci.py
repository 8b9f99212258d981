"""`gpuemu ci`: sweep the ops of files and folders, write a report, exit with the verdict."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from gpuemu.commands.options import FMAD, SECONDS
from ptx.errors import InvalidInput

if TYPE_CHECKING:
    from gpuemu.gate.results import CaseResult, SweepResult


@click.command(short_help="Check every op of files and folders: the gate.")
@click.argument("paths", nargs=-1)
@click.option("--parallel", type=click.IntRange(min=1), help="Worker processes.  [default: 1]")
@click.option("--format", "form", type=click.Choice(["text", "sarif", "json"]), default="text", show_default=True)
@click.option("--output", type=click.Path(), metavar="FILE", help="File for the report (default: standard output).")
@click.option("--seed", type=int, help="Seed of the whole run.  [default: 0]")
@click.option("--op", "ops", multiple=True, metavar="NAME", help="Only this op; may be repeated.")
@click.option("--quick", is_flag=True, help="Each pair of settings at least once: about a third of the cases.")
@click.option("--target", "targets", multiple=True, metavar="sm_XX", help="Compile for this; may be repeated.")
@click.option("--device", metavar="sm_XX", help="Arithmetic of this device (default: the target's).")
@FMAD
@click.option("--dtype", "dtypes", multiple=True, metavar="NAME", help="Only this dtype; may be repeated.")
@click.option("--distribution", "distributions", multiple=True, metavar="NAME",
              help="Only regular, boundary, adversarial or exact values; may be repeated.")  # fmt: skip
@click.option("--timeout", type=SECONDS, help="Seconds for one case.  [default: 300]")
@click.option("--tolerances", type=click.Path(), metavar="FILE", help="Tighten bounds by FILE of `gpuemu calibrate`.")
@click.option("--expect", type=click.Path(), metavar="FILE", help="Exit 0 only if the findings are those of FILE.")
@click.option("--no-alive-check", is_flag=True, help="Plant no bug to prove that the gate would find one.")
def ci(
    paths: tuple[str, ...],
    parallel: int | None,
    form: str,
    output: str | None,
    seed: int | None,
    ops: tuple[str, ...],
    quick: bool,
    targets: tuple[str, ...],
    device: str | None,
    fmad: str | None,
    dtypes: tuple[str, ...],
    distributions: tuple[str, ...],
    timeout: float | None,
    tolerances: str | None,
    expect: str | None,
    no_alive_check: bool,
) -> int:
    """Check every op declared in the files and folders PATHS (default: `paths` of the configuration, else here).

    Exit code: 0 clean, 1 findings, 2 usage or configuration, 3 something could not be checked or a bug planted on
    purpose was not found, 130 interrupted (the report then holds what was finished).
    """
    from pathlib import Path

    from gpuemu.commands.options import check_target
    from gpuemu.config import load_config
    from gpuemu.files import check_writable, write_atomically, write_standard_output
    from gpuemu.gate.sweep import Plan, find_root, sweep
    from gpuemu.reports.expected import read_expected

    root = find_root(Path.cwd())
    config = load_config(Path.cwd(), root)
    base = Plan()

    def choose(given: Any, configured: Any, default: Any) -> Any:
        return given if given not in (None, ()) else configured if configured is not None else default

    plan = Plan(
        paths=choose(paths, config.paths, base.paths),
        seed=choose(seed, config.seed, base.seed),
        targets=tuple(check_target(t) for t in choose(targets, config.targets, base.targets)),
        device=choose(device and check_target(device), config.device and check_target(config.device), None),
        fmad=choose(fmad, config.fmad, None),
        only=choose(ops, config.ops, base.only),
        dtypes=choose(dtypes, config.dtypes, None),
        distributions=choose(distributions, config.distributions, base.distributions),
        quick=quick,
        parallel=choose(parallel, config.parallel, base.parallel),
        timeout=choose(timeout, config.timeout, base.timeout),
        replays=choose(None, config.replays, base.replays),
        root=str(root),
        alive=None if no_alive_check else str(root / ".gpuemu" / "alive"),
        factors=factors_of(choose(tolerances, config.tolerances, None)),
    )
    expect = choose(expect, config.expect, None)
    expected = read_expected(Path(expect)) if expect else None
    if output is not None:
        check_writable(Path(output))
    signal.signal(signal.SIGTERM, _interrupt)  # how a CI system cancels a job
    with progress_display() as progress:
        result = sweep(plan, progress)
    report = render_report(result, form)
    if output is None:
        write_standard_output(report)
    else:
        from gpuemu.reports.text import text_report

        if form != "text":
            print(text_report(result), end="", file=sys.stderr)
        try:
            write_atomically(Path(output), report)
        except InvalidInput:
            if form == "text":  # after a long run nothing may be lost
                print(text_report(result), end="", file=sys.stderr)
            raise
    print(alive_words(result, no_alive_check), file=sys.stderr)
    print(f"{result.seconds:.1f} s", file=sys.stderr)
    if result.planned is not None:
        print(f"interrupted after {len(result.cases)} of {result.planned} cases", file=sys.stderr)
        return result.exit_code
    return result.exit_code if expected is None else expected_code(result, expected)


def alive_words(result: SweepResult, skipped: bool) -> str:
    """One line: whether the gate was seen to find a planted bug."""
    if skipped:
        return "not proven alive: --no-alive-check was given"
    if result.alive is None:
        return "not proven alive: nothing ran to the end"
    return f"alive: {result.alive.words}" if result.alive.proven else f"GATE NOT ALIVE: {result.alive.words}"


def factors_of(file: str | None) -> dict[str, float]:
    """The factors of a calibration file; none without one."""
    from pathlib import Path

    from gpuemu.gate.tolerances import read_tolerances

    return read_tolerances(Path(file)).factors if file is not None else {}


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def render_report(result: SweepResult, form: str) -> bytes:
    """The report in one of the formats."""
    if form == "sarif":
        from gpuemu.reports.sarif import sarif_report

        return sarif_report(result)
    if form == "json":
        from gpuemu.reports.jsonfile import json_report

        return json_report(result)
    from gpuemu.reports.text import text_report

    return text_report(result).encode()


def expected_code(result: SweepResult, expected: tuple[Any, ...]) -> int:
    """The exit code against a baseline: 0 the same findings and everything checked, 1 others, 3 unchecked."""
    from gpuemu.reports.expected import compare_expected

    difference = compare_expected(result, expected)
    if not difference.none:
        print(difference.words(), file=sys.stderr)
        return 1
    if result.broken or result.of("unchecked") or not result.cases or result.dead:
        return 3
    print(f"the findings are exactly the {len(expected)} expected ones", file=sys.stderr)
    return 0


class progress_display:
    """A progress bar on a terminal, a plain line now and then otherwise; both on standard error."""

    def __enter__(self) -> Callable[[int, int, CaseResult], None]:
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None)
            self._wrong = 0
            return self._advance
        self._next = 0
        return self._line

    def _advance(self, done: int, total: int, result: CaseResult) -> None:
        self._wrong += result.verdict == "finding"
        words = f"{result.case.op}, {self._wrong} wrong"
        self._bar.update(self._task, completed=done, total=total, description=words)

    def _line(self, done: int, total: int, result: CaseResult) -> None:
        if done >= self._next or done == total:
            print(f"{done}/{total} cases, at {result.case.op}", file=sys.stderr, flush=True)
            self._next = done + max(total // 10, 1)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
