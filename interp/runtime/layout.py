"""Memory layout shared by emitted code (which addresses by number) and the numba runtime (likewise).

A *context* is the state of one resident CTA, an array of 64-bit words; a *warp frame* follows in memory: a header of
64-bit words, three vectors of thread indices, two lane masks and a barrier id a region (pending, parked), and the
register slots that the kernel's plan lays out. Addresses in both are host addresses.
"""

from __future__ import annotations

_CTX_FIELDS = (
    ("CTAID", 3),
    ("NTID", 3),
    ("NCTAID", 3),
    ("NWARPS", 1),
    ("NTHREADS", 1),
    ("SHARED", 1),  # host address of the CTA's shared memory
    ("SHARED_SIZE", 1),
    ("SHARED_LOW", 1),  # device address (32-bit) of its first byte: SHARED_BASE, and the CTA's rank above RANK_SHIFT
    ("PARAMS", 1),  # host address of the parameter block
    ("PARAMS_SIZE", 1),
    ("ALLOCS", 1),  # allocation table: rows of ALLOC_ROW words, ascending by device address
    ("NALLOCS", 1),
    ("SITES", 1),  # one word an access site: the row it hit last
    ("COUNTERS", 1),  # two words a region (executions, lanes), then one a guarded instruction
    ("FUEL", 1),  # back edges left before the warp yields
    ("CLOCK", 1),
    ("FAULT", 1),  # first fault: kind (0 = none), site, warp, lane, address, bytes
    ("FAULT_SITE", 1),
    ("FAULT_WARP", 1),
    ("FAULT_LANE", 1),
    ("FAULT_ADDRESS", 1),
    ("FAULT_BYTES", 1),
    ("WARPS", 1),  # host address of the first warp frame
    ("WARP_STRIDE", 1),
    ("NREGIONS", 1),
    ("ARRIVED", 16),  # threads waiting at each named barrier
    ("EXPECTED", 16),  # threads that release it (0 = all that have not exited)
    ("TRUE", 16),  # of those, by the predicates that they gave (`bar.red`)
    ("LOCAL", 1),  # host address of local memory: thread-major
    ("LOCAL_SIZE", 1),  # bytes a thread
    ("ASYNC", 1),  # host address of the first warp's queue of asynchronous copies
    ("ASYNC_STRIDE", 1),
    ("WATCH_LO", 1),  # device address range whose writers are recorded; WATCH_HI = 0: off
    ("WATCH_HI", 1),
    ("WATCH_SITE", 1),  # last site that wrote into it, -1 = none
    ("WATCH_CTA", 1),
    ("NSMID", 1),
    ("DYNAMIC_SMEM_SIZE", 1),
    ("TOTAL_SMEM_SIZE", 1),
    ("STATE", 1),  # CTA: see CTA_*
    ("LIVE", 1),  # threads that have not exited
    ("LINEAR", 1),  # CTA index in the list that is run
    ("FUEL_SLICE", 1),
    ("ZERO", 1),  # always 0: what an inactive lane loads
    ("PROGRAM", 1),  # traced engine: host address of the program (interp.engine.traced.program)
    ("HOOK", 1),  # traced engine: address of the function that observes, 0 = none
    ("BULK", 1),  # host address of the CTA's list of bulk copies (interp.runtime.bulk)
    # addresses of what lets a bulk copy, its reduction and a wgmma take effect (interp.runtime.indirect), 0 = not used
    ("PERFORM", 1),
    ("COMBINE", 1),
    ("MULTIPLY", 1),
    ("TENSOR_MEMORY", 1),  # host address of the CTA's tensor memory (interp.runtime.tensor_memory), 0 = not used
    ("TENSOR_STEP", 1),  # address of what lets a tcgen05 operation take effect, 0 = not used
    ("ASYNCHRONY", 1),  # see ASYNC_*
    ("RANDOM", 1),  # state of the choices that seeded completion makes
    ("EVENTS", 1),  # things happened that another warp may have waited for
    ("IDLE_ROUNDS", 1),  # rounds of all warps since the last event
    ("WAITING", 1),  # the warp that runs has polled something in vain and gives up its turn at the next back edge
    ("CLUSTER_NCTAID", 3),  # clusters of the launch, 1 x 1 x 1 without: named as the special registers
    ("NCLUSTERID", 3),
    ("CLUSTER_NCTARANK", 1),
    ("IS_EXPLICIT_CLUSTER", 1),
    ("SLOT_BYTES", 1),  # from the context of one CTA of a cluster to that of the next rank
    ("CLUSTER_CTAID", 3),  # the CTA's own place
    ("CLUSTERID", 3),
    ("CLUSTER_CTARANK", 1),
    ("PRINT", 1),  # host address of the launch's print buffer (interp.runtime.printing), 0 = not used
    ("JOB", 1),  # host address of the launch's words (interp.runtime.scheduler)
)


def _number(fields: tuple[tuple[str, int], ...]) -> tuple[dict[str, int], int]:
    out, at = {}, 0
    for name, words in fields:
        out[name] = at
        at += words
    return out, at


CTX, CTX_WORDS = _number(_CTX_FIELDS)

_WARP_FIELDS = (
    ("ID", 1),
    ("LIVE", 1),  # lanes that exist and have not exited
    ("STATUS", 1),  # see STATUS_*
    ("CURSOR", 1),  # region where the search for pending lanes starts after fuel ran out
    ("ASYNC", 1),  # host address of the warp's queue
    ("WAIT_SITE", 1),  # of the last wait in vain, -1 = none, and what it waits for: address, parity
    ("WAIT_ADDRESS", 1),
    ("WAIT_PARITY", 1),
    ("CLUSTER_ARRIVED", 1),  # lanes that have arrived in the cluster barrier's phase (interp.runtime.cluster)
    ("CLUSTER_READY", 1),  # lanes whose phase is complete and that have not waited for it yet
    ("TRUE", 1),  # outcome of the last barrier that let go: true predicates, threads
    ("CAME", 1),
    ("SPARE", 4),
    ("TID", 48),  # three <32 x i32>
)

WARP, WARP_WORDS = _number(_WARP_FIELDS)
"""Then, in bytes from WARP_WORDS * 8: pending[NREGIONS], parked[NREGIONS], barrier[NREGIONS] (i32 each), padding to 64,
register slots."""

STATUS_READY = 0
STATUS_DONE = 1
STATUS_BARRIER = 2
STATUS_FUEL = 3
STATUS_FAULT = 4
STATUS_STUCK = 5
STATUS_POLL = 6
"""Waits in memory: polled something in vain, and is asked again in the next round."""

CTA_IDLE = 0
CTA_RUNNING = 1
CTA_DONE = 2
CTA_FAULT = 3
CTA_DEADLOCK = 4
CTA_OUT_OF_FUEL = 5

ALLOC_ROW = 5
"""Words a row of the allocation table: first device address, one past its end, host minus device address, flags, id."""
ALLOC_LO, ALLOC_HI, ALLOC_DELTA, ALLOC_FLAGS, ALLOC_ID = range(5)
ALLOC_WRITABLE = 1

FAULT_OUT_OF_BOUNDS = 1
FAULT_MISALIGNED = 2
FAULT_READ_ONLY = 3
FAULT_QUEUE_FULL = 4
FAULT_TRAP = 5
FAULT_BAD_MEMBER_MASK = 6
FAULT_UNMODELLED = 7
FAULT_BAD_MBARRIER = 8
FAULT_BAD_TENSOR_MAP = 9
FAULT_EXITED_CTA = 10
FAULT_BAD_CLUSTER_BARRIER = 11
FAULT_ASSERT = 12
FAULT_BAD_COORDINATE = 13
FAULT_BAD_BARRIER = 14
FAULT_TENSOR_MEMORY = 16
FAULT_TENSOR_OPERATION = 17
"""Wrong use of tensor memory, and a tcgen05 operation whose descriptors hardware does not take; the fault's byte count
is the reason (`interp.runtime.tensor_reasons`)."""
FAULT_STOPPED = 32
FAULT_SPLIT = 33
"""A hook stopped the launch; lanes parted where the uniformity analysis says that they never do: a defect of ours."""

PRINT_HEAD = 64
"""Bytes in front of the print buffer's records: bytes used and in all (both with these), calls that did not fit."""

TENSOR_MAP_BYTES = 128
TENSOR_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz")
"""Element types of tensor maps by the number that `tensormap.replace.elemtype` takes."""

ASYNC_LATE, ASYNC_EAGER, ASYNC_SEEDED = range(3)
ASYNCHRONY = {"late": ASYNC_LATE, "eager": ASYNC_EAGER, "seeded": ASYNC_SEEDED}
"""When asynchronous operations take effect: at the wait that guarantees it, at issue, or at either by a seed."""

SHARED_BASE = 0x400
"""Device address (32-bit) of a CTA's first shared byte: 1 KiB is reserved below it, as on sm_80 and later."""
SHARED_WINDOW = 0x7FFE_0000_0000
LOCAL_WINDOW = 0x7FFD_0000_0000
PARAM_WINDOW = 0x7FFC_0000_0000
"""Bases of the generic windows of shared and local memory and of kernel parameters."""

RANK_SHIFT = 24
"""A shared address has the rank of its CTA in the cluster from this bit on: names of variables give such addresses, and
`mapa` puts another rank there. (The manual leaves the form open; the assembler's code for sm_90 does the same.)"""

SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_GENERIC, SPACE_CONST, SPACE_PARAM, SPACE_CLUSTER = range(7)
"""SPACE_SHARED is the CTA's own shared memory, SPACE_CLUSTER that of any CTA of the cluster."""

CLUSTER_BARRIER = 16
"""Number under which lanes are parked that wait at the cluster barrier; 0 to 15 are the CTA's barriers."""

ASYNC_ENTRIES = 4096
"""Asynchronous copies a warp may have outstanding; a launch that needs more stops with a clear fault."""
WGMMA_ENTRIES = 512
"""Outstanding `wgmma` of a warp; likewise."""
BULK_ENTRIES = 2048
"""Outstanding bulk copies of a CTA; likewise."""
