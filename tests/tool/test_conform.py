"""`gpuemu conform`: answers kept and read, differences told, folders for other machines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gpuemu.cli import cli
from gpuemu.conform.answers import load, merged, save, stored
from gpuemu.conform.bundle import read_forms
from gpuemu.conform.compare import compare_forms
from gpuemu.conform.evidence import evidence
from gpuemu.conform.forms import Form, forms, lane_records, ptx
from gpuemu.conform.launches import Kernel
from gpuemu.conform.table import summary, text
from ptx.errors import InvalidInput


def few(form: Form) -> bool:
    return form.op.name in ("popc", "fns", "szext")


KERNELS = (Kernel("a", 100, 0), Kernel("b", 0, 0, "no image"))


def test_the_stored_answers_are_the_emulator_s_on_a_few_forms() -> None:
    (answers,) = stored()
    found = [o for o in compare_forms(answers, few) if o.compared]
    assert len(found) == 7 and all(not o.different for o in found)
    assert [o.opcode for o in found if o.explained] == ["fns.b32"]


def test_a_wrong_bit_is_told() -> None:
    (answers,) = stored()
    results = dict(answers.results)
    results["popc.b32"] = results["popc.b32"] ^ np.uint64(1)
    found = compare_forms(replace(answers, results=results), few)
    (wrong,) = [o for o in found if o.different]
    assert wrong.opcode == "popc.b32" and wrong.example is not None and "NVIDIA H200" in wrong.example
    report = text(answers, found, [Kernel("softmax.0", 100, 0), Kernel("softmax.1", 0, 0, "no image")])
    assert "DIFFERENT popc.b32" in report and "softmax.1" in report
    assert "2 launches, 100 bytes written: 0 different, 1 did not run" in summary(found, KERNELS)



def test_answers_are_kept(tmp_path: Path) -> None:
    (answers,) = stored()
    some = {n: answers.results[n] for n in sorted(answers.results)[:5]}
    products = {n: answers.matrices[n] for n in sorted(answers.matrices)[:2]}
    save(replace(answers, results=some, matrices=products, gpu="a GPU", refused=("x",)), tmp_path / "a.npz")
    again = load(tmp_path / "a.npz")
    assert (again.gpu, again.refused) == ("a GPU", ("x",))
    assert set(again.results) == set(some) and set(again.matrices) == set(products)
    assert all((again.results[n] == some[n]).all() for n in some)


@pytest.mark.parametrize("content", [b"", b"PK", b'{"gpu": 1}'])
def test_what_is_no_archive(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match="does not hold answers"):
        load(file)
    done = CliRunner().invoke(cli, ["conform", "--answers", str(file)])
    assert isinstance(done.exception, InvalidInput)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpu", "--export", "d"], "exclude each other"),
        (["--record", "f"], "needs a GPU's answers"),
        (["examples"], "on a GPU only"),
        (["--collect", "."], "is not a folder of"),
        (["--target", "sm_9"], "sm_9"),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(cli, ["conform", *arguments])
    assert done.exception is not None and message in str(done.exception)


def test_a_folder_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "about.json").write_text(json.dumps({"target": "sm_90a", "refused": []}))
    (tmp_path / "forms.json").write_text(json.dumps([{"cubin": "c", "rows": 1, "opcodes": ["frobnicate.u32"]}]))
    np.save(tmp_path / "words.npy", np.zeros((1, 1), np.uint64))
    with pytest.raises(InvalidInput, match="does not know"):
        read_forms(tmp_path)


def test_what_is_known_of_every_record() -> None:
    rows = list(evidence())
    kinds = {r.record.name: r.kind for r in rows}
    assert kinds["popc"] == "forms" and kinds["wgmma"] in ("kernels", "published") and kinds["tcgen05"] == "published"
    assert not [r.record.syntax for r in rows if r.kind == "manual" and r.record.since[1] >= 100]


def test_archives_of_one_gpu_are_one(tmp_path: Path) -> None:
    (answers,) = stored()
    names = sorted(answers.results)
    first = replace(answers, results={n: answers.results[n] for n in names[:3]}, refused=(names[3], "x"), matrices={})
    more = replace(first, results={n: answers.results[n] for n in names[2:5]}, date="2030-01-02", refused=())
    both = merged(first, more)
    assert set(both.results) == set(names[:5])
    assert both.refused == ("x",)
    assert both.date == f"{answers.date} and 2030-01-02"
    with pytest.raises(InvalidInput, match="different GPUs"):
        merged(first, replace(more, words=answers.words[:32]))


def test_parts_of_registers_and_wide_words_are_forms_too() -> None:
    items = {f.key: f for op in lane_records() for f in forms(op) if op.name in ("vmad", "vadd2", "mov")}
    assert "mov.b128" in items
    assert items["vmad.s32.s32.s32.sat a.-b0"].parts == {"a": "-b0", "b": "", "c": ""}
    wanted = ptx([items["vmad.s32.u32.u32 c.-"], items["vadd2.s32.s32.s32.sat a.h01"], items["mov.b128"]], 32)
    for line in (
        "vmad.s32.u32.u32 %o32, %r0, %r1, -%r2;", "vadd2.s32.s32.s32.sat %o32, %r0.h01, %r1, %r2;",
        "mov.b128 %wide1, {%d0, %d1};\nmov.b128 %wide, %wide1;\nmov.b128 {%o64, %q64}, %wide;",
    ):  # fmt: skip
        assert line in wanted
