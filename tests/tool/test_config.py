"""Configuration and the words of `gpuemu run`: strict, with the wrong key or word named."""

import numpy as np
import pytest

from gpuemu.argspec import parse_words
from gpuemu.config import load_config
from gpuemu.files import check_writable, write_atomically
from ptx.errors import InvalidInput, LaunchFailure


def test_gpuemu_toml_wins_over_pyproject_and_paths_are_relative_to_it(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.gpuemu]\npaths = ["kernels"]\nseed = 4\n')
    config = load_config(inner, tmp_path)
    assert config.paths == (str(tmp_path / "kernels"),) and config.seed == 4
    (tmp_path / "gpuemu.toml").write_text('targets = ["sm_90"]\ntimeout = 3\n')
    config = load_config(inner, tmp_path)
    assert config.targets == ("sm_90",) and config.seed is None and config.timeout == 3.0


def test_no_configuration_is_an_empty_one(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.other]\na = 1\n")
    assert load_config(tmp_path, tmp_path).paths is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("targets = [", "does not parse"),
        ("target = 'sm_80'", "unknown key 'target'"),
        ("seed = 'x'", "key 'seed'"),
        ("paths = 'kernels'", "key 'paths'"),
        ("parallel = 0", "key 'parallel'"),
        ("timeout = -1.0", "key 'timeout'"),
        ("seed = true", "key 'seed'"),
        ("fmad = 'on'", "key 'fmad'"),
    ],
)
def test_a_wrong_configuration_names_the_key(tmp_path, text, message):
    (tmp_path / "gpuemu.toml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        load_config(tmp_path, tmp_path)


def test_arrays_and_scalars(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    words = parse_words(
        ["x=rand:4x5:f16", "o=zeros:7:bf16", "i=arange:6:i32", "u=nan:2:f32", "f=ones:2x2:float32",
         f"l=@{tmp_path}/a.npy", "n=0x10", "eps=1e-5", "flag=true", "none=none", "s='ieee'", "k=rand:9:i32"], 0,
    )  # fmt: skip
    values = {w.name: w.value for w in words}
    assert values["x"].shape == (4, 5) and values["x"].dtype == np.float16 and np.abs(values["x"]).max() > 0
    assert str(values["o"].dtype) == "bfloat16" and not values["o"].astype(np.float32).any()
    assert values["i"].tolist() == [0, 1, 2, 3, 4, 5] and (values["u"].view(np.uint32) == 0xFFFFFFFF).all()
    assert values["f"].sum() == 4 and values["l"].tolist() == [0, 1, 2]
    assert (values["n"], values["eps"], values["flag"], values["none"], values["s"]) == (16, 1e-5, True, None, "ieee")
    assert values["k"].dtype == np.int32 and 0 <= values["k"].min() <= values["k"].max() < 100
    again = parse_words(["x=rand:4x5:f16"], 0)[0].value
    assert np.array_equal(values["x"], again) and not np.array_equal(parse_words(["x=rand:4x5:f16"], 1)[0].value, again)


@pytest.mark.parametrize(
    "word, message",
    [
        ("x", "cannot read argument 'x'"),
        ("1x=2", "cannot read argument"),
        ("x=", "cannot read argument"),
        ("x=hello", "cannot read the value"),
        ("x=rand:4x:f32", "cannot read the shape"),
        ("x=rnd:4:f32", "cannot read the array"),
        ("x=rand:4", "cannot read the array"),
        ("x=rand:4:f33", "unknown dtype 'f33'"),
        ("x=rand:-4:f32", "negative size"),
        ("x=@nothing.npy", "no such file: nothing.npy"),
        ("x=@.", "cannot read .: it is a folder"),
    ],
)
def test_a_wrong_word_is_quoted(word, message):
    with pytest.raises(InvalidInput, match=message):
        parse_words([word], 0)


def test_an_array_that_no_machine_holds_is_refused_by_its_size():
    with pytest.raises(LaunchFailure, match="'x=rand:99999999999999:f32' would take 372529 GiB"):
        parse_words(["x=rand:99999999999999:f32"], 0)


def test_an_argument_given_twice():
    with pytest.raises(InvalidInput, match="given twice"):
        parse_words(["n=1", "n=2"], 0)


def test_files_are_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "report.sarif"
    write_atomically(target, b"one")
    write_atomically(target, b"two")
    assert target.read_bytes() == b"two" and list(tmp_path.iterdir()) == [target]
    with pytest.raises(InvalidInput, match="cannot write"):
        write_atomically(tmp_path / "missing" / "x", b"")
    for place in (tmp_path, tmp_path / "missing" / "x"):
        with pytest.raises(InvalidInput, match="cannot write"):
            check_writable(place)
