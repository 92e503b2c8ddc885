# Every command a contributor needs; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

help:            ## show the commands
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

setup: $(STAMP)  ## build .venv from the hash-pinned requirements

$(STAMP): requirements-build.txt requirements-dev.txt pyproject.toml
	@$(PYTHON) --version >/dev/null 2>&1 || { echo "strandline needs Python 3.11: set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the pinned requirements into $(VENV) (the first time takes a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $(STAMP)

check: setup     ## ruff, mypy, import contracts, the tidy test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q tests/tidy

test: setup      ## every test
	@$(BIN)/pytest -q

lock: setup      ## pin the requirements anew
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --python-version 3.11 requirements-build.in -o requirements-build.txt
	@$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements.txt
	@$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --no-emit-package strandline --python-version 3.11 --extra dev pyproject.toml -o requirements-dev.txt

.PHONY: help setup check test lock
