"""`.loc` chains: innermost frame first, the kernel's own line last."""

from __future__ import annotations

import ptx
from ptx.ir import Frame
from ptx.source_map import SourceMap
from tests.ptx_front.texts import insts, kernel_text, sample


def chain(*locs: str) -> list[tuple[int, int]]:
    """(file, line) of the frames after some `.loc` directives."""
    source = SourceMap({1: "1", 2: "2"})
    for text in locs:
        source.enter(text)
    return [(int(f.file), f.line) for f in source.frames]


def test_chains() -> None:
    inner = ".loc 2 196 12, function_name $L__info_string0, inlined_at 2 216 16"
    middle = ".loc 2 216 16, function_name $L__info_string0, inlined_at 1 10 13"
    assert chain(".loc 1 10 13") == [(1, 10)]
    assert chain(".loc 1 10 13", middle) == [(2, 216), (1, 10)]
    assert chain(".loc 1 10 13", middle, inner) == [(2, 196), (2, 216), (1, 10)]
    # the same library line inlined at another place: the most recent directive for it counts
    other = middle.replace("1 10 13", "1 12 31")
    assert chain(middle, inner, other, inner) == [(2, 196), (2, 216), (1, 12)]
    # an offset into the name section, as nvcc may write it
    assert chain(".loc 2 5 1, function_name $L__info_string0+12, inlined_at 1 3 3") == [(2, 5), (1, 3)]


def test_line_zero_keeps_what_is_known() -> None:
    assert chain(".loc 1 10 13", ".loc 1 0 0") == [(1, 10)]
    assert chain(".loc 1 10 13", ".loc 2 0 5, function_name f, inlined_at 1 11 2") == [(1, 11)]
    assert chain(".loc 1 0 0") == []


def test_a_ring_ends() -> None:
    ring = ".loc 2 7 1, function_name f, inlined_at 2 8 1", ".loc 2 8 1, function_name f, inlined_at 2 7 1"
    assert chain(*ring) == [(2, 8), (2, 7)]


def test_instruction_before_any_loc_has_no_frames() -> None:
    first, second = insts("mov.b32 %r1, 1;\n.loc 1 5 2\nmov.b32 %r2, 1;")
    assert first.loc.frames == ()
    assert first.loc.user is None
    assert second.loc.user == Frame("<file 1>", 5, 2)


def test_files_may_come_last_or_have_size_and_time() -> None:
    body = ".loc 1 5 2\nmov.b32 %r1, 1;\n.loc 2 6 1\nmov.b32 %r1, 2;"
    text = kernel_text(body) + '.file 1 "/home/me/k\\"1.py"\n.file 2 "a//b.py", 1700000000, 99\n'
    module = ptx.parse(text)
    assert module.files == {1: '/home/me/k"1.py', 2: "a//b.py"}
    assert [i.loc.user.file for b in module.kernels[0].blocks for i in b.insts if i.loc.user] == list(
        module.files.values()
    )


def test_softmax_points_at_the_kernel_not_at_the_library() -> None:
    module = ptx.parse(sample("softmax_f32_sm80"))
    found = [i for b in module.kernels[0].blocks for i in b.insts if i.op == "shfl"]
    assert {len(i.loc.frames) for i in found} == {2}
    assert {i.loc.frames[0].file for i in found} == {"/triton/language/standard.py"}
    users = {i.loc.user.file for i in found if i.loc.user}
    assert len(users) == 1 and users.pop().endswith("kernels.py")
    deepest = max((i for b in module.kernels[0].blocks for i in b.insts), key=lambda i: len(i.loc.frames))
    assert [f.line for f in deepest.loc.frames][:2] == [196, 216]
