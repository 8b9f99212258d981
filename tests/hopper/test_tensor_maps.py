"""Tensor copies by maps of all kinds against a statement of them in numpy, and what is refused, by name."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gpuemu
from gpuemu import Im2col, TensorMap
from gpuemu.replay import launches
from gpuemu.replay.format import Argument
from gpuemu.replay.reproduce import argument
from interp.launch import recording
from tests.hardware.tensor_ptx import load, module, store
from tests.hopper.tensor_oracle import column, swizzled, tensor

SIZES = {"u8": 1, "f16": 2, "bf16": 2, "u32": 4, "f32": 4, "s64": 8}
RANGES = {3: 65535, 4: 255, 5: 31}


@cache
def kernel(name: str, rank: int, mode: str, op: str | None = None) -> Any:
    made = load("k", rank, mode) if name == "load" else store("k", rank, mode, op)
    return gpuemu.Module.from_ptx(module(made))["k"]


def noise(nbytes: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 256, nbytes).astype(np.uint8)


def run(
    entry: Any, map_: TensorMap, coords: tuple[int, ...], offsets: tuple[int, ...] = (), *, size: int, given: Any = None
) -> tuple[Any, Any]:
    """(result, shared memory after a load); coordinates outermost first. `given`: shared memory before a store."""
    dump = -(-size // 128) * 128
    words = [*(*reversed(coords), 0, 0, 0, 0)[:5], *(*reversed(offsets), 0, 0, 0)[:3], 0, dump, 0]
    expected = (map_.box[0] * map_.box[1] if map_.im2col else int(np.prod(map_.box))) * map_.element_bytes
    words[8] = expected
    io = np.zeros(16 + dump, np.uint8)
    if given is not None:
        io[16 : 16 + len(given)] = given
    args = np.array(words, np.int64).astype(np.uint32)
    result = entry.launch(grid=(1,), block=(128,), args=[map_, args, io], shared=1024 + dump)
    if given is None and not result.findings:
        assert io[8] == 1, "the barrier did not get its bytes"
    return result, io[16:]


@st.composite
def columns(draw: st.DrawFn, stores: bool = False) -> tuple[TensorMap, tuple[int, ...], tuple[int, ...]]:
    """A map in im2col mode, coordinates in its box, offsets."""
    kind = draw(st.sampled_from(sorted(SIZES)))
    size = SIZES[kind]
    unit = 16 // size
    spatial = draw(st.integers(1, 3))
    images = draw(st.lists(st.integers(1, 6), min_size=spatial, max_size=spatial))
    corner = st.integers(0, 1) if stores else st.integers(-2, 2)
    lower = tuple(draw(corner) for _ in images)
    upper = tuple(-draw(corner) if stores else draw(corner) for _ in images)
    assume(all(n - 1 + u >= low for n, low, u in zip(images, lower, upper, strict=True)))
    swizzle = draw(st.sampled_from([0, 32, 64, 128]))
    channels = unit * draw(st.integers(1, (swizzle or 64) // 16))
    shape = (draw(st.integers(1, 3)), *images, draw(st.integers(1, 3 * unit)))
    strides = _strides(shape, size, draw(st.integers(0, 1)))
    array = noise(strides[0] * shape[0], draw(st.integers(0, 99)))
    fill = draw(st.sampled_from(["zero", "nan"])) if kind in ("f16", "bf16", "f32") else "zero"
    steps = tuple(draw(st.integers(1, 3)) for _ in shape)
    box = (draw(st.integers(1, 40)), channels)
    map_ = TensorMap(array, shape, strides, box, kind, swizzle, fill, steps, Im2col(lower, upper))
    start = [draw(st.integers(low, n - 1 + u)) for n, low, u in zip(images, lower, upper, strict=True)]
    first = draw(st.integers(0, shape[0] - 1))
    channel = unit * draw(st.integers(0 if stores else -1, 2))
    offsets = tuple(draw(st.integers(0, 3)) for _ in images)
    return map_, (first, *start, channel), offsets


def _strides(shape: tuple[int, ...], size: int, gap: int) -> tuple[int, ...]:
    """Bytes of all dimensions but the last, rows `gap` times 16 bytes apart."""
    out = [-(-shape[-1] * size // 16) * 16 + 16 * gap]
    for n in reversed(shape[1:-1]):
        out.append(out[-1] * n)
    return tuple(reversed(out))


@given(columns())
@settings(max_examples=60, deadline=None)
def test_a_column_is_what_numpy_says(drawn: tuple[TensorMap, tuple[int, ...], tuple[int, ...]]) -> None:
    map_, coords, offsets = drawn
    want = swizzled(column(map_, coords, offsets), map_.swizzle)
    result, got = run(kernel("load", len(map_.shape), "im2col"), map_, coords, offsets, size=len(want))
    assert result.findings == ()
    np.testing.assert_array_equal(got[: len(want)], want)


@given(columns(stores=True))
@settings(max_examples=30, deadline=None)
def test_a_stored_column_reads_back(drawn: tuple[TensorMap, tuple[int, ...], tuple[int, ...]]) -> None:
    """What a column stores is what a load of it gives, where it lies in the tensor; no other elements change."""
    map_, coords, _ = drawn
    rows = noise(map_.box[0] * map_.box[1] * map_.element_bytes, 5).reshape(map_.box[0], -1)
    before = tensor(map_).copy()
    placed = swizzled(rows, map_.swizzle)
    result, _ = run(kernel("store", len(map_.shape), "im2col_no_offs"), map_, coords, size=len(placed), given=placed)
    assert result.findings == ()
    inside = column(_ones(map_), coords, (0,) * (len(coords) - 2)) != 0
    got = column(map_, coords, (0,) * (len(coords) - 2))
    np.testing.assert_array_equal(got[inside], rows[inside])
    changed = (tensor(map_) != before).any(axis=-1).sum()
    assert changed <= inside.sum()


def _ones(map_: TensorMap) -> TensorMap:
    ones = np.full_like(map_.array, 1)
    return TensorMap(
        ones, map_.shape, map_.strides, map_.box, map_.element_type, map_.swizzle, "zero", map_.steps, map_.im2col
    )


def images(**changes: Any) -> TensorMap:
    """Two images of 4 x 5 pixels with 8 channels of u32, columns of 6 pixels of 4 channels."""
    array = np.arange(2 * 4 * 5 * 8, dtype=np.uint32)
    fields: dict[str, Any] = {
        "array": array, "shape": (2, 4, 5, 8), "strides": (640, 160, 32), "box": (6, 4), "element_type": "u32",
        "im2col": Im2col((0, 0), (0, 0)), **changes,
    }  # fmt: skip
    return TensorMap(**fields)


@pytest.mark.parametrize(
    ("changes", "coords", "offsets", "says"),
    [
        ({}, (0, 0, 5, 0), (0, 0), "outside the bounding box"),
        ({}, (0, 4, 0, 0), (0, 0), "outside the bounding box"),
        ({"im2col": Im2col((0, 1), (0, 0))}, (0, 0, 0, 0), (0, 0), "outside the bounding box"),
        ({}, (0, 0, 0, 2), (0, 0), "not a multiple of 16 bytes"),
        ({}, (0, 0, 0, 0), (0, 256), "larger than the manual allows"),
        ({"im2col": None, "box": (1, 2, 3, 4)}, (0, 0, 0, 0), (0, 0), "another mode"),
    ],
)  # fmt: skip
def test_what_hardware_stops_at(
    changes: dict[str, Any], coords: tuple[int, ...], offsets: tuple[int, ...], says: str
) -> None:
    result, _ = run(kernel("load", 4, "im2col"), images(**changes), coords, offsets, size=128)
    (finding,) = result.findings
    assert says in finding.message


@pytest.mark.parametrize(
    ("changes", "coords", "op", "says"),
    [
        ({"im2col": Im2col((-1, 0), (0, 0))}, (0, 0, 0, 0), None, "leaves the tensor"),
        ({"im2col": Im2col((0, 0), (0, 1))}, (0, 0, 0, 0), "add", "leaves the tensor"),
        ({}, (-1, 0, 0, 0), None, "negative coordinate"),
        ({}, (0, 0, 0, -4), None, "negative coordinate"),
        ({"element_type": "f32"}, (0, 0, 0, 0), "min", "does not take the map's element type"),
    ],
)  # fmt: skip
def test_what_hardware_does_not_store(
    changes: dict[str, Any], coords: tuple[int, ...], op: str | None, says: str
) -> None:
    entry = kernel("store", 4, "im2col_no_offs", op)
    result, _ = run(entry, images(**changes), coords, size=128, given=np.zeros(128, np.uint8))
    (finding,) = result.findings
    assert says in finding.message


def test_a_tile_is_not_stored_at_a_negative_coordinate() -> None:
    map_ = TensorMap(np.zeros(64, np.uint32), (4, 16), (64,), (2, 8), "u32")
    result, _ = run(kernel("store", 2, "tile"), map_, (-1, 0), size=64, given=np.ones(64, np.uint8))
    assert [f.kind for f in result.findings] == ["bad-coordinate"]


def test_a_store_ends_at_16_bytes() -> None:
    """Five elements of a row are in the tensor; hardware writes eight."""
    memory = np.zeros((2, 8), np.float16)
    map_ = TensorMap(memory, (2, 5), (16,), (2, 8), "f16")
    given = np.arange(1, 17, dtype=np.float16)
    result, _ = run(kernel("store", 2, "tile"), map_, (0, 0), size=32, given=given.view(np.uint8))
    assert result.findings == ()
    np.testing.assert_array_equal(memory.reshape(-1), given)


def test_a_map_is_kept_in_a_replay() -> None:
    map_ = images(steps=(1, 2, 1, 1), im2col=Im2col((-1, 0), (0, -1)))
    with recording() as log:
        run(kernel("load", 4, "im2col"), map_, (0, 0, 0, 0), (0, 0), size=128)
    (record,) = log.launches
    told = msgspec.json.encode(launches._argument(record.arguments[0], record, lambda host: (0, 0)))
    again = argument(msgspec.json.decode(told, type=Argument), [np.zeros(map_.array.nbytes, np.uint8)])
    assert again.encode(64) == map_.encode(64)


def test_both_engines_copy_columns() -> None:
    map_ = images(im2col=Im2col((-1, -1), (0, 0)))
    entry = kernel("load", 4, "im2col")
    args = np.array([0, -1, 1, 0, 0, 1, 2, 0, 96, 128, 0], np.int64).astype(np.uint32)
    outs = [np.zeros(144, np.uint8) for _ in range(2)]
    for engine, out in zip(("compiled", "traced"), outs, strict=True):
        assert entry.launch((1,), (128,), [map_, args, out], shared=1152, engine=engine).findings == ()
    np.testing.assert_array_equal(*(out[16:] for out in outs))


@pytest.mark.parametrize("kind", ["tf32", "tf32.ftz", "f32.ftz", "f32"])
def test_loads_of_tf32_round(kind: str) -> None:
    words = np.array([0x3F801000, 0x3F803000, 0x3F801001, 0x7F7FFFFF, 0x80001800, 0xFF800000, 0x7F800001, 5], np.uint32)
    rounded = [0x3F800000, 0x3F804000, 0x3F802000, 0x7F800000, 0x80002000, 0xFF800000, 0x7FFFE000, 0]
    result, got = run(kernel("load", 1, "tile"), TensorMap(words, (8,), (), (8,), kind), (0,), size=32)
    assert result.findings == ()
    assert got[:32].view(np.uint32).tolist() == (rounded if "tf32" in kind else words.tolist())


@pytest.mark.parametrize(("kind", "kept"), [("f32", True), ("f32.ftz", False), ("tf32", True), ("tf32.ftz", False)])
def test_subnormals_in_reductions(kind: str, kept: bool) -> None:
    memory = np.full(4, 3, np.uint32)
    map_ = TensorMap(memory, (4,), (), (4,), kind)
    given = np.full(4, 5, np.uint32).view(np.uint8)
    result, _ = run(kernel("store", 1, "tile", "add"), map_, (0,), size=16, given=given)
    assert result.findings == ()
    assert memory.tolist() == [8 if kept else 0] * 4


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({"im2col": Im2col((0,), (0,))}, "corners in 2 dimensions"),
        ({"im2col": Im2col((0, 0), (0, -5))}, "leave a bounding box"),
        ({"im2col": Im2col((-129, 0), (0, 0))}, "corners from -128 to 127"),
        ({"im2col": Im2col((0, 0), (0, 0), "h")}, "along"),
        ({"im2col": Im2col((0,), (0,), "w")}, "swizzle of 64 or 128"),
        ({"box": (0, 4)}, "1 to 1024 pixels"),
        ({"box": (1025, 4)}, "1 to 1024 pixels"),
        ({"box": (6, 260)}, "1 to 256 channels"),
        ({"box": (6, 5)}, "multiples of 16 bytes"),
        ({"box": (6, 16), "swizzle": 32}, "at most the 32 bytes"),
        ({"box": (6, 4, 1)}, r"a box \(pixels, channels\)"),
        ({"fill": "nan"}, "a float type"),
        ({"steps": (1, 1, 9, 1)}, "from 1 to 8"),
        ({"steps": (1, 1)}, "a traversal stride for each dimension"),
        ({"box": (6.0, 4)}, "tuples of integers"),
        ({"im2col": Im2col((0.5, 0), (0, 0))}, "corners that are tuples of integers"),
        ({"shape": (4, 40), "strides": (160,)}, "three to five dimensions"),
    ],
)  # fmt: skip
def test_maps_that_the_driver_refuses(changes: dict[str, Any], needs: str) -> None:
    with pytest.raises(gpuemu.InvalidInput, match=needs):
        images(**changes)


LOAD = "cp.async.bulk.tensor.{}d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%d1, {}], [%r1]"


@pytest.mark.parametrize(
    "instruction",
    [
        LOAD.format(2, "{%r2, %r2}") + ", {%h}",
        LOAD.format(3, "{%r2, %r2, %r2}"),
        LOAD.format(3, "{%r2, %r2}") + ", {%h}",
        LOAD.format(3, "{%r2, %r2, %r2}") + ", {%h, %h}",
        LOAD.format(3, "{%r2, %r2, %r2}, {%h}"),
        "cp.async.bulk.tensor.3d.global.shared::cta.im2col.bulk_group [%d1, {%r2, %r2, %r2}], [%r1]",
        "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs::w.bulk_group [%d1, {%r2, %r2, %r2}], [%r1]",
    ],
)
def test_forms_that_do_not_exist_are_refused(instruction: str) -> None:
    """The assembler refuses them as well (the last: of PTX 9.4, which is not read)."""
    text = (
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<2>;"
        f".reg .b16 %h;\nmov.b32 %r1, 0; mov.b32 %r2, 0; mov.b64 %d1, 0; mov.b16 %h, 0;\n{instruction};\nret; }}\n"
    )
    with pytest.raises((gpuemu.InvalidInput, gpuemu.Unsupported), match=r"cp\.async\.bulk\.tensor"):
        gpuemu.Module.from_ptx(text)["k"].launch(grid=(1,), block=(32,), args=[])
