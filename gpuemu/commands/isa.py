"""`gpuemu isa [NAME]`: the instructions that are modelled, from the records themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ptx.record import Op


@click.command(short_help="List the instructions that are modelled.")
@click.argument("name", required=False)
@click.option("--markdown", is_flag=True, help="The short support table, of the README.")
@click.option("--support", is_flag=True, help="The long one: every record, and what is known of its bits.")
def isa(name: str | None, markdown: bool, support: bool) -> int:
    """List the PTX instructions that are modelled, or the forms of one.

    NAME is an instruction (cvt), with modifiers as many as are known (cvt.rn.f16, cp.async.bulk).

    Exit code: 0, 3 no such form is modelled.
    """
    from interp.ops import ISA
    from ptx.errors import Unsupported
    from ptx.nearest import difference, nearest, nearest_name

    if support:
        from gpuemu.conform.evidence import evidence, table

        click.echo(table(list(evidence())), nl=False)
        return 0
    if name is None:
        click.echo(support_table(ISA.ops) if markdown else "\n".join(f"{o.syntax}" for o in ISA.ops))
        return 0
    own = [o for o in ISA.ops if o.name == name.partition(".")[0] and not o.internal]
    found = ISA.having(name) or [o for o in own if not difference(o, name)[0]]
    if not found:
        notes = nearest(own, name) if own else nearest_name(name.partition(".")[0], {o.name for o in ISA.ops})
        raise Unsupported(f"no form of '{name}' is modelled", notes=notes, help="gpuemu isa lists all that are")
    for o in found:
        (ptx_major, ptx_minor), sm = o.since
        click.echo(
            f"{o.syntax}\n    {o.doc.splitlines()[0]}\n    class {o.cost.value}, PTX {ptx_major}.{ptx_minor}, sm_{sm}"
        )
        for key, choices in o.choices.items():
            click.echo(f"    .{key}: {' '.join(choices)}")
    return 0


def support_table(ops: list[Op]) -> str:
    """Markdown: one row a chapter (a file of `interp/ops/`), the opcodes that it has and the number of records."""
    chapters: dict[str, list[Op]] = {}
    for o in ops:
        chapters.setdefault(o.meaning.__module__.rpartition(".")[2], []).append(o)
    rows = ["| chapter (`interp/ops/`) | instructions | records |", "|---|---|---|"]
    for chapter, members in sorted(chapters.items()):
        names = sorted({_head(o) for o in members})
        rows.append(f"| {chapter} | {' '.join(f'`{n}`' for n in names)} | {len(members)} |")
    return "\n".join(rows)


_FAMILIES = ("cp", "wgmma", "mbarrier", "tensormap", "fence", "barrier", "st", "tcgen05")


def _head(o: Op) -> str:
    """The opcode's first word; in families named by their second, up to that: `cp.async`, `mbarrier.arrive`."""
    words = o.syntax.split(" ")[0].partition("{")[0].split(".")
    if o.name not in _FAMILIES or len(words) < 2 or words[1] in o.choices:
        return o.name
    return ".".join(words[:3] if words[1] == "async" and len(words) > 2 and words[2] not in o.choices else words[:2])
