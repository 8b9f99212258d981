"""The decoded form on disk: the same module, and a damaged or foreign entry is a miss."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

import ptx
from ptx import cache, ir
from ptx.errors import InvalidInput
from tests.ptx_front.texts import kernel_text, sample, sample_names

decoding = sys.modules["ptx.decode"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUEMU_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", sample_names())
def test_a_hit_is_the_same_module(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = sample(name)
    first = ptx.decode(text)
    monkeypatch.setattr(decoding, "parse", None)  # a hit does not parse
    assert ptx.decode(text) == first == ptx.parse(text)


def test_every_kind_of_operand_survives() -> None:
    body = (
        "op %r1, -5, 0f3F800000, 1.5, variable+8, %tid.x, !%p1, _, [%rd1+-4], {%r1, _}, %r1|%p1, [%rd1, {%r1}, {%r2}];"
    )
    module = ptx.parse(kernel_text(body))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(module), type=ir.Module) == module


def test_another_text_or_a_wrong_entry_is_parsed() -> None:
    text = kernel_text("mov.b32 %r1, 1;")
    expected = ptx.decode(text)
    key = cache.digest(decoding._maker(), text)
    assert cache.get("ptx", key) is not None
    for wrong in (b"", b"\xc1", msgspec.msgpack.encode([1, 2, 3])):
        cache.put("ptx", key, wrong)
        assert ptx.decode(text) == expected
    assert ptx.decode(text + "\n") == expected


def test_errors_are_not_cached(own_cache: Path) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput):
            ptx.decode("nonsense")
    assert [p for p in own_cache.rglob("*") if p.is_file()] == []
