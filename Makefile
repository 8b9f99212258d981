# `make demo` and `make test` work on a fresh machine: each makes .venv, installs the checkout into it and runs.
# The stamp depends on pyproject.toml, so a changed dependency reinstalls by itself.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := test

VENV ?= .venv
# The first interpreter that is new enough; a pyenv shim may exist for a version that does not, hence the trial run.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
PY := $(VENV)/bin/python
STAMP := $(VENV)/.gpuemu-installed
TESTS ?= tests
ARGS ?=

.PHONY: demo test judges arm64 lint bench study clean

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "gpuemu needs Python 3.11 or newer; set PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --disable-pip-version-check --quiet -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(PY) -m gpuemu ci examples --parallel 2 --expect examples/expected.toml $(ARGS)

test: $(STAMP)
	$(PY) -m pytest $(TESTS) -n 2 --dist loadfile $(ARGS)

# The suites of others are cloned beside the checkout's files and never become part of it.
.judges/ZLUDA:
	git clone --quiet --depth 1 https://github.com/vosen/ZLUDA $@ || echo "no ZLUDA: its tests will be skipped" >&2

.judges/PTX_TESTS:
	git clone --quiet --depth 1 https://github.com/vosen/ptx_tests $@ || echo "no ptx_tests: it will be skipped" >&2

# numba-cuda replaces parts of numba, so the compilers have an environment of their own.
.judges/compilers: pyproject.toml
	$(PYTHON) -m venv $@ && $@/bin/python -m pip install --disable-pip-version-check --quiet \
		$$($(PYTHON) -c 'import tomllib; print(*(r.partition(";")[0].strip() for r in tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["judges"]))') \
		|| { rm -rf $@; mkdir -p $@; echo "no compilers: their tests will be skipped" >&2; }
	touch $@

judges: $(STAMP) .judges/compilers | .judges/ZLUDA .judges/PTX_TESTS
	GPUEMU_JUDGES_PYTHON=$$(ls $(CURDIR)/.judges/compilers/bin/python 2>/dev/null || echo $(PY)) \
	GPUEMU_NVCC=$${GPUEMU_NVCC:-$$(command -v nvcc || ls $(CURDIR)/.judges/compilers/lib/python3*/site-packages/nvidia/cu13/bin/nvcc 2>/dev/null)} \
	$(PY) -m pytest tests -m judge -n 2 --dist loadfile $(ARGS)

# On Debian: an arm64 Python from its packages, unpacked into .judges/ and run by qemu-user; installs nothing.
.judges/arm64/ready.json: | $(STAMP)
	$(PY) -m tests.portability.arm64 --build

arm64: $(STAMP) | .judges/arm64/ready.json
	$(PY) -m pytest tests/portability/test_arm64.py -m judge $(ARGS)

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m mypy

bench: $(STAMP)
	$(PY) -m benchmarks $(ARGS)

study: $(STAMP)
	mkdir -p .gpuemu
	$(PY) -m benchmarks.delta_study --summary .gpuemu/deltas.txt
	$(PY) -m gpuemu study --tolerances benchmarks/corpus/tolerances.toml --deltas .gpuemu/deltas.txt --parallel 2 --output docs/study $(ARGS)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
