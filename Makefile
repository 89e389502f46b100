# `make` or `make help` lists what there is.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test lint format coverage bench bench-peers docs \
  test-data test-scatter test-compile test-wl test-damaged gpu clean

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= .ci/constraints.txt
OUT ?= runs/demo
WHEELS ?=
DATA ?=
JOBS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=

RUN := $(VENV)/bin/python
ENVIRONMENT := PYTHON="$(PYTHON)" VENV="$(VENV)" CONSTRAINTS="$(CONSTRAINTS)" \
  ./.ci/environment
# Each worker keeps to one thread, so that JOBS says how many cores are used.
PYTEST := OMP_NUM_THREADS=1 $(RUN) -m pytest \
  $(if $(filter-out 1,$(JOBS)),--numprocesses $(JOBS)) $(PYTEST_ARGS)
DEMO_CMD ?= $(RUN) -m pyg_pool demo --out $(OUT)
# Wheels of compiled packages come from a folder, or are built from source.
PIP_WHEELS := $(RUN) -m pip install --disable-pip-version-check --no-deps \
  $(if $(WHEELS),--find-links $(WHEELS),--no-build-isolation)

help: ## list the targets
	@echo "Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile \
	  | awk -F '|' '{ printf "%-20s %s\n", $$1, $$2 }'
	@echo "Settings: PYTHON=$(PYTHON) VENV=$(VENV) OUT=$(OUT) WHEELS= DATA="
	@echo "          JOBS=$(JOBS) PYTEST_ARGS= BENCH_ARGS= CONSTRAINTS=$(CONSTRAINTS)"

demo: ## train a pooling classifier on molecules and draw its levels (about 1 min)
	@$(ENVIRONMENT) demo
	$(DEMO_CMD)

test: ## run the tests and the examples in the documentation
	@$(ENVIRONMENT) test
	$(PYTEST)

coverage: ## the tests again, with branch coverage of the core rooms
	@$(ENVIRONMENT) test
	$(PYTEST) --cov --cov-report=term

lint: ## check style, format and types
	@$(ENVIRONMENT) dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: ## mend style and format where that can be done by machine
	@$(ENVIRONMENT) dev
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

bench: ## measure speed and memory of this library against PyG
	@$(ENVIRONMENT) test
	$(RUN) -m benchmarks $(BENCH_ARGS)

bench-peers: ## the same beside torch-geometric-pool (WHEELS=folder saves compiling)
	@$(ENVIRONMENT) test
	$(PIP_WHEELS) torch-scatter
	$(RUN) -m pip install --disable-pip-version-check --no-deps torch-geometric-pool
	$(RUN) -m benchmarks --peers $(BENCH_ARGS)

test-data: ## tests on real data sets laid out in DATA=folder
	@test -d "$(DATA)" || { echo "No folder DATA='$(DATA)'; give one that holds data" \
	  "sets as PyG and OGB lay them out: make test-data DATA=folder"; exit 2; }
	@$(ENVIRONMENT) test
	PYG_POOL_DATA="$(abspath $(DATA))" $(PYTEST) -m data

test-scatter: ## tests of the torch-scatter and torch-sparse backends (WHEELS=folder)
	@$(ENVIRONMENT) test
	$(PIP_WHEELS) torch-scatter torch-sparse
	$(PYTEST) -m scatter tests/kernels

test-compile: ## each operator and primitive under torch.compile, Inductor too (minutes)
	@$(ENVIRONMENT) test
	$(PYTEST) -m "slow or not slow" tests/test_compile.py

test-wl: ## colour refinement on all graphs of 6 to 8 nodes, of DATA/graph_c (minutes)
	@test -f "$(DATA)/graph_c/graph8c.g6" || { echo "No graph_c/graph8c.g6 in" \
	  "DATA='$(DATA)'; write it with nauty's geng -c 8"; exit 2; }
	@$(ENVIRONMENT) test
	PYG_POOL_DATA="$(abspath $(DATA))" $(PYTEST) -m slow tests/relational/test_refine.py

test-damaged: ## 10,000 damaged files for each reader of graphs (about half an hour)
	@$(ENVIRONMENT) test
	$(PYTEST) -m slow tests/coarsen/test_read.py

gpu: ## on a CUDA device: tests of the Triton kernels, then their benchmark
	$(PYTHON) -m benchmarks.gpu

docs: ## build the documentation in docs/_build/html
	@$(ENVIRONMENT) docs
	$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean: ## remove the environment, caches and built files (runs/ stays)
	rm -rf "$(VENV)" build dist docs/_build .coverage htmlcov \
	  .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find pyg_pool tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + \
	  2>/dev/null || true
