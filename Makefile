# Everything sets itself up in .venv on first use; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# pip prints warnings about unreachable mirrors on stderr; errors still stop make.
STAMP := $(VENV)/.stamp
# Images of containers often forbid Python to keep its bytecode: tests start many processes, and each would compile every
# module anew.
unexport PYTHONDONTWRITEBYTECODE
# Three processes for two cores, since some tests wait for browsers and servers; one thread of linear algebra each.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 3 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help browser demo test compile coverage test-new test-fast test-lowest test-integrations fuzz check format bench bench-quick docs screenshots package clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade 'pip>=25.1'

$(STAMP)-core: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(STAMP)-dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[all]' --group test --group check
	@touch $@ $(STAMP)-core

$(STAMP)-docs: pyproject.toml | $(STAMP)-dev
	$(PIP) --group docs
	@touch $@

$(STAMP)-release: pyproject.toml | $(VENV)/bin/python
	$(PIP) --group release
	@touch $@

demo: $(STAMP)-core  ## Audit the shipped predictions of a real network
	$(BIN)/polycal demo

browser: build/axe/node_modules/axe-core  ## Install what the browser tests need: Chromium (Debian's) and axe-core
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install --yes -qq --no-install-recommends chromium; } \
		|| echo 'No Chromium could be installed: browser tests will be skipped.'

build/axe/node_modules/axe-core:
	@npm install --silent --no-save --prefix build/axe axe-core@4.14.0 \
		|| echo 'axe-core could not be installed: accessibility tests will be skipped.'

# What most tests need is compiled while the sources are checked, once: three processes that start together would each
# compile the same.
test: $(STAMP)-dev browser  ## Run every test (about fourteen minutes on two cores, set-up included)
	@$(MAKE) --no-print-directory --jobs 2 check compile
	$(PYTEST) --randomly-seed=1

# An audit, an object of every family that is saved, and the tests themselves as pytest rewrites them; what is wrong with
# those, `test` tells.
compile: $(STAMP)-dev  ## Compile what audits and tests need, and keep it
	@$(BIN)/polycal demo --quiet > /dev/null
	@mkdir -p build/catalogue && $(BIN)/python -m tests.storage.catalogue build/catalogue
	-@$(BIN)/python -m pytest --collect-only --quiet > /dev/null

coverage: $(STAMP)-dev browser  ## Run every test and say which lines none of them reaches
	$(PYTEST) --randomly-seed=1 --cov --cov-report=term:skip-covered

test-new: $(STAMP)-dev browser  ## Run every test with new random cases in a new order: what `test` has not seen yet
	HYPOTHESIS_PROFILE=new $(PYTEST)

test-fast: $(STAMP)-dev  ## Run the tests that take seconds
	$(PYTEST) -m 'not slow'

test-lowest: $(STAMP)-release  ## Run the tests that take seconds with the lowest versions that are supported
	@mkdir -p build
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --extra all pyproject.toml --output-file build/lowest.txt
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-lowest/bin/python -m pip install --quiet --constraint build/lowest.txt --editable '.[all]' --group lowest
	@# Old packages warn of newer ones that they were never tried with: warnings are no errors here. The page of the command
	@# is written with the newest typer.
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest --numprocesses 2 --randomly-seed=1 \
		-m 'not slow' -o filterwarnings=default --ignore tests/benchmarks --ignore tests/test_contracts.py --ignore tests/contracts.py \
		--deselect tests/cli/test_conventions.py::test_the_page_of_the_command_is_up_to_date

test-integrations: | $(VENV)/bin/python  ## Run polycal.integrations and the recipes against the real packages
	test -x .venv-tools/bin/python || $(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-tools/bin/python -m pip install --quiet --editable '.[all,torchmetrics,huggingface,mlflow]' --group lowest --group tools
	OMP_NUM_THREADS=1 .venv-tools/bin/python -m pytest -o filterwarnings=default tests/integrations tests/test_recipes.py src/polycal/integrations

fuzz: $(STAMP)-dev  ## Read damaged files of every format, seed after seed, until one does harm or Ctrl-C
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz

check: $(STAMP)-dev  ## Lint, format, types, import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)-dev  ## Rewrite the sources in the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench-quick: $(STAMP)-dev  ## Measure against floors and peers on little data (minutes; the first run installs peers)
	$(BIN)/python -m benchmarks --quick

bench: $(STAMP)-dev  ## The full leaderboard (hours); writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

screenshots: $(STAMP)-dev browser  ## Take the screenshots of the README anew
	$(BIN)/python docs/screenshots.py

docs: $(STAMP)-docs  ## Build the documentation in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

package: $(STAMP)-release  ## Build wheel and sdist, check them, and install each in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.installing dist/*

clean:  ## Remove what the targets above made
	rm -rf $(VENV) .venv-peers .venv-lowest .venv-tools dist build docs/_build docs/api/generated docs/gallery docs/sg_execution_times.rst .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
