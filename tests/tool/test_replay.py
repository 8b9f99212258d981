"""Replays as data: what is written, what a reader accepts and refuses, what re-execution says (stand-in engine)."""

import json
import shutil
from pathlib import Path

import fake_engine as fake
import numpy as np
import pytest

from gpuemu.cli import main
from gpuemu.gate.sweep import Plan, sweep
from gpuemu.replay.portable import portable_path, portable_ptx
from gpuemu.replay.read import find_replays, read_replay
from gpuemu.replay.reproduce import execute
from ptx.errors import InvalidInput


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def failing(folder, seed=0):
    """(case seed, replay folder) of one failing case, with padded rows."""
    fake.softmax_file(folder, "bad.py", "bad", "0.0")
    result = sweep(Plan(paths=("bad.py",), parallel=0, root=str(folder), seed=seed, dtypes=("float32",)))
    case = next(c for c in result.of("finding") if c.case.padded and c.case.dims["M"] > 1)
    return case.case.seed_text, folder / ".gpuemu" / "replays" / case.replay


def reproduce(*arguments) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", *map(str, arguments)])
    return caught.value.code


def test_a_replay_is_plain_data(folder):
    _, place = failing(folder)
    kinds = {p.suffix for p in place.rglob("*") if p.is_file()}
    assert kinds == {".json", ".npy", ".ptx"}
    record = json.loads((place / "case.json").read_text())
    assert record["format"] == 1 and record["id"] == place.name and record["case"]["file"] == "bad.py"
    assert str(folder) not in (place / "case.json").read_text()
    for file in place.rglob("*.npy"):
        np.load(file, allow_pickle=False)


def test_reproduced_from_seed_id_folder_or_file(folder, capsys):
    seed, place = failing(folder)
    for what in (seed, place.name[:12], place, place / "case.json"):
        assert reproduce(what, "--recorded-only") == 1
        out = capsys.readouterr().out
        assert "bytes identical" in out and out.endswith("reproduced\n") and "expected" in out


def test_moved_to_a_folder_without_the_source(folder, tmp_path_factory, monkeypatch, capsys):
    _, place = failing(folder)
    other = tmp_path_factory.mktemp("other")
    shutil.move(place, other / "replay")
    monkeypatch.chdir(other)
    assert reproduce("replay") == 1
    assert capsys.readouterr().out.endswith("reproduced\n")


def test_the_source_as_it_is_now(folder, capsys):
    seed, _ = failing(folder)
    assert reproduce(seed) == 1 and "the source as it is now fails too" in capsys.readouterr().out
    fake.softmax_file(folder, "bad.py", "bad", "-np.inf")
    assert reproduce(seed) == 0 and capsys.readouterr().out.endswith("passes now\n")
    assert reproduce(seed, "--recorded-only") == 1


def test_a_flipped_input_bit_is_said(folder, capsys):
    seed, place = failing(folder)
    data = bytearray((place / "arrays" / "0.npy").read_bytes())
    data[-3] ^= 1
    (place / "arrays" / "0.npy").write_bytes(data)
    assert reproduce(seed) == 3
    assert "ALTERED: arrays/0.npy is not the file that was written" in capsys.readouterr().out


def test_an_altered_record_is_said(folder, capsys):
    seed, place = failing(folder)
    text = (place / "case.json").read_text()
    (place / "case.json").write_text(text.replace('"shared": 0', '"shared": 16'))
    assert reproduce(place) == 3
    assert "ALTERED: case.json is not the record that was written" in capsys.readouterr().out


def test_other_bytes_are_said(folder, capsys, monkeypatch):
    seed, _ = failing(folder)
    monkeypatch.setattr(fake.FakeModule, "fill", 0.5)
    assert reproduce(seed) == 3
    out = capsys.readouterr().out
    assert "DIFFERENT: a1:" in out and "bytes differ" in out


def test_a_corrected_engine_differs_and_says_that_nothing_is_wrong(folder, monkeypatch):
    _, place = failing(folder)
    monkeypatch.setattr(fake.FakeModule, "fill", -np.inf)
    outcome = execute(read_replay(place))
    assert outcome.exit_code == 3 and not outcome.problems and outcome.differences


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda r: r.update(format=99), "replay format 99"),
        (lambda r: r.update(extra=1), "is not a replay"),
        (lambda r: r.pop("launches"), "is not a replay"),
        (lambda r: r["files"].update({"../../x": "0" * 64}), "names a file outside"),
        (lambda r: r["files"].update({"arrays/9.npy": "0" * 64}), "is not complete"),
        (lambda r: r["files"].pop("arrays/0.npy"), "which it does not list"),
        (lambda r: r["launches"][0]["arguments"][0].update(buffer=7), "array outside its buffer"),
        (lambda r: r["launches"][0]["arguments"][0].update(offset=1 << 40), "array outside its buffer"),
        (lambda r: r["launches"][0]["arguments"][0].update(dtype="object"), "unknown dtype"),
    ],
)
def test_a_malformed_replay_is_refused(folder, change, message):
    _, place = failing(folder)
    record = json.loads((place / "case.json").read_text())
    change(record)
    (place / "case.json").write_text(json.dumps(record))
    try:
        outcome = execute(read_replay(place))
    except InvalidInput as error:
        assert message in str(error)
    else:
        assert outcome.exit_code == 3 and message in outcome.cannot_run


def test_pickled_arrays_are_refused(folder):
    _, place = failing(folder)
    np.save(place / "arrays" / "0.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(InvalidInput, match="cannot be read"):
        execute(read_replay(place))


def test_the_newest_of_several_replays_of_a_seed_comes_first(folder):
    seed, place = failing(folder)
    twin = place.parent / ("0" * 64)
    shutil.copytree(place, twin)
    (twin / "case.json").touch()
    assert find_replays(seed, place.parent) == [twin, place]


def test_writing_twice_keeps_one(folder):
    _, place = failing(folder)
    stamp = (place / "case.json").stat().st_mtime_ns
    assert failing(folder)[1] == place and (place / "case.json").stat().st_mtime_ns == stamp
    assert not [p for p in place.parent.iterdir() if p.name.startswith(".")]


PTX = """.version 8.8
	.file	1 "/home/me/repo/kernels/k.py"
	.file	2 "/x/lib/python3.11/site-packages/triton/language/standard.py"
	.file	3 "/elsewhere/z.py"
	.section	.debug_abbrev
	{
.b8 1                                   // Abbreviation Code
	}
	.section	.debug_info
	{
.b8 47                                  // DW_AT_comp_dir
	}
	.section	.debug_str
	{
$L__info_string0:
.b8 107
	}
	.section	.debug_macinfo	{	}
"""


def test_portable_ptx_has_no_machine_in_it(tmp_path):
    text = portable_ptx(PTX, Path("/home/me/repo"))
    assert '1 "kernels/k.py"' in text and '2 "triton/language/standard.py"' in text and '3 "z.py"' in text
    assert "debug_info" not in text and "debug_abbrev" not in text and "debug_macinfo" not in text
    assert "$L__info_string0" in text and text.startswith(".version 8.8")
    assert portable_path("/a/b/c.py", Path("/a")) == "b/c.py"
