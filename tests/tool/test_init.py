"""`gpuemu init`: what a kernel's source says, the file made from it, and that `ci` refuses it until it is filled in."""

import ast
from pathlib import Path

import pytest

from gpuemu.cli import main
from gpuemu.gate.discover import load_file
from gpuemu.scaffold.kernel_facts import facts_of, read_kernel
from gpuemu.scaffold.op_file import op_text
from ptx.errors import InvalidInput

EXAMPLES = Path(__file__).parents[2] / "examples"


def kernel(text: str):
    return facts_of(ast.parse("@triton.jit\n" + text).body[0])


def gpuemu(*arguments) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in arguments])
    return caught.value.code


def test_facts_of_a_row_kernel():
    facts = read_kernel(EXAMPLES / "softmax.py", "softmax_kernel")
    assert (facts.loaded, facts.stored) == ({"x"}, {"y"}) and facts.constants == ("BLOCK",)
    assert facts.sizes == ["n"] and facts.strides == ["x_stride", "y_stride"] and facts.scalars == []
    assert facts.axes == 1 and not facts.loops and facts.tiled == {} and facts.spans == {"BLOCK"}


def test_facts_of_a_tiled_kernel():
    facts = read_kernel(EXAMPLES / "matmul.py", "matmul_kernel")
    assert (facts.loaded, facts.stored) == ({"a", "b"}, {"c"}) and facts.sizes == ["M", "N", "K"]
    assert facts.axes == 2 and facts.loops and facts.tiled == {0: "BLOCK_M", 1: "BLOCK_N"}


def test_addresses_are_followed_through_names_block_pointers_and_atomics():
    facts = kernel(
        """def k(p, q, r, s, n, B: tl.constexpr, flag: tl.constexpr = True):
        at = tl.arange(0, B)
        place = p + at
        later = place + 16
        tl.store(q + at, tl.load(later))
        tl.atomic_add(r, 1)
        block = tl.make_block_ptr(base=s, shape=(n,), strides=(1,), offsets=(0,), block_shape=(B,), order=(0,))
        block = tl.advance(block, (B,))
        tl.load(block)
    """
    )
    assert facts.loaded == {"p", "r", "s"} and facts.stored == {"q", "r"}
    assert facts.pointers == ["p", "q", "r", "s"] and facts.defaults == ("flag",) and facts.scalars == ["n"]


def test_a_written_file_is_python_and_names_every_argument():
    for file in EXAMPLES.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel"):
                text = op_text(read_kernel(file, node.name), file.stem)
                ast.parse(text)
                call = text[text.index("    run(") :]
                assert all(a.arg in call or a.arg.upper() in call for a in node.args.args), text


def test_an_argument_read_and_written_gets_an_input_and_an_output():
    facts = kernel(
        "def scale(x, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(x + i, tl.load(x + i), i < n)"
    )
    text = op_text(facts, "mine")
    assert '"x_before": Input("N")' in text and '"x": Output("N")' in text and "x[...] = x_before" in text


def fill_in_sum(place):
    """What the author of an addition writes where the file asks."""
    lines = [
        "    reference=lambda x, y: x + y," if "reference=" in line else
        "    bound=bounds.exact()," if "bound=" in line else line
        for line in place.read_text().splitlines()
    ]  # fmt: skip
    place.write_text("\n".join(lines).replace(", fill_in", ""))


def test_ci_refuses_what_is_not_filled_in_and_runs_what_is(tmp_path, monkeypatch, capsys):
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "mine.py").write_text((EXAMPLES / "vector_add.py").read_text().partition("@gpuemu.op")[0])
    assert gpuemu("init", "mine.py::add_kernel") == 0
    assert "still to be filled in" in capsys.readouterr().out
    assert gpuemu("ci", "add_op.py") == 3
    message = capsys.readouterr().out
    assert "add_op.py still has 2 places to fill in" in message and "a function of x, y" in message
    assert gpuemu("init", "mine.py::add_kernel") == 2
    assert "add_op.py exists" in capsys.readouterr().err
    place = tmp_path / "add_op.py"
    fill_in_sum(place)
    assert len(load_file(place)) == 1
    assert gpuemu("ci", "add_op.py", "--quick", "--dtype", "f32") == 0


def test_the_op_of_a_kernel_without_a_suffix_has_a_name_of_its_own(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    source = (EXAMPLES / "vector_add.py").read_text().partition("@gpuemu.op")[0].replace("add_kernel", "add")
    (tmp_path / "own.py").write_text(source)
    assert gpuemu("init", "own.py::add") == 0
    fill_in_sum(tmp_path / "add_op.py")
    assert gpuemu("ci", "add_op.py", "--quick", "--dtype", "f32") == 0


def test_an_op_in_place_of_a_kernel_is_told_as_that(tmp_path, monkeypatch, capsys):
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    text = (EXAMPLES / "vector_add.py").read_text().replace("def vector_add(", "def add_kernel(")
    (tmp_path / "own_op.py").write_text(text)
    assert gpuemu("ci", "own_op.py", "--quick", "--dtype", "f32") == 3
    assert "was given the op 'add_kernel' where a kernel belongs" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "text, says",
    [("gone.py::k", "no such file: gone.py"), ("k.py", "does not name a kernel"), ("k.py::f", "kernels in it: g")],
)
def test_what_cannot_be_begun(tmp_path, monkeypatch, capsys, text, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text("@triton.jit\ndef g(x): ...\ndef f(x): ...\n")
    assert gpuemu("init", text) == 2 and says in capsys.readouterr().err


def test_a_placeholder_that_is_reached_says_what_is_missing():
    import gpuemu

    with pytest.raises(InvalidInput, match="still to be filled in: the grid"):
        gpuemu.fill_in("the grid")
