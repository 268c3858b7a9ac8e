# Server, worker and client in one image: `docker run gt-tensor server -H 0.0.0.0 --key-file ...`.
#
#   docker build --tag gt-tensor --build-arg COMMIT="$(git log -1 --format='%h, %cs')" .
#   docker build --tag gt-tensor:torch --build-arg PACKAGES=torch .    # with the PyTorch engine
#
# compose.yaml starts a server with two workers from it.

# ---- the wheel --------------------------------------------------------------------------------
FROM rust:1-slim-bookworm AS wheel

# The compiler and make build the libraries for encrypted links.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/tools \
    && /opt/tools/bin/pip install --no-cache-dir 'maturin>=1.9,<2'

WORKDIR /source
COPY . .
# The commit that `gt --version` prints: there is no repository here that could be asked.
ARG COMMIT=""
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    if [ -n "$COMMIT" ]; then echo "$COMMIT" > python/gt/_commit.txt; fi \
    && /opt/tools/bin/maturin build --profile dist --locked --out /wheels

# ---- what is installed ------------------------------------------------------------------------
FROM python:3.13-slim-bookworm AS installed

# Further packages for workers, as `torch`.
ARG PACKAGES=""
COPY --from=wheel /wheels /wheels
# Byte code and NumPy's tests and stubs are a tenth of the image.
# hadolint ignore=DL3013,SC2086
RUN pip install --no-cache-dir --no-compile --root-user-action=ignore --prefix=/installed \
        /wheels/*.whl $PACKAGES \
    && find /installed/lib/python3.13/site-packages/numpy \
        \( -name tests -o -name '*.pyi' \) -prune -exec rm -r {} +

# ---- the image --------------------------------------------------------------------------------
FROM python:3.13-slim-bookworm

LABEL org.opencontainers.image.title="GT" \
      org.opencontainers.image.description="Tensors on shared clusters: server, worker and client" \
      org.opencontainers.image.licenses="MIT"

# The number stays the same, so that files on volumes keep their owner.
RUN groupadd --gid 10001 gt \
    && useradd --uid 10001 --gid gt --home-dir /var/lib/gt --no-create-home \
        --shell /usr/sbin/nologin gt \
    && install --directory --owner gt --group gt --mode 0700 /var/lib/gt /var/lib/gt/state

COPY --from=installed /installed /usr/local

ENV PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /var/lib/gt
EXPOSE 9000
# Server and worker end with status 0 at it.
STOPSIGNAL SIGTERM
# There is no HEALTHCHECK, as a worker has no port that answers: compose.yaml checks the server.
ENTRYPOINT ["gt"]
CMD ["--help"]
