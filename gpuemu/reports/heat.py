"""What the reports of one kernel show of a line, a launch and a program, whatever they are written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpuemu.accounting.profile import Line, OnTarget
from ptx.accounting.account import Account
from ptx.accounting.metrics import GLOBAL_OPS, SHARED_OPS, conflicts, data_bytes, requests, sectors

Number = int | float
Values = Mapping[str, Number]


def _sum(names: Sequence[str]) -> Callable[[Values], Number]:
    return lambda v: sum(v.get(n, 0) for n in names)


_SECTORS, _REQUESTS = [sectors("global", o) for o in GLOBAL_OPS], [requests("global", o) for o in GLOBAL_OPS]
COLUMNS: dict[str, Callable[[Values], Number]] = {
    "executed": _sum(["smsp__inst_executed"]),
    "lanes": lambda v: v.get("smsp__thread_inst_executed_per_inst_executed", _lanes(v)),
    "bytes": _sum(["ptx__bytes_global"]),
    "sectors/req": lambda v: _sum(_SECTORS)(v) / (_sum(_REQUESTS)(v) or 1),
    "shared": _sum([data_bytes("shared", o) for o in SHARED_OPS]),
    "conflicts": _sum([conflicts(o) for o in ("ld", "st", "ldgsts")]),
    "operations": lambda v: sum(n for name, n in v.items() if name.startswith(("ptx__flops_", "ptx__tensor_ops_"))),
}
"""Columns of the annotated source, by title: executions by warps, active lanes of each, bytes of global memory, bytes
of shared memory, bank conflicts there, floating-point and tensor operations."""
HEATED = ("executed", "bytes")
"""Columns whose share of the launch is shown as heat."""

HEADLINES = (
    "smsp__inst_executed", "smsp__thread_inst_executed", "smsp__thread_inst_executed_per_inst_executed",
    "ptx__branch_divergent", "ptx__bytes_global", "ptx__bytes_global_sectors",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st", conflicts("ld"), conflicts("st"), "ptx__flops",
    "ptx__arithmetic_intensity", "ptx__registers_live_max_executed",
)  # fmt: skip
STATIC = (
    "launch__registers_per_thread", "ptxas__spill_stores_bytes", "ptxas__spill_loads_bytes", "ptxas__stack_bytes",
    "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic", "sass__inst", "sass__code_bytes",
    "occupancy__ctas_per_sm", "sm__maximum_warps_per_active_cycle_pct",
)  # fmt: skip


def _lanes(v: Values) -> Number:
    return v.get("smsp__thread_inst_executed", 0) / (v.get("smsp__inst_executed", 0) or 1)


def cells(line: Line) -> dict[str, Number]:
    """The columns of a line."""
    return {title: column(_whole(line.values)) for title, column in COLUMNS.items()}


def _whole(values: Values) -> Values:
    """With the sums that a single instruction's values lack."""
    if "ptx__bytes_global" in values:
        return values
    moved = sum(values.get(data_bytes("global", o), 0) for o in GLOBAL_OPS)
    bulk = values.get("ptx__bulk_bytes_global_read", 0) + values.get("ptx__bulk_bytes_global_written", 0)
    return {**values, "ptx__bytes_global": moved + bulk}


def heat(lines: Sequence[Line]) -> list[dict[str, float]]:
    """For each line the share of each heated column in the launch, 0 to 1."""
    rows = [cells(line) for line in lines]
    totals = {name: sum(r[name] for r in rows) or 1 for name in HEATED}
    return [{name: r[name] / totals[name] for name in HEATED} for r in rows]


def totals(on: OnTarget) -> dict[str, Number]:
    """Headline metrics of a target, static ones after the dynamic ones; without those that are not known."""
    found: dict[str, Number] = {}
    if on.metrics is not None:
        found.update({name: on.metrics.totals[name] for name in HEADLINES if name in on.metrics.totals})
    if isinstance(on.static, Account):
        found.update({name: on.static.metrics[name] for name in STATIC if name in on.static.metrics})
    return found


def short(value: Number | None) -> str:
    """A number for people: 1,234 or 3.25; nothing for zero."""
    if value is None:
        return ""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.2f}"
    return f"{int(value):,}"


def rate(value: float) -> str:
    """Operations or bytes a second with a unit: `3.2 T`."""
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} "
