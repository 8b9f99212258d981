"""`@triton.heuristics` and `@triton.autotune` around a kernel, applied where no GPU can be timed.

Heuristics are applied as Triton applies them. Autotuning needs timings, which an emulator does not have and will not
invent: a configuration is *chosen*, by rule, and the choice is reported.

    * configurations that contradict keyword arguments of the call are out;
    * `early_config_prune` is applied; a performance model is not (it predicts times);
    * the first that is left is used; its `pre_hook` runs, as on a GPU.

Source: triton 3.9.0 `runtime/autotuner.py`, `Autotuner.run` and `Heuristics.run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ptx.errors import InvalidInput
from ptx.lower import toolchain


def unwrap(
    kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """The `@triton.jit` function inside `kernel`, the keyword arguments its wrappers add, and what was decided.

    Returns (JITFunction, kwargs extended, notes). Raises `InvalidInput` if `kernel` is not a Triton kernel.
    """
    toolchain.triton()
    jit = import_module("triton.runtime.jit")
    tuner = import_module("triton.runtime.autotuner")
    extended = dict(kwargs)
    notes: list[str] = []
    while not isinstance(kernel, jit.JITFunction):
        if isinstance(kernel, tuner.Heuristics):
            for name, rule in kernel.values.items():
                extended[name] = rule({**dict(zip(kernel.arg_names, args, strict=False)), **extended})
        elif isinstance(kernel, tuner.Autotuner):
            config, why = _choose(kernel, args, extended)
            notes.append(why)
            if config.pre_hook is not None:
                named = dict(zip(kernel.arg_names, args, strict=False))
                config.pre_hook({**named, **extended, **config.all_kwargs()})
            extended = {**config.all_kwargs(), **extended}
        else:
            raise _not_a_kernel(kernel)
        kernel = kernel.fn
    for hook in kernel.pre_run_hooks:
        hook(*args, **extended)
    return kernel, extended, tuple(notes)


def _choose(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str]:
    configs = list(tuner.configs)
    if len(configs) > 1 and tuner.early_config_prune:
        named = dict(zip(tuner.arg_names, args, strict=False))
        configs = list(tuner.early_config_prune(configs, named, **kwargs))
    agreeing = [c for c in configs if all(kwargs.get(k, v) == v for k, v in c.all_kwargs().items())]
    if not configs:
        raise InvalidInput("autotune: early_config_prune left no configuration")
    if agreeing:
        return agreeing[0], f"autotune: configuration 1 of {len(agreeing)} taken, untimed: {agreeing[0]}"
    return configs[0], f"autotune: keyword arguments overrule the configuration {configs[0]}"


def _not_a_kernel(kernel: Any) -> InvalidInput:
    if type(kernel).__name__ == "InterpretedFunction":
        return InvalidInput(
            f"{kernel.__name__} was decorated while TRITON_INTERPRET=1 was set: it is a Python function, not a kernel",
            help="unset TRITON_INTERPRET before the kernel's module is imported",
        )
    return InvalidInput(
        f"{kernel!r} is a {type(kernel).__name__}, not a @triton.jit function",
        help="pass the decorated kernel itself, without [grid]",
    )
