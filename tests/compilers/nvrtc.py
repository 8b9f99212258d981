"""CUDA C++ to PTX with NVRTC of the package `cuda-bindings`: no driver, no GPU. Runs where numba-cuda is installed."""

from cuda.bindings import nvrtc


def compile_source(source, name, target, options=()):
    """(PTX, log) of a source for a target such as sm_90; RuntimeError with the compiler's log."""

    def call(function, *args):
        status, *rest = function(*args)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(
                f"{function.__name__}: {status.name}\n{log() if function is nvrtc.nvrtcCompileProgram else ''}"
            )
        return rest[0] if rest else None

    def log():
        text = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, text)
        return text.decode()

    program = call(nvrtc.nvrtcCreateProgram, source.encode(), name.encode(), 0, [], [])
    flags = [f"--gpu-architecture={target}", *options]
    call(nvrtc.nvrtcCompileProgram, program, len(flags), [f.encode() for f in flags])
    text = b" " * call(nvrtc.nvrtcGetPTXSize, program)
    call(nvrtc.nvrtcGetPTX, program, text)
    return text.rstrip(b"\0 ").decode(), log()
