FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked

FROM debian:bookworm-slim
# Roots for exporters that speak TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/release/mcp-verdict /usr/local/bin/mcp-verdict
# A user of its own, and the one folder that it writes.
RUN useradd --system --uid 10001 --home-dir /var/lib/mcp-verdict --create-home mcp-verdict
USER 10001
WORKDIR /var/lib/mcp-verdict
VOLUME /var/lib/mcp-verdict
# OTLP gRPC, OTLP HTTP, metrics, health
EXPOSE 4317 4318 8888 13133
ENTRYPOINT ["mcp-verdict"]
CMD ["run"]
