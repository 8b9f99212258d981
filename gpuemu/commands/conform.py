"""`gpuemu conform`: the emulator against real GPUs, with their stored answers or with the GPU of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptx.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from pathlib import Path

    from gpuemu.conform.bundle import Bundle


@click.command(short_help="Compare the emulator with a GPU, bit for bit.")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--gpu", is_flag=True, help="Ask the NVIDIA GPU of this machine, also for the kernels of op files PATHS.")
@click.option("--target", metavar="sm_XX", default="sm_90a", show_default=True, help="Code for the GPU.")
@click.option("--record", type=click.Path(), metavar="FILE", help="Keep the GPU's answers in this file.")
@click.option("--answers", "given", multiple=True, metavar="FILE", help="Compare with this file; may be repeated.")
@click.option("--export", metavar="DIR", help="Write a folder to run on a machine with a GPU, and stop.")
@click.option("--collect", metavar="DIR", help="Compare with what such a folder holds after it was run.")
def conform(
    paths: tuple[str, ...], gpu: bool, target: str, record: str | None, given: tuple[str, ...], export: str | None,
    collect: str | None,
) -> int:  # fmt: skip
    """Compare the emulator with a GPU, bit for bit.

    Without options: every instruction form against the answers that come with the tool.

    Exit code: 0 all the same, 1 something differs, 2 usage, 3 could not be compared.
    """
    import tempfile
    from pathlib import Path

    from gpuemu.commands.options import check_target
    from gpuemu.conform import answers as stored
    from gpuemu.conform.bundle import read_forms
    from gpuemu.conform.compare import compare
    from gpuemu.conform.table import text
    from gpuemu.files import check_writable

    target = check_target(target)
    if record:
        check_writable(Path(record))
    if export and Path(export).exists() and not Path(export).is_dir():
        raise InvalidInput(f"cannot write {export}: it is a file", help="--export takes a folder")
    if sum(map(bool, (gpu, export, collect, given))) > 1:
        raise InvalidInput("--gpu, --answers, --export and --collect exclude each other")
    if record and not (gpu or collect):
        raise InvalidInput("--record needs a GPU's answers", help="use it with --gpu or --collect")
    if paths and not (gpu or export):
        raise InvalidInput("kernels of op files are compared on a GPU only", help="add --gpu or --export DIR")
    if export:
        bundle = _write(Path(export), paths, target)
        click.echo(f"run there: python3 on_gpu.py {export}    (numpy and a CUDA driver are enough)")
        click.echo(f"then here: gpuemu conform --collect {export}    ({len(bundle.refused)} forms left out)")
        return 0
    if gpu:
        with tempfile.TemporaryDirectory(prefix="gpuemu-conform-") as folder:
            bundle = _write(Path(folder), paths, target)
            _run_here(bundle.folder)
            return _judge(bundle, record)
    if collect:
        return _judge(read_forms(Path(collect)), record)
    known = [stored.load(Path(p)) for p in given] or stored.stored()
    if not known:
        raise Unsupported("no answers of a GPU are stored", help="`gpuemu conform --gpu --record FILE` makes some")
    code = 0
    for one in known:
        found = compare(one)
        click.echo(text(one, found), nl=False)
        code = max(code, int(any(o.different for o in found)))
    return code


def _write(folder: Path, paths: tuple[str, ...], target: str) -> Bundle:
    from pathlib import Path

    from gpuemu.conform.bundle import write_forms
    from gpuemu.conform.launches import write_launches

    bundle = write_forms(folder, target)
    if paths:
        write_launches(folder, [Path(p) for p in paths], target.rstrip("af"))
    return bundle


def _run_here(folder: Path) -> None:
    from gpuemu.conform import on_gpu

    try:
        on_gpu.main(folder)
    except OSError as error:
        raise Unsupported(
            f"no CUDA driver on this machine: {error}", help="--export DIR writes a folder for one that has a GPU"
        ) from error
    except RuntimeError as error:
        raise Unsupported(f"the GPU could not run the code: {error}", help="is --target its architecture?") from error


def _judge(bundle: Bundle, record: str | None) -> int:
    from pathlib import Path

    from gpuemu.conform import answers as stored
    from gpuemu.conform.bundle import collect
    from gpuemu.conform.compare import compare
    from gpuemu.conform.launches import outcomes
    from gpuemu.conform.table import text

    answers = collect(bundle)
    if record:
        stored.save(answers, Path(record))
    found, kernels = compare(answers), outcomes(bundle.folder)
    click.echo(text(answers, found, kernels), nl=False)
    if any(o.different for o in found) or any(k.different for k in kernels):
        return 1
    return 3 if any(k.error for k in kernels) else 0
