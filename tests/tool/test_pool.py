"""Worker processes: order, isolation of crashes, time limits, failed starts. The work here is not a kernel."""

import os
import time

import pytest

from gpuemu.gate.cases import Case
from gpuemu.gate.pool import run_cases
from gpuemu.gate.results import CaseResult


def case(index, dims=None):
    return Case(
        index=index, op="op", file="f", dims=dims or {"N": index}, dtype="float32", distribution="regular",
        target="sm_80", device=None, option={}, seed=index,
    )  # fmt: skip


def make_work(mode):
    if mode == "no start":
        raise RuntimeError("nothing works here")

    def work(given):
        if given.index == 2 and mode == "crash":
            os.abort()
        if given.index == 2 and mode == "exit":
            os._exit(7)
        if given.index == 2 and mode == "hang":
            time.sleep(60)
        if mode == "print":
            print("noise on standard output")
        return CaseResult(case=given, verdict="pass", model=str(os.getpid()))

    return work


def run(mode, parallel, count=6, timeout=20.0):
    cases = [case(i) for i in range(count)]
    results = run_cases(cases, make_work=make_work, arguments=(mode,), parallel=parallel, timeout=timeout)
    return sorted(results, key=lambda r: r.case.index)


@pytest.mark.parametrize("parallel", [0, 1, 3])
def test_every_case_comes_back_once(parallel):
    results = run("", parallel)
    assert [r.case.index for r in results] == list(range(6)) and {r.verdict for r in results} == {"pass"}
    assert (len({r.model for r in results}) == 1) == (parallel < 2)


@pytest.mark.parametrize(
    "mode, words", [("crash", "crash: the worker process died (SIGABRT)"), ("exit", "exit status 7")]
)
def test_a_crash_takes_only_its_own_case(mode, words):
    results = run(mode, 2)
    assert [r.verdict for r in results] == ["pass"] * 2 + ["unchecked"] + ["pass"] * 3
    assert words in results[2].reason


def test_a_case_that_hangs_is_ended():
    start = time.monotonic()
    results = run("hang", 2, timeout=1.5)
    assert results[2].reason == "timeout: not finished after 1.5 s" and time.monotonic() - start < 20
    assert [r.verdict for r in results].count("pass") == 5


def test_a_worker_that_cannot_start_leaves_everything_unchecked():
    assert {r.reason for r in run("no start", 1)} == {
        "crash: a worker could not start: RuntimeError: nothing works here"
    }


def test_cases_that_share_a_kernel_share_a_worker():
    cases = [case(i, {"N": i % 3}) for i in range(9)]
    results = list(run_cases(cases, make_work=make_work, arguments=("",), parallel=3, timeout=20))
    workers = {}
    for result in results:
        workers.setdefault(result.case.dims["N"], set()).add(result.model)
    assert all(len(w) == 1 for w in workers.values())


def test_a_print_in_a_worker_stays_off_standard_output(capfd):
    run("print", 1, 2)
    assert capfd.readouterr().out == ""
