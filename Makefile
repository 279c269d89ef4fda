# Everything runs in .venv, which is created and filled on the first call, and filled again when pyproject.toml or
# constraints.txt changes. The README has the same steps as pip commands, for machines without make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The gate is deterministic: the same files give the same result. `pytest` alone uses a new seed each time, and runs the
# thorough tests too, which take as long again.
PYTEST := $(BIN)/python -m pytest --randomly-seed=1 --hypothesis-profile=gate
QUICK := -m "not thorough"
# Two processes share the tests: one that has run out of tests takes over half of what the other has left. Threads that
# spin while they wait would take the other process's core; tests that pytest has rewritten are kept, for rewriting all
# of them takes each process half a minute.
SHARED_OUT := --numprocesses=2 --dist=worksteal
ENVIRONMENT := OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE=
# ONNX Runtime for browsers, which is not ours and therefore not in the sources (docs/decisions/0040).
RUNTIME := src/heedful/js/runtime/ort.js
NPM := build/npm
RUNTIME_VERSION := $(shell sed -n 's/^VERSION: Final = "\(.*\)"/\1/p' src/heedful/export/web_runtime.py)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: $(VENV)/.installed-dev ## install everything that tests and checks need into .venv (minutes, once)

.PHONY: demo
demo: $(VENV)/.installed-train runtime-if-npm ## install everything that training needs and run `heedful demo`
	$(BIN)/heedful demo

.PHONY: test
test: $(VENV)/.installed-dev runtime-if-npm typescript-if-npm ## install everything the tests need and run them
	$(ENVIRONMENT) $(PYTEST) $(QUICK) $(SHARED_OUT) tests src

.PHONY: check
check: $(VENV)/.installed-dev ## the gate: format, lint, types, imports, tests (minutes)
	@$(MAKE) --no-print-directory --keep-going --jobs=2 lint test

.PHONY: lint
lint: $(VENV)/.installed-dev ## format, lint, types and imports, without tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright

.PHONY: js
js: $(VENV)/.installed-dev runtime-if-npm typescript-if-npm ## test the package in JavaScript, with its types, and pages with a model inside, in Node and Chromium
	@if command -v npm >/dev/null; then \
	  set -x; $(ENVIRONMENT) $(PYTEST) tests/js $(wildcard tests/export/test_archive*.py tests/export/test_html*.py tests/export/test_transformers_js*.py); \
	else echo "make js: skipped: npm is not installed (it comes with Node, and fetches ONNX Runtime for browsers)"; fi

.PHONY: runtime
runtime: $(RUNTIME) ## fetch ONNX Runtime for browsers with npm, for heedful export --to html

.PHONY: runtime-if-npm
runtime-if-npm:
	@if [ -e $(RUNTIME) ]; then :; elif command -v npm >/dev/null; then $(MAKE) --no-print-directory runtime || true; \
	else echo "npm is not installed: no page with a model inside is written or tested (heedful export --to html)"; fi

.PHONY: typescript-if-npm
typescript-if-npm:
	@if [ -e $(NPM)/node_modules/typescript ] || ! command -v npm >/dev/null; then :; else \
	npm install --silent --no-audit --no-fund --fetch-retries=1 --fetch-timeout=60000 --prefix $(NPM) typescript@5 >/dev/null 2>&1 \
	|| echo "TypeScript could not be installed: types are not checked"; fi

.PHONY: docs
docs: $(VENV)/.installed-dev ## build the site, English and Chinese, in build/site (minutes)
	$(PIP) '.[docs]'
	$(BIN)/python docs/make_site.py

.PHONY: bench
bench: $(VENV)/.installed-dev ## run every benchmark that needs no data of yours (use a quiet machine)
	@for file in benchmarks/[a-z]*.py; do \
	  echo "== $$file"; $(BIN)/python "$$file" || { [ $$? -eq 2 ] && echo "   (run it by itself)"; } || exit 1; \
	done

.PHONY: prove-tests
prove-tests: $(VENV)/.installed-dev ## run the tests that the gate leaves out because they take long (minutes)
	$(ENVIRONMENT) $(PYTEST) -m thorough tests

.PHONY: prove-attention
prove-attention: $(VENV)/.installed-dev ## test attention kernels on thousands of random shapes (minutes)
	$(BIN)/python -m tests.prove.prove_attention

.PHONY: prove-mechanisms
prove-mechanisms: $(VENV)/.installed-dev ## train every attention mechanism in every model (minutes)
	$(BIN)/python -m tests.prove.prove_mechanisms

.PHONY: prove-checkpoints
prove-checkpoints: $(VENV)/.installed-dev ## test saves under kills, full disks, power cuts and damage (minutes)
	$(BIN)/python -m tests.prove.prove_checkpoints

.PHONY: prove-exports
prove-exports: $(VENV)/.installed-dev ## export every small model and compare its engine with PyTorch (minutes)
	$(PYTEST) tests/export tests/tasks/test_captioning.py

.PHONY: prove-decoding
prove-decoding: $(VENV)/.installed-dev ## test that batch and engine do not change outputs; MODEL= SOURCE= REFERENCE= (minutes)
	$(BIN)/python -m tests.prove.prove_decoding $(MODEL) $(SOURCE) $(REFERENCE)

.PHONY: prove-serve
prove-serve: $(VENV)/.installed-dev ## test the server under load, overload, slow clients, signals and disconnects (an hour)
	$(BIN)/python -m tests.prove.prove_serve
	$(BIN)/python -m tests.prove.prove_serve_schema

.PHONY: prove-page
prove-page: $(VENV)/.installed-dev ## test that the page runs no script of its data, with 300 payloads in Chromium (minutes)
	$(BIN)/python -m tests.prove.prove_page

.PHONY: prove-web
prove-web: $(VENV)/.installed-dev $(RUNTIME) ## test a model in JavaScript against Python, and 10,000 texts in its page; MODEL= SOURCES= (minutes)
	$(BIN)/python -m tests.prove.prove_web $(MODEL) $(SOURCES) $(ARGS)

.PHONY: prove-package
prove-package: $(VENV)/.installed-dev ## pack the npm package, check and bundle it, run it in Node 20 and 22 and in Chromium; MODEL= TEXT= (minutes; downloads tools)
	$(BIN)/python -m tests.prove.prove_package $(MODEL) '$(TEXT)'

.PHONY: prove-transformers-js
prove-transformers-js: $(VENV)/.installed-dev ## compare Transformers.js with transformers on an exported model; SOURCES= ARGS="--model MODEL" (minutes)
	$(BIN)/python -m tests.prove.prove_transformers_js $(SOURCES) $(ARGS)

.PHONY: prove-sherpa
prove-sherpa: $(VENV)/.installed-dev ## have sherpa-onnx speak every word of a lexicon; MODEL= WORDS= ARGS="--voice VOICE.onnx --python PYTHON" (minutes)
	$(BIN)/python -m tests.prove.prove_sherpa $(MODEL) $(WORDS) $(ARGS)

.PHONY: prove-site
prove-site: $(VENV)/.installed-dev ## test every page of the site in Chromium, from disk (minutes)
	$(BIN)/python -m tests.prove.prove_site $(ARGS)

.PHONY: prove-clients
prove-clients: $(VENV)/.installed-dev ## test the server with unmodified clients from PyPI and npm (minutes; downloads them)
	$(BIN)/python -m tests.prove.prove_clients

.PHONY: prove-ddp
prove-ddp: $(VENV)/.installed-dev ## test training in several processes, and their deaths (minutes)
	$(BIN)/python -m tests.prove.prove_ddp

.PHONY: prove-resumes
prove-resumes: $(VENV)/.installed-dev ## kill and resume trainings under torchrun, 200 times at random; ARGS="--check-allocator" (hours)
	$(BIN)/python -m tests.prove.prove_resumes $(ARGS)

.PHONY: prove-kernel-cache
prove-kernel-cache: $(VENV)/.installed-dev ## damage the cache of compiled kernels, change their sources, let processes race (minutes)
	$(BIN)/python -m tests.prove.prove_kernel_cache

.PHONY: prove-bounds
prove-bounds: $(VENV)/.installed-dev ## run all tests of compiled kernels with Numba's checks of bounds (an hour)
	NUMBA_BOUNDSCHECK=1 OMP_WAIT_POLICY=passive $(PYTEST) tests/cpu tests/contracts tests/attention tests/layers tests/training tests/models

.PHONY: prove-mutants
prove-mutants: $(VENV)/.installed-dev ## change the source at 400 random places and test that the gate notices; ARGS="--limit 50" (hours)
	$(BIN)/python -m tests.prove.prove_mutants $(ARGS)

.PHONY: prove-documents
prove-documents: $(VENV)/.installed-dev ## send hostile documents to a server, and ask /health beside (minutes)
	$(BIN)/python -m tests.prove.prove_documents $(ARGS)

.PHONY: prove-notebook
prove-notebook: $(VENV)/.installed-dev ## run the widget in JupyterLab, in Chromium (a minute)
	$(PIP) jupyterlab anywidget
	$(BIN)/python -m tests.prove.prove_notebook

.PHONY: prove-hostile
prove-hostile: $(VENV)/.installed-dev ## run every command with damaged files, full disks, kills and odd options; ONLY= LIMIT= SHARD= (hours)
	$(BIN)/python -m tests.prove.prove_hostile $(if $(ONLY),--only '$(ONLY)') $(if $(LIMIT),--limit $(LIMIT)) $(if $(SHARD),--shard $(SHARD))

.PHONY: format
format: $(VENV)/.installed-dev ## format the code and apply ruff's automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: release
release: $(VENV)/.installed-dev runtime-if-npm ## build sdist and wheel, check them, and try them with every Python here; ARGS="3.12" takes one (minutes)
	$(PIP) build twine
	$(BIN)/python -m tests.prove.prove_release $(ARGS)

.PHONY: clean
clean: ## remove caches and build files; .venv and models stay
	rm -rf build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(RUNTIME): | $(BIN)/python
	@command -v npm >/dev/null || { echo "make runtime: needs npm, which comes with Node" >&2; exit 1; }
	@mkdir -p build
	cd build && npm pack --silent --fetch-retries=1 --fetch-timeout=60000 onnxruntime-web@$(RUNTIME_VERSION)
	PYTHONPATH=src $(BIN)/python -m heedful.export.web_runtime build/onnxruntime-web-$(RUNTIME_VERSION).tgz

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "heedful needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-train: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the packages for training into $(VENV) (a few minutes the first time)"
	$(PIP) --editable '.[train,serve]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the packages for training, tests and checks into $(VENV) (a few minutes the first time)"
	$(PIP) --editable '.[train,serve,onnx,dev]'
	@touch $@ $(VENV)/.installed-train
