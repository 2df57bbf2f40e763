# Every recipe works from a clean checkout; `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup protos lint types test demo demo-slack demo-slack-tour up down evals bench faults-kill soak images verify lock release-protos

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
SERVICES := ingest ingest.worker retrieve rerank answer gateway gateway.worker
SOURCES := services tests evals bench
export PYTHONPATH := $(CURDIR):$(CURDIR)/gen

PROTO_FILES := $(shell find protos -name '*.proto' | sort)
INSTALLED := $(VENV)/.made
GENERATED := gen/.made

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-15s %s\n", $$1, $$2}'

setup: $(INSTALLED) $(GENERATED) ## Install the locked packages into .venv and generate the protos

$(INSTALLED): requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer, or set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: set PYTHON=python3.11 or newer"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv is missing: install the package python3-venv (Debian, Ubuntu)"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	@echo "installing packages (about a minute the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@printf '%s\n%s\n' "$$PWD" "$$PWD/gen" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/recall.pth"
	@printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -m services.cli "$$@"\n' > $(BIN)/recall
	@chmod +x $(BIN)/recall
	@touch $@

protos: $(GENERATED) ## Generate gen/ from protos/

$(GENERATED): $(PROTO_FILES) $(INSTALLED)
	@rm -rf gen.new && mkdir -p gen.new
	@$(BIN)/python -m grpc_tools.protoc -I protos --python_out=gen.new --grpc_python_out=gen.new \
		--plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
		--plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
		--mypy_out=quiet:gen.new --mypy_grpc_out=quiet:gen.new $(PROTO_FILES)
	@touch gen.new/.made && rm -rf gen && mv gen.new gen

lint: setup ## ruff, buf lint, format and breaking, import contracts
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check --quiet $(SOURCES)
	@$(BIN)/buf lint protos
	@$(BIN)/buf format protos --diff --exit-code
	@$(BIN)/buf breaking protos --against protos/released.binpb
	@$(BIN)/lint-imports --no-cache

types: setup ## mypy --strict
	@$(BIN)/mypy $(SOURCES)

verify: lint types ## Everything CI checks without running the product

test: setup ## The whole test suite: real PostgreSQL, real gRPC, no network
	@$(BIN)/pytest -n 2 --dist loadfile --durations 25

demo: setup ## Start everything, load Beacon (or EXPORT=path), show something, stay until Ctrl-C
	@exec $(BIN)/python -m services.stack demo --export "$$EXPORT"

demo-slack: setup ## Try the Slack side without a Slack account: Beacon as its workspace
	@$(BIN)/python -m tests.demo_slack

demo-slack-tour: setup ## Show it step by step: a message, its edit, its deletion
	@$(BIN)/python -m tests.demo_slack --tour

up: setup ## The same in the background (EXPORT=path too)
	@$(BIN)/python -m services.stack up --export "$$EXPORT"

down: setup ## Stop everything
	@$(BIN)/python -m services.stack down

evals: setup ## Measure retrieval and answers on labelled questions
	@$(BIN)/python -m evals

bench: setup ## Measure memory and speed
	@$(BIN)/python -m bench

faults-kill: setup ## Kill processes 200 times under load and check that nothing is lost (KILLS, SEED)
	@set -o pipefail; $(BIN)/python -m tests.faults.kill --kills $(or $(KILLS),200) \
		$(if $(SEED),--seed $(SEED)) | tee docs/faults-kill.txt

soak: setup ## Random interleavings of events, jobs, crashes and questions (STEPS, SEED)
	@set -o pipefail; $(BIN)/python -m tests.property.soak $(if $(STEPS),--steps $(STEPS)) \
		$(if $(SEED),--seed $(SEED)) | tee docs/soak.txt

images: ## Build the container images (needs a Docker engine)
	@command -v docker >/dev/null && docker info >/dev/null 2>&1 || { echo "No Docker engine answers: start one, then make images."; exit 1; }
	@for service in $(SERVICES); do docker build -f deploy/Dockerfile --build-arg SERVICE=$$service -t recall-$${service/./-}:$(VERSION) . || exit 1; done

lock: ## Lock the packages again after a change of pyproject.toml (needs uv)
	@uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-annotate --quiet -o requirements.lock

release-protos: setup ## Record the present contracts as the ones that may not be broken
	@$(BIN)/buf build protos -o protos/released.binpb
