# Short names for what is done often. `make help` lists them.
PYTHON ?= python
UV ?= uv
COMPILE = $(UV) pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-header --quiet

PYTEST = $(PYTHON) -m pytest --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --durations 10
# Tests with engines wait for processes half of their time: more workers than cores keep the cores busy.
WORKERS ?= 4

# ENGINES=containers: official images, with Docker or Podman; see CONTRIBUTING.md. What fails to start ends the run.
ENGINES ?=
WITH_ENGINES = $(if $(ENGINES),variables="$$($(PYTHON) scripts/engines start --$(ENGINES))" && eval "$$variables" && )

# Tests start hundreds of processes: where nothing is kept of it, each of them compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install engines check lint test test-engines smoke nightly replay docs lock serve

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

install: ## install the package with the service and the tools
	$(PYTHON) -m pip install -e '.[service,dev]' -e packages/toolscript-eval

engines: ## start private engines; prints lines for a shell to eval
	@scripts/engines start $(addprefix --,$(ENGINES))

check: lint test test-engines ## everything that has to hold

lint: ## format, lint, types, import direction, generated pages, and what pages name
	ruff format --check .
	ruff check .
	mypy
	MYPYPATH=scripts mypy scripts/engines scripts/engine_parts
	mypy scripts/generate-docs
	MYPYPATH=scripts:src mypy scripts/build-table scripts/table_parts
	mypy scripts/build-languages
	mypy scripts/measure-code
	mypy scripts/record-first-run
	lint-imports
	$(PYTHON) scripts/generate-docs --check
	$(PYTHON) scripts/check_pages.py
	$(PYTHON) scripts/record-first-run --check

test: ## the tests on the in-memory adapters: nothing to install, no network, seconds
	$(PYTEST) --numprocesses auto --maxprocesses 4 --hypothesis-profile quick -m "not engines and not slow and not nightly" tests/unit tests/contracts tests/golden

test-engines: ## all other tests, on the engines that `scripts/engines` starts, or that the environment names
	$(WITH_ENGINES)$(PYTEST) --numprocesses $(WORKERS) -m "(engines or slow) and not nightly"

smoke: ## one whole run on the engines: what a test of it shows in a minute
	$(WITH_ENGINES)$(PYTHON) -m pytest -q tests/e2e/behaviour

nightly: ## the tests that take long, for the night or by hand
	$(WITH_ENGINES)$(PYTEST) --numprocesses auto --maxprocesses 4 -m nightly

replay: ## what both products answer, compared with what was recorded: tests/recording
	$(WITH_ENGINES)$(PYTHON) -m tests.recording replay

docs: ## write the generated pages
	$(PYTHON) scripts/generate-docs

lock: ## write the lock files, with hashes and without index addresses
	$(COMPILE) pyproject.toml --output-file requirements.lock
	$(COMPILE) pyproject.toml --extra service --output-file requirements-service.lock
	$(COMPILE) pyproject.toml packages/toolscript-eval/pyproject.toml --extra service --extra dev \
		--no-emit-package toolscript --output-file requirements-dev.lock

serve: ## answer searches on this machine
	$(PYTHON) -m toolscript serve
