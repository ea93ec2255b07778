# Every target brings what it needs: the locked npm packages, Node 24 and the Postgres binaries.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

.PHONY: help setup up down reset user disable-user check generate format test verify planted-bugs fuzz e2e images manifests storm bench

help: ## lists the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: node_modules/.package-lock.json

node_modules/.package-lock.json: package-lock.json package.json
	@echo "Installing packages, Node 24 and Postgres 17 from the lock file …"
	@command -v npm >/dev/null || { echo "npm is missing: install Node 20 or newer, which brings it" >&2; exit 1; }
	@npm ci --no-progress --loglevel=error
	@[ "$$(node -p 'parseInt(process.versions.node)')" -ge 24 ] || { echo "Node 24 does not come as a package for this platform: install it" >&2; exit 1; }
	@touch $@

up: setup ## starts everything and stays in the foreground; DETACH=1 returns when it is ready
	@exec node box/up.ts

down: setup ## stops everything on SERVICE_HOME, databases included
	@exec node box/down.ts

reset: setup ## deletes SERVICE_HOME with every database in it, after asking
	@exec node box/reset.ts

user: setup ## makes a user with EMAIL=… and prints a token once
	@exec node box/make-user.ts

disable-user: setup ## shuts the account of EMAIL=… out, its sessions and tokens too; ENABLE=1 lets it in again
	@exec node box/disable-user.ts

check: setup ## types, lint, format, layers, generated files, unused exports
	@tools/check.sh

generate: setup ## writes the generated files anew
	@node tools/generate.ts

format: setup ## formats every file
	@biome check --write --no-errors-on-unmatched . 

test: setup ## every test that needs no cluster, small n
	@tools/test.sh

verify: setup ## the tests that have a larger n, with that
	@FULL=1 tools/test.sh

planted-bugs: setup ## plants bugs of authorization, one at a time, and says which test catches each; by hand
	@node tools/planted-bugs.ts

fuzz: setup ## N=1000000 requests out of the OpenAPI document, with a seed to repeat them by: SEED=…; by hand
	@FUZZ_N=$(or $(N),1000000) FUZZ_SEED=$(or $(SEED),random) tools/test.sh apiserver/test/fuzz.test.ts

e2e: setup ## every test that needs Kubernetes: on the cluster of KUBECONFIG, else on one that kind makes
	@tools/e2e.sh

storm: setup ## ten storms of random faults, each with a seed to repeat it by; by hand
	@for i in 1 2 3 4 5 6 7 8 9 10; do FULL=1 STORM_SEED=random tools/test.sh e2e/storm.test.ts || exit 1; done

bench: setup ## measures everything and writes docs/benchmarks.md
	@node bench/run.ts

manifests: setup ## renders what manifests/ takes from the chart anew; needs helm
	@node tools/render-manifests.ts

images: ## builds the container images with docker, podman or buildah; SAVE=folder writes archives too
	@tools/images.sh
