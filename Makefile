# deixis: run `make` for the list of what it does.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
BASE := $(VENV)/.base
SETUP := $(VENV)/.setup

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-toy test test-quick check format wheel docs bench clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SETUP)  ## create .venv and install deixis with its tools

# What a user needs: a third of the packages that a developer does.
$(BASE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[serve]'
	touch $@

$(SETUP): $(BASE)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(BASE)  ## link a news-like text with the packaged model and watch the order of decisions
	$(BIN)/python -m deixis.cli.demo

demo-toy: $(BASE)  ## train the toy world and watch a text being resolved step by step
	$(BIN)/python -m deixis.toy

test: $(SETUP)  ## run all tests that this machine can run
	$(BIN)/python -m pytest -n auto --maxprocesses 4

test-quick: $(SETUP)  ## run the tests that need no trained model, no browser, no cluster and no GPU: half a minute
	$(BIN)/python -m pytest -n auto --maxprocesses 4 -m 'not (slow or browser or ray or gpu)'

check: $(SETUP)  ## lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(SETUP)  ## format the code and mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

wheel: $(SETUP)  ## build the wheel, with the packaged model, and the source distribution into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation

docs: $(SETUP)  ## build the site: tutorial, how-tos, explanation, reference; open build/docs/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

bench: $(SETUP)  ## list the benchmarks; each is a script with its own --help
	@for script in benchmarks/*.py; do echo "$(BIN)/python $$script   # $$(sed -n '1s/"""//p' $$script)"; done

clean:  ## remove what the targets above made
	rm -rf $(VENV) build dist .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
