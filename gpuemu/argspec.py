"""The words of `gpuemu run`: `x=rand:64x1000:f32 o=zeros:64x1000:f32 s=1000 n=1000 eps=1e-5 B=1024`.

    name=FILL:SHAPE:DTYPE   an array. FILL: rand (the sweep's regular distribution), boundary, adversarial, zeros, ones,
                            arange, nan (0xFF bytes). SHAPE: sizes joined by x. DTYPE: f32, bf16, i32 or in full.
    name=@FILE.npy          an array from a file (never pickled)
    name=VALUE              an integer, a float, true, false, none, or a quoted string

Random values come from the seed and the argument's name, as in a sweep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.files import unreadable
from gpuemu.gate.bits import Bits, seed_of
from gpuemu.gate.declare import Input
from gpuemu.gate.dtypes import FORMATS, dtype_name, numpy_dtype, to_storage
from gpuemu.gate.indices import integers
from gpuemu.gate.values import DISTRIBUTIONS, floats
from ptx.errors import InvalidInput, LaunchFailure

LARGEST = 1 << 34
"""Bytes of an array that a word may make; values are drawn in FP64, which takes a multiple of it."""
FILLS = ("rand", *DISTRIBUTIONS[1:], "zeros", "ones", "arange", "nan")
_HELP = "x=rand:64x1000:f32, x=@file.npy, n=1000, eps=1e-5 or flag=true"


@dataclass(frozen=True, slots=True)
class Word:
    """One parsed argument: `value` is an array or a Python scalar."""

    name: str
    value: Any

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, np.ndarray)


def parse_words(words: list[str], seed: int) -> list[Word]:
    """Parse all words. Raises InvalidInput that quotes the word."""
    parsed: dict[str, Word] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier() or not text:
            raise InvalidInput(f"cannot read argument '{word}'", help=f"arguments look like {_HELP}")
        if name in parsed:
            raise InvalidInput(f"argument '{name}' is given twice")
        parsed[name] = Word(name, _value(name, text, word, seed))
    return list(parsed.values())


def _value(name: str, text: str, word: str, seed: int) -> Any:
    if text.startswith("@"):
        return _file(Path(text[1:]))
    if ":" in text and text[0] not in "\"'":
        return _array(name, text, word, seed)
    plain = {"true": True, "false": False, "none": None}
    if text.lower() in plain:
        return plain[text.lower()]
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    for convert in (lambda t: int(t, 0), float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise InvalidInput(f"cannot read the value of '{word}'", help=f"arguments look like {_HELP}")


def _array(name: str, text: str, word: str, seed: int) -> NDArray[Any]:
    parts = text.split(":")
    if len(parts) != 3 or parts[0] not in FILLS:
        raise InvalidInput(
            f"cannot read the array '{word}'", help=f"FILL:SHAPE:DTYPE with FILL one of {', '.join(FILLS)}"
        )
    fill, dtype = parts[0], dtype_name(parts[2])
    try:
        shape = tuple(int(s) for s in parts[1].split("x"))
    except ValueError:
        raise InvalidInput(f"cannot read the shape '{parts[1]}' of '{word}'", help="for example 64x1000") from None
    if any(s < 0 for s in shape):
        raise InvalidInput(f"negative size in '{word}'")
    if (size := math.prod(shape) * numpy_dtype(dtype).itemsize) > LARGEST:
        raise LaunchFailure(
            f"'{word}' would take {size >> 30} GiB", help="gpuemu.sparse(shape, dtype) makes huge arrays from Python"
        )
    form = FORMATS.get(dtype)
    bits = Bits(seed_of("run", seed), name)
    if fill in ("rand", *DISTRIBUTIONS):
        distribution = "regular" if fill == "rand" else fill
        if form is None:
            return integers(Input("", dtype=dtype, low=0, high=2 if dtype == "bool" else 100), shape, {}, bits)
        return to_storage(floats(Input(""), shape, form, distribution, bits), form)
    out = np.zeros(shape, numpy_dtype(dtype))
    if fill == "ones":
        out[...] = 1
    elif fill == "arange":
        out = np.arange(out.size).reshape(shape).astype(out.dtype)
    elif fill == "nan":
        out.reshape(-1).view(np.uint8)[...] = 0xFF
    return out


def _file(path: Path) -> NDArray[Any]:
    try:
        with path.open("rb") as stream:
            if not stream.read(6).startswith((b"\x93NUMPY", b"PK\x03\x04")):
                raise InvalidInput(f"cannot read {path}: it is not an .npy file", help="write one with numpy.save")
        loaded = np.load(path, allow_pickle=False)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, EOFError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    if not isinstance(loaded, np.ndarray):
        raise InvalidInput(f"{path} holds several arrays; give a .npy file")
    return loaded
