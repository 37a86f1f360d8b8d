# Every target makes its own virtual environment from nothing.
#   make demo            show when depth is needed on an embedded real graph: a table, a report page
#   make test            lint, types and the whole test suite
#   make test-fast       the tests that are not marked slow: no browser, no cluster; under a minute
#   make docs            the documentation, with its examples run, in docs/_build/html
#   make bench           the benchmarks
#   make results         tables and figures from the committed results
#   make dist            wheel and sdist in dist/, checked, each installed into a clean environment and run
#   TORCH=torch==2.13.0  which build of PyTorch to install; TORCH=torch takes the newest, CUDA included; several
#                        requirements, such as TORCH="torch~=2.4.0 torch_geometric~=2.6.0", pin others as well

PYTHON ?= python3
TORCH  ?= torch==2.13.0
VENV   ?= .venv
BIN    := $(VENV)/bin
CLEAN  := $(abspath $(VENV)-dist)/bin
JOBS   ?= 2
# What to check before the tests; LINT= leaves it out, for versions other than those that the types are written for.
LINT   ?= lint

.PHONY: demo test test-fast chromium lint format docs bench results dist clean
.DELETE_ON_ERROR:

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

# axe-core for the tests of pages; of the package that carries it, the rules are read and nothing else is needed.
$(VENV)/.axe: $(VENV)/.dev
	-$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps axe-playwright-python
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@

# Pages are tested in Chromium; where there is none and it cannot be installed, those tests are skipped.
chromium:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	  || { [ "$$(id -u)" = 0 ] && (apt-get update -q; apt-get install -y -q --no-install-recommends chromium) > /dev/null 2>&1; } \
	  || echo "no Chromium here: the tests of pages will be skipped"

demo: $(VENV)/.core
	$(BIN)/dissensus demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(LINT) $(VENV)/.axe chromium
	$(BIN)/python -m pytest -n $(JOBS) --durations=15

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow"

# Docstrings run as tests, pages as notebooks; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m pytest --doctest-modules src/dissensus -p no:cacheprovider
	$(BIN)/python -m sphinx -q -W --keep-going -j $(JOBS) -b html $(DOCS) docs docs/_build/html
	@echo open docs/_build/html/index.html

bench: $(VENV)/.dev
	$(BIN)/dissensus bench

results: $(VENV)/.dev
	$(BIN)/dissensus reproduce all --from results --readme results/README.md

# Nothing is compiled: one wheel serves every platform. The wheel is tried with the tools of this machine on PATH, the
# sdist with the environment alone on it, so without a compiler.
dist: export PIP_DISABLE_PIP_VERSION_CHECK = 1
dist:
	rm -rf dist build $(VENV)-dist
	$(PYTHON) -m venv $(VENV)-dist
	$(CLEAN)/python -m pip install -q build twine $(TORCH)
	$(CLEAN)/python -m build --outdir dist .
	$(CLEAN)/python -m twine check --strict dist/*
	$(CLEAN)/python -m pip install -q $(CURDIR)/dist/*.whl
	cd dist && $(CLEAN)/dissensus demo --epochs 2 -o $(CLEAN)/../wheel.html
	PATH=$(CLEAN) pip install -q --no-deps --force-reinstall $(CURDIR)/dist/*.tar.gz
	cd dist && PATH=$(CLEAN) dissensus demo --epochs 2 -o $(CLEAN)/../sdist.html
	rm -rf build $(VENV)-dist
	@ls -l dist

clean:
	rm -rf $(VENV) $(VENV)-dist build dist docs/_build docs/reference .mypy_cache .ruff_cache .pytest_cache .hypothesis
