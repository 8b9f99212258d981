"""The 64 bits of an mbarrier object (layout: `interp.runtime.mbarrier`), without checks or waiting."""

from __future__ import annotations

from interp.runtime.raw import i64, load_u64, native, store_u64, u64

ABSENT = 0xFFFF_FFFF_FFFF_FFFF
_COUNT = (1 << 20) - 1
_BYTES = (1 << 21) - 1


@native
def load_barrier(at: int) -> int:
    """The object's word; ABSENT for what cannot be one."""
    word = load_u64(at)
    if (word >> u64(20)) & u64(_COUNT) == u64(0):
        return u64(ABSENT)
    return word


@native
def parity_of(word: int) -> int:
    """Parity of the current phase, 0 or 1."""
    return i64(word >> u64(63))


@native
def pending_bytes(word: int) -> int:
    """The transaction count, signed."""
    raw = i64((word >> u64(40)) & u64(_BYTES))
    return raw - (i64(1) << 21) if raw >> 20 else raw


@native
def _store(at: int, parity: int, tx: int, expected: int, pending: int) -> None:
    """Put the fields back, beginning the next phase when this one is complete."""
    if pending == u64(0) and tx == 0:
        parity ^= u64(1)
        pending = expected
    word = pending & u64(_COUNT) | (expected & u64(_COUNT)) << u64(20)
    word |= (u64(tx) & u64(_BYTES)) << u64(40) | parity << u64(63)
    store_u64(at, word)


@native
def arrive(at: int, count: int, drop: int) -> bool:
    """`count` arrivals; False if the phase does not wait for so many."""
    word = load_u64(at)
    pending, expected = word & u64(_COUNT), word >> u64(20) & u64(_COUNT)
    if count > pending or (drop and count > expected):
        return False
    if drop:
        expected -= count
    _store(at, word >> u64(63), pending_bytes(word), expected, pending - count)
    return True


@native
def expect(at: int, count: int) -> None:
    """`count` more bytes to come in this phase; a phase that expects bytes cannot complete by this alone."""
    word = load_u64(at)
    tx = (u64(pending_bytes(word) + count) & u64(_BYTES)) << u64(40)
    store_u64(at, word & ~(u64(_BYTES) << u64(40)) | tx)


@native
def add_pending(at: int, count: int) -> None:
    """`count` more arrivals to wait for in this phase."""
    store_u64(at, load_u64(at) + u64(count))


@native
def transact(at: int, count: int) -> None:
    """`count` bytes have come."""
    word = load_u64(at)
    pending, expected = word & u64(_COUNT), word >> u64(20) & u64(_COUNT)
    _store(at, word >> u64(63), pending_bytes(word) - count, expected, pending)
