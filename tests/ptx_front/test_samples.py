"""Real compiler output: Triton's corpus (sm_80, sm_90), descriptors on sm_90, nvcc with functions and inline asm."""

from __future__ import annotations

import re

import msgspec
import pytest

import ptx
from ptx import ir
from ptx.read import strip
from tests.ptx_front.texts import sample, sample_names

NO_LOC = ir.Loc(0)


def without_places(module: ir.Module) -> ir.Module:
    """The module with every source position blanked."""
    kernels = []
    for k in module.kernels:
        blocks = tuple(
            ir.Block(b.labels, tuple(msgspec.structs.replace(i, loc=NO_LOC) for i in b.insts)) for b in k.blocks
        )
        kernels.append(msgspec.structs.replace(k, loc=None, blocks=blocks))
    return msgspec.structs.replace(module, files={}, kernels=tuple(kernels))


@pytest.mark.parametrize("name", sample_names())
def test_prints_and_parses_back(name: str) -> None:
    module = ptx.parse(sample(name))
    again = ptx.parse(ptx.print_module(module))
    assert without_places(again) == without_places(module)


@pytest.mark.parametrize("name", sample_names())
def test_each_instruction_is_on_its_line_and_none_is_lost(name: str) -> None:
    text = sample(name)
    lines = text.splitlines()
    found = [i for k in ptx.parse(text).kernels for b in k.blocks for i in b.insts]
    for inst in found:
        assert inst.opcode in lines[inst.loc.ptx_line - 1]
    # Counted another way: everything that ends with a semicolon and does not start with a directive.
    ended = [piece.rstrip().rsplit("\n", 1)[-1] for piece in strip(text).split(";")[:-1]]
    assert len(found) == sum(not re.match(r"[\s{]*(?:\w+\s*:\s*)?[\s{]*\.[a-z]", line) for line in ended)


@pytest.mark.parametrize("name", sample_names())
def test_every_register_is_declared_and_every_position_known(name: str) -> None:
    module = ptx.parse(sample(name))
    for kernel in module.kernels:
        cfg = ptx.control_flow(kernel)
        assert not cfg.unreachable or name == "functions_sm80"
        for block in kernel.blocks:
            for inst in block.insts:
                assert inst.loc.user is not None
                assert inst.loc.user.line > 0
                assert not inst.loc.user.file.startswith("<file")
                assert "standard.py" not in inst.loc.user.file


def test_labels_of_inline_asm_are_renamed() -> None:
    kernel = ptx.parse(sample("functions_sm80")).kernel("kernel")
    labels = [label for b in kernel.blocks for label in b.labels if not label.startswith("$")]
    assert labels == ["L", "L$1"]
    assert {"q", "q$1", "t", "t$1"} & set(kernel.registers) == {"q", "q$1", "t$1"}  # the outer `t` is never used


def test_functions_calls_and_prototypes() -> None:
    module = ptx.parse(sample("functions_sm80"))
    assert [(k.name, k.is_entry) for k in module.kernels] == [
        ("_Z3addi4Pair", False),
        ("_Z9factoriali", False),
        ("kernel", True),
    ]
    kernel = module.kernel("kernel")
    calls = [i for b in kernel.blocks for i in b.insts if i.op == "call"]
    assert [type(o) for o in calls[0].operands] == [ir.Vec, ir.Sym, ir.Vec]
    indirect = next(i for i in calls if isinstance(i.operands[1], ir.Reg))
    assert isinstance(indirect.operands[3], ir.Sym)
    prototype = kernel.prototypes[indirect.operands[3].name]
    assert [p.size for p in prototype.results] == [4]
    assert [p.size for p in prototype.params] == [4]
    argument_spaces = [v.name for v in kernel.variables if v.space == ".param"]
    assert len(argument_spaces) == len(set(argument_spaces)) >= 5
    assert kernel.directives == {".maxntid": (128, 1, 1), ".minnctapersm": (2,)}
    assert [(p.name, p.size, p.offset, p.align) for p in kernel.params] == [
        ("kernel_param_0", 8, 0, 8),
        ("kernel_param_1", 16, 8, 8),
        ("kernel_param_2", 4, 24, 4),
    ]


def test_variables_of_nvcc() -> None:
    module = ptx.parse(sample("functions_sm80"))
    by_name = {v.name: v for v in module.variables}
    assert by_name["table"].init == bytes([0, 0, 128, 63, 0, 0, 32, 64, 0, 0, 64, 192, 0, 0, 0, 0])
    assert by_name["pointer"].relocations == ((0, "counter", 0),)
    assert by_name["counter"].init == (7).to_bytes(4, "little")
    assert by_name["chosen"].init is None
    assert by_name["dynamic"].extern and by_name["dynamic"].size == 0
