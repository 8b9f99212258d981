"""What is known of each instruction record: measured on a GPU, published, or the manual's word. The support table.

Evidence, strongest first:

* forms     the record's forms were executed on a GPU on many operand words and gave the emulator's bits (`answers/`)
* kernels   an opcode of the record stands in code whose every byte was equal on a GPU (`answers/*_kernels.json`: whole
            kernels of Triton, and single instructions of which the tests hold the answers)
* published no chip that has the instruction was at hand; it follows descriptions and models that others measured
* manual    it moves, orders or counts, and nothing in it is rounded: what the PTX manual says is all there is to know
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuemu.conform.answers import FOLDER, Answers, stored
from gpuemu.conform.explained import MERGED, NOT_ASKED
from interp.ops import ISA
from ptx.isa import Effect
from ptx.record import Op

_TYPES = ("type", "dtype", "atype", "btype", "ctype", "stype")
_COMPUTES = ("mma", "wgmma", "wmma", "tcgen05")


@dataclass(frozen=True)
class Evidence:
    """`kind`: forms, kernels, published or manual; `text`: for people."""

    record: Op
    kind: str
    text: str


def evidence() -> Iterator[Evidence]:
    """Of every record, in the table's order."""
    answers, kernels = stored(), [json.loads(p.read_text()) for p in sorted(FOLDER.glob("*_kernels.json"))]
    asked: dict[int, tuple[Answers, set[str]]] = {}
    for one in answers:
        for opcode in {o.split(" ")[0] for o in (*one.results, *one.matrices)} - set(MERGED):
            for record, _ in ISA._candidates(opcode):
                asked.setdefault(id(record), (one, set()))[1].add(opcode)
    ran = {id(record): k for k in kernels for o in k["opcodes"] for record, _ in ISA._candidates(o)}
    for record in ISA.ops:
        if id(record) in asked and record.name not in NOT_ASKED:
            one, names = asked[id(record)]
            yield Evidence(record, "forms", f"{len(names)} forms equal: {_short(one.gpu)}, {one.date}")
        elif id(record) in ran:
            k = ran[id(record)]
            yield Evidence(record, "kernels", f"equal in kernels: {_short(k['gpu'])}, {k['date']}")
        elif record.since[1] >= 100 or record.name in _COMPUTES or _rounds(record):
            yield Evidence(record, "published", "as published, not measured here")
        else:
            yield Evidence(record, "manual", "as the manual says")


def _rounds(record: Op) -> bool:
    """Whether a result of the record is a rounded or approximated number."""
    return record.effect is Effect.NONE and record.cost.value in ("fma", "fp64", "fp16", "xu", "cvt")


def _short(gpu: str) -> str:
    return gpu.partition(",")[0].removeprefix("NVIDIA ")


def table(rows: Sequence[Evidence]) -> str:
    """Markdown: one row a record, a section a chapter (a file of `interp/ops/`)."""
    lines = [
        "# Instructions",
        "",
        "Generated from the instruction records and the stored answers of GPUs by `gpuemu isa --support`. What is not",
        "here is refused before anything runs. *Equal* means every bit, on the operands of `gpuemu conform`.",
    ]
    chapter = ""
    for row in rows:
        mine = row.record.meaning.__module__.rpartition(".")[2]
        if mine != chapter:
            chapter = mine
            lines += ["", f"## {chapter}", "", "| form | types | PTX, sm | exactness |", "|---|---|---|---|"]
        (major, minor), sm = row.record.since
        types = "; ".join(f"{k}: {' '.join(v)}" for k, v in row.record.choices.items() if k in _TYPES)
        form = row.record.syntax.replace("|", "\\|")
        lines.append(f"| `{form}` | {types} | {major}.{minor}, {sm} | {row.text} |")
    counts = {k: sum(r.kind == k for r in rows) for k in ("forms", "kernels", "published", "manual")}
    lines += [
        "",
        f"{len(rows)} records: {counts['forms']} compared form by form, {counts['kernels']} in kernels, "
        f"{counts['published']} as published, {counts['manual']} as the manual says.",
        "",
    ]
    return "\n".join(lines)
