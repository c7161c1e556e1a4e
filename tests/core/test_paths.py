"""The cache directory: who may own it, write to it and enter it."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.core.errors import ConfigError
from intercode_sandbox.platforms import paths

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user can enter."""
    with tempfile.TemporaryDirectory(prefix="intercode-test-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def cache(public: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a cache that does not exist yet."""
    monkeypatch.setenv("INTERCODE_CACHE", str(public / "cache"))
    return public / "cache"


def test_a_new_cache_is_closed_to_other_users(cache: Path) -> None:
    old = os.umask(0)
    try:
        assert paths.cache_root() == cache
    finally:
        os.umask(old)
    info = cache.stat()
    assert stat.S_IMODE(info.st_mode) == (0o710 if os.geteuid() == 0 else 0o700)
    assert info.st_uid == os.geteuid() and info.st_gid == paths.sandbox_uid()


def test_directories_above_a_new_cache_are_writable_for_nobody_else(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(public / "a" / "b"))
    old = os.umask(0)
    try:
        paths.cache_root()
    finally:
        os.umask(old)
    assert stat.S_IMODE((public / "a").stat().st_mode) == 0o755


def test_a_cache_that_cannot_be_created_is_an_error_that_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", "/proc/absent/cache")  # nobody can create files in /proc
    with pytest.raises(ConfigError, match=r"/proc/absent: .* Set INTERCODE_CACHE to a directory"):
        paths.cache_root()


@AS_ROOT
def test_another_user_reaches_no_file_of_a_layer(cache: Path) -> None:
    """Files and directories of images keep their modes, and some are writable for everybody."""
    layer = paths.cache_root() / "layers" / "x"
    layer.mkdir(parents=True, mode=0o777)
    layer.chmod(0o777)
    (layer / "file").write_text("of the image")
    (layer / "file").chmod(0o666)
    for user, succeeds in ((NOBODY, False), (paths.sandbox_uid(), True)):
        done = subprocess.run(
            ["/bin/sh", "-c", f"echo planted >> {layer / 'file'}"],
            user=user,
            group=user,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) is succeeds, done.stderr
        assert succeeds or "denied" in done.stderr


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_cache_that_others_write_to_is_refused(cache: Path, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    (cache / "supervisors").mkdir(mode=0o755)
    with pytest.raises(ConfigError, match=f"can write to {cache}.*chmod go-w {cache}"):
        paths.cache_root()
    cache.chmod(0o755)
    assert paths.cache_root() == cache


def test_a_directory_above_that_others_write_to_is_refused(cache: Path) -> None:
    cache.parent.chmod(0o777)
    with pytest.raises(ConfigError, match=f"chmod go-w {cache.parent}"):
        paths.cache_root()
    cache.parent.chmod(0o1777)  # sticky: nobody else can replace the cache
    assert paths.cache_root() == cache


@AS_ROOT
def test_a_cache_that_another_user_planted_is_refused(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public.chmod(0o1777)
    planted = public / "planted"
    (planted / "inner").mkdir(parents=True)
    os.chown(planted, NOBODY, NOBODY)
    own = public / "own"
    own.mkdir()
    link = public / "link"
    link.symlink_to(own)
    os.lchown(link, NOBODY, NOBODY)
    for path, named in ((planted, planted), (planted / "inner", planted), (link, link)):
        monkeypatch.setenv("INTERCODE_CACHE", str(path))
        with pytest.raises(ConfigError, match=f"{named} belongs to the user with id {NOBODY}"):
            paths.cache_root()


@AS_ROOT
@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_what_another_user_planted_in_a_cache_is_refused(cache: Path, kind: str) -> None:
    """A cache that others could write to once still has what they left."""
    cache.mkdir(mode=0o755)
    child = cache / ("answers.sqlite" if kind == "file" else "layers")
    target = cache.parent / "target"
    target.mkdir()
    if kind == "directory":
        child.mkdir()
    elif kind == "file":
        child.write_text("")
    else:
        child.symlink_to(target)
    os.lchown(child, NOBODY, NOBODY)
    with pytest.raises(ConfigError, match=f"{child} belongs to the user with id {NOBODY}"):
        paths.cache_root()
    os.lchown(child, 0, 0)
    assert paths.cache_root() == cache


def test_a_directory_in_a_cache_that_others_write_to_is_refused(cache: Path) -> None:
    cache.mkdir(mode=0o755)
    (cache / "made").mkdir()
    (cache / "made").chmod(0o777)
    with pytest.raises(ConfigError, match=r"made can be written by other users \(mode 777\)"):
        paths.cache_root()


def test_a_cache_that_was_made_with_the_umask_002_can_be_used(cache: Path) -> None:
    cache.mkdir(mode=0o755)
    (cache / "made").mkdir()
    (cache / "made").chmod(0o775)
    paths.cache_root()
    assert stat.S_IMODE((cache / "made").stat().st_mode) == 0o755


def test_a_cache_that_was_made_with_the_umask_0_can_be_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = os.umask(0)
    try:
        paths.cache_root()
        (cache / "made").mkdir()
        (cache / "made.lock").touch()
    finally:
        os.umask(old)
    monkeypatch.setattr(paths, "_checked_caches", set())  # as in another process
    assert paths.cache_root() == cache
    assert stat.S_IMODE((cache / "made").stat().st_mode) == 0o755
    assert stat.S_IMODE((cache / "made.lock").stat().st_mode) == 0o644
    (cache / "made").chmod(0o777)
    cache.chmod(0o755)
    monkeypatch.setattr(paths, "_checked_caches", set())
    with pytest.raises(ConfigError, match=r"made can be written by other users \(mode 777\)"):
        paths.cache_root()


@AS_ROOT
def test_another_user_reaches_no_layer_in_a_directory_that_keeps_its_mode(cache: Path) -> None:
    cache.mkdir(mode=0o755)
    (cache / "notes.txt").write_text("a directory that is more than a cache")
    (cache / "layers").mkdir(mode=0o755)  # of an earlier version
    for name in ("layers", "dated", "built", "containers", "skeletons"):
        tree = paths.cache_root() / name / "x"
        tree.mkdir(parents=True)
        tree.chmod(0o777)
        (tree / "file").write_text("of the image")
        (tree / "file").chmod(0o666)
        for user, succeeds in ((NOBODY, False), (paths.sandbox_uid(), True)):
            done = subprocess.run(
                ["/bin/sh", "-c", f"echo planted >> {tree / 'file'}"],
                user=user,
                group=user,
                extra_groups=[],
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode == 0) is succeeds, (name, done.stderr)


def test_an_existing_directory_keeps_its_mode(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o755)
    (cache / "notes.txt").write_text("a directory that is more than a cache")
    paths.cache_root()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o755
