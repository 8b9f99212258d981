"""`gpuemu study`: measure the gate, and the usual tests beside it, on a corpus of correct ops and planted bugs."""

from __future__ import annotations

import sys

import click

from gpuemu.commands.options import FMAD

CORPUS = ("benchmarks/corpus", "benchmarks/original26")


@click.command(short_help="Measure the gate on a corpus of correct ops and planted bugs.")
@click.argument("corpus", nargs=-1)
@click.option("--parallel", type=click.IntRange(min=1), default=1, show_default=True, help="Worker processes.")
@click.option("--op", "ops", multiple=True, metavar="NAME", help="Only this control and its bugs; may be repeated.")
@click.option("--target", default="sm_80", show_default=True, metavar="sm_XX", help="Compile for this.")
@FMAD
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sweeps.")
@click.option("--tolerances", type=click.Path(), metavar="FILE", help="Factors of `gpuemu calibrate`.")
@click.option("--deltas", type=click.Path(), metavar="FILE", help="Measured for claim P4 (one line).")
@click.option("--output", type=click.Path(), metavar="STEM", help="Write STEM.md and STEM.json, too.")
def study(
    corpus: tuple[str, ...],
    parallel: int,
    ops: tuple[str, ...],
    target: str,
    fmad: str | None,
    seed: int,
    tolerances: str | None,
    deltas: str | None,
    output: str | None,
) -> int:
    """Sweep the controls and bugs of CORPUS (default: benchmarks/corpus and benchmarks/original26), judge each case
    under every tolerance and oracle, and print recall and false alarms of every way to test.

    Exit code: 0 all reachable bugs caught and no control flagged, 1 not so, 2 usage, 3 something was not checked.
    """
    from pathlib import Path

    from gpuemu.commands.ci import factors_of
    from gpuemu.commands.options import check_target
    from gpuemu.files import check_writable, read_text, write_atomically
    from gpuemu.gate.sweep import find_root
    from gpuemu.study.document import document
    from gpuemu.study.measure import StudyResult
    from gpuemu.study.run import Study, run_study
    from gpuemu.study.tables import Report, json_report, text_table
    from ptx.errors import InvalidInput

    paths = corpus or CORPUS
    if not corpus and not all(Path(p).is_dir() for p in CORPUS):
        raise InvalidInput("no corpus here", help="give one, or run in a checkout of gpuemu: benchmarks/corpus")
    places = [Path(f"{output}.md"), Path(f"{output}.json")] if output else []
    for place in places:
        check_writable(place)
    words = ["gpuemu study", *corpus, *(f"--op {o}" for o in ops)]
    words += [f"--tolerances {tolerances}"] if tolerances else []
    words += [f"--target {target}"] if target != "sm_80" else []
    words += [f"--fmad {fmad}"] if fmad else []
    words += [f"--seed {seed}"] if seed else []
    words += [f"--deltas {deltas}"] if deltas else []
    sentence = " ".join(read_text(deltas).split()) if deltas else None
    words += [f"--output {output}"] if output else []
    command = " ".join(words)

    def progress(done: int, total: int, result: StudyResult) -> None:
        if done % max(total // 20, 1) == 0 or done == total:
            print(f"{done}/{total}, at {Path(result.case.file).stem}", file=sys.stderr, flush=True)

    asked = Study(
        paths=paths, work=str(find_root(Path.cwd()) / ".gpuemu" / "study"), seed=seed, target=check_target(target),
        parallel=parallel, only=ops, factors=factors_of(tolerances), fmad=fmad,
    )  # fmt: skip
    outcomes, seconds = run_study(asked, progress)
    if not outcomes:
        raise InvalidInput("nothing to measure: no control of the corpus has such a name")
    report = Report(outcomes)
    print(text_table(report), end="")
    if places:
        page = document(report, command, sentence)
        for place, data in zip(places, (page, json_report(report, command)), strict=True):
            write_atomically(place, data)
    print(f"{seconds:.1f} s", file=sys.stderr)
    return report.exit_code
