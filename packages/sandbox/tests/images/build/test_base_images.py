"""The names of base images, and the user ids that a build may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.build.base_images import (
    BaseImageResolver,
    full_reference,
    scratch_image,
)
from intercode_sandbox.images.recipes.debian import DebianRelease, image_name, parse_release
from intercode_sandbox.supervisor import subordinate_ids
from intercode_sandbox.types import Image

HERE = Image("here", "sha256:1")


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("debian", "docker.io/library/debian:latest"),
        ("python:3.12", "docker.io/library/python:3.12"),
        ("me/mine", "docker.io/me/mine:latest"),
        ("localhost/mine:1", "localhost/mine:1"),
        ("example.org:5000/a/b", "example.org:5000/a/b:latest"),
        ("a@sha256:12", "docker.io/library/a@sha256:12"),
    ],
)
def test_names_in_full(name: str, full: str) -> None:
    assert full_reference(name) == full


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("bookworm", ("bookworm", "")),
        ("debian:bookworm-slim", ("bookworm", "")),
        ("debian:12", ("bookworm", "")),
        ("debian:12.5-slim", ("bookworm", "")),
        ("docker.io/library/debian:13", ("trixie", "")),
        ("debian:bookworm-20261120-slim", ("bookworm", "20261120")),
        ("12", None),
        ("ubuntu:24.04", None),
        ("debian", None),
        ("debian:latest", None),
        ("registry.example/debian:12", None),
    ],
)
def test_releases_of_debian(text: str, release: tuple[str, str] | None) -> None:
    assert parse_release(text) == release


def test_an_image_of_debian_is_named_by_release_and_date() -> None:
    one = image_name(DebianRelease("bookworm"))
    assert one.startswith("bookworm-") and one != image_name(DebianRelease("bookworm", "20260101"))


def test_the_table_comes_first() -> None:
    requested: list[str] = []

    def resolve(spec: str) -> Image:
        requested.append(spec)
        return HERE

    bases = BaseImageResolver(resolve, {"debian:12": "tar:/a.tar", "mine": "host"})
    for name in ("debian:12", "mine:latest", "tar:/b.tar", "registry:host:5000/a"):
        assert bases.resolve_base(name) is HERE
    assert requested == ["tar:/a.tar", "host", "tar:/b.tar", "registry:host:5000/a"]
    assert bases.resolve_base("scratch") == scratch_image()


def test_an_unknown_base_is_an_error_with_all_attempts() -> None:
    def resolve(spec: str) -> Image:
        raise UsageError(f"no {spec}")

    with pytest.raises(UsageError, match=r"FROM a\.example/b:1: .*\[from\] in .*no registry:a\.ex"):
        BaseImageResolver(resolve).resolve_base("a.example/b:1")
    with pytest.raises(UsageError, match=r"base bookwrm: there is no .*did you mean 'bookworm'\?"):
        BaseImageResolver(resolve).resolve_base("bookwrm", "base")


def test_paths_are_of_the_context_or_the_users(tmp_path: Path) -> None:
    """A Dockerfile from somebody else must not read files of this machine."""
    context, requested = tmp_path / "context", list[str]()
    (context / "in").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (context / "link").symlink_to("../out")

    def resolve(spec: str) -> Image:
        requested.append(spec)
        return HERE

    out = f"dir:{tmp_path}/out"
    bases = BaseImageResolver(resolve, {"mine": out}, allowed_directory=context)
    fine = [f"dir:{context}/in", f"oci:{context}/in:tag", "recipe:nl2bash", "host", "mine"]
    for name in fine:
        assert bases.resolve_base(name) is HERE
    assert requested == [*fine[:-1], out]
    for name in (
        out,
        "dir:/",
        "tar:out.tar",
        f"dir:{context}/../out",
        f"dir:{context}/link",
        "tar:~/x.tar",
        f"docker-archive:{context}/link:tag",
        f"recipe:{tmp_path}/r.toml",
        f"dockerfile:{tmp_path}",
    ):
        with pytest.raises(UsageError, match=r"is outside of .*context; if you trust it, say"):
            bases.resolve_base(name)


def test_a_name_is_refused_also_where_there_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def home() -> NoReturn:
        raise RuntimeError("no home")

    monkeypatch.delenv("INTERCODE_CONFIG", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    bases = BaseImageResolver(lambda _: HERE, allowed_directory=tmp_path)
    with pytest.raises(UsageError, match=r"images\.toml in the directory INTERCODE_CONFIG"):
        bases.resolve_base("dir:/")


def test_ids_that_a_user_may_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "subuid"
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert subordinate_ids.subordinate_ids(table) == (0, 0)
    table.write_text("someone:100000:65536\n4711:200000:1000\nbroken\n")
    assert subordinate_ids.subordinate_ids(table) == (200000, 1000)
    table.write_text("4711:300000:900000\n")
    assert subordinate_ids.subordinate_ids(table) == (300000, 65535)
    assert "usermod --add-subuids" in subordinate_ids.unavailable_reason()
