"""`gpuemu init FILE.py::kernel`: a first op file for a kernel, from its source."""

from __future__ import annotations

import click


@click.command(short_help="Write a first op file for a Triton kernel.")
@click.argument("kernel", metavar="FILE.py::KERNEL")
@click.option("--output", type=click.Path(), metavar="FILE", help="The op file.  [default: KERNEL_op.py beside FILE]")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def init(kernel: str, output: str | None, force: bool) -> int:
    """Write an op file for a Triton kernel: arguments, shapes, launcher, as far as its source says.

    Nothing is imported or run. What only you know (reference, error model, ...) is marked, and `gpuemu ci` refuses the
    file until it is filled in.

    Exit code: 0 written, 2 usage.
    """
    from pathlib import Path

    from gpuemu.files import check_writable, write_atomically
    from gpuemu.gate.placeholder import NAME
    from gpuemu.scaffold.kernel_facts import read_kernel
    from gpuemu.scaffold.op_file import op_text
    from ptx.errors import InvalidInput

    file, _, name = kernel.partition("::")
    if not name:
        raise InvalidInput(
            f"'{kernel}' does not name a kernel", help="FILE.py::kernel, for example softmax.py::softmax_kernel"
        )
    source = Path(file)
    facts = read_kernel(source, name)
    if not source.stem.isidentifier():
        raise InvalidInput(f"{file} cannot be imported by its name", help="rename it to a Python identifier")
    place = Path(output) if output else source.with_name(f"{name.removesuffix('_kernel')}_op.py")
    check_writable(place)
    if place.exists() and not force:
        raise InvalidInput(f"{place} exists", help="give --output another name, or --force")
    text = op_text(facts, source.stem)
    write_atomically(place, text.encode())
    lines = [f"  line {n}: {line.strip()}" for n, line in enumerate(text.splitlines(), 1) if f"{NAME}(" in line]
    click.echo(f"wrote {place}; still to be filled in:" if lines else f"wrote {place}")
    for line in lines:
        click.echo(line)
    click.echo(f"then: gpuemu ci {place}")
    return 0
