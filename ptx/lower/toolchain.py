"""The installed Triton: is it there, is it a tested version, and what changes its output.

Triton's output depends on more than the kernel: on its version, on the `ptxas` whose release chooses the `.version`
line, and on environment variables that both its Python and its C++ half read. What changes PTX silently must be part of
the cache key; what replaces the compiler's output by something else is refused, because then the PTX that is judged
would not be what the kernel means.

The wheel also carries NVIDIA's assembler and disassemblers, which `ptx/accounting` runs on any PTX: `tool(name)` finds
them without importing Triton, where Triton itself would (`TRITON_PTXAS_PATH` and the like, then the wheel), and last on
`PATH`, for machines that have a CUDA toolkit and no Triton. In 3.9 `ptxas` is release 12.9 (PTX up to 8.8, sm_50 to
sm_121) and `ptxas-blackwell` 13.4 (PTX up to 9.4, sm_75 to sm_121); Triton uses the first below sm_90, the second from
there on, and so does `assemblers(arch)`, which names the other one as the second choice.

Source: triton 3.9.0, `knobs.py`, `compiler/compiler.py`, `backends/nvidia/compiler.py`, and the names that
`libtriton.so` passes to getenv.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ptx.errors import InvalidInput, Unsupported

TESTED_FROM = (3, 9)
TESTED_BELOW = (3, 10)

# Variables outside TRITON_* that change what the compiler emits.
_OUTPUT_VARIABLES = (
    "ALLOW_LHS_TMEM_LAYOUT_CONVERSION",
    "DISABLE_LLVM_OPT",
    "DISABLE_MMA_V3",
    "DISABLE_MMA_V5",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES",
    "LLVM_PASS_PLUGIN_PATH",
)
# TRITON_* variables known to leave the output alone. Any other one is part of the key: unknown means 'may matter'.
_HARMLESS = frozenset(
    {
        "TRITON_ALWAYS_COMPILE",
        "TRITON_CACHE_AUTOTUNING",
        "TRITON_CACHE_DIR",
        "TRITON_CACHE_MANAGER",
        "TRITON_DEFAULT_FP_FUSION",  # resolved into the options, which are part of the key
        "TRITON_DUMP_DIR",
        "TRITON_FORCE_DISABLE_FP_FUSION",  # likewise
        "TRITON_FRONT_END_DEBUGGING",
        "TRITON_HOME",
        "TRITON_KERNEL_DUMP",
        "TRITON_LIBCUDA_PATH",
        "TRITON_PRINT_AUTOTUNING",
        "TRITON_STORE_BINARY_ONLY",
    }
)
# Variables that put something else in the place of the compiler's output.
_REFUSED = ("TRITON_KERNEL_OVERRIDE", "TRITON_OVERRIDE_ARCH", "TRITON_PLUGIN_PATHS", "USE_IR_LOC")

_TARGET = re.compile(r"(?:sm_?)?(\d{2,3})([af]?)")


@cache
def triton() -> Any:
    """The `triton` module.

    Raises `Unsupported` when it is not installed or its version is outside the tested range.
    """
    try:
        module = import_module("triton")
    except ImportError as e:
        raise Unsupported(
            "Triton is not installed, so Triton kernels cannot be lowered",
            notes=(f"importing triton failed: {e}", f"Python {sys.version.split()[0]} on {sys.platform}"),
            help="install triton 3.9 (Linux x86-64 and aarch64 have wheels); everything that starts from PTX works "
            "without it: gpuemu.Module.from_ptx(text)",
        ) from e
    version = str(module.__version__)
    found = tuple(int(x) for x in re.findall(r"\d+", version)[:2])
    if not TESTED_FROM <= found < TESTED_BELOW:
        raise Unsupported(
            f"Triton {version} is outside the tested range "
            f"{'.'.join(map(str, TESTED_FROM))} <= version < {'.'.join(map(str, TESTED_BELOW))}",
            notes=("lowering calls parts of Triton's JIT that change between releases",),
            help="pip install 'triton>=3.9,<3.10'",
        )
    return module


def architecture(target: str | int) -> int:
    """`sm_80`, `sm_90a`, `80` -> 80, 90, 80. Raises `InvalidInput` for anything else."""
    match = _TARGET.fullmatch(str(target))
    if not match:
        raise InvalidInput(f"target {target!r} is not of the form sm_80", help="one of sm_80, sm_89, sm_90, sm_100 ...")
    return int(match[1])


@cache
def backend(arch: int) -> Any:
    """Triton's NVIDIA backend for compute capability `arch`, one a process."""
    triton()
    compiler = import_module("triton.compiler")
    backends = import_module("triton.backends.compiler")
    return compiler.make_backend(backends.GPUTarget("cuda", arch, 32))


def refuse_overrides() -> None:
    """Raises `Unsupported` if the environment replaces the compiler's output by something else."""
    knobs = import_module("triton.knobs")
    found = [name for name in _REFUSED if os.environ.get(name)]
    if knobs.runtime.add_stages_inspection_hook is not None:
        found.append("triton.knobs.runtime.add_stages_inspection_hook")
    if knobs.compilation.instrumentation_mode:
        found.append("TRITON_INSTRUMENTATION_MODE")
    if found:
        raise Unsupported(
            f"{', '.join(found)} changes what Triton compiles",
            notes=("the PTX would not be the kernel's own, so a verdict on it would mean nothing",),
            help="unset it; to run PTX of your own, use gpuemu.Module.from_ptx(text)",
        )


def fp_fusion(requested: bool | None) -> bool:
    """What `enable_fp_fusion=requested` means to this Triton: None is its default (3.9: on; 3.10 says it will be off).

    The same rule as `knobs.language.fp_fusion_enabled`, without the warning that None gives there.
    """
    language = import_module("triton.knobs").language
    if language.force_disable_fp_fusion:
        return False
    return bool(language.default_fp_fusion) if requested is None else bool(requested)


@cache
def _installation() -> str:
    """The installed compiler: version, place, size and time of `libtriton` (hashing its 500 MB costs 0.5 s)."""
    module = triton()
    library = str(import_module("triton._C.libtriton").__file__)
    status = os.stat(library)
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return f"{module.__version__}|{os.path.dirname(module.__file__)}|{status.st_size}|{status.st_mtime_ns}|py{python}"


def fingerprint(arch: int) -> str:
    """Everything about the compiler, other than the kernel and its options, that its PTX for `arch` depends on."""
    knobs = import_module("triton.knobs")
    environment = {name: value for name in _OUTPUT_VARIABLES if (value := os.environ.get(name)) is not None}
    for name, value in os.environ.items():
        if name.startswith("TRITON_") and name not in _HARMLESS:
            environment[name] = value
    set_in_python = (
        knobs.compilation.disable_line_info,
        knobs.compilation.dump_ir_extract_di_local_variables,
        knobs.compilation.allow_non_constexpr_globals,
        knobs.language.fp32_default,
        knobs.nvidia.mock_ptx_version,
    )
    invalidating = import_module("triton._C.libtriton").get_cache_invalidating_env_vars()
    return "\n".join(
        [
            _installation(),
            backend(arch).hash(),  # ptxas' version, which chooses the `.version` line
            repr(sorted(environment.items())),
            repr(set_in_python),
            repr(sorted(invalidating.items())),
        ]
    )


# ------------------------------------------------------------------------------------------------ NVIDIA's binaries
TOOLS = ("ptxas", "ptxas-blackwell", "cuobjdump", "nvdisasm")
_NEWER_FROM = 90


def assemblers(arch: int) -> tuple[str, str]:
    """Names of the assemblers for compute capability `arch`: the one that Triton takes, then the other."""
    return ("ptxas", "ptxas-blackwell") if arch < _NEWER_FROM else ("ptxas-blackwell", "ptxas")


def tool(name: str) -> Path:
    """Where one of `TOOLS` is. Raises `Unsupported` when it is nowhere."""
    variable = f"TRITON_{name.upper().replace('-', '_')}_PATH"
    if chosen := os.environ.get(variable):
        if not os.access(chosen, os.X_OK):
            raise InvalidInput(f"{variable}={chosen} is not a program that can be run", help=f"unset {variable}")
        return Path(chosen)
    spec = find_spec("triton")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / name
        if os.access(bundled, os.X_OK):
            return bundled
    if found := shutil.which(name):
        return Path(found)
    raise Unsupported(
        f"NVIDIA's {name} was not found",
        notes=(f"looked at ${variable}, in Triton's wheel and on PATH",),
        help="pip install 'triton>=3.9,<3.10' (Linux), or install the CUDA toolkit; nothing that executes needs it",
    )


def release(program: Path) -> str:
    """What a tool says it is: 'release 12.9, V12.9.86'. Raises `Unsupported` when it does not run."""
    return _release(program, program.stat().st_mtime_ns)


@cache
def _release(program: Path, _: int) -> str:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as e:
        raise Unsupported(f"{program} does not run: {e}", help="reinstall Triton, or the CUDA toolkit") from e
    match = re.search(r"release [\d.]+, V[\d.]+", said)
    return match[0] if match else said.strip().splitlines()[-1]
