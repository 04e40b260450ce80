# The front door: everything that is done with this repository is a target here, and CI calls the same ones.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
IMAGE ?= kube-unions:dev
BIN := $(abspath $(or $(CARGO_TARGET_DIR),target)/release/kube-unions)
FUZZ_SECONDS ?= 20
DIFFERENTIAL_CASES ?= 1000000

# The binary that the demo and the end-to-end tests run.
export KUBE_UNIONS_BIN ?= $(BIN)

.PHONY: help
help: ## What can be done here
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## The release binary, target/release/kube-unions
	$(CARGO) build --locked --release

.PHONY: run
run: build ## The webhook with the samples, without a cluster, on loopback
	$(BIN) serve --from manifests/samples --tls-self-signed --tls-ca-file certs/run-ca.crt \
	  --bind 127.0.0.1:10250 --ops-bind 127.0.0.1:8080 --log-format text

.PHONY: demo
demo: build ## The same, asked one review, which it answers; then it ends
	tests/demo.sh

.PHONY: test
test: build ## Every test, those on a real API server included (KUBE_UNIONS_E2E=skip leaves these out)
	@if [ "$${KUBE_UNIONS_E2E:-}" != skip ]; then $(MAKE) -s assets >/dev/null; fi
	$(CARGO) test --locked --all-features
	$(CARGO) test --locked --no-default-features --lib

.PHONY: e2e
e2e: build ## The tests on a real API server alone
	@$(MAKE) -s assets >/dev/null
	$(CARGO) test --locked --all-features --test e2e

.PHONY: assets
assets: ## kube-apiserver, etcd and kubectl for the tests; prints their folder alone on stdout
	@tests/controlplane/assets.sh

.PHONY: lint
lint: ## Formatting, clippy, the core alone, licences and advisories
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --all-features --all-targets -- -D warnings
	$(CARGO) clippy --locked --no-default-features --lib -- -D warnings
	$(CARGO) check --locked --no-default-features --features cli
	$(MAKE) -s deny

.PHONY: deny
deny: ## Licences, sources and duplicates of dependencies
	@command -v cargo-deny >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --all-features check bans licenses sources

.PHONY: fmt
fmt: ## Formats the code
	$(CARGO) fmt --all

.PHONY: manifests
manifests: ## Writes what is made from the code: the CRD of UnionDeclaration
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test it custom_resource

.PHONY: docs
docs: ## The documentation, warnings refused
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --all-features --no-deps

.PHONY: bench
bench: ## What reviews and patches cost, next to a floor and to Go's package measured in the same run
	$(CARGO) bench --locked --no-default-features --bench review
	$(CARGO) bench --locked --no-default-features --bench strategic

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZ_SECONDS each, from the checked-in corpus (needs nightly and cargo-fuzz)
	tests/fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: fuzz-differential
fuzz-differential: ## Patches against Go's package: DIFFERENTIAL_CASES random ones from a random seed (needs Go)
	KUBE_UNIONS_DIFFERENTIAL_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_DIFFERENTIAL_CASES=$(DIFFERENTIAL_CASES) \
	  $(CARGO) test --locked --no-default-features --test it differential -- --nocapture

.PHONY: image
image: ## The container image (needs a container engine)
	docker build --tag $(IMAGE) .
