"""A content-addressed cache on disk: lowered kernels, decoded PTX, compiled objects.

What is kept is always derivable: losing the cache costs time, never a result. So every failure here is silent and
means a miss: an unreadable entry, a full disk, a directory that cannot be made, a truncated file.

Guarantees
    * An entry is returned only if it is whole and is the one asked for: a file starts with a magic line that names the
      format, then SHA-256 over (kind, key, data); a truncated, edited, renamed or foreign file is a miss.
    * Readers never see half an entry: data goes to a temporary file in the same directory, then `os.replace`.
    * Nothing is unpickled or evaluated. Callers keep JSON or raw bytes.
    * An entry that another user could have planted is a miss: the file must belong to this user or to root, and must
      not be writable by everybody.

Trust rule
    Cached objects are executable code: the engine loads them into its own process. Whoever can write the directory can
    run code as you. Never let an untrusted pull request write into a cache that trusted builds read; in CI give each
    its own directory, or restore the cache read-only. The checksum finds accidents, not attackers.

Where
    `$GPUEMU_CACHE_DIR`, else `$XDG_CACHE_HOME/gpuemu`, else `~/.cache/gpuemu`. `GPUEMU_CACHE_DIR=` (empty) switches the
    cache off. Layout: `<root>/<kind>/<first two hex digits>/<64 hex digits>`.

Size
    `GPUEMU_CACHE_MIB` (default 2048): once in 64 writes of a process, the entries least recently used are removed until
    what is left fits. A limit, not a quota: several processes may overshoot it briefly.

Keys carry versions: whoever calls puts the version of whatever made the data (compiler, engine, CPU features) into
`digest(...)`; this module adds only the version of its own file format.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

_MAGIC = b"gpuemu cache 1\n"
_SUM_BYTES = 32
_HEADER_BYTES = len(_MAGIC) + _SUM_BYTES
_DEFAULT_MIB = 2048
_WRITES_PER_PRUNE = 64
_HEX = frozenset("0123456789abcdef")

_writes = 0


def digest(*parts: bytes | str | int | None) -> str:
    """SHA-256 of the parts as 64 hex digits. Parts are typed and length-prefixed, so ("ab", "c") != ("a", "bc")."""
    h = hashlib.sha256()
    for part in parts:
        if isinstance(part, bytes):
            tag, raw = b"b", part
        elif isinstance(part, str):
            tag, raw = b"s", part.encode("utf-8", "surrogatepass")
        elif part is None:
            tag, raw = b"n", b""
        else:
            tag, raw = b"i", str(int(part)).encode()
        h.update(tag + len(raw).to_bytes(8, "little"))
        h.update(raw)
    return h.hexdigest()


def directory() -> Path | None:
    """The cache's root by the rules above; None when it is switched off or no home directory is known."""
    chosen = os.environ.get("GPUEMU_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "gpuemu"
    try:
        return Path.home() / ".cache" / "gpuemu"
    except RuntimeError:
        return None


def get(kind: str, key: bytes | str) -> bytes | None:
    """The data that was `put` under (kind, key), or None.

    `kind` is a short name made of letters, digits, `-` and `_`; `key` any bytes or text, usually `digest(...)`.
    """
    path = _entry(kind, key)
    if path is None:
        return None
    try:
        with open(path, "rb") as f:
            if not _is_trusted(os.fstat(f.fileno())):
                return None
            whole = f.read()
    except OSError:
        return None
    data = whole[_HEADER_BYTES:]
    if whole[:_HEADER_BYTES] != _MAGIC + _checksum(kind, key, data):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # recency for `prune`
    return data


def put(kind: str, key: bytes | str, data: bytes) -> bool:
    """Keep `data` under (kind, key). True if it was written; False means only that the next `get` will miss."""
    global _writes
    path = _entry(kind, key)
    if path is None:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
        try:
            with open(handle, "wb") as f:
                f.write(_MAGIC + _checksum(kind, key, data))
                f.write(data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError:
        return False
    _writes += 1
    if _writes % _WRITES_PER_PRUNE == 0:
        prune()
    return True


def prune(limit_bytes: int | None = None) -> int:
    """Remove the least recently used entries until at most `limit_bytes` remain; returns the bytes removed.

    Default limit: `GPUEMU_CACHE_MIB`. Files that are not entries of this cache are left alone.
    """
    root = directory()
    if root is None:
        return 0
    if limit_bytes is None:
        limit_bytes = _limit_mib() << 20
    found = []
    for path in root.glob("*/??/*"):
        if _is_hex64(path.name) or path.name.startswith(".tmp-"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
    excess = sum(size for _, size, _ in found) - limit_bytes
    removed = 0
    for _, size, path in sorted(found):
        if removed >= excess:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            removed += size
    return removed


def _limit_mib() -> int:
    try:
        return max(0, int(os.environ.get("GPUEMU_CACHE_MIB", _DEFAULT_MIB)))
    except ValueError:
        return _DEFAULT_MIB


def _entry(kind: str, key: bytes | str) -> Path | None:
    if not kind or not kind.replace("-", "").replace("_", "").isalnum():
        raise ValueError(f"cache kind {kind!r}: letters, digits, '-' and '_' only")
    root = directory()
    if root is None:
        return None
    name = key if isinstance(key, str) and _is_hex64(key) else digest(key)
    return root / kind / name[:2] / name


def _is_hex64(name: str) -> bool:
    return len(name) == 64 and _HEX.issuperset(name)


def _checksum(kind: str, key: bytes | str, data: bytes) -> bytes:
    return bytes.fromhex(digest(kind, key, hashlib.sha256(data).digest()))


def _is_trusted(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & stat.S_IWOTH
