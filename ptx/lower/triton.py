"""A Triton kernel, lowered for a GPU that is not there: TTIR, TTGIR, PTX and metadata.

`triton.compile` would also run `ptxas`, write Triton's own cache and build a `CompiledKernel` for a driver. Here its
stages are run by hand, through the backend's public `add_stages`, up to `ptx`; `cubin` only when asked. Measured, no
cache, 2 cores: softmax 65 ms (130 the first time in a process), 64x64x32 f16 matmul 0.30 s for sm_80, 0.46 s for
sm_100; half of it is LLVM's optimiser. `import triton` is another 0.29 s. A hit in the cache on disk takes about 1 ms
after the import.

The result is a function of the key: the kernel's source with everything it reaches (`cache_key`), the files these come
from (their names are in the PTX), signature, constants, attributes, options, target, and the compiler's fingerprint
(`toolchain.py`). A constant without stable text (an object of the user's own) is compiled each time, never cached.

A Gluon kernel has its own first stage, whose text stands in place of the TTIR.

Limits: NVIDIA targets; Triton 3.9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import Any

from ptx import cache
from ptx.errors import InvalidInput, Unsupported, Where
from ptx.lower import specialise, toolchain
from ptx.lower.specialise import Path

_KIND = "lowered"
_FORMAT = "lowered 2"
_TEXT_STAGES = ("ttir", "ttgir", "llir", "ptx")
_GLUON_STAGES = ("glir", *_TEXT_STAGES[1:])


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of the entry, in PTX order: a name, its place in the call, and Triton's type for it.

    `path` is (parameter index, index inside a tuple ...); `type` is "*fp32", "*kfp32" (const), "i32", "u1", "fp32" ...
    A tensor descriptor becomes several parameters, whose paths go on with "map" and the number of its `tensordesc_meta`
    (type "nvTmaDesc"), or "base", then "shape" or "strides" and a dimension; "nan" and "round" are its flags. Two more
    parameters, global scratch and profile scratch, both u64 addresses, follow the last one in the PTX.
    """

    name: str
    path: Path
    type: str


@dataclass(frozen=True, slots=True)
class Lowered:
    """What Triton made of a kernel. `metadata` is JSON: num_warps, shared (bytes), global_scratch_size/_align ..."""

    entry: str
    target: str
    params: tuple[Param, ...]
    ttir: str
    ttgir: str
    ptx: str
    metadata: Mapping[str, Any]
    cubin: bytes | None = field(default=None, repr=False)

    @property
    def threads(self) -> int:
        """Threads of a CTA: what `.reqntid` says. Warp specialisation may make it more than asked for."""
        return int(self.metadata["num_warps"]) * 32


def lower(
    kernel: Any,
    signature: Mapping[str, Any],
    constexprs: Mapping[Path | str, Any] | None = None,
    attrs: Mapping[Path, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    target: str | int = "sm_80",
    *,
    cubin: bool = False,
) -> Lowered:
    """Lower a `@triton.jit` function.

    `signature`: parameter name -> Triton type or "constexpr", for every parameter, in order. `constexprs`: parameter
    name or path -> value. `attrs`: path -> [["tt.divisibility", 16]]. `options`: num_warps, num_stages, num_ctas,
    maxnreg, enable_fp_fusion (None = Triton's default) ... `cubin` also assembles, with the `ptxas` of Triton's wheel.

    Raises `InvalidInput` for what Triton rejects (with the source line when Triton gives one), `Unsupported` for what
    is not modelled or would not be the kernel's own code.
    """
    toolchain.triton()
    toolchain.refuse_overrides()
    arch = toolchain.architecture(target)
    backend = toolchain.backend(arch)
    chosen = _options(kernel, backend, arch, dict(options or {}))
    source_type = _source_type(kernel)
    source = source_type(kernel, dict(signature), dict(constexprs or {}), dict(attrs or {}))
    key = _key(source, chosen, arch, cubin)
    if key is not None and (kept := _from_cache(key, cubin)) is not None:
        return kept
    texts, binary, metadata = _run_stages(source, backend, chosen, cubin)
    lowered = Lowered(
        entry=metadata["name"],
        target=f"sm_{arch}",
        params=tuple(_params(signature, metadata)),
        ttir=texts["ttir"],
        ttgir=texts["ttgir"],
        ptx=texts["ptx"],
        metadata=metadata,
        cubin=binary,
    )
    if key is not None:
        _to_cache(key, lowered)
    return lowered


def lower_call(bound: specialise.Binding, *, cubin: bool = False) -> Lowered:
    """Lower what a call needs: `specialise.bind` has said for which types, constants and attributes."""
    return lower(
        bound.kernel,
        bound.signature(),
        bound.constexprs(),
        bound.attrs(),
        bound.options,
        bound.arch,
        cubin=cubin,
    )


def _source_type(kernel: Any) -> Any:
    if kernel.is_gluon():
        return import_module("triton.experimental.gluon._runtime").GluonASTSource
    return import_module("triton.compiler").ASTSource


def _options(kernel: Any, backend: Any, arch: int, asked: dict[str, Any]) -> Any:
    known = import_module("triton.backends.nvidia.compiler").CUDAOptions.__dataclass_fields__
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise InvalidInput(
            f"{kernel.__name__} has no parameter, and Triton no option, called {', '.join(unknown)}",
            where=specialise.where(kernel),
            notes=(f"parameters: {', '.join(kernel.arg_names)}", f"options: {', '.join(known)}"),
        )
    for name in ("ir_override", "instrumentation_mode"):
        if asked.get(name):
            raise Unsupported(
                f"option {name} replaces or rewrites what the compiler makes",
                help="to run PTX of your own, use gpuemu.Module.from_ptx(text)",
            )
    if asked.get("arch") not in (None, f"sm{arch}"):
        raise InvalidInput(f"option arch={asked['arch']!r} contradicts target sm_{arch}", help="give target only")
    asked["enable_fp_fusion"] = toolchain.fp_fusion(asked.get("enable_fp_fusion"))
    debug = asked.get("debug") or kernel.debug or import_module("triton.knobs").runtime.debug
    asked["debug"] = bool(debug)
    try:
        return backend.parse_options(asked)
    except (ValueError, AssertionError, TypeError) as e:
        raise InvalidInput(f"Triton refuses the options: {e}", where=specialise.where(kernel)) from e


def _params(signature: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[Param]:
    maps = metadata.get("tensordesc_meta") or ()
    seen = count()

    def visit(name: str, path: Path, kind: Any) -> Iterator[Param]:
        if isinstance(kind, tuple):
            for i, inner in enumerate(kind):
                yield from visit(f"{name}[{i}]", (*path, i), inner)
        elif str(kind).startswith("tensordesc"):
            yield from _descriptor(name, path, str(kind), next(seen) if maps else None)
        elif kind != "constexpr":
            yield Param(name, path, str(kind))

    for index, (name, kind) in enumerate(signature.items()):
        yield from visit(name, (index,), kind)


def _descriptor(name: str, path: Path, kind: str, number: int | None) -> Iterator[Param]:
    """The parameters of a tensor descriptor; `number`: of its tensor map, None where targets have none.

    Source: triton 3.9.0 `backends/driver.py`, `_expand_descriptor`."""
    match = re.match(r"tensordesc(?:_im2col)?<(\w+)\[([\d, ]*)\]", kind)
    if match is None:
        raise Unsupported(f"parameter {name} is a tensor descriptor of type {kind}")
    tensor = re.search(r",input_rank=(\d+)", kind)  # in im2col mode the block has two dimensions whatever the tensor
    rank = int(tensor[1]) if tensor else match[2].count(",") + 1

    def sizes(shape: str, strides: str) -> Iterator[Param]:
        for what, of in (("shape", shape), ("strides", strides)):
            for d in range(rank):
                yield Param(f"{name}.{what}{d}", (*path, what, d), of)

    if number is not None:
        yield Param(f"{name}.map", (*path, "map", number), "nvTmaDesc")
    else:
        yield Param(f"{name}.base", (*path, "base"), f"*{match[1]}")
        yield from sizes("i64", "i64")
        yield Param(f"{name}.nan", (*path, "nan"), "i1")
        yield Param(f"{name}.round", (*path, "round"), "i1")
    yield from sizes("i32", "i64")


def _key(source: Any, options: Any, arch: int, cubin: bool) -> str | None:
    kernel = source.fn
    constants = [(path, specialise.stable_text(value)) for path, value in sorted(source.constants.items())]
    if any(text is None for _, text in constants):
        return None
    return cache.digest(
        _FORMAT,
        toolchain.fingerprint(arch),
        kernel.cache_key,
        repr(sorted(specialise.source_files(kernel))),
        kernel.__name__,
        repr(list(source.signature.items())),
        repr(constants),
        repr(sorted(source.attrs.items())),
        options.hash(),
        arch,
        int(cubin),
    )


def _run_stages(source: Any, backend: Any, options: Any, cubin: bool) -> tuple[dict[str, str], bytes | None, Any]:
    ir = import_module("triton._C.libtriton").ir
    language = import_module("triton.backends.compiler").Language
    kernel = source.fn
    gluon = kernel.is_gluon()
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, language.GLUON if gluon else language.TRITON)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    raw: dict[str, Any] = {**options.__dict__}
    texts: dict[str, str] = {}
    stage = "ast"
    try:
        module = source.make_ir(
            backend.target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
        )
        for stage, kept in zip(_GLUON_STAGES if gluon else _TEXT_STAGES, _TEXT_STAGES, strict=True):
            module = stages[stage](module, raw)
            texts[kept] = str(module)  # now: the next stage works in place
        binary = stages["cubin"](module, raw) if cubin else None
    except Exception as e:
        raise _compile_error(kernel, backend, stage, e) from e
    raw["triton_version"] = toolchain.triton().__version__
    raw["target"] = backend.target
    # Through JSON now, so that a fresh result and one from the cache are the same, tuples and all.
    return texts, binary, json.loads(json.dumps(raw, default=_plain))


def _plain(value: Any) -> Any:
    return vars(value) if hasattr(value, "__dict__") else str(value)


def _compile_error(kernel: Any, backend: Any, stage: str, error: Exception) -> InvalidInput:
    """Triton's complaint, at the line it names; the innermost one if a called function is at fault."""
    innermost: BaseException = error
    chain = [error]
    while (cause := innermost.__cause__) is not None and hasattr(cause, "node"):
        innermost = cause
        chain.append(innermost)  # type: ignore[arg-type]
    node = getattr(innermost, "node", None)
    place = specialise.where(kernel)
    if node is not None and getattr(innermost, "src", None) == kernel.src:
        offset = kernel.def_file_line_number - 1
        place = Where(file=kernel.file_name, line=node.lineno + offset, column=node.col_offset + 1)
    return InvalidInput(
        f"Triton cannot compile {kernel.__name__} for sm_{backend.target.arch} (stage {stage})",
        where=place,
        notes=tuple(f"{type(e).__name__}: {e}" for e in chain),
    )


def _from_cache(key: str, cubin: bool) -> Lowered | None:
    data = cache.get(_KIND, key)
    if data is None:
        return None
    try:
        kept = json.loads(data)
        binary = bytes.fromhex(kept["cubin"]) if cubin else None
        params = tuple(Param(name, tuple(path), kind) for name, path, kind in kept["params"])
        return Lowered(
            kept["entry"],
            kept["target"],
            params,
            kept["ttir"],
            kept["ttgir"],
            kept["ptx"],
            kept["metadata"],
            binary,
        )
    except (ValueError, KeyError, TypeError):
        return None


def _to_cache(key: str, lowered: Lowered) -> None:
    kept = {
        "entry": lowered.entry,
        "target": lowered.target,
        "params": [[p.name, list(p.path), p.type] for p in lowered.params],
        "ttir": lowered.ttir,
        "ttgir": lowered.ttgir,
        "ptx": lowered.ptx,
        "metadata": lowered.metadata,
        "cubin": None if lowered.cubin is None else lowered.cubin.hex(),
    }
    cache.put(_KIND, key, json.dumps(kept).encode())
