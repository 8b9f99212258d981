"""What a measured launch did: executions, lanes, bytes, sectors, wavefronts, operations, registers, instruction by
instruction.

    result = entry.launch(..., metrics=True)
    result.metrics.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_ld"]
    result.metrics.lines["softmax.py", 17]
    result.metrics.to_csv()

All numbers are exact integers of the launch, equal across runs and engines; ratios follow from them. Names and meanings
are in `ptx.accounting.metrics` (SUMS, DERIVED; docs/metrics.md has the table); the rules for sectors and wavefronts are
in `interp.runtime.measured`.

Floating-point operations are those of the PTX text: `add`, `sub` and `mul` are one, `fma` and `mad` two, packed forms
twice that; divisions, roots and special functions are instructions of class `xu` and no operations. A matrix product
m x n x k counts 2 m n k a warp, `wgmma` a quarter of that, since four warps make one.

Registers are the virtual ones that live at an instruction (`ptx.accounting.virtual`): what a thread needs at least in
the order of the text. How many a thread gets, ptxas says (`gpuemu diff`).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from interp.measure import access_bytes, by_value
from interp.ops import ISA
from interp.result import Counters, InstructionCount
from interp.runtime.measured import FIELD, WORDS
from ptx import ir
from ptx.accounting.metrics import (
    DERIVED,
    FLOAT_TYPES,
    GLOBAL_OPS,
    SUMS,
    TENSOR_TYPES,
    conflicts,
    data_bytes,
    requests,
    sectors,
    wavefronts,
)
from ptx.accounting.virtual import live_registers
from ptx.errors import Unsupported
from ptx.isa import Cost, Effect
from ptx.record import Form

if TYPE_CHECKING:
    import pandas

Number = int | float
FORMAT = 1
_FLOATS = {Cost.FP16, Cost.FP32, Cost.FP64}
_OPERATIONS = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2}
_TYPES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "e4m3": "fp8", "e5m2": "fp8", "s8": "int8", "u8": "int8"}
_LANES = "smsp__thread_inst_executed"
_PRED_ON = "smsp__thread_inst_executed_pred_on"


@dataclass(frozen=True, slots=True)
class InstructionMetrics:
    """One PTX instruction. `values`: metric -> number, zeros left out. `live`: 32-bit units of registers that live at
    it."""

    ptx_line: int
    opcode: str
    file: str | None
    line: int | None
    cost: str
    live: int
    values: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Peak:
    """The first executed instruction at which most registers live; `units` of 32 bits."""

    units: int
    ptx_line: int
    file: str | None
    line: int | None


class Metrics:
    """Measurements of one launch."""

    def __init__(self, kernel: ir.Kernel, counters: Counters, records: np.ndarray[Any, Any]) -> None:
        self._kernel, self._counters = kernel, counters
        self._records = np.array(records, np.int64).reshape(-1, WORDS)[::-1]  # by site

    @cached_property
    def instructions(self) -> tuple[InstructionMetrics, ...]:
        """Every instruction, in text order."""
        insts = [inst for block in self._kernel.blocks for inst in block.insts]
        every = zip(insts, self._records, live_registers(self._kernel, ISA), strict=True)
        counted = (item for item in every if not item[0].made)
        return tuple(
            InstructionMetrics(c.ptx_line, c.opcode, c.file, c.line, c.cost, units, _values(inst, c, record))
            for (inst, record, (units, _)), c in zip(counted, self._counters.instructions, strict=True)
        )

    @cached_property
    def lines(self) -> dict[tuple[str | None, int | None], dict[str, Number]]:
        """Metrics by source line (file, line), with what follows from them; in the order of the text."""
        return self._grouped(lambda i: (i.file, i.line))

    @cached_property
    def totals(self) -> dict[str, Number]:
        """Metrics of the launch; all sums, and the ratios that there are."""
        sums = {m.name: 0 for m in SUMS}
        for one in self.instructions:
            for name, n in one.values.items():
                sums[name] += n
        return {**sums, **_derived(sums, self.instructions)}

    @cached_property
    def peak(self) -> Peak | None:
        """Where most registers live; None when nothing was executed."""
        ran = [i for i in self.instructions if i.values]
        most = max(ran, key=lambda i: i.live, default=None)
        return None if most is None else Peak(most.live, most.ptx_line, most.file, most.line)

    def _grouped(self, key: Callable[[InstructionMetrics], Hashable]) -> dict[Any, dict[str, Number]]:
        groups: dict[Any, list[InstructionMetrics]] = {}
        for one in self.instructions:
            groups.setdefault(key(one), []).append(one)
        out: dict[Any, dict[str, Number]] = {}
        for name, members in groups.items():
            sums: dict[str, int] = {}
            for one in members:
                for metric, n in one.values.items():
                    sums[metric] = sums.get(metric, 0) + n
            out[name] = {**sums, **_derived(sums, members)}
        return out

    # ---------------------------------------------------------------- out
    def to_dict(self) -> dict[str, Any]:
        """Everything, of plain types. `format` rises when a field changes its meaning."""
        peak = self.peak
        return {
            "format": FORMAT,
            "kernel": self._kernel.name,
            "totals": self.totals,
            "registers_live_max_at": None
            if peak is None
            else {"ptx_line": peak.ptx_line, "file": peak.file, "line": peak.line, "units": peak.units},
            "lines": [{"file": f, "line": n, "metrics": values} for (f, n), values in self.lines.items()],
            "instructions": [{**_about(i), "metrics": dict(i.values)} for i in self.instructions],
        }

    def to_json(self) -> str:
        """`to_dict` as JSON, one space an indent; the same launch gives the same text."""
        return json.dumps(self.to_dict(), indent=1) + "\n"

    def to_csv(self) -> str:
        """One row an instruction, a column for each metric that adds up."""
        text = io.StringIO()
        rows = self._rows()
        writer = csv.DictWriter(text, fieldnames=[*_ABOUT, *(m.name for m in SUMS)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of `to_csv` as a data frame. Raises Unsupported without pandas."""
        try:
            import pandas
        except ImportError:
            raise Unsupported(
                "pandas is not installed", help="pip install pandas, or use to_dict(), to_json() or to_csv()"
            ) from None
        return pandas.DataFrame(self._rows(), columns=[*_ABOUT, *(m.name for m in SUMS)])

    def _rows(self) -> list[dict[str, Any]]:
        zeros = {m.name: 0 for m in SUMS}
        return [{**_about(i), **zeros, **i.values} for i in self.instructions]


_ABOUT = ("ptx_line", "opcode", "file", "line", "class", "registers_live")


def _about(i: InstructionMetrics) -> dict[str, Any]:
    return dict(zip(_ABOUT, (i.ptx_line, i.opcode, i.file, i.line, i.cost, i.live), strict=True))


# ------------------------------------------------------------------------------------------------ one instruction
def _values(inst: ir.Inst, count: InstructionCount, record: np.ndarray[Any, Any]) -> dict[str, int]:
    """Metrics of one instruction that are not zero."""
    if not count.executions:
        return {}
    form = ISA.match(inst)
    out = {
        "smsp__inst_executed": count.executions,
        _LANES: count.issued_lanes,
        _PRED_ON: count.active_lanes,
        f"ptx__inst_executed_{count.cost}": count.executions,
    }
    if form.op.effect is Effect.BRANCH and inst.guard is not None:
        out["ptx__branch_executed"] = count.executions
        out["ptx__branch_divergent"] = int(record[FIELD["DIVERGED"]])
    if (bank := by_value(form)) is not None:
        out[f"ptx__bytes_{bank}"] = access_bytes(form) * count.active_lanes
    out.update(_memory(form, record))
    out.update(_operations(form, count))
    return {name: n for name, n in out.items() if n}


def _memory(form: Form, record: np.ndarray[Any, Any]) -> dict[str, int]:
    """What the runtime recorded, under the names of the operation."""
    if not record.any():
        return {}
    got = {name: int(record[i]) for name, i in FIELD.items()}
    op = _operation(form)
    out = {
        requests("global", op): got["GLOBAL_REQUESTS"],
        sectors("global", op): got["GLOBAL_SECTORS"],
        data_bytes("global", op): got["GLOBAL_BYTES"],
        requests("local", op): got["LOCAL_REQUESTS"],
        sectors("local", op): got["LOCAL_SECTORS"],
        data_bytes("local", op): got["LOCAL_BYTES"],
        f"ptx__requests_mem_shared_op_{op}": got["SHARED_REQUESTS"],
        data_bytes("shared", op): got["SHARED_BYTES"],
        wavefronts(op): got["SHARED_WAVEFRONTS"],
        conflicts(op): got["SHARED_CONFLICTS"],
        "ptx__bulk_bytes_shared": got["BULK_SHARED_BYTES"],
    }
    written = ".global.shared::cta" in form.op.syntax
    out[f"ptx__bulk_bytes_global_{'written' if written else 'read'}"] = got["BULK_GLOBAL_BYTES"]
    return {name: n for name, n in out.items() if n}


def _operation(form: Form) -> str:
    """How Nsight Compute would call a memory instruction."""
    if form.op.name == "cp":
        return "ldgsts"
    if form.op.effect is Effect.ATOMIC:
        return "atom" if "d" in form.op.writes else "red"
    if form.op.name == "st" and form.op.effect is Effect.ASYNC:
        return "red"
    return "st" if form.op.name in ("st", "stmatrix") else "ld"


def _operations(form: Form, count: InstructionCount) -> dict[str, int]:
    """Floating-point operations, and products of tensor cores."""
    if form.op.cost in _FLOATS and form.op.name in _OPERATIONS:
        type = form.type_of("d")
        base = type.removesuffix("x2")
        each = _OPERATIONS[form.op.name] * (2 if type.endswith("x2") else 1)
        return {f"ptx__flops_{_TYPES.get(base, base)}": each * count.active_lanes}
    if form.op.cost is Cost.TENSOR:
        sizes = [int(n) for n in re.findall(r"[mnk](\d+)", form.mods["shape"])]
        each = 2 * sizes[0] * sizes[1] * sizes[2] // (4 if form.op.name == "wgmma" else 1)
        factors = form.mods.get("atype", "f64")
        return {f"ptx__tensor_ops_{_TYPES.get(factors, factors)}": each * count.executions}
    return {}


# ------------------------------------------------------------------------------------------------ what follows
def _derived(sums: Mapping[str, int], members: Iterable[InstructionMetrics]) -> dict[str, Number]:
    """Ratios and totals by name; a ratio by zero is left out."""
    bulk = sums.get("ptx__bulk_bytes_global_read", 0) + sums.get("ptx__bulk_bytes_global_written", 0)
    flops = sum(sums.get(f"ptx__flops_{t}", 0) for t in FLOAT_TYPES)
    flops += sum(sums.get(f"ptx__tensor_ops_{t}", 0) for t in TENSOR_TYPES if t != "int8")
    moved = 32 * sum(sums.get(sectors("global", op), 0) for op in GLOBAL_OPS) + bulk
    out: dict[str, Number] = {
        "ptx__flops": flops,
        "ptx__bytes_global": bulk + sum(sums.get(data_bytes("global", op), 0) for op in GLOBAL_OPS),
        "ptx__bytes_global_sectors": moved,
        "ptx__registers_live_max_executed": max((i.live for i in members if i.values), default=0),
    }
    ratios = {
        "smsp__thread_inst_executed_per_inst_executed": (sums.get(_LANES, 0), sums.get("smsp__inst_executed", 0)),
        "ptx__branch_divergent_pct": (
            100 * sums.get("ptx__branch_divergent", 0),
            sums.get("ptx__branch_executed", 0),
        ),
        "ptx__arithmetic_intensity": (flops, moved),
        **{
            f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}": (
                sums.get(sectors("global", op), 0),
                sums.get(requests("global", op), 0),
            )
            for op in GLOBAL_OPS
        },
    }
    out.update({name: a / b for name, (a, b) in ratios.items() if b})
    return {m.name: out[m.name] for m in DERIVED if m.name in out}
