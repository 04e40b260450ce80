# syntax=docker/dockerfile:1
FROM rust:1.95.0-bookworm AS build
# The image's own toolchain: rust-toolchain.toml also asks for what only development needs.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin kube-unions \
    && cp target/release/kube-unions /usr/local/bin/kube-unions

FROM debian:bookworm-slim
COPY --from=build /usr/local/bin/kube-unions /usr/local/bin/kube-unions
# By number, so that a cluster can see that it is not root.
USER 65532:65532
EXPOSE 10250 8080
ENTRYPOINT ["/usr/local/bin/kube-unions"]
