# An image of yours with flopinj in /opt/flopinj, from the archive that tools/dev package makes:
# nothing is compiled here, and nothing is fetched but the base.
#   docker build --build-arg BASE=my-training-image -t my-flopinj-image .
ARG BASE=debian:12-slim
FROM ${BASE}
ADD build/package/flopinj-*-linux-*.tar.gz /opt/
RUN mv /opt/flopinj-*-linux-* /opt/flopinj && /opt/flopinj/bin/flopinj --version
ENV PATH=/opt/flopinj/bin:${PATH}
