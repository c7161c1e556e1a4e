"""Our tasks as Harbor's directories: written, read again, and validated by playing them."""

from __future__ import annotations

import json
import stat
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from intercode import datasets
from intercode.cli import main
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset, Task, TreeEntry
from intercode.integrations.harbor.env import HarborEnv
from intercode.integrations.harbor.export.tasks import write_tasks
from intercode.integrations.harbor.export.trees import write_tree
from intercode.integrations.harbor.tasks.task_toml import read_config
from support.harbor import write_task


def some(environment: str, count: int) -> Dataset:
    found = datasets.load("starter", environment)
    step = len(found) // count
    return replace(found, tasks=found.tasks[::step][:count])


def played(folder: Path) -> list[tuple[float, float]]:
    """Return for each task the reward of doing nothing, and its solution."""
    found = []
    with HarborEnv(f"harbor:{folder}") as env:
        for task in env.dataset.tasks:
            env.reset(options={"task": task.id})
            before = env.score().value
            env.step(task.solution or "")
            found.append((before, env.score().value))
    return found


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize(("environment", "count"), [("ctf", 4), ("python", 3)])
def test_starter_tasks_are_sound_as_harbors(tmp_path: Path, environment: str, count: int) -> None:
    written = write_tasks(some(environment, count), tmp_path, base="host")
    assert (written.records, len(written.omitted)) == (count, 0)
    assert played(tmp_path) == [(0.0, 1.0)] * count


def test_tests_and_flags_are_in_tests_only(tmp_path: Path) -> None:
    write_tasks(some("ctf", 2), tmp_path, base="host")
    for folder in tmp_path.iterdir():
        assert {p.name for p in folder.iterdir()} == {
            "environment",
            "instruction.md",
            "solution",
            "task.toml",
            "tests",
        }
        (sum_,) = (folder / "tests" / "flags.sha256").read_text().split()
        assert len(sum_) == 64
        assert read_config(folder / "task.toml").internet is False


@pytest.mark.sandbox
def test_a_probe_is_compared_with_the_golds(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"query": "Write 3 to /srv/n.", "gold": "mkdir -p /srv; echo 3 > /srv/n", '
        '"probe": "cat /srv/n; ls /srv"}\n'
    )
    words = ["export", str(rows), "--to", "harbor", "--out", str(tmp_path / "out")]
    assert main([*words, "--base", "host"]) == 0
    (folder,) = (tmp_path / "out").iterdir()
    assert (folder / "tests" / "expected.txt").read_text() == "3\nn\n"
    assert played(tmp_path / "out") == [(0.0, 1.0)]


def test_harbors_own_tasks_are_unchanged(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "one")
    (folder / "environment" / "empty").mkdir()
    (folder / "environment" / "link").symlink_to("Dockerfile")
    write_tasks(datasets.load(f"harbor:{folder}"), tmp_path / "out")
    found = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    out = tmp_path / "out" / "one"
    assert found == {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert (out / "environment" / "link").readlink() == Path("Dockerfile")
    assert (out / "environment" / "empty").is_dir()
    with pytest.raises(UsageError, match="exists already"):
        write_tasks(datasets.load(f"harbor:{folder}"), tmp_path / "out")


def test_an_export_keeps_no_permissions_of_other_users_and_no_absolute_link(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "one")
    program = folder / "environment" / "program"
    program.write_bytes(b"x")
    program.chmod(0o4755)
    (folder / "environment").chmod(0o2755)
    write_tasks(datasets.load(f"harbor:{folder}"), tmp_path / "out")
    out = tmp_path / "out" / "one" / "environment"
    assert stat.S_IMODE((out / "program").stat().st_mode) == 0o755
    assert stat.S_IMODE(out.stat().st_mode) & ~0o2000 == 0o755
    (folder / "environment" / "link").symlink_to(program.resolve())
    with pytest.raises(UsageError, match="make it a relative link"):
        write_tasks(datasets.load(f"harbor:{folder}"), tmp_path / "out2")


@pytest.mark.parametrize("link", ["{}/elsewhere", "../elsewhere", "b"])
def test_no_file_is_written_through_a_link_or_outside(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b").write_bytes(b"kept")
    target = link.format(tmp_path).encode()
    for files in (
        {"a": (target, stat.S_IFLNK | 0o777), "a/b": (b"new", 0o644)},
        {"a": (target, stat.S_IFLNK | 0o777), "c/../a/b": (b"new", 0o644)},
        {"../elsewhere/b": (b"new", 0o644)},
        {str(elsewhere / "b"): (b"new", 0o644)},
        {"a": (b"../elsewhere/b", stat.S_IFLNK), "./a": (b"new", 0o644)},
    ):
        with pytest.raises(DataError, match="cannot be written"):
            write_tree(tmp_path / "out", files)
        assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
        assert (elsewhere / "b").read_bytes() == b"kept"


def test_dockerfiles_name_what_an_image_is_made_of(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    initial = TreeEntry("file", "/in/x y", 0o600, None, b"z")
    tasks = (
        Task("a", "q", "submit f", flag="f", cwd="/ctf", setup="touch x", tags=("t",)),
        Task("b", "q", "submit f", flag="f", initial_files=(initial,)),
    )
    write_tasks(Dataset("own", "ctf", tasks, image="recipe:ctf"), tmp_path / "out")
    first, second = ((tmp_path / "out" / n / "environment").resolve() for n in "ab")
    text = (first / "Dockerfile").read_text()
    assert text.startswith("FROM debian:bookworm\nRUN apt-get update")
    assert "sleuthkit" in text and text.endswith("WORKDIR /ctf\n")
    assert (first / "setup.sh").read_text() == "touch x\n"
    with tarfile.open(second / "contents.tar") as archive:
        (member,) = archive
        assert (member.name, member.mode, member.size) == ("in/x y", 0o600, 1)
    assert "ADD contents.tar /" in (second / "Dockerfile").read_text()
    config = read_config(tmp_path / "out" / "a" / "task.toml")
    assert (config.difficulty, config.category, config.tags) == ("medium", "ctf", ("t",))


def test_tasks_without_a_verifier_are_reported(tmp_path: Path) -> None:
    bash = Dataset("own", "bash", (Task("a", "q", "ls"),))
    with pytest.raises(UsageError, match=r"1 tasks: one sandbox.* cannot score a bash task"):
        write_tasks(bash, tmp_path)
    flags = Dataset("own", "ctf", (Task("a", "q", flag="f"),), image="dir:/x")
    with pytest.raises(UsageError, match="there is no directory /x"):
        write_tasks(flags, tmp_path)
    many = tmp_path / "Dockerfile"
    many.write_text("FROM a AS one\nFROM one\n")
    with pytest.raises(UsageError, match="has 2 lines FROM: leave the base out"):
        write_tasks(replace(flags, image=f"dockerfile:{many}"), tmp_path, base="b")
    many.unlink()
    mode = {"tests": ({"input": "1", "output": "1"},), "mode": "call"}
    with pytest.raises(UsageError, match="form 'call'"):
        write_tasks(Dataset("own", "python", (Task("a", "q", data=mode),)), tmp_path)
    assert list(tmp_path.iterdir()) == []


ROWS = (
    {"query": "Count the prices.", "gold": "wc -l < prices > sum", "probe": "cat srv/shop/sum"},
    {"query": "Sort.", "gold": "sort -n prices -o prices", "probe": "head -1 /srv/shop/prices"},
    {"query": "Name the shop.", "gold": 'printf %s "$SHOP" > name', "probe": "cat /srv/shop/name"},
    {
        "query": "Copy.",
        "gold": "cp '/srv/one file' two; cp /srv/made three",
        "probe": "cat /srv/shop/two /srv/shop/three",
    },
    {"query": "Go.", "gold": "touch here", "probe": "ls /srv/shop/sub", "cwd": "/srv/shop/sub"},
)


def _write_package(folder: Path) -> None:
    (folder / "files" / "sub").mkdir(parents=True)
    (folder / "files" / "prices").write_text("3\n10\n2\n")
    (folder / "files" / "sub" / "old").write_text("old\n")
    (folder / "one file").write_text("one\n")
    (folder / "setup.sh").write_text("#!/bin/sh -e\necho made > /srv/made\n")
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (folder / "task.toml").write_text("")
    (folder / "Dockerfile").write_text(
        'FROM host\nCOPY files /srv/shop\nCOPY ["one file", "/srv/one file"]\n'
        "COPY setup.sh /srv\nRUN sh /srv/setup.sh\nENV SHOP=shop\nWORKDIR /srv/shop\n"
    )


@pytest.mark.sandbox
@pytest.mark.heavy
def test_a_package_is_written_with_its_own_image(tmp_path: Path) -> None:
    _write_package(tmp_path / "shop")
    words = ["export", str(tmp_path / "shop"), "--to", "harbor", "--out", str(tmp_path / "out")]
    assert main([*words, "--base", "host"]) == 0
    assert played(tmp_path / "out") == [(0.0, 1.0)] * len(ROWS)


@pytest.mark.sandbox
@pytest.mark.heavy
@pytest.mark.parametrize("name", ["Dockerfile", "agent.Dockerfile"])
def test_files_of_the_export_do_not_meet_those_of_the_image(tmp_path: Path, name: str) -> None:
    """The image has a file setup.sh, an empty directory, a link, and what is not ignored."""
    package = tmp_path / "package"
    (package / "files" / "empty").mkdir(parents=True)
    (package / "files" / "kept").write_text("kept\n")
    (package / "files" / "link").symlink_to("kept")
    (package / "files" / "run").write_text("#!/bin/sh\necho ran\n")
    (package / "files" / "run").chmod(0o750)
    (package / "setup.sh").write_text("echo image > /srv/image\n")
    (package / name).write_text(
        "FROM host\nCOPY setup.sh /opt/setup.sh\nRUN sh /opt/setup.sh\nCOPY . /srv/all\n"
    )
    ignored = ".dockerignore" if name == "Dockerfile" else f"{name}.dockerignore"
    (package / ignored).write_text("*\n!files\n!setup.sh\n")
    (package / "task.toml").write_text(f'image = "dockerfile:{name}"\n')
    listing = "cd /srv; cat image task; cd all; ls -A . files; cat files/link; stat -c %a files/run"
    row = {
        "query": "List.",
        "gold": f"({listing}) > /srv/found",
        "probe": "cat /srv/found",
        "setup": "echo task > /srv/task",
    }
    (package / "tasks.jsonl").write_text(f"{json.dumps(row)}\n")
    assert main(["export", str(package), "--to", "harbor", "--out", str(tmp_path / "out")]) == 0
    (folder,) = (tmp_path / "out").iterdir()
    assert (folder / "tests" / "expected.txt").read_text() == (
        "image\ntask\n.:\nfiles\nsetup.sh\n\nfiles:\nempty\nkept\nlink\nrun\nkept\n750\n"
    )
    assert played(tmp_path / "out") == [(0.0, 1.0)]


def test_tasks_whose_ids_give_one_name_have_a_directory_each(tmp_path: Path) -> None:
    ids = ("a/b", "a-b", "a b", "a_b", "a-b-2", "/", "//")
    tasks = tuple(Task(id_, f"The task {id_}.", flag="f") for id_ in ids)
    written = write_tasks(Dataset("own", "ctf", tasks), tmp_path, base="host")
    assert written.records == len(ids)
    found = {f.name: (f / "instruction.md").read_text().split(".")[0] for f in tmp_path.iterdir()}
    assert found == {
        "a-b": "The task a/b",
        "a-b-2": "The task a-b",
        "a_b": "The task a b",
        "a_b-2": "The task a_b",
        "a-b-2-2": "The task a-b-2",
        "-": "The task /",
        "--": "The task //",
    }


@pytest.mark.sandbox
@pytest.mark.heavy
def test_an_image_of_which_only_the_files_are_known_is_packed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_text("tool")
    (root / "bin" / "tool").chmod(0o751)
    (root / "bin" / "same").hardlink_to(root / "bin" / "tool")
    (root / "lib").symlink_to("usr/lib")
    flags = Dataset("own", "ctf", (Task("a", "q", flag="f"),), image=f"dir:{root}")
    write_tasks(flags, tmp_path / "out")
    environment = tmp_path / "out" / "a" / "environment"
    text = (environment / "Dockerfile").read_text()
    assert text.startswith("FROM scratch\nADD image.tar.gz /\n") and "WORKDIR" not in text
    with tarfile.open(environment / "image.tar.gz") as archive:
        found = {m.name: (m.type, m.mode, m.uid, m.linkname) for m in archive if m.name != "bin"}
    first, second = sorted(("bin/same", "bin/tool"))
    assert found[first] == (tarfile.REGTYPE, 0o751, 0, "")
    assert found[second] == (tarfile.LNKTYPE, 0o751, 0, first)
    assert found["lib"][0::3] == (tarfile.SYMTYPE, "usr/lib")


def test_the_image_of_a_registry_and_a_user_stay(tmp_path: Path) -> None:
    dockerfile = tmp_path / "context" / "agent.Dockerfile"
    dockerfile.parent.mkdir()
    dockerfile.write_text("from --platform=linux/amd64 debian:12\nRUN useradd me\nUSER me\n")
    task = Task("a", "q", flag="f")
    for name, image in (("r", "registry:example.org/a:1"), ("d", f"dockerfile:{dockerfile}")):
        write_tasks(Dataset(name, "ctf", (task,), image=image), tmp_path / name)
    text = (tmp_path / "r" / "a" / "environment" / "Dockerfile").read_text()
    assert text == "FROM example.org/a:1\nRUN mkdir -p /app\n"
    text = (tmp_path / "d" / "a" / "environment" / "Dockerfile").read_text()
    assert text.endswith("USER me\nUSER root\nRUN mkdir -p /app\nUSER me\n")
