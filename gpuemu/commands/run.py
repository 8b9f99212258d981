"""`gpuemu run FILE.py::kernel` and `gpuemu run FILE.ptx::entry`: one launch of one kernel from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gpuemu.commands.options import FMAD

if TYPE_CHECKING:
    from gpuemu.argspec import Word
    from interp.launch import Result


@click.command(short_help="Execute one kernel, from Python or PTX.")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.argument("words", nargs=-1, metavar="NAME=VALUE...")
@click.option("--grid", required=True, metavar="X[,Y[,Z]]", help="Number of programs (CTAs).")
@click.option("--block", metavar="X[,Y[,Z]]", help="Threads of a CTA (PTX files).")
@click.option("--shared", type=click.IntRange(min=0), help="Bytes of dynamic shared memory (PTX files).")
@click.option("--target", metavar="sm_XX", help="Compile for this.  [default: sm_90; PTX files: their own]")
@click.option("--device", metavar="sm_XX", help="Arithmetic of this device (default: the target's).")
@click.option("--num-warps", type=click.IntRange(min=1), default=4, show_default=True, help="Of a Triton program.")
@click.option("--num-stages", type=click.IntRange(min=1), default=3, show_default=True, help="Of Triton's pipelines.")
@click.option("--num-ctas", type=click.IntRange(min=1), default=1, show_default=True, help="CTAs of a cluster.")
@click.option("--cluster", metavar="X[,Y[,Z]]", help="CTAs of a cluster (PTX files that do not say it).")
@FMAD
@click.option("--fuel", type=click.IntRange(min=1), help="Loop iterations of all warps after which to give up.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of rand, boundary and adversarial arrays.")
@click.option("--save", type=click.Path(), metavar="FILE.npz", help="Write all arrays, after the launch.")
@click.option("--ptx", "ptx_file", type=click.Path(), metavar="FILE", help="Write the PTX that was executed.")
def run(
    kernel: str,
    words: tuple[str, ...],
    grid: str,
    block: str | None,
    shared: int | None,
    target: str | None,
    device: str | None,
    num_warps: int,
    num_stages: int,
    num_ctas: int,
    cluster: str | None,
    fmad: str | None,
    fuel: int | None,
    seed: int,
    save: str | None,
    ptx_file: str | None,
) -> int:
    """Execute one kernel on the CPU: a Triton kernel of a Python file, or an entry of a PTX file.

    Arguments are named: x=rand:64x1000:f32 o=zeros:64x1000:f32 w=@weights.npy n=1000 BLOCK=1024. Those of a PTX entry
    are taken in the order in which they are given. Arrays are filled with rand, boundary, adversarial, exact, zeros,
    ones, arange or nan.

    Exit code: 0 clean, 1 the emulator found something, 2 usage, 3 could not be executed.
    """
    from pathlib import Path

    from gpuemu.commands.options import check_target
    from gpuemu.files import check_writable, write_atomically

    for place in (save, ptx_file):
        if place is not None:
            check_writable(Path(place))
    target, device = target and check_target(target), device and check_target(device)
    launch = Launch(
        kernel, words, grid, block, shared, device, num_warps, num_stages, num_ctas, cluster, fuel, seed, fmad
    )  # fmt: skip
    result, parsed = launch.execute(target)
    arrays = report(result, parsed)
    if save is not None:
        write_atomically(Path(save), npz_bytes(arrays))
    if ptx_file is not None:
        write_atomically(Path(ptx_file), result.ptx.encode())
    return 1 if result.findings else 0


@dataclass(frozen=True)
class Launch:
    """A launch as the command line says it; the fields are the options of `gpuemu run`."""

    kernel: str
    words: tuple[str, ...]
    grid: str
    block: str | None = None
    shared: int | None = None
    device: str | None = None
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    cluster: str | None = None
    fuel: int | None = None
    seed: int = 0
    fmad: str | None = None

    @property
    def is_ptx(self) -> bool:
        return self.kernel.partition("::")[0].endswith(".ptx")

    def execute(self, target: str | None, metrics: bool = False) -> tuple[Result, list[Word]]:
        """Launch on fresh arrays. `target`: of the code, None for sm_90 or what the PTX says.

        Raises what parsing, lowering and launching raise."""
        import gpuemu
        from gpuemu.argspec import parse_words
        from ptx.errors import InvalidInput

        sizes = parse_sizes("grid", self.grid)
        if self.is_ptx:
            if self.block is None:
                raise InvalidInput("a PTX kernel needs --block", help="threads of a CTA, for example --block 128")
            entry = load_entry(self.kernel, target, self.device, self.fmad)
            parsed = parse_words(list(self.words), self.seed)
            result = entry.launch(
                grid=sizes, block=parse_sizes("block", self.block), args=[w.value for w in parsed],
                shared=self.shared or 0, names=[w.name for w in parsed], fuel=self.fuel,
                cluster=self.cluster and parse_sizes("cluster", self.cluster), metrics=metrics,
            )  # fmt: skip
            return result, parsed
        if self.block is not None or self.shared is not None or self.cluster is not None:
            raise InvalidInput(
                "--block, --shared and --cluster are for PTX files",
                help="a Triton kernel takes --num-warps and --num-ctas",
            )
        function = load_kernel(self.kernel)
        parsed = parse_words(list(self.words), self.seed)
        result = gpuemu.run(
            function, sizes, target=target or "sm_90", device=self.device, num_warps=self.num_warps,
            num_stages=self.num_stages, num_ctas=self.num_ctas, fuel=self.fuel, metrics=metrics,
            fmad=self.fmad, **{w.name: w.value for w in parsed},
        )  # fmt: skip
        return result, parsed


def report(result: Any, parsed: list[Word]) -> dict[str, Any]:
    """Say what a launch left; returns the arrays by name."""
    arrays = {w.name: w.value for w in parsed if w.is_array}
    for name, array in arrays.items():
        click.echo(describe(name, array))
    if result.printed:
        click.echo(result.printed, nl=not result.printed.endswith("\n"))
    for note in result.exactness:
        click.echo(f"note: {note}")
    for finding in result.findings:
        place = f"{finding.file}:{finding.line}: " if finding.file else ""
        click.echo(f"FINDING {place}{finding.kind}: {finding.message}")
    return arrays


def load_entry(text: str, target: str | None, device: str | None, fmad: str | None = None) -> Any:
    """The entry that 'FILE.ptx::name' names ('FILE.ptx' where it has only one). Raises InvalidInput, Unsupported."""
    from pathlib import Path

    import gpuemu
    from gpuemu.files import unreadable
    from ptx.errors import InvalidInput

    file, _, name = text.partition("::")
    try:
        source = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(file, error) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not PTX text: {error}") from error
    module = gpuemu.Module.from_ptx(source, target=target, device=device, fmad=fmad)
    if not name and len(module) == 1:
        name = next(iter(module))
    if not name:
        raise InvalidInput(f"{file} has {len(module)} entries", help=f"name one: {file}::{next(iter(module), 'ENTRY')}")
    return module[name]


def load_kernel(text: str) -> Any:
    """The kernel that 'FILE.py::name' names. Raises InvalidInput."""
    from pathlib import Path

    from gpuemu.gate.discover import load_module
    from ptx.errors import GpuemuError, InvalidInput

    file, colons, name = text.partition("::")
    if not colons or not name:
        raise InvalidInput(
            f"'{text}' does not name a kernel", help="FILE.py::kernel, for example softmax.py::softmax_kernel"
        )
    if not Path(file).is_file():
        raise InvalidInput(f"{file} is a folder" if Path(file).is_dir() else f"no such file: {file}")
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


def parse_sizes(what: str, text: str) -> tuple[int, ...]:
    """One to three sizes of at least 1 joined by commas or x. Raises InvalidInput."""
    from ptx.errors import InvalidInput

    try:
        sizes = tuple(int(p) for p in text.replace("x", ",").split(","))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= 3:
        raise InvalidInput(f"cannot read the {what} '{text}'", help="one to three sizes, for example 64 or 8,4")
    if min(sizes) < 1:
        raise InvalidInput(f"{what} {text}: nothing would run", help="every size must be at least 1")
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
