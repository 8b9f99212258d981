"""From PTX text to a runnable kernel, parsing included: milliseconds an instruction, by size and by code generator CPU.

Three sizes of real PTX from the tests' corpus, in a fresh process for each CPU, with the cache on disk switched off.
What is paid once a process or once an installation (imports, the grammar, the runtime's own functions) is not counted:
each kernel is prepared once before it is measured. `benchmarks.first_result` measures the whole. `GPUEMU_CPU` chooses
the CPU that code is generated for. Processor time of one thread.
"""

from __future__ import annotations

import argparse
import json
import re
import time

from benchmarks.worker import pin_to_one_core, start

KERNELS = ("softmax_f32_sm80", "flash_attention_f16_sm80", "matmul_f32_ieee_large_sm80")
CPUS = ("host", "x86-64-v4", "x86-64-v3", "x86-64-v2")
ROUNDS = 2

_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?(?!\.|//)[a-z][\w.:]*.*;", re.M)


def count_instructions(text: str) -> int:
    """Instructions in PTX text, predicated ones included, directives and declarations not."""
    return len(_INSTRUCTION.findall(text))


def prepare(text: str) -> object:
    """PTX text to a kernel that can be launched at once."""
    from interp.launch import Module

    module = Module.from_ptx(text)
    (entry,) = module
    return module[entry].compiled(counters=True)


def measure_here() -> dict[str, dict[str, float]]:
    """Seconds and instructions of every kernel, in this process."""
    from tests.ptx import regenerate

    pin_to_one_core()
    found = {}
    for name in KERNELS:
        text = regenerate.read(name)
        prepare(text)
        times = []
        for _ in range(ROUNDS):
            before = time.process_time()
            prepare(text)
            times.append(time.process_time() - before)
        found[name] = {"seconds": min(times), "instructions": count_instructions(text)}
    return found


def report() -> None:
    """Print one line a kernel and CPU: instructions, total, and milliseconds an instruction (best of `ROUNDS`)."""
    print(f"{'PTX text to runnable, CPU time':32} {'CPU':>10} {'instructions':>13} {'ms':>9} {'ms/instruction':>15}")
    for cpu in CPUS:
        environment = {"GPUEMU_CPU": None if cpu == "host" else cpu, "GPUEMU_CACHE_DIR": ""}
        for name, found in start("benchmarks.compile_time", ["--here"], environment).items():
            seconds, count = found["seconds"], found["instructions"]
            print(f"{name:32} {cpu:>10} {count:13} {1e3 * seconds:9.1f} {1e3 * seconds / count:15.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true")
    if parser.parse_args().here:
        print(json.dumps(measure_here()))
    else:
        report()
