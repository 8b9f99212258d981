"""From PTX text to a runnable kernel, parsing included: milliseconds an instruction, by size and by code generator CPU.

Three sizes of real PTX from the tests' corpus, each prepared in a fresh process with the cache on disk switched off.
What is paid once a process (imports, the runtime) is not counted here: a small kernel is prepared first, and
`benchmarks.first_result` measures the whole. `GPUEMU_CPU` chooses the CPU that code is generated for.
"""

from __future__ import annotations

import argparse
import json
import re
import time

from benchmarks.worker import pin_to_one_core, start

KERNELS = ("softmax_f32_sm80", "flash_attention_f16_sm80", "matmul_f32_ieee_large_sm80")
CPUS = ("host", "x86-64-v3", "x86-64-v2")
ROUNDS = 3

_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?(?!\.|//)[a-z][\w.:]*.*;", re.M)


def count_instructions(text: str) -> int:
    """Instructions in PTX text, predicated ones included, directives and declarations not."""
    return len(_INSTRUCTION.findall(text))


def prepare(text: str) -> object:
    """PTX text to a kernel that can be launched at once."""
    from interp.launch import Module

    module = Module.from_ptx(text)
    (entry,) = module.entries
    return module[entry].prepare()


def measure_one(name: str) -> dict[str, float]:
    """Seconds and instructions of one kernel, in this process."""
    from tests.ptx import regenerate

    pin_to_one_core()
    prepare(regenerate.read("vector_add_sm80"))
    text = regenerate.read(name)
    before = time.perf_counter()
    prepare(text)
    return {"seconds": time.perf_counter() - before, "instructions": count_instructions(text)}


def report() -> None:
    """Print one line a kernel and CPU: instructions, total, and milliseconds an instruction (best of `ROUNDS`)."""
    print(f"{'PTX text to runnable, one core':32} {'CPU':>10} {'instructions':>13} {'ms':>9} {'ms/instruction':>15}")
    for cpu in CPUS:
        for name in KERNELS:
            environment = {"GPUEMU_CPU": None if cpu == "host" else cpu, "GPUEMU_CACHE_DIR": ""}
            rounds = [start("benchmarks.compile_time", ["--one", name], environment) for _ in range(ROUNDS)]
            seconds = min(r["seconds"] for r in rounds)
            count = rounds[0]["instructions"]
            print(f"{name:32} {cpu:>10} {count:13} {1e3 * seconds:9.1f} {1e3 * seconds / count:15.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=KERNELS)
    one = parser.parse_args().one
    if one:
        print(json.dumps(measure_one(one)))
    else:
        report()
