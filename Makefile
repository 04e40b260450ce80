# The front door: everything that is done with this repository is a target here, and CI calls the same ones.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# How tools are provided that are not there.
export CARGO_INSTALL ?= $(CARGO) install --locked
IMAGE ?= kube-unions:dev
BIN := $(abspath $(or $(CARGO_TARGET_DIR),target)/release/kube-unions)
FUZZ_SECONDS ?= 20
LOSS_SECONDS ?= 60
# Provides helm for the tests of the chart.
HELM := tests/controlplane/assets.sh helm
# Provides kube-controller-manager, for the tests of garbage collection.
CONTROLLERS := tests/controlplane/assets.sh controller-manager
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
	@if [ "$${KUBE_UNIONS_E2E:-}" != skip ]; then $(MAKE) -s assets >/dev/null; $(HELM) >/dev/null; $(CONTROLLERS) >/dev/null; fi
	$(CARGO) test --locked --workspace --all-features -- --skip loss::
	@$(MAKE) -s loss LOSS_SECONDS=1

.PHONY: e2e
e2e: build ## The tests on a real API server alone
	@$(MAKE) -s assets >/dev/null; $(HELM) >/dev/null; $(CONTROLLERS) >/dev/null
	$(CARGO) build --locked --package kube-unions-author --example rollout
	$(CARGO) test --locked --all-features --test e2e -- --skip loss::
	@$(MAKE) -s loss LOSS_SECONDS=1

.PHONY: loss
loss: build ## Counts lost writes, LOSS_SECONDS for each thing that happens to replicas, certificates and the API server
	@if [ "$${KUBE_UNIONS_E2E:-}" != skip ]; then $(MAKE) -s assets >/dev/null; fi
	KUBE_UNIONS_E2E_LOSS_SECONDS=$(LOSS_SECONDS) \
	  $(CARGO) test --locked --all-features --test e2e -- --test-threads=1 loss::

.PHONY: assets
assets: ## kube-apiserver, etcd and kubectl for the tests; prints their folder alone on stdout
	@tests/controlplane/assets.sh

.PHONY: lint
lint: ## Formatting, clippy, the core alone, licences and advisories, scripts
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --workspace --all-features --all-targets -- -D warnings
	$(CARGO) metadata --locked --format-version 1 --manifest-path tests/fuzz/Cargo.toml >/dev/null
	$(MAKE) -s deny
	$(MAKE) -s shellcheck

.PHONY: deny
deny: ## Licences, sources and duplicates of dependencies
	@command -v cargo-deny >/dev/null 2>&1 || $(CARGO_INSTALL) cargo-deny
	$(CARGO) deny --workspace --all-features check bans licenses sources

.PHONY: fmt
fmt: ## Formats the code
	$(CARGO) fmt --all

.PHONY: chart
chart: build ## The Helm chart: lint, rendering, and what a real API server says of it
	@$(MAKE) -s assets >/dev/null; $(HELM) >/dev/null; $(CONTROLLERS) >/dev/null
	$(CARGO) test --locked --all-features --test it chart::
	$(CARGO) test --locked --all-features --test e2e chart::

.PHONY: manifests
manifests: ## Writes what is made from something else: the CRD of UnionDeclaration, parts of the chart, manifests/webhook
	@$(HELM) >/dev/null
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test it custom_resource
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test it chart::
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test e2e -- chart::manifests chart::rendering::the_default

.PHONY: crates
crates: ## Draws the crates of the workspace into the README
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --package kube-unions --test it crates::the_diagram

# The crates that a registry gets, in the order in which it gets them.
PACKAGES := kube-unions-core strategic-merge-patch kube-unions-go kube-unions-author kube-unions
# The crates that run in a browser, too.
WASM := kube-unions-core strategic-merge-patch
# The Kubernetes version of k8s-openapi, which a crate of a user chooses: the same as in Cargo.toml.
packages packages-quick: export K8S_OPENAPI_ENABLED_VERSION ?= 1.37

.PHONY: packages
packages: packages-quick ## Each crate alone, as a registry and its users get it: built, and packaged from its own files
	for package in $(PACKAGES); do $(CARGO) build --locked --package $$package; done
	$(CARGO) package --locked --allow-dirty $(addprefix --package ,$(PACKAGES))

.PHONY: packages-quick
packages-quick: ## The part of it that needs little building: each feature, WebAssembly, programs that use one crate, the list of files
	rustup target add wasm32-unknown-unknown
	for package in $(WASM); do $(CARGO) check --locked --target wasm32-unknown-unknown --package $$package; done
	@command -v cargo-hack >/dev/null 2>&1 || $(CARGO_INSTALL) cargo-hack
	$(CARGO) hack check --locked --workspace --exclude kube-unions-fixtures --each-feature
	tests/users.sh
	$(CARGO) package --locked --allow-dirty --no-verify $(addprefix --package ,$(PACKAGES))

.PHONY: go-samples
go-samples: ## The CRDs of the Go samples that `generate` is tested with, by the pinned controller-gen (needs Go)
	tests/cases/go/crds.sh

.PHONY: go-samples-check
go-samples-check: ## Whether the Go samples are Go, and their CRDs what controller-gen makes of them (needs Go)
	cd tests/cases/go/fleet && go vet ./... && go vet -tags enterprise ./...
	cd tests/cases/go/doubtful && go vet ./...
	tests/cases/go/crds.sh --check

.PHONY: docs
docs: ## The documentation, warnings refused
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --exclude kube-unions-fixtures --all-features --no-deps

.PHONY: bench
bench: ## What reviews and patches cost, next to a floor and to Go's package measured in the same run
	$(CARGO) bench --locked --package kube-unions-core --bench review
	$(CARGO) bench --locked --package strategic-merge-patch --bench strategic

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZ_SECONDS each, from the checked-in corpus (needs nightly and cargo-fuzz)
	tests/fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: fuzz-differential
fuzz-differential: ## Patches against Go's package: DIFFERENTIAL_CASES random ones from a random seed (needs Go)
	KUBE_UNIONS_DIFFERENTIAL_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_DIFFERENTIAL_CASES=$(DIFFERENTIAL_CASES) \
	  $(CARGO) test --locked --package strategic-merge-patch --test it differential -- --nocapture

.PHONY: image
image: ## The container image (needs a container engine); IMAGE_PLATFORM=linux/arm64 for another than this machine's
	docker build $(if $(IMAGE_PLATFORM),--platform $(IMAGE_PLATFORM)) --tag $(IMAGE) .

# What the image holds, laid into the folder CONTENTS. The Dockerfile does it by this target, and so does `image-root`.
#
# The binary is static, with glibc in it: its allocator scales with threads where musl's does not, and since 2.34 it has
# the resolver of names built in, so that nothing is loaded at run time. Its licence (LGPL) wants glibc to be
# exchangeable, and these sources built again exchange it. LICENSE, of all the rest, asks to go with the binary.
#
# Not there, since nothing reads it: public certificate authorities (a pod has the cluster's own mounted), users (the
# number is enough), nsswitch.conf (glibc's own order is the hosts file, then DNS), a folder for temporary files, a
# shell.
#
# The target is named, although it is the host: so the flag does not count for what only runs during the build.
IMAGE_PROFILE ?= release
CONTENTS ?= $(or $(CARGO_TARGET_DIR),target)/image
image_target = $(or $(CARGO_TARGET_DIR),target)/$(1)/$(patsubst dev,debug,$(IMAGE_PROFILE))/kube-unions

.PHONY: image-contents
image-contents:
	target=$$(rustc -vV | sed -n 's/^host: //p'); \
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --locked --profile $(IMAGE_PROFILE) --all-features \
	  --bin kube-unions --target "$$target"; \
	install -D -m 0755 "$(call image_target,$$target)" '$(CONTENTS)/usr/local/bin/kube-unions'
	install -D -m 0644 LICENSE '$(CONTENTS)/licenses/LICENSE'

.PHONY: image-root
image-root: ## What the image holds, run in a root folder of its own, without an engine (needs root or user namespaces)
	tests/image.sh

.PHONY: e2e-kind
e2e-kind: ## The end-to-end tests on a kind cluster with the image and the chart (needs docker, kind, kubectl, helm)
	tests/kind.sh

.PHONY: shellcheck
shellcheck: ## Every script of the repository
	tests/shellcheck.sh
