"""The Bash starter suite. `intercode check starter` verifies that its golds score 1."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from intercode.core.errors import DataError, UnknownNameError
from intercode.core.types import Task
from intercode.datasets.bash import starter as bash_starter
from intercode.datasets.starter import archives, file_tree, suites

FORBIDDEN = re.compile(r"\b(python3?|perl|jq|date|whoami|hostname|id -|ls -l|rsync|zip|curl)\b")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def tasks(cache: Path) -> tuple[Task, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERCODE_CACHE", str(cache))
        return suites.load().tasks


def listing(root: Path) -> dict[str, tuple[int, int, bytes | str]]:
    """Return mode, time in nanoseconds and content of ``root`` and everything below it."""
    found: dict[str, tuple[int, int, bytes | str]] = {}
    for path in [root, *sorted(root.rglob("*"))]:
        info = path.lstat()
        content: bytes | str = b""
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (info.st_mode, info.st_mtime_ns, content)
    return found


def test_two_builds_are_equal_whatever_the_umask(tmp_path: Path) -> None:
    file_tree.write_entries(tmp_path / "a", bash_starter.entries())
    before = os.umask(0o077)
    try:
        file_tree.write_entries(tmp_path / "b", bash_starter.entries())
    finally:
        os.umask(before)
    assert listing(tmp_path / "a") == listing(tmp_path / "b")


def test_the_tree_holds_what_the_tasks_are_about(tasks: tuple[Task, ...]) -> None:
    root = tasks[0].files[0].path
    seen = listing(root)
    assert stat.S_IMODE(seen["."][0]) == 0o755
    assert sorted(p.name for p in root.iterdir()) == ["data", "home", "srv"]
    modes = {stat.S_IMODE(mode) for mode, _, _ in seen.values()}
    assert {0o600, 0o640, 0o644, 0o664, 0o666, 0o700, 0o755, 0o775, 0o777} <= modes
    files = [name for name, (mode, _, _) in seen.items() if stat.S_ISREG(mode)]
    links = [name for name, (mode, _, _) in seen.items() if stat.S_ISLNK(mode)]
    assert 100 <= len(files) <= 160
    assert sum(" " in name for name in files) >= 8
    assert any(not (root / "srv" / "quaywheel" / name).exists() for name in links)
    assert b"\r\n" in (root / "srv/quaywheel/scripts/tally.sh").read_bytes()
    assert b"\t" in (root / "data/tables/orders.tsv").read_bytes()
    assert sum(e.kind == "file" and not e.data for e in bash_starter.entries()) == 4


def test_every_file_is_readable_by_its_owner() -> None:
    for entry in bash_starter.entries():
        assert entry.mode & 0o400, entry.path
        assert entry.kind != "dir" or entry.mode & 0o700 == 0o700, entry.path


def test_a_description_that_is_broken_names_its_line() -> None:
    with pytest.raises(DataError, match=r"x\.txt:1: .* belongs to no file"):
        list(file_tree.parse_description("words\n", "x.txt"))
    with pytest.raises(DataError, match=r"x\.txt:2: '@ 0699 .*' is not"):
        list(
            file_tree.parse_description(
                "@ 0755 2024-05-02T09:10 /a/\n@ 0699 2024-05-02T09:10 /a/b\n", "x.txt"
            )
        )
    with pytest.raises(DataError, match="belongs to no file"):
        list(file_tree.parse_description("@ 0755 2024-05-02T09:10 /a/\nwords\n", "x.txt"))


def test_described_contents_keep_tabs_blanks_and_carriage_returns() -> None:
    text = "@ 0600 1970-01-01T00:01 /a file\n\na␉b␠\nc␍\n@ link 1970-01-01T00:00 /l -> to here\n"
    file, link = file_tree.parse_description(text, "x.txt")
    assert (file.path, file.mode, file.mtime) == ("/a file", 0o600, 60)
    assert file.data == b"\na\tb \nc\r\n"
    assert (link.kind, link.path, link.target) == ("link", "/l", "to here")


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 200_000])
def test_stored_gzip_is_read_by_zlib(size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    assert gzip.decompress(archives.make_gzip(data)) == data


def test_tarred_members_are_plain_and_ownerless() -> None:
    with tarfile.open(fileobj=io.BytesIO(archives.make_tar({"a/b": b"x", "c": b""}))) as found:
        members = found.getmembers()
    assert [m.name for m in members] == ["a/b", "c"]
    assert {(m.uid, m.gid, m.uname, m.mode) for m in members} == {(0, 0, "", 0o644)}


def test_the_tasks_are_many_mixed_and_graded(tasks: tuple[Task, ...]) -> None:
    assert len(tasks) >= 48
    assert len({t.id for t in tasks}) == len({t.query for t in tasks}) == len(tasks)
    assert all(re.fullmatch(r"starter/bash/[a-z0-9]+(-[a-z0-9]+)*", t.id) for t in tasks)
    hardness = Counter(t.hardness for t in tasks)
    assert set(hardness) == {"easy", "medium", "hard"}
    assert min(hardness.values()) >= len(tasks) // 4
    kinds = Counter("write" in t.tags for t in tasks)
    assert min(kinds.values()) >= len(tasks) // 3


def test_queries_say_what_is_printed_and_name_paths_that_exist(tasks: tuple[Task, ...]) -> None:
    there = {e.path for e in bash_starter.entries()}
    for task in tasks:
        assert re.search(r"\b[Pp]rint", task.query), task.id
        assert task.query.rstrip().endswith("."), task.id
        assert ("read" in task.tags) != ("write" in task.tags), task.id
        if "Print nothing." in task.query:
            assert "write" in task.tags, task.id
        named = re.findall(r'"?(/(?:srv|home|data)/[\w./ -]*[\w])', task.query)
        assert any(any(n == p or n.startswith(p) for p in there) for n in named), task.id


def test_golds_are_bash_and_need_only_the_usual_programs(tasks: tuple[Task, ...]) -> None:
    for task in tasks:
        assert task.gold
        assert not FORBIDDEN.search(task.gold), task.id
    for task in tasks:
        done = subprocess.run(["bash", "-n", "-c", task.gold or ""], capture_output=True)
        assert (done.returncode, done.stderr) == (0, b""), task.id


def test_the_dataset_is_marked_not_comparable(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(cache))
    first, again = suites.load("bash"), suites.load()
    assert (first.name, first.environment, first.image) == ("starter:bash", "bash", "host")
    assert not first.comparable
    assert first.notes
    assert first == again
    with pytest.raises(UnknownNameError, match="did you mean 'bash'"):
        suites.load("bsh")


@pytest.mark.slow
def test_processes_that_load_at_once_share_one_whole_tree(tmp_path: Path) -> None:
    code = (
        "from intercode.datasets.starter import suites; print(suites.load().tasks[0].files[0].path)"
    )
    env = {**os.environ, "INTERCODE_CACHE": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    paths = {process.communicate()[0].decode().strip() for process in running}
    assert [process.returncode for process in running] == [0] * 4
    [path] = paths
    assert [p.name for p in (tmp_path / "starter").iterdir()] == [Path(path).name]
    file_tree.write_entries(tmp_path / "reference", bash_starter.entries())
    assert listing(Path(path)) == listing(tmp_path / "reference")


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(dest: Path, entries: object) -> None:
        (dest / "half").write_text("")
        raise OSError("disk full")

    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(file_tree, "write_entries", broken)
    with pytest.raises(OSError, match="disk full"):
        suites.load("bash")
    assert list((tmp_path / "cache" / "starter").iterdir()) == []
