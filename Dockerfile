# syntax=docker/dockerfile:1

# The image is what `make image-contents` lays into a folder and nothing else; `make image-root` runs the same folder as
# an engine would, where there is none.
#
# For another architecture: docker build --platform linux/arm64 (make image IMAGE_PLATFORM=linux/arm64). Each is built
# on its own kind: the same commands, the same compiler and the same C library for both, no cross tool chain that only
# one of them goes through. On another processor that takes an emulator and patience: better build each on a machine
# of its kind.
FROM rust:1.95.0-bookworm AS build
# The image's own tool chain: rust-toolchain.toml also asks for what only development needs.
ENV RUSTUP_TOOLCHAIN=1.95.0
ARG TARGETARCH
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,id=kube-unions-target-${TARGETARCH},target=/src/target \
    make image-contents CONTENTS=/contents

FROM scratch
LABEL org.opencontainers.image.title="kube-unions" \
      org.opencontainers.image.description="Kubernetes union types on the clusters of today" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /contents/ /
ENV PATH=/usr/local/bin
# Large blocks go back to the system when they are freed: else glibc raises the threshold and keeps them, in an arena for each thread.
ENV MALLOC_MMAP_THRESHOLD_=131072 MALLOC_ARENA_MAX=2
# By number, so that a cluster can see that it is not root.
USER 65532:65532
EXPOSE 10250 8080
ENTRYPOINT ["/usr/local/bin/kube-unions"]
