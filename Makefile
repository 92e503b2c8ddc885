# Every command a contributor needs; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Set in many containers: every process that is started would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Debian leaves ensurepip out of its Python; root may fetch it.
INSTALL_VENV := { test "$$(id -u)" = 0 && { apt-get update && apt-get install -y python3-venv; } >/dev/null 2>&1; }

help:            ## show the commands
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

setup: $(STAMP)  ## build .venv from the hash-pinned requirements

$(STAMP): requirements-build.txt requirements-dev.txt pyproject.toml hatch_build.py $(wildcard src/strandline/records/_*.[ch])
	@$(PYTHON) --version >/dev/null 2>&1 || { echo "strandline needs Python 3.11: set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -c 'import ensurepip; ensurepip.version()' 2>/dev/null || $(INSTALL_VENV) || \
		{ echo "this Python cannot make environments: on Debian, apt install python3-venv"; exit 1; }
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

test: setup      ## everything that a change can break, once: about ten minutes
	@$(BIN)/strandline pipeline java --install
	@$(BIN)/python -m strandline.simulation --swarm brief --seed $$(date +%s) --runs 2000 --seconds 10
	@$(BIN)/pytest -q -n 4 -m "not long"

test-long: setup ## many seeds, every client with every fault; a share: make test-long TREE=HASH SECONDS_MAX=300
	@$(BIN)/strandline pipeline java --install
	@$(BIN)/python -m tests.long $(if $(TREE),--tree $(TREE)) $(if $(SECONDS_MAX),--seconds $(SECONDS_MAX))

simulate: setup  ## simulated clusters: make simulate SEED=1 RUNS=200
	@$(BIN)/python -m strandline.simulation --seed $(or $(SEED),1) --runs $(or $(RUNS),200) \
		$(if $(SECONDS_MAX),--seconds $(SECONDS_MAX))

outages: setup   ## simulated regions that are lost, voters that leave: make outages SEED=1 RUNS=500
	@$(BIN)/python -m strandline.simulation --swarm outages --seed $(or $(SEED),1) --runs $(or $(RUNS),500) \
		$(if $(TREE),--rotate $(TREE)) $(if $(SECONDS_MAX),--seconds $(SECONDS_MAX))

brief: setup     ## very short histories of one group, about two thousand a minute: make brief SEED=1 RUNS=2000
	@$(BIN)/python -m strandline.simulation --swarm brief --seed $(or $(SEED),1) --runs $(or $(RUNS),2000) \
		$(if $(TREE),--rotate $(TREE)) $(if $(SECONDS_MAX),--seconds $(SECONDS_MAX))

explore: setup   ## every schedule of arbitration in small scopes: under an hour; see docs/internals/arbitration.md
	@$(BIN)/python -m tests.raft.explorer.run

chaos: setup     ## real processes, clients and faults, as root: make chaos SEED=1 MINUTES=10 SECURE=1, or CORES=2, or EARLIER=CHECKOUT; KEEP=1 keeps the logs
	@KEEP=$(KEEP) $(BIN)/python -m chaos.run --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10) $(if $(SECURE),--secure) $(if $(CORES),--cores $(CORES)) $(if $(EARLIER),--earlier $(EARLIER))

demo: setup      ## three regions, real flights, one region lost; KEEP=1 leaves the cluster up
	@KEEP=$(KEEP) STRANDLINE_JARS=$${STRANDLINE_JARS:-.build/jars} $(BIN)/python -m demo.run

differential: setup ## the same requests to Apache Kafka and to Strandline, answers compared: docs/reference/differences.md
	@$(BIN)/python -m differential.run $(if $(CASES),--cases '$(CASES)')

fuzz: setup      ## random and damaged input for all that reads bytes of strangers: make fuzz SECONDS=60
	@$(BIN)/python -m fuzz.run --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

clients: setup   ## other people's clients, each with its own program: make clients ONLY='kafkajs sarama'
	@$(BIN)/python -m clients.run $(if $(ACCESS),--access) $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write $(WRITE))

bench: setup     ## the figures of bench/README.md
	@$(BIN)/python -m bench.run

compiled: setup  ## a wheel whose hot modules mypyc compiled, in .build/wheels, and installed in .build/compiled-install: some minutes
	@rm -rf .build/mypyc .build/wheels .build/compiled-install
	@STRANDLINE_MYPYC=1 $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir .build/wheels .
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .build/compiled-install .build/wheels/strandline-*.whl
	@PYTHONPATH=.build/compiled-install $(BIN)/python -m strandline.cli.main version

docs: setup      ## the generated pages of docs/reference
	@$(BIN)/strandline config reference --write docs/reference

serve: setup     ## one broker: make serve CONFIG=broker.toml
	@$(BIN)/strandline serve --config $(CONFIG)

lock: setup      ## pin the requirements anew
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --python-version 3.11 requirements-build.in -o requirements-build.txt
	@$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements.txt
	@$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --no-emit-package strandline --python-version 3.11 --extra dev pyproject.toml -o requirements-dev.txt

.PHONY: help setup check test test-long simulate outages brief explore chaos demo clients bench compiled docs serve lock
