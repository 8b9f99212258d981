"""Wrong input, on the real engine: exit code and message of each row of `bad_input.py`, and the table in the docs.

`GPUEMU_BLESS=1` rewrites docs/bad_input.md from what the rows gave; then read the diff.
"""

import contextlib
import io
import os
from pathlib import Path

import numpy as np
import pytest
from bad_input import FILES, ROWS

import gpuemu
from gpuemu.cli import main
from gpuemu.gate import sweep as sweep_module
from gpuemu.render import render_error

pytest.importorskip("triton")

DOCS = Path(__file__).parents[2] / "docs" / "bad_input.md"
ERRORS = ("invalid input: ", "unsupported: ", "launch failure: ", "gpuemu bug: ")
HEADER = """# What wrong input gives

Each row is run by `tests/tool/test_bad_input.py` on the real engine; this table is made by it (`GPUEMU_BLESS=1`).
Exit codes: 0 clean, 1 findings, 2 usage or configuration, 3 could not be checked. Long lines are cut here.

| input | exit code | first line of the message |
|---|---|---|
"""
BLESS = bool(os.environ.get("GPUEMU_BLESS"))
_given: dict[str, str] = {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("bad")
    (place / ".git").mkdir()
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    return place


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    real = sweep_module.run_cases
    monkeypatch.setattr(sweep_module, "run_cases", lambda *a, **k: real(*a, **{**k, "parallel": 0}))


def give(row) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a row."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(row.command) if row.command else snippet(row.text)
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def command(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


def snippet(text: str) -> int:
    from gpuemu.commands.run import load_kernel

    def run(kernel, grid, *args, **options):
        return gpuemu.run(kernel, grid, *args, **{"target": "sm_80", **options})

    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    names = {"np": np, "run": run, "scale": load_kernel("kernels.py::scale"), "x": x, "y": y}
    *before, last = text.split("\n")
    try:
        exec("\n".join(before), names)
        result = eval(last, names)
    except gpuemu.GpuemuError as error:
        return render_error(error)
    for finding in result.findings:
        print(f"FINDING {finding.file}:{finding.line}: {finding.kind}: {finding.message}")
    return 1 if result.findings else 0


def first_line(folder: Path, out: str, err: str) -> str:
    """The line that says what is wrong, without the folder of this run."""
    lines = (out + err).splitlines()
    told = [line for line in lines if line.startswith((*ERRORS, "FINDING", "UNCHECKED"))]
    errors = [line for line in told if line.startswith(ERRORS)]
    return ((errors or told or [""])[0]).replace(f"{folder}/", "")


def table_row(what: str, code: int, line: str) -> str:
    """One line of the table in the docs."""
    text = line if len(line) <= 150 else line[:147] + "..."
    shown = text.replace("|", "\\|").replace("`", "'")
    return f"| {what} | {code} | {f'`{shown}`' if shown else '(nothing)'} |"


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.what)
def test_wrong_input_is_told_as_the_docs_say(folder, row):
    code, out, err = give(row)
    told = table_row(row.what, code, first_line(folder, out, err))
    _given[row.what] = told
    assert code == row.code, out + err
    assert "Traceback" not in err
    if not BLESS:
        assert told in DOCS.read_text(encoding="utf-8").splitlines(), "GPUEMU_BLESS=1 rewrites the table"


def test_nothing_temporary_is_left(folder):
    """Runs after all rows, also the failing ones."""
    assert [p for p in folder.rglob(".*") if p.name not in (".git", ".gpuemu")] == []


def test_the_docs_have_these_rows_and_no_others():
    if BLESS:
        DOCS.parent.mkdir(exist_ok=True)
        DOCS.write_text(HEADER + "\n".join(_given[row.what] for row in ROWS) + "\n", encoding="utf-8")
    text = DOCS.read_text(encoding="utf-8")
    assert text.startswith(HEADER)
    assert [line.split(" | ")[0][2:] for line in text[len(HEADER) :].splitlines()] == [row.what for row in ROWS]
