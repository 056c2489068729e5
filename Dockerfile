# The program in a container: `docker build --build-arg VERSION=1.0.0 -t namespace-teardown-gate .`
# It runs as a user without rights and writes only where a volume is mounted (--report-dir), so the root file system
# can be read-only. It needs no shell and no package of the base but Node.
ARG BASE=node:24-slim
FROM ${BASE}
ARG VERSION=dev
ARG SOURCE=
ARG REVISION=
LABEL org.opencontainers.image.title="namespace-teardown-gate" \
      org.opencontainers.image.description="Waits until a Kubernetes namespace is deleted and explains what holds it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.revision="${REVISION}"
# Owned by that user: it can read the files also when the clone was made with a strict umask.
COPY --chown=65532:65532 dist/index.js dist/package.json dist/licenses.txt LICENSE /app/
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["node", "/app/index.js"]
CMD ["--help"]
