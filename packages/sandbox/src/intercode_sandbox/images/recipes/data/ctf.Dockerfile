# The packages of ctf.toml for Docker and Podman, in the versions of ctf.versions wherever the
# archives of BASE still have them:
#   docker build -f ctf.Dockerfile -t intercode-ctf .      (in this directory)
# No files of any task are in it: those are laid over it, a task's own at a time.
ARG BASE=debian:bookworm
FROM ${BASE}
COPY ctf.versions /tmp/ctf.versions
RUN awk -F= '{ print "Package: " $1 "\nPin: version " $2 "\nPin-Priority: 1001\n" }' \
      /tmp/ctf.versions > /etc/apt/preferences.d/intercode \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends --allow-downgrades \
      bash python3 python3-pip python3-pycryptodome python3-cryptography psmisc \
      bsdmainutils cron imagemagick dnsutils git wget gcc libc6-dev make sleuthkit \
      netcat-openbsd unzip curl gdb poppler-utils coreutils binutils file bzip2 xz-utils \
      openssl ca-certificates procps net-tools iputils-ping \
 && ln -s Cryptodome /usr/lib/python3/dist-packages/Crypto \
 && rm -rf /tmp/ctf.versions /etc/apt/preferences.d/intercode /var/lib/apt/lists/*
WORKDIR /ctf
