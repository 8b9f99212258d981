"""The checked-in PTX is what the installed Triton makes of `kernels.py`.

After a Triton update: regenerate, then read the diff.
"""

from __future__ import annotations

import pytest

from tests.ptx import regenerate


def test_every_entry_has_a_file() -> None:
    for name, entry in regenerate.CORPUS.items():
        text = regenerate.read(name)
        assert f".entry {entry['kernel']}(" in text
        assert f".target sm_{entry.get('target', 80)}" in text


@pytest.mark.judge
@pytest.mark.parametrize("name", ["vector_add_sm80", "softmax_f32_sm80", "matmul_f16_small_sm80"])
def test_regenerating_changes_nothing(name: str) -> None:
    pytest.importorskip("triton")
    kernels = regenerate.kernels_at_fixed_place()
    text = regenerate.lower_entry(kernels, regenerate.CORPUS[name])
    assert regenerate.without_site_packages(text) == regenerate.read(name)
