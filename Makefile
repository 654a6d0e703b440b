# Every target is one line; what it does is in the script or the module that it calls.
.DEFAULT_GOAL := help
.PHONY: help setup demo up test check build deploy bench lock openapi
BIN := .venv/bin

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

setup: ## install everything that is missing
	@scripts/setup

demo: setup ## run a sample task from start to end on an AWS of your own
	@$(BIN)/sandpiper demo

up: setup ## keep the embedded AWS running on http://127.0.0.1:8787
	@$(BIN)/sandpiper up

check: setup ## lint, types, template
	@scripts/check

test: check ## everything that CI checks
	@scripts/test

build: setup ## sam build
	@PATH="$(CURDIR)/$(BIN):$$PATH" .tools/sam/bin/sam build

deploy: build ## sam deploy --guided
	@.tools/sam/bin/sam deploy --guided

bench: setup ## measure; writes bench/results.md
	@$(BIN)/python -m bench

openapi: setup ## write docs/openapi.json from the routes
	@PYTHONPATH=functions $(BIN)/python scripts/openapi.py

lock: setup ## resolve dependencies again
	@scripts/lock
