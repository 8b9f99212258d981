"""Devices: whose arithmetic and limits a launch has. Published figures only, one row a device.

Sources: CUDA C++ Programming Guide, 'Technical Specifications per Compute Capability' (threads, warps, CTAs, shared
memory and registers a multiprocessor), and NVIDIA's product briefs (number of multiprocessors of the named card). How
registers and shared memory are handed out (units, sub-partitions): CUDA toolkit, `cuda_occupancy.h`, functions
`cudaOccRegAllocationGranularity`, `cudaOccSubPartitionsPerMultiprocessor`, `cudaOccSMemAllocationGranularity`.

Execution (`interp`) and static accounting (`ptx/accounting`) both read this table, so it stands below both.

A device is named by its architecture (`sm_90`) and stands for one card of it; results depend on the arithmetic of the
architecture only, residency limits on the card.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptx.errors import InvalidInput

KIB = 1024


@dataclass(frozen=True, slots=True)
class Device:
    """Limits of a device. Bytes of shared memory: most a CTA may ask for (opt-in), and a multiprocessor has; `reserved`
    bytes of each CTA's share belong to the system. Registers go to whole warps in multiples of `register_unit`, from
    the warp's one of `sub_partitions` equal parts; shared memory goes to CTAs in multiples of `shared_unit` bytes."""

    name: str
    card: str
    multiprocessors: int
    threads_per_multiprocessor: int
    ctas_per_multiprocessor: int
    shared_per_multiprocessor: int
    shared_per_cta: int
    reserved: int
    shared_unit: int = 128
    registers: int = 65536
    register_unit: int = 256
    registers_per_thread: int = 255
    sub_partitions: int = 4
    threads_per_cta: int = 1024
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    block: tuple[int, int, int] = (1024, 1024, 64)

    @property
    def arch(self) -> int:
        """The number in the name: 90 for sm_90."""
        return int(self.name[3:])

    def resident_ctas(self, threads: int, shared: int) -> int:
        """CTAs that the whole device holds at once, by threads and shared memory (registers are not known here)."""
        warps = (threads + 31) // 32
        per = min(
            self.ctas_per_multiprocessor,
            self.threads_per_multiprocessor // (32 * warps),
            self.shared_per_multiprocessor // (shared + self.reserved) if shared + self.reserved else 1 << 30,
        )
        return max(per, 1) * self.multiprocessors


DEVICES = {
    d.name: d
    for d in (
        Device("sm_70", "Tesla V100", 80, 2048, 32, 96 * KIB, 96 * KIB, 0, 256),
        Device("sm_75", "Tesla T4", 40, 1024, 16, 64 * KIB, 64 * KIB, 0, 256),
        Device("sm_80", "A100", 108, 2048, 32, 164 * KIB, 163 * KIB, KIB),
        Device("sm_86", "A10", 72, 1536, 16, 100 * KIB, 99 * KIB, KIB),
        Device("sm_87", "Jetson AGX Orin", 16, 1536, 16, 164 * KIB, 163 * KIB, KIB),
        Device("sm_89", "L40S", 142, 1536, 24, 100 * KIB, 99 * KIB, KIB),
        Device("sm_90", "H200", 132, 2048, 32, 228 * KIB, 227 * KIB, KIB),
        Device("sm_100", "B200", 148, 2048, 32, 228 * KIB, 227 * KIB, KIB),
        Device("sm_103", "B300", 148, 2048, 32, 228 * KIB, 227 * KIB, KIB),
        Device("sm_120", "RTX PRO 6000", 188, 1536, 24, 100 * KIB, 99 * KIB, KIB),
    )
}


def device(name: str) -> Device:
    """The device of an architecture name; a suffix for architecture-specific code (`sm_90a`) means the same device.

    Raises InvalidInput for a name without an entry."""
    found = DEVICES.get(re.sub(r"[af]$", "", name))
    if found is None:
        raise InvalidInput(f"unknown device '{name}'", help="known: " + ", ".join(DEVICES))
    return found
