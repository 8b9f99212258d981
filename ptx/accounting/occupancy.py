"""How many CTAs and warps of a kernel a multiprocessor holds at once, and what stops it from holding more.

Four limits, each in CTAs, of which the least counts: registers, shared memory, warps, and the number of CTAs itself.

    registers   go to warps: 32 x registers a thread, rounded up to the unit; a sub-partition holds as many warps as fit
                into its share, a multiprocessor that many times its sub-partitions; CTAs are whole
    shared      static + dynamic + what the system takes, rounded up to the unit, out of the whole shared memory
    warps       threads of the multiprocessor / 32, CTAs are whole
    blocks      the most CTAs that a multiprocessor tracks

This is the *theoretical* occupancy, with the largest shared-memory carve-out, as the driver chooses when the kernel
needs it. Registers that move between warps (`setmaxnreg`) do not change it: what counts is the launch. Not looked at:
clusters, whose CTAs must fit together, and tensor memory (sm_100, sm_103), of which a kernel may take so much that
fewer CTAs fit; what is said for such kernels is an upper bound.

Source of the rules: CUDA toolkit, `cuda_occupancy.h` (`cudaOccMaxActiveBlocksPerMultiprocessor`); of the numbers:
`ptx/device.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptx.device import Device

WARP = 32


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`limits`: what -> CTAs; `limiters`: those with the least. `ctas` is 0 for a launch that cannot be made."""

    threads: int
    limits: dict[str, int]
    warps_held: int
    warps_possible: int

    @property
    def ctas(self) -> int:
        return min(self.limits.values())

    @property
    def limiters(self) -> tuple[str, ...]:
        return tuple(name for name, n in self.limits.items() if n == self.ctas)

    def metrics(self) -> dict[str, int | float]:
        """The numbers of level 'occupancy', by name."""
        return {
            "launch__block_size": self.threads,
            **{f"launch__occupancy_limit_{name}": n for name, n in self.limits.items()},
            "occupancy__ctas_per_sm": self.ctas,
            "sm__maximum_warps_avg_per_active_cycle": self.warps_held,
            "sm__maximum_warps_per_active_cycle_pct": round(100 * self.warps_held / self.warps_possible, 2),
        }


def occupancy(device: Device, threads: int, registers: int, shared: int) -> Occupancy:
    """Occupancy of a launch: threads a CTA, registers a thread, bytes of static and dynamic shared memory a CTA."""
    warps = _up(threads, WARP) // WARP
    possible = device.threads_per_multiprocessor // WARP
    a_warp = _up(registers * WARP, device.register_unit)
    a_part = device.registers // device.sub_partitions // a_warp if a_warp else possible
    by_registers = a_part * device.sub_partitions // warps
    # A CTA's warps are spread evenly over the sub-partitions, so the fullest of them must hold its share of one.
    if registers > device.registers_per_thread or -(-warps // device.sub_partitions) > a_part:
        by_registers = 0
    a_cta = _up(shared + device.reserved, device.shared_unit)
    by_shared = device.shared_per_multiprocessor // a_cta if a_cta else device.ctas_per_multiprocessor
    limits = {
        "registers": by_registers,
        "shared_mem": by_shared if shared <= device.shared_per_cta else 0,
        "warps": possible // warps if threads <= device.threads_per_cta else 0,
        "blocks": device.ctas_per_multiprocessor,
    }
    return Occupancy(threads, limits, min(limits.values()) * warps, possible)


def largest_block(device: Device, registers: int) -> int:
    """Threads of the largest CTA whose registers a multiprocessor has; 0 when not even one warp fits.

    An H200's driver says the same of kernels without `.maxntid` (CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)."""
    sizes = range(device.threads_per_cta, 0, -WARP)
    return next((n for n in sizes if occupancy(device, n, registers, 0).limits["registers"]), 0)


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
