"""The traced engine: an interpreter of PTX, one instruction of one warp at a time, every hook available.

    program.py    a planned kernel as tables: regions, instructions, operand rows, constants
    handlers.py   one native function a form, from generated source, compiled by numba when first needed
    machine.py    the native step loop: runs a warp until it ends, waits, is out of fuel or faults
    observe.py    from the step loop's calls to the typed events of `interp.hooks`

It exists to judge the compiled engine, and as the base of everything that looks at single instructions. Both take the
meaning of an instruction from its record (`interp.ops`) and everything that touches the machine from
`interp.runtime`; they share the plan's regions and the scheduler, so the order of all effects, the counters, the fuel
and the findings are the same by rule, also for kernels with races. What they do not share is what can be wrong: code
generation, register allocation, the masking of lanes and the transfer of control.

Why a warp at a time and not all lanes of a CTA: the order of effects is part of the result (atomics return old values,
float sums round, a forgotten barrier shows what the other warps have done so far), and the compiled engine runs warps
in turn; a failure that it finds must look the same here. A Python loop over steps would want long vectors; this one is
native, and a step of 32 lanes takes 0.2 microseconds (softmax 64 x 1000 f32: 40,448 steps in 8.5 ms on a busy machine).
"""

from __future__ import annotations
