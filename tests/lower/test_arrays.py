"""Arguments as memory: every array-like becomes a view of the caller's bytes, with Triton's name for its elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gpuemu.arrays import as_array, as_scalar, element_type, numpy_dtype
from ptx.errors import InvalidInput, Unsupported
from ptx.lower.specialise import ELEMENT_TYPES


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_every_element_type_is_one_of_tritons(name: str) -> None:
    canonical = pytest.importorskip("triton._utils").type_canonicalisation_dict
    array = np.zeros(4, numpy_dtype(name))
    assert array.dtype.name == name
    assert canonical[element_type(array)] == canonical.get(name, canonical[ELEMENT_TYPES[name]])


def test_what_has_no_triton_type_is_refused() -> None:
    for dtype in ("complex64", "O", "U4", "datetime64[s]"):
        with pytest.raises(Unsupported, match="no Triton type"):
            element_type(np.zeros(2, dtype))
    with pytest.raises(InvalidInput, match="foreign order"):
        element_type(np.zeros(2, ">f4"))


def test_scalars_become_pythons_own() -> None:
    cases = [(np.int32(-5), -5), (np.uint64(2**63), 2**63), (np.float32(0.5), 0.5), (np.bool_(True), True)]
    for value, want in [*cases, (ml_dtypes.bfloat16(1.5), 1.5), (np.float64(2.0), 2.0)]:
        got = as_scalar(value)
        assert got == want and type(got) is type(want)
    marker = object()
    assert as_scalar(marker) is marker and as_scalar("text") == "text"


def test_numpy_arrays_are_themselves() -> None:
    a = np.zeros((3, 4))
    assert as_array(a) is a
    assert as_array(3) is None and as_array([1, 2]) is None


def test_reinterpreted_arrays_share_bytes() -> None:
    triton = pytest.importorskip("triton")
    tl = pytest.importorskip("triton.language")

    class Tensor:
        """The least that `triton.reinterpret` wraps."""

        def __init__(self, array: np.ndarray) -> None:
            self.base, self.dtype, self.data, self.device = array, "uint8", None, "cpu"
            self.shape = array.shape

        def data_ptr(self) -> int:
            return 0

    raw = np.zeros(8, np.uint8)
    wrapped = triton.reinterpret(Tensor(raw), tl.float8e5)
    wrapped.base = raw
    view = as_array(wrapped)
    assert view is not None and view.dtype == ml_dtypes.float8_e5m2 and np.shares_memory(view, raw)


class TestTorch:
    """torch is optional: these run where it is installed."""

    @pytest.fixture(autouse=True)
    def torch(self) -> None:
        self.torch = pytest.importorskip("torch")

    @pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float8_e4m3fn", "int64", "bool"])
    def test_tensors_are_viewed_not_copied(self, name: str) -> None:
        tensor = self.torch.zeros(6, dtype=getattr(self.torch, name))
        view = as_array(tensor)
        assert view is not None and view.dtype.name == name and view.ctypes.data == tensor.data_ptr()
        view[2] = 1
        assert float(tensor[2]) == 1

    def test_strided_views_keep_their_storage(self) -> None:
        storage = self.torch.arange(24.0, requires_grad=True)
        view = as_array(storage.view(4, 6)[1:, ::2])
        assert view is not None and view.shape == (3, 3) and view.strides == (24, 8)
        assert view[0, 1] == 8 and isinstance(view.base, np.ndarray) and view.base.nbytes == 96

    def test_scalar_and_empty_tensors(self) -> None:
        one, none = as_array(self.torch.tensor(2.5)), as_array(self.torch.empty(0, 4))
        assert one is not None and one.shape == () and one[()] == 2.5
        assert none is not None and none.shape == (0, 4)

    def test_tensors_elsewhere_and_odd_types_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="meta"):
            as_array(self.torch.empty(2, device="meta"))
        with pytest.raises(Unsupported, match="complex64"):
            as_array(self.torch.empty(2, dtype=self.torch.complex64))
