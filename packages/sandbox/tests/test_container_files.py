"""A container's supervisor lists, restores and copies files, tested through its protocol."""

from __future__ import annotations

import errno
import os
import random

import pytest

from intercode_sandbox.platforms.paths import sandbox_uid
from support.supervised_container import SmallImage, SupervisedContainer

pytestmark = pytest.mark.docker

_SHOW = (
    "cd /; find data tmp root -xdev -printf '%p %y %m %s %T@ %l\\n' | sort; "
    "find data tmp root -xdev -type f -exec sha256sum {} + | sort"
)


def test_changes_are_listed_as_rows(container: SupervisedContainer) -> None:
    container.sh(
        "cd /data; echo hi > f1; rm f2; chmod 600 f3; touch f4; rm -r in; echo was > in; "
        "mkdir new; echo y > new/a; ln -s q ql; mkfifo ff; rm link; cp f5 t; cat t > f5; rm t; "
        "ln f6 f6b"
    )
    rows = container.rows()
    assert {path: row[0] for path, row in rows.items()} == {
        "/data/f1": "file",
        "/data/f2": "gone",
        "/data/f3": "file",
        "/data/f6b": "file",
        "/data/ff": "fifo",
        "/data/in": "file",
        "/data/in/deep": "gone",
        "/data/in/deep/x": "gone",
        "/data/link": "gone",
        "/data/new": "dir",
        "/data/new/a": "file",
        "/data/ql": "link",
    }
    assert rows["/data/f1"][1:3] == [0o644, 3] and rows["/data/ql"][4] == "q"
    assert [path for path, row in rows.items() if row[5]] == [
        "/data/f6b",
        "/data/ff",
        "/data/new",
        "/data/new/a",
        "/data/ql",
    ]
    assert container.ask("changed_paths")["rows"] == list(rows)
    assert "/data/f4" in container.ask("touched_paths")["rows"]


_STEPS = (
    "echo {n} > {a}",
    "echo {n} >> {a}",
    "rm -rf {a}",
    "mkdir -p {a}",
    "mv -T {a} {b}",
    "ln -s {n} {a}",
    "ln {a} {b}",
    "chmod {m} {a}",
    "touch -d @{n} {a}",
    "truncate -s {n} {a}",
    "cp -a {a} {b}",
    "mkfifo {a}",
    "sed -i s/e/{n}/ {a}",
)
_PATHS = (
    "f1",
    "f2",
    "in",
    "in/deep",
    "in/deep/x",
    "in/deep/y",
    "new",
    "new/a",
    "old",
    "old/o/p",
    "link",
    "closed",
    "closed/z",
)


def _worked(chance: random.Random) -> str:
    """Return a command that changes some files below /data."""
    steps = [
        chance.choice(_STEPS).format(
            a=chance.choice(_PATHS),
            b=chance.choice(_PATHS),
            n=chance.randrange(1, 5000),
            m=chance.choice(("500", "700", "744", "755", "555")),
        )
        for _ in range(chance.randrange(1, 8))
    ]
    return "cd /data; " + "; ".join(f"{{ {step}; }} 2>/dev/null" for step in steps)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_change_is_listed_and_rolled_back(container: SupervisedContainer, seed: int) -> None:
    chance = random.Random(seed)
    first = container.sh(_SHOW)[0]
    for _ in range(12):
        for _ in range(chance.choice((1, 2))):
            work = _worked(chance)
            container.sh(work)
            assert set(container.rows()) == _different(first, container.sh(_SHOW)[0]), work
        container.ask("recycle")
        assert container.sh(_SHOW)[0] == first
        assert container.rows() == {} and container.ask("touched_paths")["rows"] == []


def test_a_container_with_a_changed_directory_whose_files_were_replaced_is_not_recycled(
    own_container: SupervisedContainer,
) -> None:
    own_container.sh("touch /data/old/new")
    own_container.ask("replace_files")
    assert own_container.rows() == {}
    with pytest.raises(OSError, match="shows that its entries were changed") as refused:
        own_container.ask("recycle")
    assert refused.value.errno == errno.EBUSY


def test_every_change_can_be_copied_to_another_container(
    container: SupervisedContainer, own_container: SupervisedContainer
) -> None:
    chance = random.Random(3)
    for _ in range(12):
        work = _worked(chance)
        own_container.sh(work)
        _copy(own_container, container)
        assert container.rows() == own_container.rows(), work
        assert container.sh(_SHOW) == own_container.sh(_SHOW), work


def _different(first: str, now: str) -> set[str]:
    """The paths whose kind, mode, size (of a file), target or content differ in two listings."""
    one, two = _metadata(first), _metadata(now)
    return {"/" + path for path in one.keys() | two.keys() if one.get(path) != two.get(path)}


def _metadata(listing: str) -> dict[str, list[str]]:
    metadata: dict[str, list[str]] = {}
    for line in listing.splitlines():
        head, _, rest = line.partition(" ")
        if len(head) == 64:  # a digest
            metadata[rest.strip()].append(head)
            continue
        kind, mode, size, _, *target = rest.split(" ")
        metadata[head] = [kind, mode, size if kind == "f" else "", *target]
    return metadata


def test_files_can_be_copied_to_another_container(
    container: SupervisedContainer, own_container: SupervisedContainer
) -> None:
    own_container.sh(
        "cd /data; echo hi > f1; rm -r f2 in; touch -d @5 f3; mkdir -p new/a; echo c > new/a/b; "
        "chmod 0 f4 new; mkdir /top; touch -d @7 /top; ln -s new in"
    )
    container.sh("echo mine > /data/f7; mkdir /data/mine")
    _copy(own_container, container)
    assert container.rows() == own_container.rows()
    show = "ls -l --time-style=full-iso /data / | grep -v -e ' dev$' -e ' proc$' -e ' sys$'"
    assert container.sh(f"{show} | awk '{{print $1, $6, $7, $9}}'") == own_container.sh(
        f"{show} | awk '{{print $1, $6, $7, $9}}'"
    )
    assert container.sh("chmod 700 /data/new; cat /data/new/a/b") == ("c\n", 0)


def _copy(source: SupervisedContainer, target: SupervisedContainer) -> None:
    paths = source.ask("touched_paths")["rows"]
    source.ask("freeze", on=True)
    (root,) = source.given("upper")[1]
    target.ask("replace_files", [root], paths=paths)
    source.ask("freeze", on=False)
    os.close(root)


def test_an_upper_layer_can_be_applied_to_a_container(
    container: SupervisedContainer, small_image: SmallImage
) -> None:
    layer = small_image.home / "layer"
    (layer / "data/in").mkdir(parents=True)
    (layer / "data/in/only").write_text("new\n")
    os.setxattr(layer / "data/in", "user.overlay.opaque", b"y")
    if os.geteuid() == 0:
        os.mknod(layer / "data/f1", 0o020000)
        for path in (layer / "data", layer / "data/in", layer / "data/in/only"):
            os.chown(path, sandbox_uid(), sandbox_uid())
    paths = ["/data", *(["/data/f1"] if os.geteuid() == 0 else []), "/data/in", "/data/in/only"]
    root = os.open(layer, os.O_RDONLY | os.O_DIRECTORY)
    container.ask("replace_files", [root], paths=paths)
    os.close(root)
    gone = {"/data/in/deep", "/data/in/deep/x", *({"/data/f1"} & set(paths))}
    rows = container.rows()
    assert {path for path, row in rows.items() if row[0] == "gone"} == gone
    assert set(rows) == gone | {"/data/in/only"}


def test_unreadable_files_are_listed_restored_and_keep_their_modes(
    container: SupervisedContainer,
) -> None:
    container.sh("cd /data; echo secret > f1; mkdir -p d/e; echo x > d/e/f; chmod 0 f1 d/e d old")
    rows = container.rows()
    assert rows["/data/d/e/f"][0] == "file" and rows["/data/f1"][1:3] == [0, 7]
    assert rows["/data/old"][:2] == ["dir", 0]
    assert container.sh("ls /data/d")[1] and container.sh("cat /data/f1")[1]
    assert container.sh("stat -c %a /data/f1 /data/d /data/old")[0].split() == ["0", "0", "0"]
    container.ask("recycle")
    assert container.sh("stat -c %a /data/f1 /data/old; ls /data/d")[0].split()[:2] == [
        "644",
        "755",
    ]
