# Every task of this repository is a target. CI calls the same targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Installs missing tools.
export CARGO_INSTALL ?= $(CARGO) install --locked
IMAGE ?= kube-unions:dev
IMAGE_ARCHIVE ?= $(TARGET)/image.tar
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
BIN := $(TARGET)/release/kube-unions
# The patch engine for other languages.
WASM_PATCH := $(TARGET)/wasm32-wasip1/wasm/strategic-merge-patch.wasm
FUZZ_SECONDS ?= 20
LOSS_SECONDS ?= 60
# Builds helm, for the tests of the chart.
HELM := tests/controlplane/assets.sh helm
# Build kustomize and Helm 4, for the tests of patches and functions, and of the page about post-renderers.
KUSTOMIZE := tests/controlplane/assets.sh kustomize
HELM4 := tests/controlplane/assets.sh helm4
# Builds kube-controller-manager, for the tests of pages that install the chart.
CONTROLLERS := tests/controlplane/assets.sh controller-manager
DIFFERENTIAL_CASES ?= 1000000
# Sequences of eight writes.
DIFFERENTIAL_SEQUENCES ?= 12500
DIFFERENTIAL_PATCHES ?= 200000
PATCH_EDITS ?= 2000
NATIVE_TRANSITIONS ?= 500000
TRUTH_KINDS ?= 200
MARKERS_OBJECTS ?= 300
LAW_CASES ?= 5000
UNTOUCHED_WRITES ?= 20000
PLAYER_REQUESTS ?= 100000

# The command line that the demo and the tests run, and the webhook, which is beside it unless another one is named. `make build` builds
# both, unless another command line is named.
export KUBE_UNIONS_BIN ?= $(BIN)
export KUBE_UNIONS_WEBHOOK_BIN ?= $(KUBE_UNIONS_BIN)-webhook

# A line `##@ GROUP` begins a group of targets. `help` ends where the second one begins.
HELP := awk 'BEGIN { FS = ":.*\#\# " } \
  /^\#\#@ / { if (groups++ && !all) exit; printf "%s%s:\n", (groups > 1 ? "\n" : ""), substr($$0, 5) } \
  /^[a-z0-9-]+:.*\#\# / { printf "  make %-24s %s\n", $$1, $$2 }'

.PHONY: help
help:
	@$(HELP) $(MAKEFILE_LIST)
	@printf '\nmake help-all lists all targets, docs/developing/targets.md says which are for what.\n'

.PHONY: help-all
help-all:
	@$(HELP) all=1 $(MAKEFILE_LIST)

##@ First steps

.PHONY: quickstart
quickstart: build ## Try kube-unions on a throw-away API server, without a container engine (needs Go once)
	tests/quickstart.sh

.PHONY: demo
demo: build ## Run the webhook with the samples, send it one review and show the answer
	tests/demo.sh

.PHONY: run
run: build ## Run the webhook with the samples on loopback, without a cluster, and print a review to send it
	@echo "Send it a review from another terminal:"
	@echo "  curl --cacert certs/run-ca.crt -H 'Content-Type: application/json' --data-binary @manifests/samples/review.json https://127.0.0.1:10250/mutate"
	$(KUBE_UNIONS_WEBHOOK_BIN) serve --from manifests/samples --tls-self-signed --tls-ca-file certs/run-ca.crt \
	  --bind 127.0.0.1:10250 --ops-bind 127.0.0.1:8080 --log-format text

.PHONY: build
build: ## Build both programs, target/release/kube-unions and target/release/kube-unions-webhook
	$(if $(filter $(BIN),$(KUBE_UNIONS_BIN)),$(CARGO) build --locked --release)

# Many tests wait for a server more than they compute.
test e2e slowest: export RUST_TEST_THREADS ?= $(shell expr 3 '*' "$$(getconf _NPROCESSORS_ONLN)")

.PHONY: test
test: build ## Run every test, including those on a real API server (KUBE_UNIONS_E2E=skip leaves these out), but `make loss`
	@if [ "$${KUBE_UNIONS_E2E:-}" != skip ]; then $(MAKE) -s assets >/dev/null; $(HELM) >/dev/null; $(HELM4) >/dev/null; $(KUSTOMIZE) >/dev/null; $(CONTROLLERS) >/dev/null; fi
	$(CARGO) test --locked --workspace --all-features --no-fail-fast -- --skip loss::

.PHONY: lint
lint: ## Check formatting, lock files, the faults of the simulation, clippy, licences, scripts and workflows (needs Go)
	$(CARGO) fmt --all -- --check
	for patch in tests/simulation/faults/*.patch; do git apply --check $$patch || exit 1; done
	for manifest in Cargo.toml site/bindgen/Cargo.toml tests/fuzz/Cargo.toml tests/generators/*/Cargo.toml tests/users/*/Cargo.toml; do \
	  $(CARGO) metadata --locked --format-version 1 --manifest-path $$manifest >/dev/null; \
	done
	$(CARGO) clippy --locked --workspace --all-features --all-targets -- -D warnings
	$(MAKE) -s deny
	$(MAKE) -s shellcheck
	$(MAKE) -s workflows

.PHONY: fmt
fmt: ## Format the code
	$(CARGO) fmt --all

.PHONY: reference
reference: ## Write docs/reference, and the answers in sessions of the command line
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test it -- reference cli::sessions

##@ Generated files

.PHONY: manifests
manifests: build ## Write generated files: the CRD of UnionDeclaration, presets of pod templates, the document of built-in kinds, lists of presets, parts of the chart, manifests/webhook, manifests/policies
	@$(MAKE) -s assets >/dev/null; $(HELM) >/dev/null
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test it custom_resource
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test it -- presets::the_presets_of_pod_templates presets::contributed
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test e2e -- builtin_kinds::document compile::presets::the_policies_of
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test it -- cli::compile::the_guide chart::
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --all-features --test e2e -- chart::manifests

.PHONY: crates
crates: ## Draw the crates of the workspace into CONTRIBUTING.md
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --package kube-unions --test it crates::the_diagram

.PHONY: man
man: build ## Write the manual pages for packages, target/man/*.1
	$(KUBE_UNIONS_BIN) completion man target/man

.PHONY: versions
versions: ## Write the table of the versions of Kubernetes into the guide, from the recorded runs
	KUBE_UNIONS_UPDATE=1 $(CARGO) test --locked --package kube-unions --test it versions::the_table

.PHONY: go-samples
go-samples: ## Generate the CRDs of the Go samples with the pinned controller-gen (needs Go)
	tests/cases/go/crds.sh

##@ Tests

.PHONY: e2e
e2e: build ## Run the tests on a real API server; K8S_VERSION=1.33 selects its version, and records the run in the guide
	@$(MAKE) -s assets >/dev/null; $(HELM) >/dev/null; $(HELM4) >/dev/null; $(KUSTOMIZE) >/dev/null; $(CONTROLLERS) >/dev/null
	$(CARGO) build --locked --package kube-unions-author --example rollout
	$(CARGO) build --locked --all-features --example patch-custom-resource
	$(if $(K8S_VERSION),tests/versions.sh) $(CARGO) test --locked --all-features --test e2e -- --skip loss:: --skip simulated::
	@$(MAKE) -s loss LOSS_SECONDS=1
	$(if $(K8S_VERSION),@$(MAKE) -s versions)

.PHONY: e2e-older
e2e-older: ## Run the tests of policies on an API server of Kubernetes 1.33, which the first run builds
	@$(MAKE) -s assets >/dev/null
	K8S_VERSION=1.33 tests/controlplane/assets.sh >/dev/null
	KUBE_UNIONS_E2E_OLDER=require $(CARGO) test --locked --all-features --test e2e -- older

.PHONY: e2e-go
e2e-go: go-example ## Run the example for controllers in Go on a real API server (needs Go)
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_E2E_GO=require $(CARGO) test --locked --all-features --test e2e -- patch::the_example_for_controllers_in_go

.PHONY: e2e-gitops
e2e-gitops: build gitops ## Apply manifests as Flux, Argo CD and controllers do, on a real API server (needs Go)
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_E2E_GO=require $(CARGO) test --locked --all-features --test e2e -- gitops:: clients::a_gitops_tool

.PHONY: e2e-kind
e2e-kind: ## Run the end-to-end tests on a kind cluster with image and chart (needs docker, kind, kubectl, helm)
	tests/kind.sh

.PHONY: loss
loss: build ## Count lost writes while replicas, certificates and the API server change, LOSS_SECONDS each
	@if [ "$${KUBE_UNIONS_E2E:-}" != skip ]; then $(MAKE) -s assets >/dev/null; fi
	KUBE_UNIONS_E2E_LOSS_SECONDS=$(LOSS_SECONDS) \
	  $(CARGO) test --locked --workspace --all-features --test e2e -- --test-threads=1 loss::

.PHONY: law
law: ## Apply LAW_CASES random manifests three times each, with the webhook and with policies, from a random seed
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_LAW_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_LAW_CASES=$(LAW_CASES) \
	  $(CARGO) test --locked --all-features --test e2e -- --nocapture applied::law

.PHONY: untouched
untouched: ## Make UNTOUCHED_WRITES random writes with conditions of entries and without, from a random seed
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_UNTOUCHED_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_UNTOUCHED_WRITES=$(UNTOUCHED_WRITES) \
	  $(CARGO) test --locked --all-features --test e2e -- --nocapture untouched::random

.PHONY: simulate
simulate: ## Run replicas on a simulated API server, once for each of SEEDS seeds, and a hundred times for the first; FROM=1 is the first
	$(CARGO) run --locked --release --package kube-unions-simulation --bin simulate -- \
	  --seeds $(or $(SEEDS),1000) --from $(or $(FROM),1) --again 100

.PHONY: simulate-faults
simulate-faults: ## Put faults of the past back one by one, and print the seed with which the simulation finds each
	tests/simulation/faults.sh

.PHONY: mutants
mutants: ## Change the code of each ROOM in one place at a time, and print the changes that no fast test catches (needs cargo-mutants); SHARD=0/20 takes a part
	tests/mutants.sh $(ROOM)

.PHONY: player
player: ## Send PLAYER_REQUESTS random requests to the simulated and to a real API server, from a random seed
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_PLAYER_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_PLAYER_REQUESTS=$(PLAYER_REQUESTS) \
	  $(CARGO) test --locked --all-features --test e2e -- --nocapture simulated::

.PHONY: chart
chart: build ## Check the Helm chart: lint, rendering, and a real API server
	@$(MAKE) -s assets >/dev/null; $(HELM) >/dev/null; $(CONTROLLERS) >/dev/null
	$(CARGO) test --locked --all-features --test it chart::
	$(CARGO) test --locked --all-features --test e2e chart::

.PHONY: editor
editor: build ## Check that yaml-language-server names the right field of a union, and that it and kubeconform judge as `audit` and an API server do (needs Node.js and Go)
	cd tests/editor && npm ci
	$(KUBE_UNIONS_BIN) compile --to json-schema --from manifests/samples/rollout/crd.yaml --output-dir $(TARGET)/editor
	for name in two-members missing-member empty-member-with-settings; do \
	  node tests/editor/check.mjs $(TARGET)/editor/samples.kube-unions.dev/rollout_v1.json manifests/samples/rollout/rejected-$$name; \
	done
	tests/editor/kubeconform.sh $(TARGET)/editor
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_KUBECONFORM=$(TARGET)/editor/kubeconform $(CARGO) test --locked --all-features --test e2e -- builtin_kinds::schemas

.PHONY: monitoring
monitoring: ## Evaluate each alert and each panel of the dashboard (needs jq, and promtool or Go)
	tests/monitoring.sh

.PHONY: shells
shells: ## Install the shells whose completion is tested: zsh, fish and elvish (needs Debian or Ubuntu, and root)
	@[ "$$(command -v zsh fish elvish | wc -l)" = 3 ] || \
	  { apt-get update -q && apt-get install -y -q --no-install-recommends zsh fish elvish; }

.PHONY: completion
completion: ## Test completion in bash, zsh, fish and elvish, which must be installed
	KUBE_UNIONS_SHELLS=require $(CARGO) test --locked --workspace --all-features --test it completion::

.PHONY: assets
assets: ## Get kube-apiserver, etcd and kubectl for the tests, and print their folder
	@tests/controlplane/assets.sh

##@ Checks

.PHONY: deny
deny: ## Check licences, sources and duplicates of dependencies
	@command -v cargo-deny >/dev/null 2>&1 || $(CARGO_INSTALL) cargo-deny
	$(CARGO) deny --workspace --all-features check bans licenses sources

.PHONY: shellcheck
shellcheck: ## Check every script of the repository
	tests/shellcheck.sh

.PHONY: docs
docs: ## Build the documentation, and fail on warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --exclude kube-unions-fixtures --all-features --no-deps

# The published crates, in the order of publishing: those that a program of somebody else can use.
PACKAGES := kube-unions-core kube-unions-manifests kube-unions-policies strategic-merge-patch kube-unions-author
# The crates of the program and of the module for other languages.
PARTS := kube-unions-api kube-unions-command kube-unions-evidence kube-unions-go kube-unions-offline kube-unions-webhook strategic-merge-patch-stdio kube-unions
# The crates that also run in a browser.
WASM := kube-unions-core kube-unions-manifests kube-unions-policies strategic-merge-patch

.PHONY: packages
packages: packages-quick ## Build each crate alone, and package each published one from its own files
	for package in $(PACKAGES) $(PARTS); do $(CARGO) build --locked --package $$package; done
	$(CARGO) package --locked --allow-dirty $(addprefix --package ,$(PACKAGES))

# The crates of WASM have no default features, so that their check for WebAssembly is the one of each alone.
.PHONY: packages-quick
packages-quick: ## Check each feature and WebAssembly, run programs that use one crate, list the packaged files
	rustup target add wasm32-unknown-unknown
	for package in $(WASM); do $(CARGO) check --locked --target wasm32-unknown-unknown --package $$package; done
	for package in $(filter-out $(WASM),$(PACKAGES) $(PARTS)); do $(CARGO) check --locked --no-default-features --package $$package; done
	$(CARGO) check --locked --package kube-unions-core --features kube
	$(CARGO) check --locked --package kube-unions-author --example rollout
	tests/users.sh
	$(CARGO) package --locked --allow-dirty --no-verify $(addprefix --package ,$(PACKAGES))

.PHONY: semver
semver: ## Compare the API of each published crate with the last release
	@release=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || { echo "there is no release to compare with"; exit 0; }; \
	command -v cargo-semver-checks >/dev/null 2>&1 || $(CARGO_INSTALL) cargo-semver-checks; \
	$(CARGO) semver-checks --baseline-rev "$$release" $(addprefix --package ,$(PACKAGES))

# The tool reads one version of rustdoc's JSON, which is unstable: the one that the pinned tool chain writes. Another tool chain may
# need another version of the tool.
EXTERNAL_TYPES_VERSION := 0.5.0
EXTERNAL_TYPES := $(TARGET)/external-types-$(EXTERNAL_TYPES_VERSION)

.PHONY: external-types
external-types: ## Check that the API of each published crate has only those types of other crates that its Cargo.toml allows
	@[ -x $(EXTERNAL_TYPES)/bin/cargo-check-external-types ] || \
	  $(CARGO_INSTALL) --root $(EXTERNAL_TYPES) --version $(EXTERNAL_TYPES_VERSION) cargo-check-external-types
	for package in $(PACKAGES); do \
	  manifest=$$($(CARGO) pkgid --package "$$package" | sed 's,^path+file://,,; s,#.*,/Cargo.toml,'); \
	  RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$(EXTERNAL_TYPES) $(EXTERNAL_TYPES)/bin/cargo-check-external-types check-external-types \
	    --all-features --manifest-path "$$manifest"; \
	done

.PHONY: msrv
msrv: ## Compile everything with the oldest Rust that Cargo.toml promises
	version=$$(sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml); \
	rustup toolchain install "$$version" --profile minimal; \
	$(CARGO) +"$$version" check --locked --workspace --all-features

.PHONY: go-samples-check
go-samples-check: ## Check the Go samples with `go vet`, and that their CRDs are up to date (needs Go)
	cd tests/cases/go/fleet && go vet ./... && go vet -tags enterprise ./...
	tests/cases/go/crds.sh --check

.PHONY: generators
generators: ## Check that controller-gen, kube-rs, fabric8, pydantic and zod still write the CRDs of tests/generators (needs Go, Maven, Python and Node.js)
	tests/generators.sh $(GENERATORS)

.PHONY: fuzz-check
fuzz-check: ## Compile every fuzz target, without the fuzzer's instrumentation
	$(CARGO) check --locked --manifest-path tests/fuzz/Cargo.toml --target-dir $(TARGET)

.PHONY: hosted
hosted: ## Run what the hosted workflows run beside `.ci/run`: crates alone, image, lost writes, arm64, the rehearsal of a release, completion, book and playground
	.ci/hosted

##@ Go and WebAssembly

.PHONY: wasm-patch
wasm-patch: ## Build the patch engine as a WebAssembly module for other languages, and print its size
	rustup target add wasm32-wasip1
	$(CARGO) build --locked --profile wasm --target wasm32-wasip1 --package strategic-merge-patch-stdio
	@touch $(WASM_PATCH)
	@echo "$(WASM_PATCH): $$(wc -c <$(WASM_PATCH)) bytes, $$(gzip -c $(WASM_PATCH) | wc -c) compressed"

.PHONY: go-check
go-check: wasm-patch ## Check and test the Go package of strategic merge patches (needs Go); GO_TEST_FLAGS=-race looks for races
	@unformatted=$$(gofmt -l go); [ -z "$$unformatted" ] || { echo "run gofmt on $$unformatted" >&2; exit 1; }
	cd go && go mod verify && go vet ./...
	cd go && STRATEGIC_MERGE_PATCH_WASM=$(WASM_PATCH) go test -count=1 $(GO_TEST_FLAGS) ./...

.PHONY: go-example
go-example: wasm-patch ## Build the example that patches a custom resource with controller-runtime (needs Go)
	cd go/example && go vet . && go build -o $(TARGET)/go/patch-custom-resource .
	@touch $(TARGET)/go/patch-custom-resource

# The packages require a newer Go than the rest of the repository. The go command downloads it as it does modules.
.PHONY: gitops
gitops: ## Build the program that applies manifests by the packages of Flux, Argo CD and controller-runtime (needs Go)
	cd tests/gitops && export GOTOOLCHAIN=auto && go vet . && go build -o $(TARGET)/go/gitops .
	@touch $(TARGET)/go/gitops

##@ Comparisons and fuzzing

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_SECONDS from the checked-in corpus (needs nightly and cargo-fuzz)
	tests/fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: fuzz-differential
fuzz-differential: ## Compare DIFFERENTIAL_CASES random patches, DIFFERENTIAL_PATCHES created ones and DIFFERENTIAL_SEQUENCES of server-side applies with Go's packages, from a random seed (needs Go)
	KUBE_UNIONS_DIFFERENTIAL_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_DIFFERENTIAL_CASES=$(DIFFERENTIAL_CASES) \
	  KUBE_UNIONS_DIFFERENTIAL_PATCHES=$(DIFFERENTIAL_PATCHES) KUBE_UNIONS_DIFFERENTIAL_SEQUENCES=$(DIFFERENTIAL_SEQUENCES) \
	  $(CARGO) test --locked --package strategic-merge-patch --test it differential -- --nocapture

.PHONY: patch-differential
patch-differential: ## Apply the patches of PATCH_EDITS random edits of built-in kinds by an API server, from a random seed
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_PATCH_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_PATCH_EDITS=$(PATCH_EDITS) \
	  $(CARGO) test --locked --all-features --test e2e -- --nocapture patch::edits

.PHONY: native-differential
native-differential: ## Compare NATIVE_TRANSITIONS random writes of unions by policies and by the webhook, from a random seed
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_NATIVE_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_NATIVE_TRANSITIONS=$(NATIVE_TRANSITIONS) \
	  $(CARGO) test --locked --all-features --test e2e -- --nocapture native::differential

.PHONY: truth-differential
truth-differential: build ## Compare what lint says of the rules of TRUTH_KINDS random kinds with an API server, from a random seed
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_TRUTH_SEED=$${SEED:-$$RANDOM$$RANDOM} KUBE_UNIONS_TRUTH_KINDS=$(TRUTH_KINDS) \
	  $(CARGO) test --locked --all-features --test e2e -- --nocapture native::truth

.PHONY: markers-differential
markers-differential: build ## Compare the unions of Kubernetes' own markers with the code that validation-gen generates, for MARKERS_OBJECTS random objects of each type (needs Go)
	cd tests/markers && go vet . && go run . $(KUBE_UNIONS_BIN) $(MARKERS_OBJECTS) $(SEED)

.PHONY: definitions-differential
definitions-differential: build ## Compare the CRDs that are read out of XRDs and ResourceGraphDefinitions with those that Crossplane and kro make (needs Go)
	cd tests/definitions && go vet . && go run . $(KUBE_UNIONS_BIN) sources

##@ Measurements

.PHONY: bench
bench: ## Measure reviews and patches, next to a floor and to Go's package in the same run
	$(CARGO) bench --locked --package kube-unions-core --bench review
	$(CARGO) bench --locked --package strategic-merge-patch --bench strategic

.PHONY: bench-review
bench-review: build ## Measure reviews as a whole, through TLS, next to floors and a webhook in Go; BENCH="52 KB" selects rows, KUBE_UNIONS_BENCH_BEFORE=PATH adds other builds (needs Go)
	@command -v valgrind >/dev/null || echo 'valgrind is missing, so instructions are left out: apt-get install valgrind' >&2
	cd tests/fixtures/benches/go && go vet . && go build -o $(TARGET)/go/bench-review .
	KUBE_UNIONS_BENCH_GO=$(TARGET)/go/bench-review \
	  $(CARGO) bench --locked --package kube-unions-fixtures --features program --bench review -- "$(BENCH)"

.PHONY: bench-native
bench-native: build ## Measure writes without unions, by policies and by the webhook, on a real API server
	@$(MAKE) -s assets >/dev/null
	$(CARGO) test --locked --all-features --test e2e -- --ignored --nocapture --test-threads=1 native::bench

.PHONY: bench-outage
bench-outage: build ## Print answer and seconds of each write of each kind while no replica answers, with conditions of entries and without
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_OUTAGE_SECONDS=1 \
	  $(CARGO) test --locked --all-features --test e2e -- --nocapture untouched::outage

.PHONY: bench-conditions
bench-conditions: build ## Print the size of the configurations of KINDS kinds with unions, and time and CPU until an API server enforces a change of one
	@$(MAKE) -s assets >/dev/null
	KUBE_UNIONS_KINDS=$(or $(KINDS),500) \
	  $(CARGO) test --locked --all-features --test e2e -- --ignored --nocapture --test-threads=1 untouched::compiled

.PHONY: bench-generate
bench-generate: build ## Print findings, time and memory of `generate` on the Go types of large projects (needs Go)
	@mkdir -p target/trees
	reports="$$PWD/target/trees" && cd tests/trees && go run . $(KUBE_UNIONS_BIN) "$$reports"

.PHONY: bench-preview
bench-preview: build ## Print the time of a start, and time and memory of `preview` for 1,000 and 10,000 objects
	tests/preview.sh

.PHONY: charts
charts: build ## Choose each other member of each union of public charts, and print what an API server says before and after chart --fix; CHARTS=FOLDER has the charts
	@$(MAKE) -s assets >/dev/null; $(HELM) >/dev/null
	tests/charts.sh "$(CHARTS)"

.PHONY: bench-audit
bench-audit: build ## Print time and memory of `audit` for 100,000 objects in 64 MiB, and of `lint` for 2,000 CRDs
	tests/audit.sh

.PHONY: bench-go
bench-go: wasm-patch ## Measure patches from Go, next to Go's own package (needs Go)
	cd go/example && STRATEGIC_MERGE_PATCH_WASM=$(WASM_PATCH) go test -run '^$$' -bench .

.PHONY: slowest
slowest: build ## Print the seconds of the thirty slowest tests; SLOWEST=hang:: selects tests
	@{ $(CARGO) test --locked --workspace --all-features --lib --bins --tests --no-fail-fast --config "target.'cfg(all())'.runner=['env','RUSTC_BOOTSTRAP=1']" -- \
	  -Z unstable-options --report-time --skip loss:: --skip simulated:: $(SLOWEST) || true; } | \
	  sed -n 's/^test \(.*\) \.\.\. .*<\([0-9.]*\)s>$$/\2 \1/p' | sort -rn | sed -n '1,30p'

.PHONY: policy-sizes
policy-sizes: ## Print the sizes of the compiled policies of presets and samples
	@$(CARGO) test --locked --all-features --test it -- --nocapture cli::compile::policies_are_short

.PHONY: budgets
budgets: ## Print the sizes that a maintainer watches: characters of code by product, crates and bytes of the image
	tests/budgets.sh

##@ Image

.PHONY: image
image: ## Build the container image (needs Docker); IMAGE_PLATFORM=linux/arm64 selects another platform
	docker build $(if $(IMAGE_PLATFORM),--platform $(IMAGE_PLATFORM)) --tag $(IMAGE) .

# Writes the contents of the image into the folder CONTENTS. The Dockerfile and `image-root` use this target.
#
# The binary is linked statically with glibc: its allocator scales with threads and musl's does not, and since 2.34 its name
# resolver is built in, so nothing is loaded at run time. Its licence (LGPL) requires that users can replace glibc; they can
# by building these sources again. LICENSE has to accompany the binary.
#
# The image has no public certificate authorities (a pod has the cluster's own mounted), no users (a number suffices), no
# nsswitch.conf (glibc defaults to the hosts file, then DNS), no temporary folder and no shell, because nothing reads them.
#
# The target is named although it is the host, so that the flag does not apply to build scripts. Another IMAGE_PLATFORM than the
# host's is linked with Debian's cross compiler, which `cross-tools` installs.
IMAGE_PROFILE ?= dist
# The program of the image. A release links the command line in the same way.
PROGRAM ?= kube-unions-webhook
CONTENTS ?= $(or $(CARGO_TARGET_DIR),target)/image
image_triple = $(patsubst linux/arm64,aarch64-unknown-linux-gnu,$(patsubst linux/amd64,x86_64-unknown-linux-gnu,$(IMAGE_PLATFORM)))
image_target = $(or $(CARGO_TARGET_DIR),target)/$(1)/$(patsubst dev,debug,$(IMAGE_PROFILE))/$(PROGRAM)

.PHONY: image-contents
image-contents:
	host=$$(rustc -vV | sed -n 's/^host: //p'); \
	target='$(image_triple)'; \
	target=$${target:-$$host}; \
	if [ "$$target" != "$$host" ]; then \
	  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc; \
	  export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc; \
	fi; \
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --locked --profile $(IMAGE_PROFILE) --all-features \
	  --package $(PROGRAM) --bin $(PROGRAM) --target "$$target"; \
	install -D -m 0755 "$(call image_target,$$target)" '$(CONTENTS)/usr/local/bin/$(PROGRAM)'
	install -D -m 0644 LICENSE '$(CONTENTS)/licenses/LICENSE'

.PHONY: image-archive
image-archive: release-tools $(if $(filter-out file,$(origin CONTENTS)),,image-contents) ## Write the image as the OCI archive IMAGE_ARCHIVE, without Docker (needs Go); CONTENTS reuses `make image-root`
	@CRANE=$(RELEASE_TOOLS)/crane PLATFORM=$(IMAGE_PLATFORM) release/oci-archive.sh '$(IMAGE_ARCHIVE)' '$(IMAGE)' '$(CONTENTS)'

.PHONY: image-root
image-root: ## Run the contents of the image from an empty root, without Docker (needs root or user namespaces)
	tests/image.sh

.PHONY: cross-tools
cross-tools: ## Install the cross compiler and the emulator for arm64 (needs Debian or Ubuntu on amd64, and root or sudo)
	@as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	[ "$$(command -v aarch64-linux-gnu-gcc qemu-aarch64-static | wc -l)" = 2 ] || \
	  { $$as_root apt-get update -q && \
	    $$as_root apt-get install -y -q --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static; }
	rustup target add aarch64-unknown-linux-gnu

.PHONY: image-arm64
image-arm64: ## Build the contents of the image for arm64 and run them under an emulator (needs `make cross-tools`)
	tests/image/arm64.sh

include release/targets.mk
include tests/node/targets.mk
include site/site.mk
