# Everything runs in .venv, which is made and filled on the first call and again when pyproject.toml or
# constraints.txt change. On a machine without make, the README has the same as plain pip lines.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The gate says the same of the same files twice; `pytest` alone looks further, with a new seed each time.
PYTEST := $(BIN)/python -m pytest --randomly-seed=1 --hypothesis-profile=gate
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.installed-train ## install what training needs and run `heedful demo`
	$(BIN)/heedful demo

.PHONY: test
test: $(VENV)/.installed-dev ## install everything the tests need and run them
	$(PYTEST)

.PHONY: check
check: $(VENV)/.installed-dev ## the gate: format, lint, types, imports, then all tests, examples and documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(PYTEST)

.PHONY: bench
bench: $(VENV)/.installed-dev ## run every benchmark that needs no files of yours; take the figures on a quiet machine
	@for file in benchmarks/[a-z]*.py; do \
	  echo "== $$file"; $(BIN)/python "$$file" || { [ $$? -eq 2 ] && echo "   (run it by itself)"; } || exit 1; \
	done

.PHONY: prove-attention
prove-attention: $(VENV)/.installed-dev ## thousands of random shapes for each attention kernel, against float64 (minutes)
	$(BIN)/python -m tests.prove.prove_attention

.PHONY: prove-mechanisms
prove-mechanisms: $(VENV)/.installed-dev ## fifty steps of training of every score, normalizer and window in every model (minutes)
	$(BIN)/python -m tests.prove.prove_mechanisms

.PHONY: prove-checkpoints
prove-checkpoints: $(VENV)/.installed-dev ## kills, full disks, power cuts and damage at every point of a training's saves (minutes)
	$(BIN)/python -m tests.prove.prove_checkpoints

.PHONY: prove-decoding
prove-decoding: $(VENV)/.installed-dev ## same outputs in every batch, from every engine, with every phrase; MODEL= SOURCE= REFERENCE= (minutes)
	$(BIN)/python -m tests.prove.prove_decoding $(MODEL) $(SOURCE) $(REFERENCE)

.PHONY: prove-ddp
prove-ddp: $(VENV)/.installed-dev ## training by several processes: equal to one, and deaths of each at each point (minutes)
	$(BIN)/python -m tests.prove.prove_ddp

.PHONY: format
format: $(VENV)/.installed-dev ## bring the code into form and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: clean
clean: ## remove what tools and builds left behind; .venv and models stay
	rm -rf build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "heedful needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-train: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what training needs into $(VENV) (a few minutes the first time)"
	$(PIP) --editable '.[train]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what training, tests and checks need into $(VENV) (a few minutes the first time)"
	$(PIP) --editable '.[train,onnx,dev]'
	@touch $@ $(VENV)/.installed-train
