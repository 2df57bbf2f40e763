# Every recipe runs from a clean checkout; `make help` lists the targets.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONPATH := $(CURDIR):$(CURDIR)/gen

PROTO_FILES := $(shell find protos -name '*.proto')
GENERATED := gen/.made

$(GENERATED): $(PROTO_FILES) $(VENV)/.made
	@rm -rf gen && mkdir -p gen
	@$(BIN)/python -m grpc_tools.protoc -I protos --python_out=gen --grpc_python_out=gen \
		--plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
		--plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
		--mypy_out=quiet:gen --mypy_grpc_out=quiet:gen $(PROTO_FILES)
	@touch $@
