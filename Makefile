# From a fresh clone, with nothing but Python 3.11 or newer and make:  make demo
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports, which is a part of what is installed.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help
.PHONY: help demo test long attack lint types examples bench papers docs gallery wheel
.NOTPARALLEL:

help:
	@echo "make demo      cluster handwritten digits; the picture is demo/digits.png"
	@echo "make test      run the tests but for long ones"
	@echo "make long      run the tests that search or sample for seconds; continuous integration leaves them out"
	@echo "make attack    run hostile fits, files, signals and threads for an hour; ATTACK=\"--minutes 5 --only fits\""
	@echo "make lint      check style and format"
	@echo "make types     check types"
	@echo "make examples  run the examples of the README, the tutorial and the docstrings"
	@echo "make bench     list the benchmarks"
	@echo "make papers    run small versions of the papers' experiments; tables and pictures are in benchmarks/results/papers"
	@echo "make docs      build the site into docs/_build/html; every example and the gallery are run"
	@echo "make gallery   run the scripts of examples/gallery; the pictures are in build/gallery"
	@echo "make wheel     build the wheel and try it, core alone, on every Python from 3.11 at hand"

demo: $(VENV)/.demo
	@$(BIN)/stickbreak demo --out demo

test: $(VENV)/.test
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

long: $(VENV)/.test
	@$(BIN)/python -m pytest -n auto --dist worksteal -m long

attack: $(VENV)/.test
	@PYTHONPATH=tests $(BIN)/python -m hostile.attack $(ATTACK)

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check $(wildcard src tests benchmarks examples .ci)

types: $(VENV)/.test
	@$(BIN)/mypy

examples: $(VENV)/.test
	@$(BIN)/python .ci/readme.py README.md docs/new_likelihood.md
	@$(BIN)/python -m pytest --doctest-modules src

bench:
	@echo "Each benchmark is one command, run in an environment made by 'make test' ($(BIN)/python):"
	@grep -hE '^ *python benchmarks/' benchmarks/*.py benchmarks/papers/*.py | sed -E 's/^ */  /'

papers: $(VENV)/.test
	@$(BIN)/python benchmarks/papers/small.py

docs: $(VENV)/.docs
	@$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "the site is docs/_build/html/index.html"

gallery: $(VENV)/.docs
	@$(BIN)/python .ci/gallery.py build/gallery

wheel: $(VENV)/.release
	@$(BIN)/python .ci/wheel.py

$(VENV)/.demo: pyproject.toml | $(BIN)/pip
	@echo "installing stickbreak and what the demo needs into $(VENV)"
	@$(PIP) -e '.[plot]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/pip
	@echo "installing stickbreak and what the tests need into $(VENV)"
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/pip
	@echo "installing stickbreak and what its site needs into $(VENV)"
	@$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/.release: pyproject.toml | $(BIN)/pip
	@echo "installing what a release needs into $(VENV)"
	@$(PIP) -e '.[release]'
	@touch $@

# The first Python that is new enough and can make an environment; set PYTHON to choose.
$(BIN)/pip:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	    rm -rf $(VENV); \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	        && $$python -m venv $(VENV) >/dev/null 2>&1; then exit 0; fi; \
	done; \
	rm -rf $(VENV); \
	echo "error: no Python 3.11 or newer that can make environments (venv); try: make demo PYTHON=/path/to/python" >&2; \
	exit 1
