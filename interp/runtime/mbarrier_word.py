"""The 64 bits of an mbarrier object (layout: `interp.runtime.mbarrier`), without checks or waiting."""

from __future__ import annotations

import numpy as np

from interp.runtime.raw import load_u64, native, store_u64

ABSENT = 0xFFFF_FFFF_FFFF_FFFF
_COUNT = (1 << 20) - 1
_BYTES = (1 << 21) - 1


@native
def load_barrier(at):
    """The object's word; ABSENT for what cannot be one."""
    word = load_u64(at)
    if (word >> np.uint64(20)) & np.uint64(_COUNT) == np.uint64(0):
        return np.uint64(ABSENT)
    return word


@native
def parity_of(word):
    """Parity of the current phase, 0 or 1."""
    return np.int64(word >> np.uint64(63))


@native
def pending_bytes(word):
    """The transaction count, signed."""
    raw = np.int64((word >> np.uint64(40)) & np.uint64(_BYTES))
    return raw - (np.int64(1) << 21) if raw >> 20 else raw


@native
def _store(at, parity, tx, expected, pending):
    """Put the fields back, beginning the next phase when this one is complete."""
    if pending == np.uint64(0) and tx == 0:
        parity ^= np.uint64(1)
        pending = expected
    word = pending & np.uint64(_COUNT) | (expected & np.uint64(_COUNT)) << np.uint64(20)
    word |= (np.uint64(tx) & np.uint64(_BYTES)) << np.uint64(40) | parity << np.uint64(63)
    store_u64(at, word)


@native
def arrive(at, count, drop):
    """`count` arrivals; False if the phase does not wait for so many."""
    word = load_u64(at)
    pending, expected = word & np.uint64(_COUNT), word >> np.uint64(20) & np.uint64(_COUNT)
    if count > pending or (drop and count > expected):
        return False
    if drop:
        expected -= count
    _store(at, word >> np.uint64(63), pending_bytes(word), expected, pending - count)
    return True


@native
def expect(at, count):
    """`count` more bytes to come in this phase; a phase that expects bytes cannot complete by this alone."""
    word = load_u64(at)
    tx = (np.uint64(pending_bytes(word) + count) & np.uint64(_BYTES)) << np.uint64(40)
    store_u64(at, word & ~(np.uint64(_BYTES) << np.uint64(40)) | tx)


@native
def add_pending(at, count):
    """`count` more arrivals to wait for in this phase."""
    store_u64(at, load_u64(at) + np.uint64(count))


@native
def transact(at, count):
    """`count` bytes have come."""
    word = load_u64(at)
    pending, expected = word & np.uint64(_COUNT), word >> np.uint64(20) & np.uint64(_COUNT)
    _store(at, word >> np.uint64(63), pending_bytes(word) - count, expected, pending)
