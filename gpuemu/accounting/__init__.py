"""Registers and instructions before and after a change: `gpuemu diff`.

    side.py       what OLD and NEW may be, and their PTX for each target
    lowering.py   a Triton kernel to PTX, in a process of its own
    measure.py    a side's accounts (ptx/accounting), and the JSON that keeps them as a baseline
    compare.py    two sides: differences a target, and which of them are the same on all targets
    gates.py      limits that a change must keep

The numbers come from `ptx.accounting`; how they are shown is in `gpuemu/reports/diff_*.py`.
"""
