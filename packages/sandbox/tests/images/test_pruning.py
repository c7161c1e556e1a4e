"""Pruning removes unused entries of the cache, and no used ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images import resolve
from intercode_sandbox.images.build.layer_dates import stopped_clock_copies
from intercode_sandbox.images.cache import prune, records
from intercode_sandbox.images.cache import trees as caches
from intercode_sandbox.images.cache.in_use import mark_in_use
from intercode_sandbox.images.oci import saved_images
from intercode_sandbox.types import Image
from support.saved_images import Saved, entry, layer, listing
from support.trees import deep

START = {"Env": ["A=1"], "WorkingDir": "/w", "Entrypoint": ["/entry"]}
IMAGE = Saved([layer(entry("a", content=b"x" * 5000))], start=START)

USER = """
import sys
from pathlib import Path
from intercode_sandbox.images import resolve
print(resolve(sys.argv[1], Path(sys.argv[2])).root, flush=True)
sys.stdin.read()
"""

DATABASE_USER = """
import sys
from pathlib import Path
from intercode_sandbox.images.cache.in_use import mark_in_use
mark_in_use(Path(sys.argv[1]), "sql")
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def unpacked_elsewhere(spec: str, cache: Path) -> None:
    """Unpack an image in another process, which then ends, so that nothing uses it."""
    command = [sys.executable, "-c", USER, spec, str(cache)]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=60)


def trees(cache: Path) -> list[str]:
    return sorted(p.name for p in (cache / "layers").glob("[!.]*"))


@pytest.mark.slow
def test_remains_of_a_killed_process_may_be_deep(cache: Path) -> None:
    """The tree is deeper than the limits on paths and on Python's recursion."""
    half = cache / "built" / "name.half-x"
    half.mkdir(parents=True)
    (half / "file").write_bytes(b"x" * 5000)
    deep(half, 3000)
    assert prune.disk_usage(cache / "built") >= 5000
    done = prune.prune(cache)
    assert done.trees == 1 and done.bytes >= 5000 and not list((cache / "trash").iterdir())


@pytest.mark.slow
def test_trees_of_live_processes_stay(tmp_path: Path, cache: Path) -> None:
    spec = f"docker-archive:{IMAGE.docker_archive(tmp_path / 'a.tar')}"
    command = [sys.executable, "-c", USER, spec, str(cache)]
    user = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert user.stdout is not None
        root = Path(user.stdout.readline().strip())
        assert prune.prune(cache, everything=True).trees == 0
        stored = prune.remove_image(cache, spec)
        assert stored is not None and stored.trees == 0 and (root / "a").is_file()
    finally:
        user.kill()
        user.communicate(timeout=20)
    done = prune.prune(cache)
    assert done.trees == 1 and done.bytes >= 5000 and not root.exists()
    assert listing(cache) >= {"layers", "users"} and not list((cache / "users").iterdir())
    assert [p.name for p in (cache / "layers").iterdir()] == [], "locks without a tree go as well"


def test_prune_all_removes_only_reproducible_images(tmp_path: Path, cache: Path) -> None:
    spec = f"docker-archive:{IMAGE.docker_archive(tmp_path / 'a.tar')}"
    other = f"oci:{Saved([layer(entry('b'))]).oci(tmp_path / 'b')}"
    for one in (spec, other):
        unpacked_elsewhere(one, cache)
    records.save_record(
        cache, Image("image:mine", "sha256:1", next((cache / "layers").glob("[!.]*")))
    )
    assert prune.prune(cache) == prune.PruneResult((), 0, 0)
    assert len(trees(cache)) == 2
    assert (
        prune.prune(
            cache, protected=[f"layers/{name}" for name in trees(cache)], everything=True
        ).images
        == ()
    )
    assert sorted(prune.prune(cache, everything=True).images) == sorted([spec, other])
    assert len(trees(cache)) == 1, "that of image:mine"
    assert resolve(spec, cache).digest == IMAGE.digest


def test_incomplete_entries(cache: Path) -> None:
    """Unfinished entries of ended processes are removed, those of live processes stay."""
    for name in ("layers", "blobs", "built", "images", "images/engines", "digests"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    key, other = "k" * 32, "o" * 32
    left = [
        f"layers/.{key}.half/x",
        f"layers/.{other}.half/x",
        f"blobs/.{key}.part",
        f"blobs/{key}",
        f"built/{key}.half-abc/x",
        f"built/{key}.12345/upper",
        "images/.nl2bash.half",
        f"images/engines/.{key}.tar.half",
        f"images/engines/{key}.tar",
        f"digests/{key}.1.2",
        "staging/left/layer",
    ]
    stays = [
        f"digests/{key}",
        "images/nl2bash.tar",
        "images/nl2bash.json",
        f"built/{other}/x",
        "staging/running/layer",
    ]
    for name in left + stays:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text("left")
    for path in (cache / "staging/left/layer", cache / "staging/left"):
        os.utime(path, (time.time() - 7200,) * 2)
    mark_in_use(cache, f"built/{other}")
    with caches.file_lock(cache / "layers" / f".{other}.lock"):
        done = prune.prune(cache)
        assert (cache / f"layers/.{other}.half/x").is_file()
    assert done.trees == len(left) - 1
    assert prune.prune(cache).trees == 1
    assert all((cache / name).is_file() for name in stays)
    assert not any((cache / name).exists() for name in left)
    assert not list((cache / "trash").iterdir())


def test_copies_with_other_dates_stay_for_a_day(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = stopped_clock_copies(cache, 7200), cache / "dated" / "0123-60600-7200"
    copies[1].mkdir()
    (cache / "dated" / "lock").touch()
    assert prune.prune(cache).trees == 0 and all(copy.is_dir() for copy in copies)
    monkeypatch.setattr(prune, "_DAY", 0.0)
    assert prune.prune(cache).trees == 2
    assert [path.name for path in (cache / "dated").iterdir()] == ["lock"]


def test_shared_programs_stay_for_a_day(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = cache / "shared" / "0123.456"
    (shared / "bin").mkdir(parents=True)
    assert prune.prune(cache).trees == 0 and shared.is_dir()
    monkeypatch.setattr(prune, "_DAY", 0.0)
    assert prune.prune(cache).trees == 1 and not shared.exists()


def test_databases_stay_for_a_day_and_while_a_process_uses_them(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, translations = f"sql/{'a1' * 16}-4", cache / "sql" / "translations"
    drawn = [
        "families/sql/database-0/x.sql",
        f"{built}/x.sqlite",
        f"{built}.lock",
        "variants/y.sql",
    ]
    for name in (*drawn, "sql/translations/z", "families/bash-0/keep"):
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text("x" * 5000)
    assert prune.prune(cache).trees == 0  # all are young
    command = [sys.executable, "-c", DATABASE_USER, str(cache)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert prune.prune(cache, everything=True).trees == 2
        assert (cache / built).is_dir() and not any((cache / "variants").iterdir())
        process.communicate()
    monkeypatch.setattr(prune, "_DAY", 0.0)
    assert prune.prune(cache).trees == 2
    assert sorted(p.name for p in (cache / "sql").iterdir()) == [translations.name]
    assert (cache / "families/bash-0/keep").is_file()


def test_waiting_for_a_removed_lock_gets_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with caches.file_lock(path):
        inside = path.stat().st_ino
        path.unlink()
        with caches.file_lock(path):
            assert path.stat().st_ino != inside
    with caches.file_lock(path):
        assert path.exists()


def test_import_under_a_name(tmp_path: Path, cache: Path) -> None:
    path = IMAGE.docker_archive(tmp_path / "a.tar")
    first = resolve(f"docker-archive:{path}", cache)
    stored = saved_images.import_image(first, "my/tool-1.0", cache)
    path.unlink()
    found = resolve("image:my/tool-1.0", cache)
    assert found == stored and (found.env, found.cwd) == ({"A": "1"}, "/w")
    assert found.entrypoint == ("/entry",)
    assert found.root == first.root
    with pytest.raises(UsageError, match=r"no image is imported as 'other' .*image:my/tool-1.0"):
        resolve("image:other", cache)
    for name in ("", "a b", "../x", "x" * 200):
        with pytest.raises(UsageError, match="is not a name for an image"):
            saved_images.import_image(first, name, cache)
    with pytest.raises(UsageError, match="cannot be imported"):
        saved_images.import_image(resolve("host", cache), "host", cache)
    source = tmp_path / "tree"
    source.mkdir()
    (source / "file").write_text("text")
    copied = saved_images.import_image(
        Image(f"dir:{source}", "sha256:" + "7" * 64, source), "tree", cache
    )
    assert copied.root is not None and copied.root.parent == cache / "layers"
    assert (copied.root / "file").read_text() == "text"


def test_a_record_of_an_earlier_release_has_no_entry_point(tmp_path: Path, cache: Path) -> None:
    spec = f"docker-archive:{IMAGE.docker_archive(tmp_path / 'a.tar')}"
    assert resolve(spec, cache).entrypoint == ("/entry",)
    (record,) = (cache / "images" / "records").iterdir()
    values = json.loads(record.read_text())
    assert values.pop("entrypoint") == ["/entry"]
    record.write_text(json.dumps(values))
    found = records.load_image(cache, spec)
    assert found is not None and found.entrypoint == ()
    assert resolve(spec, cache).entrypoint == ("/entry",)  # the archive is there


def test_records_that_are_broken_are_as_if_absent(tmp_path: Path, cache: Path) -> None:
    resolve(f"docker-archive:{IMAGE.docker_archive(tmp_path / 'a.tar')}", cache)
    (record,) = (cache / "images" / "records").iterdir()
    for text in ("", "{", "[]", '{"name": 1, "more": 2}'):
        record.write_text(text)
        assert list(records.all_records(cache)) == []
    assert prune.remove_image(cache, f"docker-archive:{tmp_path / 'a.tar'}") is None


def test_sizes(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "f").write_bytes(os.urandom(10_000))
    one = prune.disk_usage(tmp_path / "t")
    os.link(tmp_path / "t" / "f", tmp_path / "t" / "g")
    assert (
        prune.disk_usage(tmp_path / "t") == one == prune.disk_usage(tmp_path / "t" / "f") >= 10_000
    )
    assert prune.disk_usage(tmp_path / "absent") == 0
