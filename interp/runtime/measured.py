"""What accesses cost: sectors, wavefronts and bytes of each instruction, counted while a measured launch runs.

Only kernels that were built to be measured call these functions (`interp.measure`); plain launches do not have them. A
site's record lies *before* the context's counters, `WORDS` words each, the last site farthest away, so that nothing
else has to know of it.

The rules, all of them about one warp-level access:

* Global memory: a *request* touches as many *sectors* as there are different 32-byte pieces among its active lanes
  (NVIDIA, 'Nsight Compute, Profiling Guide', L1/TEX Cache: a sector is 32 bytes of a 128-byte line; a request is what
  one instruction sends). Natural alignment makes each lane's part at most one sector.
* Local memory: consecutive 32-bit words of a thread lie 32 lanes apart, so that lanes at one place touch neighbouring
  words (CUDA C++ Programming Guide, 'Device Memory Accesses', Local Memory).
* Shared memory: 32 banks of 4 bytes; lanes that read or write one word share it (CUDA C++ Programming Guide, 'Shared
  Memory'). An access of 4 bytes or less is one pass for all lanes; of 8 bytes one for each half of the warp, of 16
  bytes one for each quarter, as is each matrix of `ldmatrix` and `stmatrix`. A pass takes as many *wavefronts* as the
  busiest bank has different words; those after the first are *bank conflicts*.

What no published rule says is left out: wavefronts of atomics, and sectors of bulk copies, which do not go through the
load/store unit.
"""

from __future__ import annotations

from interp.runtime.access import get, in_shared, locate, put
from interp.runtime.layout import (
    CTX,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SPACE_CLUSTER,
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_SHARED,
)
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u8, load_u32, native, store_u32, u32
from interp.runtime.tensor_columns import pixel_count
from interp.runtime.tensor_layout import MODE, RANK, TILE, extent, row_bytes

FIELDS = (
    "GLOBAL_REQUESTS", "GLOBAL_SECTORS", "GLOBAL_BYTES", "LOCAL_REQUESTS", "LOCAL_SECTORS", "LOCAL_BYTES",
    "SHARED_REQUESTS", "SHARED_WAVEFRONTS", "SHARED_CONFLICTS", "SHARED_BYTES", "BULK_GLOBAL_BYTES",
    "BULK_SHARED_BYTES", "DIVERGED",
)  # fmt: skip
"""Words of a record. BULK_*: bytes that bulk and tensor copies move on either side. DIVERGED: executions of a branch
that some active lanes took and others did not."""
FIELD = {name: i for i, name in enumerate(FIELDS)}
WORDS = len(FIELDS)

PLAIN, ATOMIC = 0, 1
"""How shared memory is accessed: ATOMIC has no wavefronts."""
_COUNTERS = 8 * CTX["COUNTERS"]
_WINDOW = 0x1_0000_0000
_GLOBAL, _LOCAL, _SHARED = 8 * FIELD["GLOBAL_REQUESTS"], 8 * FIELD["LOCAL_REQUESTS"], 8 * FIELD["SHARED_REQUESTS"]
_CONFLICTS, _SHARED_BYTES = 8 * FIELD["SHARED_CONFLICTS"], 8 * FIELD["SHARED_BYTES"]
_BULK_GLOBAL, _BULK_SHARED = 8 * FIELD["BULK_GLOBAL_BYTES"], 8 * FIELD["BULK_SHARED_BYTES"]
_DIVERGED = 8 * FIELD["DIVERGED"]


@native
def record_of(ctx: int, site: int) -> int:
    """Host address of a site's record."""
    return get(ctx + _COUNTERS) - 8 * WORDS * (site + 1)


@native
def add_to(address: int, amount: int) -> None:
    """Add to a word."""
    put(address, get(address) + amount)


@native
def note_branch(ctx: int, site: int, mask: int, taken: int) -> None:
    """A branch that `taken` of the lanes of `mask` take."""
    if taken != 0 and taken != mask:
        add_to(record_of(ctx, site) + _DIVERGED, 1)


@native
def space_of(space: int, address: int) -> int:
    """The state space of a lane's access, generic addresses by their window."""
    if in_shared(space, address):
        return i64(SPACE_SHARED)
    if space != SPACE_GENERIC:
        return space
    if LOCAL_WINDOW <= address < LOCAL_WINDOW + _WINDOW:
        return i64(SPACE_LOCAL)
    if PARAM_WINDOW <= address < PARAM_WINDOW + _WINDOW:
        return i64(SPACE_PARAM)
    return i64(SPACE_GLOBAL)


@native
def lanes_in_space(mask: int, operands: int, space: int, wanted: int) -> int:
    """The lanes of a mask whose access lies in a state space."""
    if space == wanted or wanted == SPACE_SHARED and space == SPACE_CLUSTER:
        return mask
    if space != SPACE_GENERIC:
        return i64(0)
    lanes = i64(0)
    for i in range(32):
        if mask >> i & 1 and space_of(space, get(operands + 8 * i)) == wanted:
            lanes |= i64(1) << i
    return lanes


@native
def count_lanes(mask: int) -> int:
    """Number of one bits of a lane mask."""
    n = i64(0)
    while mask:
        mask &= mask - 1
        n += 1
    return n


@native
def count_sectors(mask: int, operands: int) -> int:
    """Different 32-byte sectors among the lanes' addresses."""
    found = i64(0)
    for i in range(32):
        if not mask >> i & 1:
            continue
        sector = get(operands + 8 * i) >> 5
        fresh = True
        for j in range(i - 1, -1, -1):  # a neighbour is the likeliest
            if mask >> j & 1 and get(operands + 8 * j) >> 5 == sector:
                fresh = False
                break
        if fresh:
            found += 1
    return found


@native
def count_local_sectors(mask: int, operands: int, size: int) -> int:
    """Different 32-byte sectors of local memory, whose words are spread over lanes: eight lanes' words make one."""
    found = i64(0)
    words = (size + 3) >> 2
    for i in range(32):
        if not mask >> i & 1:
            continue
        for c in range(words):
            word = (get(operands + 8 * i) >> 2) + c
            fresh = True
            for j in range(i & ~7, i):
                first = get(operands + 8 * j) >> 2
                if mask >> j & 1 and first <= word < first + words:
                    fresh = False
            if fresh:
                found += 1
    return found


@native
def count_wavefronts(mask: int, operands: int, size: int, banks: int) -> int:
    """Wavefronts of a shared access in the low half, conflicts (those after the first of a pass) above bit 32. `banks`:
    scratch memory for 32 words of 32 bits."""
    words = size >> 2 if size > 4 else 1
    lanes = 32 // words
    total = conflicts = i64(0)
    for first in range(0, 32, lanes):
        group = mask >> first & ((i64(1) << lanes) - 1)
        if group == 0:
            continue
        for b in range(32):
            store_u32(banks + 4 * b, u32(0))
        most = i64(1)
        for i in range(first, first + lanes):
            if not mask >> i & 1:
                continue
            address = get(operands + 8 * i) >> 2
            fresh = True
            for j in range(i - 1, first - 1, -1):  # aligned accesses of one size overlap wholly or not at all
                if mask >> j & 1 and get(operands + 8 * j) >> 2 == address:
                    fresh = False
                    break
            if not fresh:
                continue
            for c in range(words):
                bank = banks + 4 * ((address + c) & 31)
                load = i64(load_u32(bank)) + 1
                store_u32(bank, u32(load))
                if load > most:
                    most = load
        total += most
        conflicts += most - 1
    return total | conflicts << 32


@native
def note_shared(record: int, mask: int, operands: int, size: int, how: int, banks: int) -> None:
    """A shared access of `size` bytes a lane."""
    add_to(record + _SHARED, 1)
    add_to(record + _SHARED_BYTES, size * count_lanes(mask))
    if how != ATOMIC:
        both = count_wavefronts(mask, operands, size, banks)
        add_to(record + _SHARED + 8, both & 0xFFFFFFFF)
        add_to(record + _CONFLICTS, both >> 32)


@symbol("measured_access")
def measured_access(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, size: int, how: int, lanes: int
) -> None:
    """Operands: addresses (64 bits). Result: scratch. `size`: bytes a lane; `how`: PLAIN or ATOMIC; `lanes`: those that
    give addresses (a matrix load takes 8 for each matrix)."""
    mask &= (i64(1) << lanes) - 1
    record = record_of(ctx, site)
    here = lanes_in_space(mask, operands, space, SPACE_GLOBAL)
    if here:
        add_to(record + _GLOBAL, 1)
        add_to(record + _GLOBAL + 8, count_sectors(here, operands))
        add_to(record + _GLOBAL + 16, size * count_lanes(here))
    here = lanes_in_space(mask, operands, space, SPACE_LOCAL)
    if here:
        add_to(record + _LOCAL, 1)
        add_to(record + _LOCAL + 8, count_local_sectors(here, operands, size))
        add_to(record + _LOCAL + 16, size * count_lanes(here))
    here = lanes_in_space(mask, operands, space, SPACE_SHARED)
    if here:
        note_shared(record, here, operands, size, how, results)


@symbol("measured_copy")
def measured_copy(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, size: int, p1: int, p2: int, p3: int
) -> None:
    """cp.async. Operands: shared address, global address (64 bits each), bytes that are read (32 bits). Result:
    scratch. A lane that reads nothing sends nothing to global memory, and zeros to shared memory."""
    record = record_of(ctx, site)
    if mask == 0:
        return
    reading = total = i64(0)
    for i in range(32):
        if mask >> i & 1:
            count = min(i64(load_u32(operands + 512 + 4 * i)), size)
            total += count
            if count:
                reading |= i64(1) << i
    if reading:
        add_to(record + _GLOBAL, 1)
        add_to(record + _GLOBAL + 8, count_sectors(reading, operands + 256))
        add_to(record + _GLOBAL + 16, total)
    note_shared(record, mask, operands, size, PLAIN, results)


@symbol("measured_bulk")
def measured_bulk(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, many: int, shared: int, p2: int, p3: int
) -> None:
    """cp.async.bulk. Operands: bytes (32 bits), and with `many` the CTAs that get them (32 bits). `shared`: from shared
    memory to shared memory."""
    record = record_of(ctx, site)
    for i in range(32):
        if mask >> i & 1:
            size = i64(load_u32(operands + 4 * i))
            copies = count_lanes(i64(load_u32(operands + 128 + 4 * i))) if many else i64(1)
            if shared:
                add_to(record + _BULK_SHARED, 2 * size)
            else:
                add_to(record + _BULK_GLOBAL, size)
                add_to(record + _BULK_SHARED, size * copies)


@symbol("measured_tensor")
def measured_tensor(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, many: int, boxes: int, wide: int, p3: int
) -> None:
    """cp.async.bulk.tensor of `boxes` boxes. Operands: address of the tensor map (64 bits), with `many` the CTAs that
    get the box, with `wide` wHalo (32 bits each). The whole box counts on both sides, elements outside the tensor
    included, as the barrier counts them."""
    record = record_of(ctx, site)
    for i in range(32):
        if not mask >> i & 1:
            continue
        map_ = locate(ctx, warp, site, i, SPACE_GENERIC, get(operands + 8 * i), 64, False)
        if map_ == 0 or load_u8(map_ + RANK) > 4:
            return  # the copy itself reports it
        size, mode = boxes * row_bytes(map_), i64(load_u8(map_ + MODE))
        if mode == TILE:
            for d in range(1, i64(load_u8(map_ + RANK)) + 1):
                size *= extent(map_, d)
        else:
            size *= pixel_count(map_, mode, i64(load_u32(operands + 256 + 128 * many + 4 * i)) if wide else i64(0))
        copies = count_lanes(i64(load_u32(operands + 256 + 4 * i))) if many else i64(1)
        add_to(record + _BULK_GLOBAL, size)
        add_to(record + _BULK_SHARED, size * copies)


@symbol("measured_branch")
def measured_branch(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """A guarded branch. Operand: the lanes whose guard holds."""
    note_branch(ctx, site, mask, mask & i64(load_u32(operands)))
