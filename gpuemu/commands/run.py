"""`gpuemu run FILE.py::kernel`: one launch of one kernel from the command line."""

from __future__ import annotations

from typing import Any

import click


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("kernel", metavar="FILE.py::KERNEL")
@click.argument("words", nargs=-1, metavar="NAME=VALUE...")
@click.option("--grid", required=True, metavar="X[,Y[,Z]]", help="Number of programs (CTAs).")
@click.option("--target", default="sm_90", show_default=True, metavar="sm_XX", help="Compile for this.")
@click.option("--device", metavar="sm_XX", help="Arithmetic of this device (default: the target's).")
@click.option("--num-warps", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--num-stages", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of rand, boundary and adversarial arrays.")
@click.option("--save", type=click.Path(), metavar="FILE.npz", help="Write all arrays, after the launch.")
@click.option("--ptx", "ptx_file", type=click.Path(), metavar="FILE", help="Write the PTX that was executed.")
def run(
    kernel: str,
    words: tuple[str, ...],
    grid: str,
    target: str,
    device: str | None,
    num_warps: int,
    num_stages: int,
    seed: int,
    save: str | None,
    ptx_file: str | None,
) -> int:
    """Execute one Triton kernel on the CPU.

    Arguments are named: x=rand:64x1000:f32 o=zeros:64x1000:f32 n=1000 BLOCK=1024.

    Exit code: 0 clean, 1 the emulator found something, 2 usage, 3 could not be executed.
    """
    from pathlib import Path

    import gpuemu
    from gpuemu.argspec import parse_words
    from gpuemu.commands.options import check_target
    from gpuemu.files import check_writable, write_atomically

    for place in (save, ptx_file):
        if place is not None:
            check_writable(Path(place))
    check_target(target)
    function = load_kernel(kernel)
    parsed = parse_words(list(words), seed)
    result = gpuemu.run(
        function, parse_grid(grid), target=target, device=device and check_target(device), num_warps=num_warps,
        num_stages=num_stages, **{w.name: w.value for w in parsed},
    )  # fmt: skip
    arrays = {w.name: w.value for w in parsed if w.is_array}
    for name, array in arrays.items():
        click.echo(describe(name, array))
    for note in result.exactness:
        click.echo(f"note: {note}")
    for finding in result.findings:
        place = f"{finding.file}:{finding.line}: " if finding.file else ""
        click.echo(f"FINDING {place}{finding.kind}: {finding.message}")
    if save is not None:
        write_atomically(Path(save), npz_bytes(arrays))
    if ptx_file is not None:
        write_atomically(Path(ptx_file), result.ptx.encode())
    return 1 if result.findings else 0


def load_kernel(text: str) -> Any:
    """The kernel that 'FILE.py::name' names. Raises InvalidInput."""
    from pathlib import Path

    from gpuemu.gate.discover import load_module
    from ptx.errors import GpuemuError, InvalidInput

    file, colons, name = text.partition("::")
    if not colons or not name:
        raise InvalidInput(f"'{text}' does not name a kernel", help="FILE.py::kernel, for example softmax.py::softmax")
    if not Path(file).is_file():
        raise InvalidInput(f"no such file: {file}")
    try:
        module = load_module(Path(file).resolve())
    except GpuemuError:
        raise
    except Exception as error:
        raise InvalidInput(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if found is None or not hasattr(found, "fn"):
        kernels = [n for n, v in vars(module).items() if hasattr(v, "arg_names")]
        raise InvalidInput(
            f"{file} has no Triton kernel '{name}'", help=f"kernels in it: {', '.join(kernels) or 'none'}"
        )
    return found


def parse_grid(text: str) -> tuple[int, ...]:
    """One to three sizes joined by commas or x. Raises InvalidInput."""
    from ptx.errors import InvalidInput

    try:
        sizes = tuple(int(p) for p in text.replace("x", ",").split(","))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= 3:
        raise InvalidInput(f"cannot read the grid '{text}'", help="one to three sizes, for example 64 or 8,4")
    return sizes


def describe(name: str, array: Any) -> str:
    """One line about an array: dtype, shape, range, and how many elements are not finite."""
    import numpy as np

    from gpuemu.gate.dtypes import name_of, to_float64

    values = to_float64(np.ascontiguousarray(array))
    finite = values[np.isfinite(values)]
    span = f"{finite.min():.6g} … {finite.max():.6g}" if finite.size else "nothing finite"
    odd = values.size - finite.size
    sizes = "x".join(map(str, array.shape))
    return f"{name}: {name_of(array.dtype)} {sizes}, {span}" + (f", {odd} NaN or infinite" if odd else "")


def npz_bytes(arrays: dict[str, Any]) -> bytes:
    """Arrays as an .npz file; formats that numpy does not know (bfloat16) as their unsigned words."""
    import io

    import numpy as np

    from gpuemu.gate.inputs import words_of

    stream = io.BytesIO()
    plain: dict[str, Any] = {n: a if a.dtype.kind in "fiub" else words_of(a) for n, a in arrays.items()}
    np.savez(stream, **plain)
    return stream.getvalue()
