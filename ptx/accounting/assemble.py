"""Runs NVIDIA's tools on a PTX text and keeps what they printed, so that reading it can change without running again.

One text and target is four processes: `ptxas -v` (registers, spills), `cuobjdump -res-usage` (the same from the object
file, for the shared and constant bytes), `cuobjdump -elf` (attributes) and `nvdisasm -json` (instructions). Measured:
60 ms for a softmax, 1.3 s for a matmul of 6,000 instructions, nearly all of it ptxas.

Which assembler: the one that Triton would use for the target (`toolchain.assemblers`), because the numbers are to be
those of the code that runs; the other one only when the first is too old for the text's `.version`. They differ: a
matmul of the tests takes 116 registers on sm_80 by release 12.9 and 102 by 13.4. So an account names its assembler, and
a comparison across two of them says so.

Options are Triton 3.9's (`backends/nvidia/compiler.py`, `make_cubin`): `--regAllocOptLevel=2`, and `--fmad=false` when
asked for. Line information is left out: with and without it four kernels gave the same code on three targets.

A target with a suffix: code for `sm_90a` runs on that chip alone, and a text that says `.target sm_90a` is assembled
for `sm_90a` when `sm_90` is asked for; the account says what was done.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from ptx import cache as disk
from ptx import ir
from ptx.accounting.sass import Machine
from ptx.errors import InternalError, Unsupported
from ptx.lower import toolchain

TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120")
_KIND = "assembled"
_FORMAT = "assembled 2"
_OPTIONS = ("--regAllocOptLevel=2",)
_SECONDS = 300
_TOO_OLD = "Unsupported .version"


class Assembled(msgspec.Struct, frozen=True):
    """What the tools printed. `target`: as assembled for. `sass`: function -> (bytes, instructions in code order)."""

    assembler: str
    release: str
    target: str
    log: str
    usage: str
    attributes: str
    sass: dict[str, tuple[int, tuple[Machine, ...]]]


class NotAvailable(msgspec.Struct, frozen=True):
    """A target that the text cannot be assembled for, and why."""

    target: str
    reason: str


def assemble(text: str, module: ir.Module, target: str, fmad: bool = True) -> Assembled | NotAvailable:
    """Assemble a PTX text, `module` decoded, for a target and disassemble the result.

    Raises Unsupported when the tools are not installed, InvalidInput for a target that is not one."""
    wanted = _target_for(module, target)
    if isinstance(wanted, NotAvailable):
        return wanted
    options, names = _options(fmad), toolchain.assemblers(toolchain.architecture(wanted))
    key = disk.digest(_FORMAT, text, wanted, " ".join(options), *(_identity(n) for n in (*names, *_READERS)))
    if (data := disk.get(_KIND, key)) is not None:
        try:
            return _decoder().decode(data)
        except msgspec.DecodeError:
            pass
    made = _run(text, target, wanted, options, names)
    if isinstance(made, Assembled):
        disk.put(_KIND, key, msgspec.msgpack.encode(made))
    return made


def object_code(text: str, module: ir.Module, target: str, fmad: bool = True) -> bytes | NotAvailable:
    """The object file (cubin) that the numbers of `assemble` are about. Not cached."""
    wanted = _target_for(module, target)
    if isinstance(wanted, NotAvailable):
        return wanted
    names = toolchain.assemblers(toolchain.architecture(wanted))
    with tempfile.TemporaryDirectory(prefix="gpuemu-ptxas-") as folder:
        built = _build(text, target, wanted, _options(fmad), names, Path(folder))
        return built if isinstance(built, NotAvailable) else built.code.read_bytes()


def _options(fmad: bool) -> list[str]:
    return [*_OPTIONS, *([] if fmad else ["--fmad=false"])]


_READERS = ("cuobjdump", "nvdisasm")


@cache
def _decoder() -> msgspec.msgpack.Decoder[Assembled]:
    return msgspec.msgpack.Decoder(Assembled)


def _identity(name: str) -> str:
    try:
        return f"{name} {toolchain.release(toolchain.tool(name))}"
    except Unsupported:
        return f"no {name}"


def _target_for(module: ir.Module, target: str) -> str | NotAvailable:
    """What `-arch` has to be: the target, or the text's own when that is the same chip with a suffix."""
    asked, own = toolchain.architecture(target), toolchain.architecture(module.target)
    suffix = module.target.removeprefix(f"sm_{own}")
    if own > asked:
        return NotAvailable(target, f"the text is for {module.target}, which code for {target} cannot use")
    if suffix == "a" and own != asked:
        return NotAvailable(target, f"the text is for {module.target} and runs on that chip only")
    if suffix == "f" and own // 10 != asked // 10:
        return NotAvailable(target, f"the text is for {module.target} and runs on that family only")
    if suffix and not target.endswith(("a", "f")):
        return f"sm_{asked}{suffix}"
    return target


def _run(text: str, target: str, wanted: str, options: list[str], names: tuple[str, str]) -> Assembled | NotAvailable:
    with tempfile.TemporaryDirectory(prefix="gpuemu-ptxas-") as folder:
        built = _build(text, target, wanted, options, names, Path(folder))
        if isinstance(built, NotAvailable):
            return built
        return _read(built.code, built.name, built.program, wanted, built.log)


@dataclass(frozen=True, slots=True)
class _Built:
    """An object file, and which assembler made it and said what."""

    code: Path
    name: str
    program: Path
    log: str


def _build(
    text: str, target: str, wanted: str, options: list[str], names: tuple[str, str], folder: Path
) -> _Built | NotAvailable:
    source, code = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(text, encoding="utf-8")
    complaint = ""
    for name in names:
        try:
            program = toolchain.tool(name)
        except Unsupported:
            if name == names[-1] and not complaint:
                raise
            continue
        done = _call([program, "-v", f"-arch={wanted}", *options, source, "-o", code])
        if done.returncode == 0:
            return _Built(code, name, program, done.stdout + done.stderr)
        complaint = _complaint(done, name, program)
        if _TOO_OLD not in done.stderr + done.stdout:
            break
    return NotAvailable(target, complaint)


def _read(code: Path, name: str, program: Path, wanted: str, log: str) -> Assembled:
    cuobjdump, nvdisasm = toolchain.tool("cuobjdump"), toolchain.tool("nvdisasm")
    usage = _call([cuobjdump, "-res-usage", code])
    elf = _call([cuobjdump, "-elf", code])
    listing = _call([nvdisasm, "-json", code])
    for done in (usage, elf, listing):
        if done.returncode:
            raise Unsupported(
                f"{Path(done.args[0]).name} cannot read what {name} {toolchain.release(program)} made for {wanted}",
                notes=tuple((done.stderr or done.stdout).strip().splitlines()[:1]),
                help="the tools of one Triton wheel, or of one CUDA toolkit, fit together",
            )
    return Assembled(
        name, toolchain.release(program), wanted, log, usage.stdout, _attributes(elf.stdout), _sass(listing.stdout)
    )


def _call(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unsupported(
            f"{Path(command[0]).name} was still running after {_SECONDS} s", help="measure a smaller kernel"
        ) from None
    except OSError as e:
        raise Unsupported(f"{command[0]} does not run: {e.strerror}", help="reinstall Triton") from e


def _complaint(done: subprocess.CompletedProcess[str], name: str, program: Path) -> str:
    """The first line in which an assembler says why not, without the temporary file's name."""
    said = [line for line in (done.stderr + done.stdout).splitlines() if re.search(r"\b(error|fatal)\b", line)]
    line = said[0] if said else f"exit code {done.returncode}"
    line = re.sub(r"^ptxas\S* (?:\S*kernel\.ptx, (line \d+)\s*;)?", lambda m: f"PTX {m[1]}: " if m[1] else "", line)
    return f"{name} ({toolchain.release(program)}) refuses it: {' '.join(line.split())}"


_SECTION = re.compile(r"^\.(nv\.info\S*|\S+)\s*$")


def _attributes(dump: str) -> str:
    """The `.nv.info` sections of `cuobjdump -elf`: what the loader is told about each kernel."""
    kept, inside = [], False
    for line in dump.splitlines():
        if _SECTION.match(line):
            inside = line.startswith(".nv.info")
        if inside:
            kept.append(line)
    return "\n".join(kept)


def _sass(listing: str) -> dict[str, tuple[int, tuple[Machine, ...]]]:
    try:
        _, functions = msgspec.json.decode(listing)
        return {
            f["function-name"]: (
                int(f["length"]),
                tuple(
                    (str(i.get("predicate", "")), str(i["opcode"]), str(i.get("operands", "")))
                    for i in f["sass-instructions"]
                ),
            )
            for f in functions
        }
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as e:
        raise InternalError(f"the listing of nvdisasm has another form than expected: {e!r}") from e
