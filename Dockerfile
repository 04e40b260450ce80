# syntax=docker/dockerfile:1

# The image has exactly the files that `make image-contents` writes. `make image-root` runs them without a container engine.
#
# For another architecture: docker build --platform linux/arm64 (make image IMAGE_PLATFORM=linux/arm64). There is no
# cross-compilation: each architecture uses the same commands, compiler and C library. On another processor Docker needs an
# emulator, which is slow: build each architecture on a machine of its own.
FROM rust:1.95.0-bookworm AS build
# Use the tool chain of the image: rust-toolchain.toml also names components that only development needs.
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
# Return large freed blocks to the system. Otherwise glibc raises the threshold and keeps them, in one arena per thread. The program
# keeps the buffers of bodies itself, so that a higher threshold saves nothing. Keep the freed memory of one review of 52 KB at the end
# of each arena: concurrent reviews would return it and ask for it again, page by page.
ENV MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=1048576 MALLOC_ARENA_MAX=2
# A number, so that a cluster can verify that the user is not root.
USER 65532:65532
EXPOSE 10250 8080
ENTRYPOINT ["/usr/local/bin/kube-unions-webhook"]
