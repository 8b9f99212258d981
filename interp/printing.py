"""What a kernel printed, from the launch's buffer to text (`interp.runtime.printing` has the records).

Formats are C's (`printf`), as the CUDA C++ Programming Guide lists them for devices: flags, width, precision, length,
conversion. A conversion that C does not have stays as it is written.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import numpy as np

from interp.runtime.layout import PRINT_HEAD
from interp.runtime.printing import PRINT_BYTES

_SPECIFIER = re.compile(rb"%([-+ #0-9.*]*)((?:hh|h|ll|l|j|z|t|L)?)(.)", re.DOTALL)
_BITS = {b"hh": 8, b"h": 16, b"": 32, b"L": 64}

Words = np.ndarray[tuple[int], np.dtype[np.int64]]


def print_buffer() -> Words:
    """An empty buffer for one launch."""
    words = np.zeros((PRINT_HEAD + PRINT_BYTES) // 8, np.int64)
    words[:2] = PRINT_HEAD, 8 * len(words)
    return words


def printed(buffer: Words) -> str:
    """The text of all calls, in the order of execution; a last line says how many did not fit."""
    parts = []
    at, end = PRINT_HEAD // 8, int(buffer[0]) // 8
    while at < end:
        length = int(buffer[at])
        parts.append(_text(buffer[at + 3 : at + length]))
        at += length
    if buffer[2]:
        parts.append(f"[{int(buffer[2])} calls of printf did not fit into {PRINT_BYTES} bytes]\n")
    return "".join(parts)


def _text(words: Words) -> str:
    items = _Items(words)
    return _SPECIFIER.sub(lambda m: _convert(m, items), items.string()).decode("utf-8", "replace")


class _Items:
    """A record's words, taken from the front."""

    def __init__(self, words: Words) -> None:
        self._words: Iterator[int] = iter(words.tolist())

    def word(self) -> int:
        return next(self._words)

    def string(self) -> bytes:
        length = self.word()
        return b"".join(struct.pack("<q", self.word()) for _ in range((length + 7) // 8))[:length]


def _convert(match: re.Match[bytes], items: _Items) -> bytes:
    flags, length, letter = match[1], match[2], match[3]
    if letter == b"%":
        return b"%"
    while b"*" in flags:
        flags = flags.replace(b"*", str(_signed(items.word(), 32)).encode(), 1)
    if letter in b"aAeEfFgG":
        value = struct.unpack("<d", struct.pack("<q", items.word()))[0]
        if letter in b"aA":
            return str(float.hex(value)).encode()
        return bytes((b"%" + flags + letter) % value)
    if letter == b"s":
        return (b"%" + flags + b"s") % items.string()
    if letter == b"p":
        return b"0x%x" % (items.word() & 0xFFFFFFFFFFFFFFFF)
    word = items.word()
    bits = _BITS.get(length, 64)
    if letter == b"c":
        return bytes([word & 0xFF])
    if letter in b"di":
        return (b"%" + flags + b"d") % _signed(word, bits)
    if letter in b"uoxX":
        kind = b"d" if letter == b"u" else letter
        return (b"%" + flags + kind) % (word & ((1 << bits) - 1))
    return match[0]


def _signed(word: int, bits: int) -> int:
    value = word & ((1 << bits) - 1)
    return value - (1 << bits) if value >> (bits - 1) else value
