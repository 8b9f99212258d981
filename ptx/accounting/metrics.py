"""The names of the numbers, one table: what each means, who says it, and whether more of it is worse.

A name is Nsight Compute's own where the meaning is the same, so that a report can be laid beside a profile:
`launch__registers_per_thread`, `launch__occupancy_limit_*`, `sm__maximum_warps_per_active_cycle_pct` (the theoretical
occupancy). What Nsight Compute has no name for carries the name of its source: `ptx__` (the PTX text), `ptxas__` (what
the assembler says), `sass__` (machine instructions in the code, counted once each however often they would run).
Nsight's `smsp__inst_executed` counts executions and is no static number; a launch has it in `Result.counters`.

Source of Nsight's names: NVIDIA, 'Nsight Compute Documentation', Metrics Reference, 'Launch metrics', and the sections
`LaunchStats` and `Occupancy`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ptx.accounting.sass import CLASSES
from ptx.errors import InvalidInput
from ptx.isa import Cost

WIDTHS = ("pred", "b16", "b32", "b64", "b128")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Metric:
    """`level`: virtual, physical, sass or occupancy. `worse`: +1 when more costs more, -1 when less does, 0 neither.
    `nsight`: whether the name and its meaning are Nsight Compute's."""

    name: str
    unit: str
    level: str
    worse: int
    meaning: str
    nsight: bool = False


_PTX_CLASS = {
    Cost.INT: "integer and logic", Cost.FP32: "f32 arithmetic", Cost.FP64: "f64 arithmetic", Cost.FP16: "f16 and bf16",
    Cost.SFU: "special functions", Cost.CONVERT: "conversions", Cost.MOVE: "moves and selections",
    Cost.LOAD_STORE: "loads and stores, parameters too", Cost.ATOMIC: "atomics and reductions in memory",
    Cost.TENSOR: "matrix products", Cost.CONTROL: "branches and returns", Cost.SYNC: "barriers and warp exchanges",
    Cost.ASYNC: "asynchronous copies and their waits",
}  # fmt: skip

METRICS: tuple[Metric, ...] = (
    *(
        Metric(f"ptx__registers_declared_{w}", "registers", "virtual", 0, f"`.reg` declarations of width {w}")
        for w in WIDTHS
    ),
    *(
        Metric(f"ptx__registers_used_{w}", "registers", "virtual", 0, f"registers of width {w} that an operand names")
        for w in WIDTHS
    ),
    Metric(
        "ptx__registers_live_max", "32-bit units", "virtual", 1,
        "most registers live at one instruction: 16 and 32 bits 1, 64 bits 2, 128 bits 4, predicates none",
    ),
    Metric("ptx__predicates_live_max", "registers", "virtual", 1, "most predicates live at one instruction"),
    Metric("ptx__inst", "instructions", "virtual", 1, "PTX instructions"),
    *(Metric(f"ptx__inst_{c.value}", "instructions", "virtual", 0, f"PTX: {text}") for c, text in _PTX_CLASS.items()),
    Metric(f"ptx__inst_{UNKNOWN}", "instructions", "virtual", 0, "PTX instructions that the instruction table lacks"),
    Metric("launch__registers_per_thread", "registers", "physical", 1, "registers a thread, by ptxas", True),
    Metric("ptxas__spill_stores_bytes", "bytes", "physical", 1, "spill stores, bytes a thread"),
    Metric("ptxas__spill_loads_bytes", "bytes", "physical", 1, "spill loads, bytes a thread"),
    Metric("ptxas__stack_bytes", "bytes", "physical", 1, "stack frame a thread"),
    Metric("ptxas__constant_bytes", "bytes", "physical", 0, "all constant banks of the kernel, parameters included"),
    Metric("ptxas__barriers", "barriers", "physical", 0, "named CTA barriers in use"),
    Metric("ptxas__max_threads", "threads", "physical", 0, "threads a CTA that the code allows (`.maxntid`)"),
    Metric("launch__shared_mem_per_block_static", "bytes", "physical", 1, "static shared memory a CTA", True),
    Metric("launch__shared_mem_per_block_dynamic", "bytes", "physical", 1, "dynamic shared memory a CTA, given", True),
    Metric("launch__shared_mem_per_block_driver", "bytes", "physical", 0, "shared memory a CTA for the system", True),
    Metric("sass__code_bytes", "bytes", "sass", 1, "size of the kernel's code, padding included"),
    Metric("sass__inst", "instructions", "sass", 1, "machine instructions, padding left out"),
    *(Metric(f"sass__inst_{c}", "instructions", "sass", 0, f"machine instructions: {m}") for c, m in CLASSES.items()),
    Metric("launch__block_size", "threads", "occupancy", 0, "threads a CTA, as required by the code or as given", True),
    Metric("launch__occupancy_limit_registers", "CTAs", "occupancy", -1, "CTAs an SM by registers", True),
    Metric("launch__occupancy_limit_shared_mem", "CTAs", "occupancy", -1, "CTAs an SM by shared memory", True),
    Metric("launch__occupancy_limit_warps", "CTAs", "occupancy", -1, "CTAs an SM by warps", True),
    Metric("launch__occupancy_limit_blocks", "CTAs", "occupancy", -1, "CTAs an SM by the number of them", True),
    Metric("occupancy__ctas_per_sm", "CTAs", "occupancy", -1, "CTAs that an SM holds: the least of the limits"),
    Metric("sm__maximum_warps_avg_per_active_cycle", "warps", "occupancy", -1, "warps that an SM then holds", True),
    Metric("sm__maximum_warps_per_active_cycle_pct", "%", "occupancy", -1, "theoretical occupancy", True),
)  # fmt: skip

BY_NAME = {m.name: m for m in METRICS}


def check_metrics(limits: dict[str, float]) -> None:
    """For limits in percent by metric: raises InvalidInput where there is no such metric, or the number is negative."""
    for name, percent in limits.items():
        if name not in BY_NAME:
            near = difflib.get_close_matches(name, BY_NAME, 3, 0.4)
            raise InvalidInput(
                f"unknown metric '{name}'",
                help=f"did you mean {' or '.join(near)}?" if near else "docs/metrics.md lists them all",
            )
        if not percent >= 0:
            raise InvalidInput(f"limit {name}={percent}: a percentage of at least 0 is expected")


def markdown() -> str:
    """The table of docs/metrics.md."""
    rows = ["| metric | unit | level | Nsight Compute's | meaning |", "|---|---|---|---|---|"]
    rows += [f"| `{m.name}` | {m.unit} | {m.level} | {'yes' if m.nsight else ''} | {m.meaning} |" for m in METRICS]
    return "\n".join(rows) + "\n"
