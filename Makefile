# Every target brings what it needs: the locked npm packages, Node 24 and the Postgres binaries.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

.PHONY: help setup check generate format test verify

help: ## lists the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: node_modules/.package-lock.json

node_modules/.package-lock.json: package-lock.json package.json
	@echo "Installing packages, Node 24 and Postgres 17 from the lock file …"
	@npm ci --no-progress --loglevel=error
	@touch $@

check: setup ## types, lint, format, layers, generated files, unused exports
	@tools/check.sh

generate: setup ## writes the generated files anew
	@node tools/generate.ts

format: setup ## formats every file
	@biome check --write --no-errors-on-unmatched . 

test: setup ## every test that needs no cluster, small n
	@tools/test.sh

verify: setup ## the same tests with full n, and the slow ones
	@FULL=1 tools/test.sh
