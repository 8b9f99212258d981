"""What the tools say about one kernel, as numbers: registers, spills, stack, shared, constants, barriers, threads.

Two witnesses speak about the same object, and each number is taken from the one that always has it:

    ptxas -v                 registers, spill stores and loads, stack, barriers, static shared memory
    cuobjdump -res-usage     constant banks (ptxas leaves them out of its log from sm_90 on)
    .nv.info attributes      `.maxntid` (EIATTR_MAX_THREADS); `.reqntid` is not among what the driver limits by

Registers and stack are in both of the first two; a test compares them. `SHARED` of the second counts, from sm_90 on,
the bytes that the system takes at the start of a CTA's shared memory; they are not the kernel's, so static shared
memory is the log's, and the system's share is the device's (`ptx/device.py`), on every chip that has one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ptx.accounting.assemble import Assembled
from ptx.errors import InternalError

_USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")
_USAGE = re.compile(r"(\w+)(?:\[(\d+)\])?:(\d+)")
_THREADS = re.compile(r"Attribute:\s*EIATTR_MAX_THREADS\s+Format:\s*\S+\s+Value:\s*((?:0x[0-9a-fA-F]+ ?)+)")


@dataclass(frozen=True, slots=True)
class Log:
    """A kernel's lines of `ptxas -v`. `shared`: bytes without those of the system."""

    registers: int
    barriers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


@dataclass(frozen=True, slots=True)
class Usage:
    """A kernel's line of `cuobjdump -res-usage`."""

    registers: int
    stack: int
    shared: int
    local: int
    constant: int


def read_log(log: str, kernel: str) -> Log:
    """The lines about `kernel`. Raises InternalError when they are missing or of another form."""
    _, found, rest = log.partition(f"Compiling entry function '{kernel}'")
    part = re.split(r"Compiling entry function", rest)[0]
    own = part.partition(f"Function properties for {kernel}\n")[2]
    frame, used, shared = _FRAME.search(own), _USED.search(part), _SHARED.search(part)
    if not found or frame is None or used is None:
        raise _another_form("ptxas -v", kernel, log)
    return Log(
        registers=int(used[1]),
        barriers=int(used[2] or 0),
        stack=int(frame[1]),
        spill_stores=int(frame[2]),
        spill_loads=int(frame[3]),
        shared=int(shared[1]) if shared else 0,
    )


def read_usage(usage: str, kernel: str) -> Usage:
    """The line about `kernel`. Raises InternalError when it is missing or of another form."""
    line = usage.partition(f" Function {kernel}:\n")[2].partition("\n")[0]
    numbers: dict[str, int] = {}
    for name, _, value in _USAGE.findall(line):
        numbers[name] = numbers.get(name, 0) + int(value)  # constant banks are summed
    if not {"REG", "STACK", "SHARED", "LOCAL"} <= set(numbers):
        raise _another_form("cuobjdump -res-usage", kernel, usage)
    return Usage(
        numbers["REG"], numbers["STACK"], numbers["SHARED"], numbers["LOCAL"], numbers.get("CONSTANT", 0)
    )  # fmt: skip


def read_usage_banks(usage: str, kernel: str) -> dict[int, int]:
    """Bytes of each constant bank that `kernel` sees: 0 holds its parameters, 3 what the module declares `.const`."""
    lines = [usage.partition(f"{head}\n")[2].partition("\n")[0] for head in (" Common:", f" Function {kernel}:")]
    found = _USAGE.findall("\n".join(lines))
    return {int(bank): int(value) for name, bank, value in found if name == "CONSTANT" and bank}


def read_max_threads(attributes: str, kernel: str) -> int | None:
    """Threads a CTA that `.maxntid` of `kernel` allows; None without one."""
    section = re.split(r"^\.nv\.info", attributes, flags=re.MULTILINE)
    own = next((s for s in section if s.startswith(f".{kernel}\n")), "")
    found = _THREADS.search(own)
    return math.prod(int(n, 16) for n in found[1].split()) if found else None


def physical(assembled: Assembled, kernel: str) -> dict[str, int]:
    """The numbers of level 'physical' that the tools print, by name."""
    log, usage = read_log(assembled.log, kernel), read_usage(assembled.usage, kernel)
    return {
        "launch__registers_per_thread": log.registers,
        "ptxas__spill_stores_bytes": log.spill_stores,
        "ptxas__spill_loads_bytes": log.spill_loads,
        "ptxas__stack_bytes": log.stack,
        "ptxas__constant_bytes": usage.constant,
        "ptxas__barriers": log.barriers,
        "launch__shared_mem_per_block_static": log.shared,
    }


def _another_form(tool: str, kernel: str, text: str) -> InternalError:
    return InternalError(
        f"{tool} printed nothing that can be read about '{kernel}'",
        notes=tuple(text.strip().splitlines()[:8]),
        help="please report these lines with the release of the tool",
    )
