"""ZLUDA's table of PTX tests (`ptx/src/test/spirv_run/mod.rs`) as data: name, input, expected output, threads.

The table is Rust: `test_ptx!(name, [inputs], [outputs]);` and `test_ptx_warp!(name, [outputs]);`, arrays of literals
and a few named constants. Each item becomes the bytes that the Rust array has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_TEST = re.compile(r"^test_ptx(_with_32|_warp)?!\(\s*(\w+)\s*(?:,(.*?))?\);", re.DOTALL | re.MULTILINE)
_LITERAL = re.compile(
    r"(-?)(0x[\da-fA-F_]+|0b[01_]+|\d[\d_]*(?:\.[\d_]+)?(?:e-?\d+)?)((?:[iu](?:8|16|32|64)|(?<!x)f(?:32|64))?)\Z"
)
_NAMED = {
    "f32::NAN": ("f32", float("nan")), "f32::INFINITY": ("f32", float("inf")),
    "f32::NEG_INFINITY": ("f32", float("-inf")), "half::f16::NAN": ("f16", float("nan")),
    "half::f16::INFINITY": ("f16", float("inf")), "half::f16::NEG_INFINITY": ("f16", float("-inf")),
    "std::f32::consts::PI": ("f32", 3.1415927410125732), "std::f32::consts::PI / 2f32": ("f32", 1.5707963705062866),
    "i32::MIN": ("i32", -(1 << 31)), "i32::MAX": ("i32", (1 << 31) - 1), "u32::MAX": ("u32", (1 << 32) - 1),
    "u64::max_value()": ("u64", (1 << 64) - 1), "half::f16::NAN.to_bits()": ("u16", 0x7E00),
}  # fmt: skip
_CALL = re.compile(r"(?:half::)?(f16|f32)::(from_f32|from_f64|from_bits)\((.*)\)\Z")


@dataclass(frozen=True)
class Case:
    """One test. `given`: None where the kernel gets a null pointer; `expected`: None where only translation is tested
    there; arrays as the Rust types say."""

    name: str
    given: np.ndarray | None
    expected: np.ndarray | None
    threads: int


def read(text: str) -> Iterator[Case]:
    """Every test of the table that is not commented out."""
    text = re.sub(r"//[^\n]*", "", text)
    for m in _TEST.finditer(text):
        arrays = [_array(a) for a in _split(m[3] or "")]
        if m[1] == "_warp":
            yield Case(m[2], None, arrays[0], 64)
        else:
            given, expected = arrays if arrays else (None, None)
            yield Case(m[2], given, expected, 1)


def _split(text: str) -> list[str]:
    """Arguments and array items: split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def _array(text: str) -> np.ndarray:
    if (m := re.match(r"\[(.*);\s*(\d+)\]\Z", text, re.DOTALL)) and not _split(m[1])[1:]:
        text = "[" + ", ".join([m[1]] * int(m[2])) + "]"
    assert text[0] == "[" and text[-1] == "]", text
    items = [_item(i) for i in _split(text[1:-1])]
    kinds = {kind for kind, _ in items if kind}
    assert len(kinds) <= 1, kinds
    plain = "f64" if any(isinstance(v, float) for _, v in items) else "i32"
    kind = kinds.pop() if kinds else plain
    if kind == "f64" and not any(k for k, _ in items):
        kind = "f64"
    values = [v for _, v in items]
    if kind[0] == "f":
        return np.array(values, f"f{int(kind[1:]) // 8}")
    size = int(kind[1:]) // 8
    return np.array([int(v) % (1 << 8 * size) for v in values], f"u{size}")


def _item(text: str) -> tuple[str, float | int]:
    """(Rust type or "", value)"""
    if text in _NAMED:
        return _NAMED[text]
    if m := _CALL.match(text):
        _, value = _item(m[3])
        if m[2] == "from_bits":
            return m[1], float(np.array(int(value), f"u{int(m[1][1:]) // 8}").view(f"f{int(m[1][1:]) // 8}"))
        return m[1], float(value)
    m = _LITERAL.match(text)
    assert m, text
    sign, digits, kind = m[1], m[2].replace("_", ""), m[3] or ""
    if kind.startswith("f") or ("." in digits and not digits.startswith("0x")):
        return kind, -float(digits) if sign else float(digits)
    return kind, -int(digits, 0) if sign else int(digits, 0)
