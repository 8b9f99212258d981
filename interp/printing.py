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

_SPECIFIER = re.compile(rb"%([-+ #0-9.*hlLjzt]*)([^-+ #0-9.*hlLjzt])", re.DOTALL)
"""As the runtime reads a format: what may stand between `%` and the conversion, in any order."""
_SPEC = re.compile(r"([-+ #0]*)(\d+)?(?:\.(\d*))?\Z")
_WIDEST = 4096
"""Characters of a width or precision; more are an error of the kernel and not worth the memory."""

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
    """The text of one conversion; what C does not have stays as it is written."""
    middle, letter = match[1].decode(), match[2].decode("latin-1")
    if letter == "%":
        return b"%"
    long_ = any(c in middle for c in "ljzt")
    bits = 64 if long_ else {0: 32, 1: 16}.get(middle.count("h"), 8)
    spec = "".join(c for c in middle if c not in "hlLjzt")
    while "*" in spec:
        spec = spec.replace("*", str(_signed(items.word(), 32)), 1).replace(".-", ".N")
    spec = re.sub(r"\.N\d+", "", spec)  # a negative precision counts as none
    text = items.string() if letter == "s" else None
    word = 0 if text is not None else items.word()
    form = _SPEC.match(spec.replace("--", "-"))
    if form is None or any(int(n or 0) > _WIDEST for n in form.groups()[1:]):
        return match[0]
    head = "%" + "".join(p for p in (form[1], form[2], None if form[3] is None else "." + form[3]) if p)
    if text is not None:
        return bytes((head + "s").encode() % text)
    return _number(head, letter, word, bits, match[0])


def _number(head: str, letter: str, word: int, bits: int, written: bytes) -> bytes:
    """A converted word; `head`: the specification up to its letter."""
    unsigned = word & ((1 << bits) - 1)
    plain = head.replace("+", "").replace(" ", "")
    if letter in "eEfFgG":
        return str((head + letter) % struct.unpack("<d", struct.pack("<q", word))[0]).encode()
    if letter in "aA":
        return str(float.hex(struct.unpack("<d", struct.pack("<q", word))[0])).encode()
    if letter in "di":
        return ((head + "d") % _signed(word, bits)).encode()
    if letter == "u":
        return ((plain + "d") % unsigned).encode()
    if letter in "xX":
        return ((plain + letter) % unsigned).encode()
    if letter == "o":
        octal = ("0" if "#" in plain and unsigned else "") + f"{unsigned:o}"
        width = re.search(r"[1-9]\d*", plain)
        return octal.rjust(int(width[0]) if width and "-" not in plain else 0).encode()
    if letter == "c":
        return bytes([word & 0xFF])
    return f"0x{word & 0xFFFF_FFFF_FFFF_FFFF:x}".encode() if letter == "p" else written


def _signed(word: int, bits: int) -> int:
    value = word & ((1 << bits) - 1)
    return value - (1 << bits) if value >> (bits - 1) else value
