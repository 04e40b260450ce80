# A cluster of real nodes, without a container engine.

# The command that `make node` runs.
export NODE_COMMAND

# The archives of the images on the nodes.
node_images = NODE_IMAGES='$(IMAGE_ARCHIVE) $(TARGET)/pause.tar'

##@ A cluster of real nodes

.PHONY: node-tools
node-tools: ## Install what `make node` runs: containerd, runc, CNI plugins, iptables (needs Debian or Ubuntu, and root or sudo)
	@as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); missing=; \
	export PATH=$$PATH:/usr/sbin:/sbin; \
	for program in containerd runc iptables openssl; do \
	  command -v $$program >/dev/null || missing="$$missing $$program"; \
	done; \
	command -v ip >/dev/null || missing="$$missing iproute2"; \
	[ -x /usr/lib/cni/ptp ] || [ -x /opt/cni/bin/ptp ] || missing="$$missing containernetworking-plugins"; \
	[ -z "$$missing" ] || \
	  { $$as_root apt-get update -q && $$as_root apt-get install -y -q --no-install-recommends $$missing; }

.PHONY: node-check
node-check: ## Say in one sentence why `make node` cannot run here, if it cannot
	@tests/node.sh --check

.PHONY: node-pause
node-pause: release-tools ## Write the image of pods' sandboxes as an OCI archive, target/pause.tar (needs Go and a C compiler)
	@CRANE=$(RELEASE_TOOLS)/crane tests/node/pause.sh $(TARGET)/pause.tar

.PHONY: node
node: node-check ## Run NODE_COMMAND in a throw-away cluster of real nodes, or the cluster until Ctrl-C (needs root, Go and `make node-tools`)
	@$(MAKE) -s image-archive node-pause >&2
	@$(node_images) tests/node.sh $(if $(NODE_COMMAND),bash -c "$$NODE_COMMAND")

# The tests run the program of the image.
e2e-node e2e-node-quick bench-node: export KUBE_UNIONS_WEBHOOK_BIN = $(abspath $(CONTENTS))/usr/local/bin/kube-unions-webhook

.PHONY: e2e-node-programs
e2e-node-programs: node-check
	@$(MAKE) -s image-archive node-pause >&2
	$(CARGO) build --locked --package kube-unions-author --example rollout
	$(CARGO) test --locked --workspace --all-features --test e2e --no-run

.PHONY: e2e-node
e2e-node: e2e-node-programs ## Run the end-to-end tests on real nodes with image and chart, without Docker (needs root, Go and `make node-tools`)
	@export $(node_images); tests/node/endings.sh && tests/node.sh tests/node/e2e.sh '$(IMAGE)'

.PHONY: e2e-node-quick
e2e-node-quick: e2e-node-programs ## Run the shortest of these tests: a release from its installation to its end, and everyday commands
	@$(node_images) tests/node.sh tests/node/e2e.sh '$(IMAGE)' node::lifecycle node::everyday

.PHONY: bench-node
bench-node: e2e-node-programs ## Print memory and processor time of the pods as the kubelets report them, idle and at 200 writes a second
	@$(node_images) tests/node.sh tests/node/e2e.sh '$(IMAGE)' --ignored node::resources

.PHONY: bench-node-start
bench-node-start: node-check ## Print how long `make node` takes to start, cold and warm; builds everything anew, which takes a quarter of an hour
	@tests/node/times.sh
