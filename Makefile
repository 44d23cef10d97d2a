# EvalStudio: make help lists what there is to do.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
BIN := .venv/bin
# Without bytecode every command of the tests would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup web demo test parts pytest web-tests soak lint style types web-check format hooks coverage mutants bench bench-peers lock clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: ## Make .venv, install everything needed, build the web UI
	@scripts/setup
	@scripts/web

web: ## Build the web UI anew
	@scripts/setup
	@scripts/web --force

demo: setup ## Evaluate a bundled booking agent and find its planted bug, no key needed
	@PATH="$(CURDIR)/$(BIN):$$PATH" evalstudio demo
	@echo "  (evalstudio lives in $(BIN): source $(BIN)/activate)"

# The types and the web are checked while the tests wait for servers, processes and browsers.
test: setup parts style ## Check and test everything, reduced sizes
	@$(MAKE) --no-print-directory -j3 types web-tests pytest

# More processes than cores, as they wait a lot. A make that a test runs is one of its own.
pytest: setup parts
	@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest -m "not soak" -n 4 --dist loadfile \
		--no-loadscope-reorder tests

web-tests: web-check
	@cd web && PATH="$$PATH:$(CURDIR)/$(BIN)" npm test --silent

parts:
	@scripts/test-parts

soak: setup parts ## The full-size fault, load and growth tests
	@scripts/test-parts faketime
	@$(BIN)/python -m pytest -m soak -s

lint: setup style ## Format check, lint, types, layers of packages
	@$(MAKE) --no-print-directory -j2 --output-sync types web-check

style: setup
	@$(BIN)/ruff format --check --quiet . || { echo "Run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache | tail -n 4

types: setup
	@$(BIN)/basedpyright --warnings

web-check: setup
	@cd web && PATH="$$PATH:$(CURDIR)/$(BIN)" npm run --silent check

format: setup ## Format the code
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix --quiet .

hooks: setup ## Run the checks of make lint before each commit
	@$(BIN)/pre-commit install

coverage: setup parts ## What the tests reach of the package; fails below the floor
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest -m "not soak" -n 2 --dist loadfile --no-loadscope-reorder --ignore tests/e2e
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

mutants: setup ## Put small faults into the code that decides; the tests must notice each
	@$(BIN)/python scripts/mutants

bench: setup ## Speed as ratios against raw floors, in one run
	@$(BIN)/python -m benchmarks

bench-peers: setup ## The same work by EvalStudio, autoevals, pydantic-evals and plain code
	@[ -x .venv-peers/bin/python ] || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-peers
	@VIRTUAL_ENV="$(CURDIR)/.venv-peers" UV_COMPILE_BYTECODE=1 \
		$(BIN)/uv pip sync --quiet --require-hashes benchmarks/peers.lock
	@$(BIN)/python -m benchmarks.peers

lock: ## Resolve the dependencies anew into requirements.lock
	@[ -x $(BIN)/uv ] || scripts/setup
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
		--upgrade --quiet -o requirements.lock
	@$(BIN)/uv pip compile benchmarks/peers.in --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
		--upgrade --quiet -o benchmarks/peers.lock

clean: ## Remove what the commands above made
	@rm -rf .venv .venv-peers dist build .hypothesis .ruff_cache .import_linter_cache .coverage .coverage.*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
