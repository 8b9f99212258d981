"""Configuration: `gpuemu.toml`, or `[tool.gpuemu]` of `pyproject.toml`, in the current folder or the repository's root.

    [tool.gpuemu]
    paths = ["kernels"]            # files and folders that `ci` searches for ops
    seed = 0
    targets = ["sm_80"]            # the code that is made
    device = "sm_90"               # whose arithmetic; default: the target's
    fmad = "plan"                  # contraction: "off" or "plan"
    ops = ["softmax"]              # only these
    dtypes = ["float16"]
    distributions = ["regular", "boundary", "adversarial"]
    parallel = 2
    timeout = 300.0                # seconds for one case
    replays = ".gpuemu/replays"
    expect = "expected.toml"
    tolerances = "tolerances.toml" # a file of `gpuemu calibrate`

    [tool.gpuemu.diff]             # `gpuemu diff`
    targets = ["sm_80", "sm_90"]   # what is measured for
    max_regs = 128
    max_spills = 0                 # bytes
    max_increase = { sass__inst = 5.0 }   # metric of docs/metrics.md = percent
    max_decrease = { sass__inst = 20.0 }  # a larger fall needs --explained

The command line wins over it. A file that does not parse, an unknown key and a value of the wrong type are errors
(exit 2) that name the key; nothing falls back to a default in silence. Paths in it are relative to its folder.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from ptx.accounting.metrics import check_metrics
from ptx.errors import InvalidInput


class DiffConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `diff`: limits, and what is measured for."""

    targets: tuple[str, ...] | None = None
    max_regs: int | None = None
    max_spills: int | None = None
    max_increase: dict[str, float] = {}
    max_decrease: dict[str, float] = {}


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a configuration file may say; None = not said."""

    paths: tuple[str, ...] | None = None
    seed: int | None = None
    targets: tuple[str, ...] | None = None
    device: str | None = None
    fmad: Literal["off", "plan"] | None = None
    ops: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    distributions: tuple[str, ...] | None = None
    parallel: int | None = None
    timeout: float | None = None
    replays: str | None = None
    expect: str | None = None
    tolerances: str | None = None
    diff: DiffConfig = DiffConfig()


def load_config(folder: Path, root: Path) -> Config:
    """The configuration that holds for `folder`: its own, else that of `root`, else an empty one.

    `gpuemu.toml` comes before `pyproject.toml`. Raises InvalidInput for a file that is there but wrong.
    """
    for place in dict.fromkeys((folder, root)):
        for name in ("gpuemu.toml", "pyproject.toml"):
            file = place / name
            if file.is_file():
                table = _table(file)
                if table is not None:
                    return _relative(_convert(table, file), place)
    return Config()


def _table(file: Path) -> dict[str, Any] | None:
    try:
        whole = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} does not parse: {error}") from error
    if file.name == "gpuemu.toml":
        return whole
    tool = whole.get("tool", {})
    table = tool.get("gpuemu") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise InvalidInput(f"{file}: tool.gpuemu is not a table")
    return table


def _convert(table: dict[str, Any], file: Path) -> Config:
    known = [f.name for f in msgspec.structs.fields(Config)]
    if unknown := [k for k in table if k not in known]:
        raise InvalidInput(f"{file}: unknown key '{unknown[0]}'", help=f"known keys: {', '.join(known)}")
    for key, value in table.items():
        try:
            msgspec.convert({key: value}, Config)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{file}: key '{key}': {error}") from error
    config = msgspec.convert(table, Config)
    if config.parallel is not None and config.parallel < 1:
        raise InvalidInput(f"{file}: key 'parallel' must be at least 1")
    if config.timeout is not None and not 0 < config.timeout <= 1e6:
        raise InvalidInput(f"{file}: key 'timeout' must be a number of seconds, at most a million")
    for key in ("max_regs", "max_spills"):
        limit = getattr(config.diff, key)
        if limit is not None and limit < 0:
            raise InvalidInput(f"{file}: key 'diff.{key}' must be at least 0")
    for key in ("max_increase", "max_decrease"):
        try:
            check_metrics(getattr(config.diff, key))
        except InvalidInput as error:
            raise InvalidInput(
                f"{file}: key 'diff.{key}': {error.diagnostic.what}", help=error.diagnostic.help
            ) from error
    return config


def _relative(config: Config, place: Path) -> Config:
    return msgspec.structs.replace(
        config,
        paths=tuple(str(place / p) for p in config.paths) if config.paths is not None else None,
        replays=str(place / config.replays) if config.replays is not None else None,
        expect=str(place / config.expect) if config.expect is not None else None,
        tolerances=str(place / config.tolerances) if config.tolerances is not None else None,
    )
