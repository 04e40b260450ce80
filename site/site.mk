# The book of the guide and the playground. The Makefile includes this file.

SITE := $(TARGET)/site
SITE_TOOLS := $(TARGET)/tools
MDBOOK_VERSION := 0.5.4
ENGINE := $(TARGET)/wasm32-unknown-unknown/playground/kube_unions_playground.wasm
# The largest compressed size of the engine, in bytes.
LARGEST_ENGINE := 900000
SITE_PORT ?= 8000

##@ Book and playground

.PHONY: site
site: site/node_modules/.package-lock.json ## Build the guide as a book and the playground, target/site, and print the size of its engine (needs Node.js)
	rustup target add wasm32-unknown-unknown
	$(CARGO) build --locked --profile playground --target wasm32-unknown-unknown --package kube-unions-playground
	$(CARGO) run --locked --quiet --manifest-path site/bindgen/Cargo.toml --target-dir $(TARGET)/bindgen -- $(ENGINE) site/engine engine
	@[ "$$($(SITE_TOOLS)/bin/mdbook --version 2>/dev/null)" = "mdbook v$(MDBOOK_VERSION)" ] || \
	  $(CARGO_INSTALL) --force --root $(SITE_TOOLS) --no-default-features --features search --version $(MDBOOK_VERSION) mdbook
	$(SITE_TOOLS)/bin/mdbook build site --dest-dir $(SITE)
	node site/build.mjs $(SITE)/playground
	@size=$$(gzip -9 -c site/engine/engine_bg.wasm | wc -c); \
	echo "site/engine/engine_bg.wasm: $$(wc -c <site/engine/engine_bg.wasm) bytes, $$size compressed"; \
	[ "$$size" -le $(LARGEST_ENGINE) ] || { echo "the engine is larger than $(LARGEST_ENGINE) bytes" >&2; exit 1; }

# The versions of Kubernetes with these kinds, as kubeconform names them, and the one that the built-in kinds are of.
SCHEMAS = v1.33.0 v1.34.0 v1.35.0 v1.36.0 v1.37.0 $(shell sed -n 's/^  "version": "\(v.*\)"$$/\1/p' crates/offline/src/built_in/kinds.json)

.PHONY: site-schemas
site-schemas: build ## Write the JSON schemas of built-in kinds with unions as kubeconform looks for them, target/site/schemas
	for version in $(SCHEMAS) master; do \
	  $(KUBE_UNIONS_BIN) compile --to json-schema --built-in --output-dir $(SITE)/schemas/$$version-standalone; \
	done

site/node_modules/.package-lock.json: site/package-lock.json
	cd site && npm ci
	@touch $@

.PHONY: pictures
pictures: site/node_modules/.package-lock.json ## Draw the pictures of the guide for pages on GitHub, docs/pictures (needs Node.js)
	node site/pictures.mjs

.PHONY: site-serve
site-serve: site ## Serve the book and the playground on loopback, port SITE_PORT
	node site/serve.mjs $(SITE) $(SITE_PORT)

.PHONY: site-check
site-check: site ## Check the types of the playground, and test book and playground in Chromium; writes screenshots to target/site-screenshots
	cd site && npm run --silent check
	cd site && KUBE_UNIONS_SITE=$(SITE) KUBE_UNIONS_SCREENSHOTS=$(TARGET)/site-screenshots npm test --silent

.PHONY: site-browser
site-browser: ## Install the browser for the tests of the playground, Chromium (needs Debian or Ubuntu, and root)
	@[ -n "$$(command -v chromium chromium-browser google-chrome)" ] || { apt-get update -q && apt-get install -y -q --no-install-recommends chromium; }
