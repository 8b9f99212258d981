"""The assembler's choice: a module is assembled with every instruction on a source line of its own, and the lines of
the machine code tell what became of each addition.

`-lineinfo` attributes a fused operation to the addition. So an addition whose machine instructions are all fused ones
(FFMA, HFMA2, DFMA) was fused; with two multiplications as operands, the one that has no instruction of its own any more
is the one it was fused with. A plain addition written as a fused one with the factor 1 is recognised by that. Where
copies of one addition were treated differently (loops are unrolled), or neither multiplication is left or gone, the
choice is unknown. So it is where the machine fused an addition into which no product is seen to come.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ptx import cache as disk
from ptx import ir
from ptx.contraction.plan import Fusions, Plan, bare, from_text, multiplies, pairs, to_text
from ptx.errors import Unsupported
from ptx.lower import toolchain
from ptx.parse import parse
from ptx.printer import print_module

_LINE = re.compile(r'//## File "[^"]*", line (\d+)')
_CODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);")
_FUSED = ("FFMA", "HFMA2", "DFMA", "FFMA2")
_ADDS = (*_FUSED, "FADD", "HADD2", "DADD", "FADD2")
_MULTIPLIES = ("FMUL", "HMUL2", "DMUL", "FMUL2", *_FUSED)
_FORMAT = "fusion plan 4"


def read_plan(text: str, target: str) -> Plan:
    """The fusion plan of a PTX text assembled for `target` (`sm_90a`). Raises Unsupported without an assembler that
    takes it."""
    module = parse(text)
    if not any(multiplies(k) for k in module.kernels):
        return {}
    names = toolchain.assemblers(toolchain.architecture(target))
    tools = [f"{n} {toolchain.release(toolchain.tool(n))}" for n in (*names, "nvdisasm")]
    key = disk.digest(_FORMAT, text, target, *tools)
    if (data := disk.get("fusion", key)) is not None:
        return from_text(data.decode())
    numbered, first = _numbered(module)
    plan = _decide(module, _machine(numbered, target, names), first)
    disk.put("fusion", key, to_text(plan).encode())
    return plan


def _numbered(module: ir.Module) -> tuple[str, dict[str, int]]:
    """The module's text with instruction i of all on line i + 1, and the number of each kernel's first."""
    bare_module = msgspec.structs.replace(module, files={})
    first: dict[str, int] = {}
    count = 0
    for k in module.kernels:
        first[k.name] = count
        count += sum(len(b.insts) for b in k.blocks)
    lines, number = [], 0
    for line in print_module(bare_module).splitlines():
        if _is_instruction(line):
            number += 1
            lines.append(f".loc 1 {number} 0")
        lines.append(line)
    assert number == count, (number, count)
    return "\n".join([*lines, '.file 1 "fusion"', ""]), first


def _is_instruction(line: str) -> bool:
    return line.startswith("\t") and not line.startswith("\t.")


def _machine(text: str, target: str, names: tuple[str, str]) -> dict[int, list[tuple[str, str]]]:
    """Machine instructions by line: (opcode, operands)."""
    with tempfile.TemporaryDirectory(prefix="gpuemu-fusion-") as folder:
        source, code = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text)
        for name in names:
            command = [str(toolchain.tool(name)), f"-arch={target}", "-lineinfo", str(source), "-o", str(code)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
        else:
            raise Unsupported(
                f"no assembler takes the text for {target}, so its contraction is not known",
                notes=tuple(done.stderr.strip().splitlines()[:1]),
                help="leave fmad out: the result then says that contraction is not modelled",
            )
        listing = subprocess.run(
            [str(toolchain.tool("nvdisasm")), "-g", "-c", str(code)], capture_output=True, text=True, check=True
        ).stdout
    found: dict[int, list[tuple[str, str]]] = {}
    line = 0
    for row in listing.splitlines():
        if m := _LINE.search(row):
            line = int(m[1])
        elif m := _CODE.search(row):
            found.setdefault(line, []).append((m[1].partition(".")[0], m[2]))
    return found


def _decide(module: ir.Module, machine: Mapping[int, list[tuple[str, str]]], first: Mapping[str, int]) -> Plan:
    plan: dict[str, Fusions] = {}
    for kernel in module.kernels:
        fused, unknown = {}, []
        possible = {a: (ms, more) for a, ms, more in pairs(kernel)}
        insts = [inst for block in kernel.blocks for inst in block.insts]
        for addition in (p for p, inst in enumerate(insts) if bare(inst, ("add", "sub"))):
            multiplications, more = possible.get(addition, ([], False))
            here = [c for c in machine.get(first[kernel.name] + addition + 1, []) if c[0] in _ADDS]
            if not here:
                continue  # nothing is left of it: its result is not needed, or is known
            kinds = {_is_fused(op, operands) for op, operands in here}
            if kinds == {False}:
                continue
            left = [m for m in multiplications if _is_left(machine.get(first[kernel.name] + m + 1, []))]
            gone = [m for m in multiplications if m not in left]
            chosen = gone if len(gone) == 1 else [] if more or len(multiplications) != 1 else multiplications
            if kinds == {True} and chosen:
                fused[addition] = chosen[0]
            else:
                unknown.append(addition)
        if fused or unknown:
            plan[kernel.name] = Fusions(fused, tuple(unknown))
    return plan


def _is_fused(op: str, operands: str) -> bool:
    """Whether a machine instruction is a fused one and not a plain addition written with the factor 1."""
    factors = [o.strip() for o in operands.split(",")][1:3]
    return op in _FUSED and "1" not in factors


def _is_left(code: list[tuple[str, str]]) -> bool:
    return any(op in _MULTIPLIES for op, _ in code)
