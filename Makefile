# Every target makes its own virtual environment from nothing.
#   make demo            train GCN and BIMP on an embedded real graph, print a table, write a report page
#   make test            lint, types and the whole test suite
#   make bench           the benchmarks
#   make results         tables and figures from the committed results
#   TORCH=torch==2.13.0  which build of PyTorch to install; TORCH=torch takes the newest, CUDA included

PYTHON ?= python3
TORCH  ?= torch==2.13.0
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= 2

.PHONY: demo test lint format bench results clean
.DELETE_ON_ERROR:

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml setup.py src/dissensus/_kernels.c | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.core
	$(BIN)/dissensus demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n $(JOBS) --durations=15

bench: $(VENV)/.dev
	$(BIN)/dissensus bench

results: $(VENV)/.dev
	$(BIN)/dissensus reproduce all --from results --readme README.md

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
