"""Random bits: the published answers of Philox, independence of streams, and stability of seeds."""

import numpy as np
import pytest

from gpuemu.gate.bits import Bits, philox, seed_of

# Known answers of philox4x32-10 from the authors' Random123 distribution (kat_vectors).
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize("counter, key, expected", KNOWN)
def test_philox_gives_the_published_answers(counter, key, expected):
    words = philox(tuple(np.array([c], np.uint64) for c in counter), key)
    assert tuple(int(w[0]) for w in words) == expected


def test_a_stream_does_not_depend_on_how_it_is_read():
    whole = Bits(7, "x").words(64)
    parts = Bits(7, "x")
    assert np.array_equal(np.concatenate([parts.words(16), parts.words(48)]), whole)


def test_streams_and_seeds_differ():
    words = [Bits(s, n).words(4).tobytes() for s, n in ((7, "x"), (7, "y"), (8, "x"), (7 + 2**40, "x"))]
    assert len(set(words)) == 4


def test_bell_has_the_stated_range_and_spread():
    values = Bits(1, "x").bell(100_000)
    assert abs(values.mean()) < 0.02 and abs(values.std() - 1) < 0.01 and np.abs(values).max() < 3.47


def test_below_stays_below():
    values = Bits(1, "x").below(10, 1000)
    assert values.min() == 0 and values.max() == 9


def test_seeds_are_length_prefixed_and_stable():
    assert seed_of("ab", "c") != seed_of("a", "bc")
    assert seed_of("case", 0, "softmax") == 0xB225D4BECC310C90
