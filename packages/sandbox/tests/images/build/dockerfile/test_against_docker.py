"""A Dockerfile built with and without Docker gives the same tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.images.build.steps import BuildBase
from intercode_sandbox.types import Image
from support.containers import require_docker

pytestmark = [pytest.mark.docker, pytest.mark.sandbox]

BASE = f"intercode-test-base:{os.getpid()}"
PROGRAMS = ("bash", "cat", "chmod", "cp", "ln", "ls", "mkdir", "mv", "rm", "touch", "env")
TEXT = f"""\
ARG BASE={BASE}
FROM ${{BASE}} AS one
RUN mkdir -p /out/deep && echo "built in $PWD" > /out/deep/thing && ln -s deep/thing /out/link
FROM $BASE
ARG WHO=world
ENV GREETING="hello ${{WHO}}" SECOND=$WHO
COPY files/ /work/
COPY files/*.txt files/sub /many/
COPY files/sub /work/again
COPY files/a.txt /bin/tool
COPY files/a.txt /work/sub
COPY --from=one /out /out
ADD packed.tgz /opt/here/
WORKDIR /work/new
WORKDIR ../other
COPY . .
RUN echo "$GREETING $SECOND" > greeting; touch -d 2020-01-01 old
SHELL ["/bin/bash", "-e", "-c"]
RUN rm -r /work/sub /out/deep/thing; mkdir /work/sub; chmod 1777 /work/sub; echo x > /work/sub/x
RUN ["mkdir", "/work/with $GREETING"]
RUN mv /etc/moved /etc/there; chmod 600 /etc/there; cp /bin/tool /root/tool
"""


def programs(root: Path) -> None:
    """Returns a root file system with small programs, their libraries and some files."""
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None
        libraries = subprocess.run(["ldd", found], capture_output=True, text=True, check=True)
        paths = [w for w in libraries.stdout.split() if w.startswith("/")]
        for path in (found, *paths):
            target = root / "usr" / path.lstrip("/").removeprefix("usr/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "usr" / "bin" / "sh").symlink_to("bash")
    for name in ("etc", "root", "tmp", "dev", "proc", "sys"):
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "root").chmod(0o700)
    (root / "etc" / "moved").write_text("moved\n")


@pytest.fixture
def base(tmp_path: Path) -> Iterator[None]:
    """Returns the name of an image in Docker's store, for FROM."""
    require_docker()
    root = tmp_path / "root"
    programs(root)
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(root, ".")
    docker("import", str(tmp_path / "root.tar"), BASE)
    yield
    docker("image", "rm", "--force", BASE)


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    (folder / "files" / "sub" / "deep").mkdir(parents=True)
    (folder / "files" / "a.txt").write_text("a\n")
    (folder / "files" / "b.txt").write_text("b\n")
    (folder / "files" / "sub" / "run").write_text("#!/bin/sh\n")
    (folder / "files" / "sub" / "run").chmod(0o750)
    (folder / "files" / "sub" / "deep" / "link").symlink_to("../run")
    (folder / "left.log").write_text("left out\n")
    (folder / ".dockerignore").write_text(
        "# what stays out\n*.log\n**/deep\n!files/sub/deep/link\n"
    )
    with tarfile.open(folder / "packed.tgz", "w:gz") as tar:
        tar.add(folder / "files", "packed")
    (folder / "Dockerfile").write_text(TEXT)
    return folder


def docker(*words: str) -> str:
    return subprocess.run(
        ["docker", *words], capture_output=True, text=True, check=True, timeout=300
    ).stdout


OURS = ("etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab", ".dockerenv")
OUTSIDE = ("dev", "proc", "sys")
Tree = dict[str, tuple[int, str]]


def of_docker(context: Path) -> Tree:
    identity = docker("build", "--quiet", "--network=none", str(context)).strip()
    sandbox = docker("create", identity, "true").strip()
    try:
        docker("export", "--output", str(context.parent / "made.tar"), sandbox)
    finally:
        docker("rm", sandbox)
        docker("image", "rm", "--force", identity)
    found: Tree = {}
    with tarfile.open(context.parent / "made.tar") as tar:
        for member in tar:
            held = member.linkname
            if member.isfile():
                content = tar.extractfile(member)
                assert content is not None
                held = hashlib.sha256(content.read()).hexdigest()
            found[member.name.strip("/")] = (
                0o777 if member.issym() else member.mode & 0o7777,
                held,
            )
    return recorded(found)


def of_ours(image: Image) -> Tree:
    found: Tree = {}
    for name, path, status in BuildBase(image).stack.walk():
        held = ""
        if os.path.islink(path):
            held = os.readlink(path)
        elif os.path.isfile(path):
            held = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        found[name] = (status.st_mode & 0o7777, held)
    return recorded(found)


def recorded(tree: Tree) -> Tree:
    return {
        name: details
        for name, details in tree.items()
        if name and name not in OURS and name.split("/")[0] not in OUTSIDE
    }


def test_the_same_tree(base: None, context: Path) -> None:
    ours = of_ours(resolve_or_build(f"dockerfile:{context}"))
    docker_s = of_docker(context)
    assert "work/other/files/a.txt" in ours and "work/sub/x" in ours
    assert "work/other/files/sub/deep/link" in ours and "work/other/left.log" not in ours
    assert ours == docker_s
