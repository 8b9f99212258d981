"""ptx.cache: whatever happens to the files, an entry is whole and the right one, or it is a miss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptx import cache


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUEMU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def only_file(root: Path) -> Path:
    (path,) = [p for p in root.rglob("*") if p.is_file()]
    return path


def test_round_trip(root: Path) -> None:
    assert cache.get("k", "a") is None
    assert cache.put("k", "a", b"data")
    assert cache.get("k", "a") == b"data"
    assert cache.get("k", b"a") is None, "text and bytes are different keys"
    assert cache.get("other", "a") is None
    assert cache.put("k", "a", b"") and cache.get("k", "a") == b""


def test_digest_separates_its_parts() -> None:
    parts = [("ab", "c"), ("a", "bc"), ("abc",), (b"ab", "c"), ("ab", "c", None), ("1",), (1,)]
    keys = [cache.digest(*p) for p in parts]
    assert len(set(keys)) == len(keys)
    assert all(len(k) == 64 for k in keys)


@pytest.mark.parametrize("damage", ["truncate", "empty", "flip", "append", "foreign"])
def test_a_damaged_entry_is_a_miss_and_can_be_replaced(root: Path, damage: str) -> None:
    cache.put("k", "a", b"x" * 100)
    path = only_file(root)
    whole = path.read_bytes()
    path.write_bytes(
        {
            "truncate": whole[:-1],
            "empty": b"",
            "flip": whole[:-1] + bytes([whole[-1] ^ 1]),
            "append": whole + b"!",
            "foreign": b"something else entirely",
        }[damage]
    )
    assert cache.get("k", "a") is None
    assert cache.put("k", "a", b"new")
    assert cache.get("k", "a") == b"new"


def test_a_renamed_entry_does_not_answer_for_another_key(root: Path) -> None:
    cache.put("k", "a", b"data of a")
    a = only_file(root)
    cache.put("k", "b", b"data of b")
    (b,) = [p for p in root.rglob("*") if p.is_file() and p != a]
    os.replace(a, b)
    assert cache.get("k", "b") is None


def test_an_entry_that_anybody_may_write_is_a_miss(root: Path) -> None:
    cache.put("k", "a", b"data")
    only_file(root).chmod(0o666)
    assert cache.get("k", "a") is None


def test_no_directory_means_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the directory should be")
    for value in (str(blocked), ""):
        monkeypatch.setenv("GPUEMU_CACHE_DIR", value)
        assert cache.put("k", "a", b"data") is False
        assert cache.get("k", "a") is None
        assert cache.prune() == 0


def test_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUEMU_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.directory() == Path("/x/gpuemu")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert cache.directory() == Path("/h/.cache/gpuemu")


def test_a_failed_write_leaves_nothing_behind(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(cache.os, "replace", refuse)
    assert cache.put("k", "a", b"data") is False
    assert not [p for p in root.rglob("*") if p.is_file()]


def test_prune_removes_the_least_recently_used(root: Path) -> None:
    for i, name in enumerate("abc"):
        cache.put("k", name, bytes(1000))
        (path,) = [p for p in root.rglob("*") if p.is_file() and p.stat().st_mtime > 1e6]
        os.utime(path, (i, i))
    cache.get("k", "a")
    assert cache.prune(2500) > 0
    assert cache.get("k", "b") is None
    assert cache.get("k", "a") is not None and cache.get("k", "c") is not None


def test_kind_is_a_plain_name(root: Path) -> None:
    for kind in ("", "../x", "a/b", "."):
        with pytest.raises(ValueError, match="kind"):
            cache.get(kind, "a")
