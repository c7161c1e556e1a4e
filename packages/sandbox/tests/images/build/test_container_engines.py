"""Building with Docker and Podman, and unpacking compared with theirs."""

from __future__ import annotations

import os
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox.container import engine as engines
from intercode_sandbox.container.engine import ContainerEngine
from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images import resolve
from intercode_sandbox.images.build.container_engines import build_with_engine, export_engine_image
from intercode_sandbox.supervisor.build import compiler_for
from support import requirements
from support.registries import registry

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* Does what its arguments say: mk DIR, put FILE, rm FILE, rmdir DIR, ln OLD NEW, sym OLD NEW. */
int main(int n, char **a) {
  for (int i = 1; i < n; i++) {
    if (!strcmp(a[i], "mk")) { if (mkdir(a[++i], 0755)) return 1; }
    else if (!strcmp(a[i], "put")) { FILE *f = fopen(a[++i], "w"); if (!f) return 2;
      fputs(a[i], f); fclose(f); if (chmod(a[i], 04755)) return 3; }
    else if (!strcmp(a[i], "rm")) { if (unlink(a[++i])) return 4; }
    else if (!strcmp(a[i], "rmdir")) { if (rmdir(a[++i])) return 5; }
    else if (!strcmp(a[i], "ln")) { if (link(a[i + 1], a[i + 2])) return 6; i += 2; }
    else if (!strcmp(a[i], "sym")) { if (symlink(a[i + 1], a[i + 2])) return 7; i += 2; }
    else return 9;
  }
  return 0;
}
"""
DOCKERFILE = """
FROM scratch
ARG WHO=nobody
COPY . /
ENV GREETING="hello $WHO" PATH=/bin
RUN ["/t", "mk", "/d", "put", "/d/a", "put", "/d/b", "mk", "/gone", "put", "/gone/x", "sym", "/d", "/s"]
RUN ["/t", "rm", "/d/a", "rm", "/gone/x", "rmdir", "/gone", "ln", "/d/b", "/hard"]
RUN ["/t", "rm", "/d/b", "rmdir", "/d", "mk", "/d", "put", "/d/new", "put", "/s/through"]
RUN ["/t", "rm", "/s", "mk", "/s", "put", "/s/file", "mk", "/gone"]
WORKDIR /work/here
"""  # noqa: E501
LEFT_OUT = ("dev", "proc", "sys", "etc", "run", ".dockerenv", "work")
"""Files that engines add to a container, some of them at its start."""


@pytest.fixture(params=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> ContainerEngine:
    requirements.require(request.param)
    return engines.get_engine(request.param)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("context")
    command = [
        *compiler_for(os.uname().machine),
        "-static",
        "-x",
        "c",
        "-o",
        str(folder / "t"),
        "-",
    ]
    subprocess.run(command, input=PROGRAM.encode(), check=True, timeout=60)
    # a label makes this worker's image unique; another worker would remove a shared one
    mine = f"\nLABEL builder={os.getpid()}\n"
    (folder / "Dockerfile").write_text(DOCKERFILE + mine)
    return folder


@pytest.fixture
def built(engine: ContainerEngine, context: Path, tmp_path: Path) -> Iterator[Path]:
    """Builds an image with the engine and returns its archive; removes the image afterwards."""
    path = build_with_engine(
        context / "Dockerfile", context, args={"WHO": "you"}, engine=engine.name, cache=tmp_path
    )
    yield path
    engine.run("rmi", "--force", path.stem)


Entries = dict[str, tuple[int, int, str]]


def ours(root: Path) -> Entries:
    """Return type, mode, size and link target of every path in a tree."""
    found = {}
    for path in root.rglob("*"):
        status = path.lstat()
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        target = str(path.readlink()) if path.is_symlink() else ""
        found[str(path.relative_to(root))] = (status.st_mode, size, target)
    return {name: details for name, details in found.items() if name.split("/")[0] not in LEFT_OUT}


def theirs(engine: ContainerEngine, image: str, path: Path) -> Entries:
    """Return the same for the engine's export of a container of the image."""
    kinds = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK}
    name = engine.run("create", "--network=none", "--label", "intercode.test=1", image, "/t")
    try:
        engine.run("export", "--output", str(path), name)
    finally:
        engine.run("rm", "--force", name)
    found: Entries = {}
    with tarfile.open(path) as archive:
        for member in archive:
            where = member.name.removeprefix("./").rstrip("/")
            if member.islnk():
                found[where] = found[member.linkname.removeprefix("./")]
                continue
            mode = kinds.get(member.type, stat.S_IFREG) | (member.mode & 0o1777)
            size = member.size if member.isreg() else 0
            found[where] = (mode, size, member.linkname if member.issym() else "")
    stored = found.items()
    return {
        name: details for name, details in stored if name and name.split("/")[0] not in LEFT_OUT
    }


@pytest.mark.slow
@pytest.mark.docker
def test_a_build_unpacks_as_the_engine_itself_does(
    engine: ContainerEngine, built: Path, tmp_path: Path
) -> None:
    image = resolve(f"docker-archive:{built}", tmp_path)
    assert image.root is not None
    mine = ours(image.root)
    assert mine == theirs(engine, built.stem, tmp_path / "export.tar")
    assert {"d", "d/new", "d/through", "s", "s/file", "gone", "hard", "t"} <= set(mine)
    assert not {"d/a", "d/b", "gone/x", "s/through"} & set(mine)
    assert (image.env["GREETING"], image.env["PATH"]) == ("hello you", "/bin")
    assert image.cwd == "/work/here" and (image.root / "work/here").is_dir()
    assert image.digest == f"sha256:{built.stem}"


@pytest.mark.slow
@pytest.mark.docker
def test_all_exports_of_an_engine_give_the_same_tree(
    engine: ContainerEngine, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image saved by name, saved as OCI and pushed to a registry has the same content."""
    (tmp_path / "auth.json").write_text('{"auths": {}}')
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    image = resolve(f"docker-archive:{built}", tmp_path)
    with registry(tmp_path / "registry") as host:
        name = f"{host}/intercode-test/built:1"
        engine.run("tag", built.stem, name)
        try:
            again = export_engine_image(name, engine=engine.name, cache=tmp_path)
            insecure = ["--tls-verify=false"] if engine.name == "podman" else []
            engine.run("push", *insecure, name)
            if engine.name == "podman":
                for form in ("oci-archive", "oci-dir"):
                    directory = tmp_path / form
                    engine.run("save", "--format", form, "--output", str(directory), name)
        finally:
            engine.run("rmi", name)
        specs = [f"docker-archive:{again}", f"registry:{name}"]
        specs += [f"oci:{p}" for p in tmp_path.glob("oci-*")]
        others = [resolve(spec, tmp_path / "other") for spec in specs]
    assert len(others) == (4 if engine.name == "podman" else 2)
    for other in others:
        assert other.root is not None and image.root is not None
        assert (ours(other.root), other.env, other.cwd) == (ours(image.root), image.env, image.cwd)


@pytest.mark.slow
@pytest.mark.docker
def test_dockerfiles_that_do_not_build(
    engine: ContainerEngine, context: Path, tmp_path: Path
) -> None:
    file = tmp_path / "Dockerfile"
    lines: list[str] = []
    for text, kind, message in [
        ('FROM scratch\nCOPY t /t\nRUN ["/t", "rm", "/none"]\n', DataError, r"does not build"),
        ("FROM scratch\nCOPY absent /x\n", DataError, "absent"),
        ("FROM intercode.invalid/none:1\nRUN x\n", UsageError, "neither has nor can fetch"),
    ]:
        file.write_text(text)
        with pytest.raises(kind, match=message):
            build_with_engine(file, context, lines.append, engine=engine.name, cache=tmp_path)
    assert lines and not list((tmp_path / "images").glob("engines/*.tar"))
    assert export_engine_image("intercode-none:never", engine=engine.name, cache=tmp_path) is None


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        build_with_engine(tmp_path / "Dockerfile", tmp_path)
