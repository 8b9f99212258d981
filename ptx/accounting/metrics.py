"""The names of the numbers, one table: what each means, who says it, and whether more of it is worse.

A name is Nsight Compute's own where the meaning is the same, so that a report can be laid beside a profile:
`launch__registers_per_thread`, `launch__occupancy_limit_*`, `sm__maximum_warps_per_active_cycle_pct` (the theoretical
occupancy). What Nsight Compute has no name for carries the name of its source: `ptx__` (the PTX text), `ptxas__` (what
the assembler says), `sass__` (machine instructions in the code, counted once each however often they would run).

METRICS are the static ones. DYNAMIC are those of a launch that was measured (`interp.metrics`): sums over it, and at
the end of the table what follows from the sums. They count *PTX* instructions: Nsight Compute counts machine
instructions, so a name is its own where the same is counted of another level of code.

Source of Nsight's names: NVIDIA, 'Nsight Compute Documentation', Metrics Reference, 'Launch metrics', the sections
`LaunchStats`, `Occupancy`, `InstructionStats` and `MemoryWorkloadAnalysis`, and the 'Metrics Decoder' (units `smsp`,
`l1tex`; `op_ldgsts` is `cp.async`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from ptx.accounting.sass import CLASSES
from ptx.errors import InvalidInput
from ptx.isa import Cost

WIDTHS = ("pred", "b16", "b32", "b64", "b128")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Metric:
    """`level`: virtual, physical, sass, occupancy or dynamic. `worse`: +1 when more costs more, -1 when less does, 0
    neither. `nsight`: whether the name and its meaning are Nsight Compute's."""

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
    Metric("ptxas__max_threads", "threads", "physical", 0, "threads a CTA that `.maxntid` and registers allow"),
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

GLOBAL_OPS = {
    "ld": "loads", "st": "stores", "atom": "atomics that return a value", "red": "atomics that return none",
    "ldgsts": "cp.async",
}  # fmt: skip
LOCAL_OPS = {"ld": "loads", "st": "stores"}
SHARED_OPS = {
    "ld": "loads, ldmatrix too", "st": "stores, stmatrix too", "atom": "atomics that return a value",
    "red": "atomics that return none, st.async", "ldgsts": "cp.async",
}  # fmt: skip
FLOAT_TYPES = ("fp16", "bf16", "fp32", "fp64")
TENSOR_TYPES = ("fp8", "fp16", "bf16", "tf32", "fp64", "int8")


def requests(space: str, op: str) -> str:
    """Name of the metric for warp-level accesses of a space by an operation."""
    return f"l1tex__t_requests_pipe_lsu_mem_{space}_op_{op}"


def sectors(space: str, op: str) -> str:
    """Likewise for 32-byte sectors."""
    return f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{op}"


def data_bytes(space: str, op: str) -> str:
    """Likewise for bytes of all lanes."""
    return f"smsp__sass_data_bytes_mem_{space}_op_{op}"


def wavefronts(op: str) -> str:
    """Wavefronts of shared memory."""
    return f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}"


def conflicts(op: str) -> str:
    """Bank conflicts of shared memory."""
    return f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}"


def _dynamic(name: str, unit: str, worse: int, meaning: str, nsight: bool = False) -> Metric:
    return Metric(name, unit, "dynamic", worse, meaning, nsight)


SUMS: tuple[Metric, ...] = (
    _dynamic("smsp__inst_executed", "instructions", 1, "PTX instructions executed by warps", True),
    _dynamic("smsp__thread_inst_executed", "instructions", 1, "the same, summed over active lanes", True),
    _dynamic(
        "smsp__thread_inst_executed_pred_on", "instructions", 1, "of these, those whose guard held (branches: taken)",
        True,
    ),
    *(
        _dynamic(f"ptx__inst_executed_{c.value}", "instructions", 0, f"executed by warps: {text}")
        for c, text in _PTX_CLASS.items()
    ),
    _dynamic("ptx__branch_executed", "instructions", 0, "guarded branches executed by warps"),
    _dynamic("ptx__branch_divergent", "instructions", 1, "of these, taken by some active lanes and not by others"),
    *(_dynamic(requests("global", o), "requests", 1, f"warp-level accesses to global memory: {t}", True)
      for o, t in GLOBAL_OPS.items()),
    *(_dynamic(sectors("global", o), "sectors", 1, f"32-byte sectors that these touch: {t}", True)
      for o, t in GLOBAL_OPS.items()),
    *(_dynamic(data_bytes("global", o), "bytes", 1, f"bytes of all lanes, global memory: {t}", True)
      for o, t in GLOBAL_OPS.items()),
    *(_dynamic(requests("local", o), "requests", 1, f"warp-level accesses to local memory: {t}", True)
      for o, t in LOCAL_OPS.items()),
    *(_dynamic(sectors("local", o), "sectors", 1, f"32-byte sectors that these touch: {t}", True)
      for o, t in LOCAL_OPS.items()),
    *(_dynamic(data_bytes("local", o), "bytes", 1, f"bytes of all lanes, local memory: {t}", True)
      for o, t in LOCAL_OPS.items()),
    *(_dynamic(f"ptx__requests_mem_shared_op_{o}", "requests", 1, f"warp-level accesses to shared memory: {t}")
      for o, t in SHARED_OPS.items()),
    *(_dynamic(data_bytes("shared", o), "bytes", 1, f"bytes of all lanes, shared memory: {t}", True)
      for o, t in SHARED_OPS.items()),
    *(_dynamic(wavefronts(o), "wavefronts", 1, f"passes through shared memory: {SHARED_OPS[o]}", True)
      for o in ("ld", "st", "ldgsts")),
    *(_dynamic(conflicts(o), "conflicts", 1, f"of these, caused by bank conflicts: {SHARED_OPS[o]}", True)
      for o in ("ld", "st", "ldgsts")),
    _dynamic("ptx__bulk_bytes_global_read", "bytes", 1, "bulk and tensor copies: bytes read there, boxes whole"),
    _dynamic("ptx__bulk_bytes_global_written", "bytes", 1, "bulk and tensor copies: bytes written or reduced there"),
    _dynamic("ptx__bulk_bytes_shared", "bytes", 1, "bulk and tensor copies: bytes from and to shared memory"),
    _dynamic("ptx__bytes_param", "bytes", 0, "bytes of all lanes: kernel parameters"),
    _dynamic("ptx__bytes_const", "bytes", 0, "bytes of all lanes: constant memory"),
    *(_dynamic(f"ptx__flops_{t}", "operations", 0, f"{t} operations of all lanes: add, sub, mul 1, fma, mad 2")
      for t in FLOAT_TYPES),
    *(_dynamic(f"ptx__tensor_ops_{t}", "operations", 0, f"tensor cores, {t} factors: 2 m n k a product")
      for t in TENSOR_TYPES),
)  # fmt: skip
"""Add up over instructions, lines and launches."""

DERIVED: tuple[Metric, ...] = (
    _dynamic("smsp__thread_inst_executed_per_inst_executed", "lanes", -1, "active lanes an executed instruction", True),
    _dynamic("ptx__branch_divergent_pct", "%", 1, "share of guarded branches that diverge"),
    *(_dynamic(f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{o}", "sectors", 1,
               f"sectors a request, global memory: {t}", True) for o, t in GLOBAL_OPS.items()),
    _dynamic("ptx__flops", "operations", 0, "floating-point operations of all types, tensor cores too"),
    _dynamic("ptx__bytes_global", "bytes", 1, "bytes of all lanes and copies, global memory, all operations"),
    _dynamic("ptx__bytes_global_sectors", "bytes", 1, "32 bytes a sector of global memory, and bulk copies"),
    _dynamic("ptx__arithmetic_intensity", "operations/byte", -1, "ptx__flops by ptx__bytes_global_sectors"),
    _dynamic(
        "ptx__registers_live_max_executed", "32-bit units", 1,
        "most registers live at an instruction that was executed, counted as ptx__registers_live_max",
    ),
)  # fmt: skip
"""Follow from the sums; a ratio by zero is absent."""

DYNAMIC = (*SUMS, *DERIVED)
EVERY = {m.name: m for m in (*METRICS, *DYNAMIC)}


def check_metrics(limits: dict[str, float]) -> None:
    """For limits in percent by metric: raises InvalidInput where there is no such metric, or the number is negative."""
    for name, percent in limits.items():
        if name not in EVERY:
            near = difflib.get_close_matches(name, EVERY, 3, 0.4)
            raise InvalidInput(
                f"unknown metric '{name}'",
                help=f"did you mean {' or '.join(near)}?" if near else "docs/metrics.md lists them all",
            )
        if not percent >= 0:
            raise InvalidInput(f"limit {name}={percent}: a percentage of at least 0 is expected")


def markdown(metrics: Iterable[Metric] = METRICS) -> str:
    """A table of docs/metrics.md."""
    rows = ["| metric | unit | level | Nsight Compute's | meaning |", "|---|---|---|---|---|"]
    rows += [f"| `{m.name}` | {m.unit} | {m.level} | {'yes' if m.nsight else ''} | {m.meaning} |" for m in metrics]
    return "\n".join(rows) + "\n"
