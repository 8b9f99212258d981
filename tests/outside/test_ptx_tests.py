"""ZLUDA's instruction suite (`ptx_tests`): 38 families of instructions over their types and modes, and texts that must
not compile.

Run from an outside checkout, never copied (tests/outside/checkout.py): the PTX templates are its own; what they are
expanded to stands in `ptx_families.py`; what should come out, in `host_functions.py`. Its authors run it on NVIDIA GPUs
over 2**32 inputs a variant; here `LANES` special and random ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from gpuemu.conform.forms import KINDS, POSITIONS
from gpuemu.conform.words import inputs
from interp.launch import Module
from ptx.errors import InvalidInput, Unsupported
from tests.outside.checkout import checkout
from tests.outside.ptx_families import variants
from tests.outside.ptx_variant import Variant

pytestmark = pytest.mark.judge

LANES, BLOCK = 4096, 128
EXCEPTIONS: dict[str, str] = {}
"""Variants that do not agree, and why not."""
BOUNDED = ("sin", "cos", "tanh", "ex2", "lg2", "rsqrt", "rcp", "sqrt", "div")
"""Templates whose approximate forms have an error bound."""
EDGE = 512
"""Lanes whose f32 operands have products and sums near the smallest normal number, where `.ftz` decides."""
_NEAR = (
    (0x3F7F_FFFF, 0x3F7F_FFFE, 0x3F80_0000, 0x3F80_0001, 0x3F00_0000, 0x3EFF_FFFF),
    (0x0080_0000, 0x0080_0001, 0x00FF_FFFF, 0x0100_0000, 0x007F_FFFF, 0x0040_0000),
    (0, 1, 0x007F_FFFF, 0x0080_0000, 0x0080_0001),
)  # fmt: skip
_MASKS = {"flag": 1, "byte": 1}
_SIZES = {"flag": 4, "byte": 1}


class Templates:
    """The suite's templates, expanded and executed."""

    def __init__(self) -> None:
        self.folder = checkout("PTX_TESTS") / "src/testcase"
        self.words = [inputs(seed, LANES) for seed in range(4)]
        rng = np.random.default_rng(0)
        for words, near in zip(self.words, _NEAR, strict=False):
            signs = rng.integers(0, 2, EDGE, np.uint64) << np.uint64(31)
            words[-EDGE:, KINDS.index("f32") * POSITIONS] = rng.choice(np.array(near, np.uint64), EDGE) | signs

    def text(self, variant: Variant) -> str:
        """The module: an entry with a pointer for each address that the template uses, in that order."""
        body = variant.body((self.folder / f"{variant.template}.ptx").read_text())
        assert not (left := re.findall(r"<\w+>", body)), (variant.name, left)
        names = list(dict.fromkeys(re.findall(r"mad\.lo\.u64\s+(\w+)_addr", body)))
        assert len(names) == len(variant.inputs) + 1, variant.name
        loads = "".join(f".reg .u64 {n}_addr;\nld.param.u64 {n}_addr, [{n}];\n" for n in names)
        parameters = ", ".join(f".param .u64 {n}" for n in names)
        header = ".version 7.8\n.target sm_90\n.address_size 64\n"
        return f"{header}.entry run({parameters})\n{{\n{loads}{body}\nret;\n}}\n"

    def draw(self, variant: Variant, lanes: int) -> list[np.ndarray]:
        out = []
        for position, type in enumerate(variant.inputs):
            kind = type if type in KINDS else "int"
            column = self.words[position][:lanes, KINDS.index(kind) * POSITIONS] & _MASKS.get(type, (1 << 64) - 1)
            out.append(column.astype(f"u{_SIZES[type] if type in _SIZES else int(type[1:]) // 8}"))
        return out

    def run(self, variant: Variant, lanes: int = LANES) -> tuple[np.ndarray, list[np.ndarray]]:
        given = self.draw(variant, lanes)
        out = np.zeros(lanes, f"u{int(variant.result[1:]) // 8}")
        result = Module.from_ptx(self.text(variant), device="sm_90")["run"].launch(
            (lanes // BLOCK,), (BLOCK,), [*given, out]
        )
        assert result.findings == (), variant.name
        return out, given


@pytest.fixture(scope="module")
def templates() -> Templates:
    return Templates()


def test_every_template_is_used(templates: Templates) -> None:
    assert {p.stem for p in templates.folder.glob("*.ptx")} == {v.template for v in variants()}


def _disagreeing(variant: Variant, out: np.ndarray, given: list[np.ndarray]) -> list[tuple[int, ...]]:
    """(result, *inputs) of the lanes that the host function does not accept."""
    assert variant.agrees
    lanes = zip(out.tolist(), *(g.tolist() for g in given), strict=True)
    return [lane for lane in lanes if not variant.agrees(*lane)]


def _counted(names: Iterable[str]) -> str:
    """`32 of vshr`"""
    counts = Counter(name.split("_")[0] for name in names)
    return ", ".join(f"{count} of {op}" for op, count in sorted(counts.items())) or "none"


def test_every_variant(templates: Templates) -> None:
    judged = [v for v in variants() if v.agrees]
    wrong = {}
    for variant in judged:
        try:
            out, given = templates.run(variant)
        except (InvalidInput, Unsupported) as error:
            wrong[variant.name] = str(error).splitlines()[0]
            continue
        bad = _disagreeing(variant, out, given)
        # The judge is alive: it notices a changed word, except where the suite accepts anything.
        changed = out ^ out.dtype.type(1 << (22 if variant.template in BOUNDED else 0))
        assert len(_disagreeing(variant, changed, given)) > LANES // 8, variant.name
        if bad:
            words = ", ".join(f"{w:#x}" for w in bad[0][1:])
            wrong[variant.name] = f"{len(bad)} of {LANES} lanes, first: {words} gives {bad[0][0]:#x}"
    print(f"\nptx_tests: {len(judged) - len(wrong)} of {len(judged)} variants agree; not: {_counted(wrong)}")
    assert sorted(wrong) == sorted(EXCEPTIONS), {k: v for k, v in wrong.items() if k not in EXCEPTIONS}


def test_what_must_not_compile(templates: Templates) -> None:
    """Refused before the launch, as input, because of the instruction that is meant."""
    invalid = [v for v in variants() if not v.agrees]
    accepted = []
    for variant in invalid:
        try:
            Module.from_ptx(templates.text(variant), device="sm_90")["run"].launch(
                (1,), (BLOCK,), [*templates.draw(variant, BLOCK), np.zeros(BLOCK, np.uint64)]
            )
        except (InvalidInput, Unsupported) as error:
            assert f"'{variant.template}." in str(error).splitlines()[0], error
            continue
        accepted.append(variant.name)
    print(f"\nptx_tests: {len(invalid) - len(accepted)} of {len(invalid)} texts that must not compile are refused")
    assert accepted == []
