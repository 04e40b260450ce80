# The steps of a release. `.github/workflows/release.yml` runs these targets on a tag, and `make release-rehearsal` runs them here.

VERSION := $(shell sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$$/\1/p' Cargo.toml)
TAG ?= v$(VERSION)
# The folder of the files of a release, and the platforms of the archives and of the image.
export DIST ?= $(TARGET)/dist
DIST_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64
DIST_PLATFORM ?= $(shell rustc -vV | sed -n 's/^host: x86_64-.*-linux-.*/linux\/amd64/p; s/^host: aarch64-.*-linux-.*/linux\/arm64/p; s/^host: x86_64-apple-.*/darwin\/amd64/p; s/^host: aarch64-apple-.*/darwin\/arm64/p')
# Where the image and the chart are published.
REPOSITORY ?= ghcr.io/kube-unions/kube-unions
CHART_REPOSITORY ?= oci://ghcr.io/kube-unions/charts
# Programs that are built from the go.mod in release/tools.
RELEASE_TOOLS := $(TARGET)/release-tools

##@ Release

.PHONY: release-tools
release-tools: ## Build crane and actionlint from Go modules, into target/release-tools (needs Go)
	@mkdir -p $(RELEASE_TOOLS)
	@cd release/tools && CGO_ENABLED=0 go build -trimpath -o $(RELEASE_TOOLS)/ tool

.PHONY: workflows
workflows: release-tools ## Check the workflows: actionlint, and that each action is pinned by commit (needs Go)
	@ACTIONLINT=$(RELEASE_TOOLS)/actionlint release/workflows.sh

.PHONY: release-check
release-check: ## Check that the tag TAG can be released: versions, CHANGELOG, clean tree
	@release/check.sh $(TAG)

.PHONY: auditable
auditable:
	@command -v cargo-auditable >/dev/null 2>&1 || $(CARGO_INSTALL) cargo-auditable

.PHONY: dist
dist: $(if $(BINARY)$(DIST_CARGO),,auditable) ## Write the archives of DIST_PLATFORM: the command line with completions, manual pages and licence, and the webhook
	@BINARY='$(BINARY)' WEBHOOK='$(WEBHOOK)' release/dist.sh $(DIST_PLATFORM)

.PHONY: sbom
sbom: ## Write the SBOM of each program, CycloneDX as JSON
	@command -v cargo-cyclonedx >/dev/null 2>&1 || $(CARGO_INSTALL) cargo-cyclonedx
	@release/sbom.sh

.PHONY: checksums
checksums: ## Write SHA256SUMS for the archives, the chart and the SBOM
	@release/checksums.sh

.PHONY: krew-manifest
krew-manifest: ## Write the manifest of `kubectl unions` for krew, from the archives of DIST_PLATFORMS
	@PLATFORMS='$(DIST_PLATFORMS)' release/krew.sh

.PHONY: release-notes
release-notes: ## Print the section of this version in CHANGELOG.md
	@release/notes.sh $(VERSION)

.PHONY: image-publish
image-publish: release-tools ## Push the image of IMAGE_PLATFORMS to REPOSITORY, from the archives (needs Go)
	@CRANE=$(RELEASE_TOOLS)/crane PLATFORMS='$(IMAGE_PLATFORMS)' release/image.sh $(REPOSITORY)

.PHONY: chart-package
chart-package: ## Package the chart with the REPOSITORY and the digest of the published image
	@release/chart.sh package $(REPOSITORY) "$$(cat $(DIST)/image.digest)"

.PHONY: chart-publish
chart-publish: ## Push the packaged chart to CHART_REPOSITORY
	@release/chart.sh publish $(CHART_REPOSITORY)

.PHONY: publish-dry-run
publish-dry-run: ## Package each crate as it would be published; VERIFY=no does not build the packages
	$(CARGO) package --locked --allow-dirty $(if $(filter no,$(VERIFY)),--no-verify) $(addprefix --package ,$(PACKAGES))

.PHONY: publish
publish:
	$(CARGO) publish --locked $(addprefix --package ,$(PACKAGES))

# The Go package is in a folder, and the tag of its module names the folder.
.PHONY: go-tag
go-tag:
	git tag go/$(TAG)
	git push origin go/$(TAG)

# The signatures are keyless: cosign gets a certificate for the identity of the workflow.
.PHONY: sign-image
sign-image:
	cosign sign --yes $(REPOSITORY)@"$$(cat $(DIST)/image.digest)"
	cosign attest --yes --type cyclonedx --predicate $(DIST)/kube-unions-webhook-$(VERSION).cdx.json \
	  $(REPOSITORY)@"$$(cat $(DIST)/image.digest)"

.PHONY: sign-chart
sign-chart:
	cosign sign --yes $(patsubst oci://%,%,$(CHART_REPOSITORY))/kube-unions@"$$(cat $(DIST)/chart.digest)"

.PHONY: sign-files
sign-files:
	cosign sign-blob --yes --bundle $(DIST)/SHA256SUMS.sigstore.json $(DIST)/SHA256SUMS

.PHONY: release-create
release-create:
	release/notes.sh $(VERSION) | gh release create $(TAG) --verify-tag --title $(TAG) --notes-file - \
	  $(if $(findstring -,$(VERSION)),--prerelease) \
	  $(DIST)/*.tar.gz $(DIST)/*.tgz $(DIST)/*.cdx.json $(DIST)/SHA256SUMS $(DIST)/SHA256SUMS.sigstore.json $(DIST)/unions.yaml

.PHONY: advisories
advisories: ## Check dependencies for known vulnerabilities (reads the advisory database from the network)
	@command -v cargo-deny >/dev/null 2>&1 || $(CARGO_INSTALL) cargo-deny
	$(CARGO) deny --workspace --all-features check advisories

.PHONY: release-rehearsal
release-rehearsal: release-tools ## Run the steps of a release with a registry on loopback (needs Go); CONTENTS reuses `make image-root`
	@CRANE=$(RELEASE_TOOLS)/crane release/rehearsal.sh $(if $(filter-out file,$(origin CONTENTS)),'$(CONTENTS)')
