"""Calibration: fitted on one half of the controls, tried on the other, kept in a file that never loosens a bound."""

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tool"))

import fake_engine as fake

from gpuemu.gate.sweep import Plan, sweep
from gpuemu.gate.tolerances import (
    FLOOR,
    MARGIN,
    calibrate,
    calibrates,
    read_tolerances,
    toml_text,
    write_tolerances,
)
from ptx.errors import InvalidInput

OP = (
    fake.HEADER
    + """
def kernel(x, y):
    n = x.shape[1]
    y[...] = (x.sum(axis=1, dtype=np.float64) * (1 + SHARE * 2.0**-24)).astype(np.float32)[:, None]

@gpuemu.op(
    dims={"M": (1, 3), "N": (5, 64)},
    inputs={"x": Input("M N", positive=True, largest=64.0)}, outputs={"y": Output("M 1", dtype="float32")},
    reference=lambda x: x.sum(axis=1, keepdims=True),
    bound=bounds.total(lambda x: x[:, None, :], depth=100, axis=2),
    name="NAME",
)
def launcher(run, x, y):
    run(kernel, (len(x),), x, y)
"""
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, share: float) -> None:
    """An op whose kernel errs by `share` units of roundoff, of the 101 that its bound allows."""
    (folder / f"{name}.py").write_text(OP.replace("NAME", name).replace("SHARE", str(share)))


def run(folder: Path, **given):
    return sweep(Plan(paths=(str(folder),), parallel=0, root=str(folder), **given))


def names(first: bool, count: int) -> list[str]:
    return [n for n in (f"op_{i}" for i in range(99)) if calibrates(n, 0) == first][:count]


def test_both_halves_get_ops_and_the_seed_changes_them():
    halves = [tuple(calibrates(f"op_{i}", seed) for i in range(64)) for seed in (0, 1)]
    assert halves[0] != halves[1] and all(16 < sum(h) < 48 for h in halves)


def test_a_factor_is_the_margin_over_what_the_first_half_uses(folder):
    for name, share in zip(names(True, 2), (4.0, 20.0), strict=True):
        write(folder, name, share)
    write(folder, names(False, 1)[0], 30.0)
    found = calibrate(run(folder), ["sm_80"])
    family = found.family["sum"]
    assert 18 / 101 < family.share < 22 / 101 and family.factor == pytest.approx(MARGIN * family.share, rel=1e-3)
    assert set(family.ops) == set(names(True, 2)) and set(found.held_out.ops) == set(names(False, 1))
    assert 0.6 < found.held_out.share < 0.9 and not found.held_out.flagged


def test_what_the_other_half_would_say_is_told(folder):
    for name in names(True, 2):
        write(folder, name, 4.0)
    write(folder, names(False, 1)[0], 60.0)
    found = calibrate(run(folder), ["sm_80"])
    assert set(found.held_out.flagged) == {names(False, 1)[0]} and found.held_out.share > 2


def test_a_kernel_that_uses_nothing_of_its_bound_gets_the_floor(folder):
    for name in (*names(True, 2), *names(False, 1)):
        write(folder, name, 0.0)
    assert calibrate(run(folder), ["sm_80"]).family["sum"].factor == FLOOR


def test_a_sweep_with_the_file_is_tighter_and_says_so(folder):
    for name in names(True, 2):
        write(folder, name, 4.0)
    write(folder, names(False, 1)[0], 60.0)
    found = calibrate(run(folder), ["sm_80"])
    assert run(folder).exit_code == 0
    result = run(folder, factors=found.factors)
    assert {c.case.op for c in result.of("finding")} == {names(False, 1)[0]}
    assert "of that by calibration" in result.of("finding")[0].model


def test_only_correct_kernels_can_be_calibrated_on(folder):
    write(folder, names(True, 1)[0], 4.0)
    write(folder, names(False, 1)[0], 1e6)
    with pytest.raises(InvalidInput, match="only correct kernels"):
        calibrate(run(folder), ["sm_80"])
    (folder / f"{names(False, 1)[0]}.py").unlink()
    with pytest.raises(InvalidInput, match="one half is empty"):
        calibrate(run(folder), ["sm_80"])


def test_the_file_says_the_same_when_it_is_read(folder):
    for name in [*names(True, 6), *names(False, 2)]:
        write(folder, name, 5.0)
    found = calibrate(run(folder), ["sm_80", "sm_90"])
    path = folder / "tolerances.toml"
    write_tolerances(path, found)
    assert read_tolerances(path) == found and path.read_text() == toml_text(found)
    flagged = msgspec.structs.replace(
        found, held_out=msgspec.structs.replace(found.held_out, flagged={'odd "name"': 3})
    )
    write_tolerances(path, flagged)
    assert read_tolerances(path) == flagged


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("factor = ", "factor = 1", "no bound is loosened"),
        ("format = 1", "format = 9", "has format 9"),
        ("seed = 0", "sed = 0", "not a calibration file"),
        ("seed = 0", "seed = ", "not a calibration file"),
    ],
)
def test_a_wrong_file_is_refused(folder, old, new, message):
    for name in (*names(True, 2), *names(False, 1)):
        write(folder, name, 5.0)
    path = folder / "tolerances.toml"
    write_tolerances(path, calibrate(run(folder), ["sm_80"]))
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidInput, match=message):
        read_tolerances(path)
