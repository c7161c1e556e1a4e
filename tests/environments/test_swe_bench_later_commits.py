"""No repository of a SWE-bench image shows an agent what is later than the task's commit."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from intercode.environments import make
from intercode.integrations.swe_bench.env import SweBenchEnv
from support.swe_bench import git, read_rows, write_instances

pytestmark = pytest.mark.sandbox

LATER = "from_a_later_commit"
SEARCH = f"""
find / -xdev -name objects -type d -not -path '/proc/*' -exec test -d '{{}}/../refs' ';' \
    -exec sh -c '[ -f "$1/../HEAD" ] || echo ref: refs/heads/x > "$1/../HEAD"
    git --git-dir="$1/.." cat-file --batch-all-objects --batch --buffer 2>&1' sh '{{}}' ';' |
    grep -a {LATER}
grep -rla {LATER} /testbed /srv
"""
"""Prints what an agent can find of a later commit: in objects, packed or not, and in files."""


def _commit_later(repository: Path) -> None:
    """Add a commit with the fix, and go back."""
    (repository / "pkg.py").write_text(f"{LATER} = 1\n")
    git(repository, "commit", "-qam", f"fix {LATER}")


def _packed(testbed: Path, srv: Path) -> None:
    _commit_later(testbed)
    git(testbed, "tag", "-am", LATER, "v2")
    git(testbed, "reset", "-q", "--hard", "HEAD~1")
    git(testbed, "tag", "v1")
    git(testbed, "gc", "-q")
    (next((testbed / ".git/objects/pack").glob("*.pack")).with_suffix(".keep")).touch()


def _reflog(testbed: Path, srv: Path) -> None:
    _commit_later(testbed)
    git(testbed, "reset", "-q", "--hard", "HEAD~1")


def _branches(testbed: Path, srv: Path) -> None:
    git(testbed, "checkout", "-q", "-b", "next")
    _commit_later(testbed)
    git(testbed, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(testbed, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(testbed, "update-ref", "refs/pull/1/head", "HEAD")
    git(testbed, "checkout", "-q", "main")
    git(testbed, "pack-refs", "--all")
    git(testbed, "notes", "add", "-m", LATER)
    git(testbed, "tag", "blob", git(testbed, "rev-parse", "next:pkg.py").strip())


def _staged(testbed: Path, srv: Path) -> None:
    code = (testbed / "pkg.py").read_text()
    (testbed / "pkg.py").write_text(f"{LATER} = 1\n")
    git(testbed, "stash", "-q")
    (testbed / "pkg.py").write_text(f"{LATER} = 2\n")
    git(testbed, "add", "pkg.py")
    (testbed / "pkg.py").write_text(code)
    (testbed / ".git/ORIG_PATCH").write_text(LATER)


def _worktree(testbed: Path, srv: Path) -> None:
    git(testbed, "worktree", "add", "-q", "-b", "next", str(testbed / "w.log"))
    _commit_later(testbed / "w.log")


def _moved(testbed: Path, srv: Path) -> None:
    """The task's repository is a worktree of another, which has the later commit."""
    _commit_later(testbed)
    later = git(testbed, "rev-parse", "HEAD").strip()
    git(testbed, "reset", "-q", "--hard", "HEAD~1")
    (testbed / ".git").rename(srv / "main")
    (srv / "main/worktrees/testbed").mkdir(parents=True)
    for name, text in {
        "HEAD": git(srv / "main", "rev-parse", "HEAD"),
        "commondir": "../..\n",
        "gitdir": "/testbed/.git\n",
    }.items():
        (srv / "main/worktrees/testbed" / name).write_text(text)
    (srv / "main/index").rename(srv / "main/worktrees/testbed/index")
    git(srv / "main", "config", "core.bare", "true")
    git(srv / "main", "update-ref", "refs/heads/main", later)
    (testbed / ".git").write_text("gitdir: /srv/main/worktrees/testbed\n")


def _clones(testbed: Path, srv: Path) -> None:
    """A mirror, a checkout of the later commit, and a repository that borrows the objects."""
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    git(srv, "clone", "-q", "--mirror", "--no-local", str(testbed), str(srv / "mirror"))
    git(srv, "clone", "-q", "--no-local", str(testbed), str(srv / "clone"))
    git(testbed, "reset", "-q", "--hard", base)
    git(srv, "clone", "-q", "--shared", str(srv / "mirror"), str(srv / "borrower"))
    for borrower in (srv / "borrower", testbed):
        (borrower / ".git/objects/info/alternates").write_text("/srv/mirror/objects\n")


def _grafted(testbed: Path, srv: Path) -> None:
    """A later commit is declared a parent of the task's."""
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    later = git(testbed, "rev-parse", "HEAD").strip()
    git(testbed, "checkout", "-q", "--orphan", "other")
    git(testbed, "commit", "-qm", "other", "--allow-empty")
    git(testbed, "replace", "--graft", "HEAD", later)
    git(testbed, "checkout", "-q", "-B", "main", base)
    (testbed / ".git/info/grafts").write_text(f"{base} {git(testbed, 'rev-parse', 'other')}")


def _reverted(testbed: Path, srv: Path) -> None:
    """The image has commits of its own: the fix and its reverse."""
    _commit_later(testbed)
    git(testbed, "revert", "-n", "HEAD")
    git(testbed, "commit", "-qm", "back")


def _submodule(testbed: Path, srv: Path) -> None:
    git(srv, "init", "-q", "-b", "main", "part")
    (srv / "part/pkg.py").write_text("x = 1\n")
    git(srv / "part", "add", "pkg.py")
    git(srv / "part", "commit", "-qm", "start")
    git(testbed, "-c", "protocol.file.allow=always", "clone", "-q", str(srv / "part"), "part.log")
    (testbed / ".git/modules").mkdir()
    (testbed / "part.log/.git").rename(testbed / ".git/modules/part")
    (testbed / "part.log/.git").write_text("gitdir: ../.git/modules/part\n")
    git(testbed / ".git/modules/part", "config", "core.worktree", "../../../part.log")
    _commit_later(testbed / "part.log")
    git(testbed / "part.log", "reset", "-q", "--hard", "HEAD~1")


def _lone_objects(testbed: Path, srv: Path) -> None:
    """Objects outside of any repository, from which the task's repository borrows."""
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    git(testbed, "gc", "-q")
    (srv / "cache").mkdir()
    (testbed / ".git/objects").rename(srv / "cache/objects")
    (testbed / ".git/objects/info").mkdir(parents=True)
    (testbed / ".git/objects/info/alternates").write_text("/srv/cache/objects\n")
    git(testbed, "update-ref", "refs/heads/main", base) if False else None
    (testbed / ".git/objects/info/alternates").write_text(f"{srv}/cache/objects\n")
    git(testbed, "reset", "-q", "--hard", base)
    (testbed / ".git/objects/info/alternates").write_text("/srv/cache/objects\n")


def _odd_names(testbed: Path, srv: Path) -> None:
    """Repositories whose names need quoting, and one without references."""
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    for name in ("a b", "q'uo\"te", "-n", "two\nlines", "end\n"):
        git(srv, "clone", "-q", "--mirror", "--no-local", str(testbed), str(srv / name))
    (srv / "-n/packed-refs").unlink()
    (srv / "end\n/objects").rename(srv / "lone\nobjects")
    (srv / "end\n/objects/info").mkdir(parents=True)
    (srv / "end\n/objects/info/alternates").write_text('"/srv/lone\\nobjects"\n')
    git(testbed, "reset", "-q", "--hard", base)
    (testbed / ".git/FETCH_HEAD").write_text(f"{base}\t\t{LATER}\n")


def _without_head(testbed: Path, srv: Path) -> None:
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    git(srv, "clone", "-q", "--mirror", "--no-local", str(testbed), str(srv / "broken"))
    (srv / "broken/HEAD").unlink()
    git(testbed, "reset", "-q", "--hard", base)


def _partial_clone(testbed: Path, srv: Path) -> None:
    """A clone with the files of the later commit only."""
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    git(testbed, "config", "uploadpack.allowFilter", "true")
    git(srv, "clone", "-q", "--filter=blob:none", f"file://{testbed}", "partial")
    git(testbed, "reset", "-q", "--hard", base)


def _bare_with_worktree(testbed: Path, srv: Path) -> None:
    """A worktree of a bare clone whose HEAD is the same branch."""
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    git(srv, "clone", "-q", "--bare", "--no-local", str(testbed), "bare")
    git(srv / "bare", "worktree", "add", "-q", str(testbed / "w.log"), "main")
    git(testbed, "reset", "-q", "--hard", base)
    (srv / "bare/worktrees/w.log/gitdir").write_text("/testbed/w.log/.git\n")
    (testbed / "w.log/.git").write_text("gitdir: /srv/bare/worktrees/w.log\n")


def _separate(testbed: Path, srv: Path) -> None:
    """Git directories of another name: of a clone with files that its index lacks, without
    references, and of the task's files."""
    base = git(testbed, "rev-parse", "HEAD").strip()
    _commit_later(testbed)
    for name in ("clone", "broken", "second"):
        separate = f"--separate-git-dir={srv}/of-{name}"
        git(srv, "clone", "-q", "--no-local", separate, str(testbed), str(srv / name))
        (srv / name / ".git").write_text(f"gitdir: ../of-{name}\n")
    git(srv / "clone", "rm", "-q", "--cached", "pkg.py")
    shutil.rmtree(srv / "broken")
    shutil.rmtree(srv / "of-broken/refs")
    shutil.rmtree(srv / "second")
    git(srv / "of-second", "config", "core.worktree", "/testbed")
    git(testbed, "reset", "-q", "--hard", base)


def _link(path: Path, target: Path) -> None:
    """Move something to a directory beside /testbed, and leave a link."""
    path.rename(target)
    path.symlink_to(os.path.relpath(target, path.parent))


def _linked_objects(testbed: Path, srv: Path) -> None:
    _packed(testbed, srv)
    _link(testbed / ".git/objects", srv / "data")


def _linked_packs(testbed: Path, srv: Path) -> None:
    """Another repository links to the packs, too."""
    _packed(testbed, srv)
    git(srv, "clone", "-q", "--no-local", str(testbed), "clone")
    _link(testbed / ".git/objects/pack", srv / "packs")
    shutil.rmtree(srv / "clone/.git/objects/pack")
    (srv / "clone/.git/objects/pack").symlink_to("../../../packs")


def _linked_pack(testbed: Path, srv: Path) -> None:
    git(testbed, "gc", "-q")
    _link(next((testbed / ".git/objects/pack").glob("*.pack")), srv / "one.pack")


@pytest.mark.parametrize(
    "hide",
    [
        _bare_with_worktree,
        _separate,
        _linked_objects,
        _linked_packs,
        _linked_pack,
        _without_head,
        _partial_clone,
        _submodule,
        _lone_objects,
        _odd_names,
        _packed,
        _reflog,
        _branches,
        _staged,
        _worktree,
        _moved,
        _clones,
        _grafted,
        _reverted,
    ],
)
def test_nothing_of_a_later_commit_is_found(
    tmp_path: Path, hide: Callable[[Path, Path], None]
) -> None:
    env = _open(tmp_path, hide)
    with env:
        env.reset(options={"task": 0})
        assert env.step(SEARCH)[0] == ""
        _, _, _, _, info = env.step("git status --porcelain -- pkg.py tests; git fsck --full")
        assert info["exit_code"] == 0
        base = env.task.data["base_commit"]
        assert env.step("git rev-parse HEAD; git diff HEAD -- pkg.py")[0].strip() == base
        assert env.step("git log --format=%s --all")[0].strip() == "start"
        tags = env.step("git tag")[0].strip()
        assert tags == ("v1" if hide in (_packed, _linked_objects, _linked_packs) else "")
        env.step(env.task.solution or "")
        score = env.score()
        assert score.value == 1.0 and LATER not in score.details["patch"]


def test_the_history_and_the_commit_of_the_image_stay(tmp_path: Path) -> None:
    """An image may have one commit over the task's, with the files that it shows."""

    def hide(testbed: Path, srv: Path) -> None:
        (testbed / "setup.cfg").write_text("[tool:pytest]\naddopts = -q -q\n")
        git(testbed, "commit", "-qam", "made by the image")
        git(srv, "init", "-q", "other")
        (srv / "other/a").write_text("a")
        git(srv / "other", "add", "a")
        git(srv / "other", "commit", "-qm", "another project")

    with _open(tmp_path, hide, "one") as env:
        env.reset(options={"task": 0})
        assert env.step("git log --format=%s")[0].split("\n")[:2] == ["made by the image", "start"]
        assert env.step("cd /srv/other && git log --format=%s")[0].strip() == "another project"


def test_no_link_in_another_checkout_costs_files_of_the_task(tmp_path: Path) -> None:
    def hide(testbed: Path, srv: Path) -> None:
        _commit_later(testbed)
        git(srv, "clone", "-q", "--no-local", str(testbed), "clone")
        git(testbed, "reset", "-q", "--hard", "HEAD~1")
        shutil.rmtree(srv / "clone/tests")
        (srv / "clone/tests").symlink_to("/testbed/tests")

    with _open(tmp_path, hide, "one") as env:
        env.reset(options={"task": 0})
        assert env.step("git ls-files tests")[0].startswith("tests/")
        assert env.step("git ls-files --deleted")[0] == ""
        assert env.step(SEARCH)[0] == ""


def test_packs_and_bundles_outside_of_repositories_are_removed(tmp_path: Path) -> None:
    def hide(testbed: Path, srv: Path) -> None:
        git(testbed, "bundle", "create", "-q", "old.bundle", "HEAD")
        git(testbed, "add", "-f", "old.bundle")
        git(testbed, "commit", "-qm", "made by the image")
        _commit_later(testbed)
        git(testbed, "bundle", "create", "-q", str(srv / "all.bundle"), "--all")
        git(testbed, "bundle", "create", "-q", "later.bundle", "--all")
        git(testbed, "gc", "-q")
        pack = next((testbed / ".git/objects/pack").glob("*.pack"))
        (srv / "a b.pack").write_bytes(pack.read_bytes())
        git(testbed, "reset", "-q", "--hard", "HEAD~1")
        (srv / "program.bundle").write_text("no bundle of git")
        for other in (testbed / "part.log", srv / "other"):
            (other / "data").mkdir(parents=True)
            shutil.copy(srv / "a b.pack", other / "data/file.pack")
            git(other, "init", "-q")
            git(other, "add", "data")
            git(other, "commit", "-qm", "another project")

    with _open(tmp_path, hide, "one") as env:
        env.reset(options={"task": 0})
        found = env.step("find /srv /testbed -name '*.bundle' -o -name '*.pack'")[0].splitlines()
        kept = sorted(path for path in found if "/.git/objects/pack/" not in path)
        assert kept == [
            "/srv/other/data/file.pack",
            "/srv/program.bundle",
            "/testbed/old.bundle",
            "/testbed/part.log/data/file.pack",
        ]
        assert "/testbed/.git/objects/pack/" in "\n".join(found)


@pytest.mark.parametrize("store", ["lfs", "/srv/store"])
def test_objects_of_git_lfs_are_those_of_the_checkouts(tmp_path: Path, store: str) -> None:
    """Also those of a linked worktree, and where the configuration of a repository changes what
    `git grep` prints."""

    def commit_objects(repository: Path, folder: Path, *contents: str) -> None:
        git(repository, "config", "grep.lineNumber", "true")
        git(repository, "config", "color.ui", "always")
        git(repository, "config", "lfs.storage", store)
        for content in (*contents, LATER):
            name = hashlib.sha256(content.encode()).hexdigest()
            (repository / "data.bin").write_text(f"version 1\noid sha256:{name}\nsize 9\n")
            git(repository, "add", "-f", "data.bin")
            git(repository, "commit", "-qm", content)
            file = folder / "objects" / name[:2] / name[2:4] / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{content}\n")
        git(repository, "reset", "-q", "--hard", "HEAD~1")

    def hide(testbed: Path, srv: Path) -> None:
        other = srv / "other"
        git(srv, "init", "-q", "other")
        for repository in (testbed, other):
            folder = repository / ".git/lfs" if store == "lfs" else srv / "store"
            more = ["of a worktree"] if repository == other else []
            commit_objects(repository, folder, *more, f"of {repository.name}")
        git(other, "worktree", "add", "-q", "--detach", str(srv / "more"), "HEAD~1")

    with _open(tmp_path, hide, "one") as env:
        env.reset(options={"task": 0})
        shown = env.step(
            "find /testbed /srv -path '*/objects/??/??/*' -exec cat {} + 2> /dev/null"
        )[0]
        assert sorted(shown.splitlines()) == ["of a worktree", "of other", "of testbed"]
        assert env.step(SEARCH)[0] == ""


def test_a_committed_repository_stays_if_testbed_is_a_link(tmp_path: Path) -> None:
    def hide(testbed: Path, srv: Path) -> None:
        git(testbed, "clone", "-q", "--bare", "--no-local", ".", "fixtures/old.git")
        git(testbed, "init", "-q", "--bare", "fixtures/new.git")
        git(testbed, "add", "-f", "fixtures")
        git(testbed, "commit", "-qm", "made by the image")
        _commit_later(testbed)
        git(testbed, "reset", "-q", "--hard", "HEAD~1")
        dockerfile = testbed.parent / "Dockerfile"
        linked = "COPY testbed /data/real\nRUN ln -s /data/real /testbed"
        dockerfile.write_text(dockerfile.read_text().replace("COPY testbed /testbed", linked))

    with _open(tmp_path, hide, "one") as env:
        env.reset(options={"task": 0})
        assert env.step("git status --porcelain fixtures; git fsck")[0] == ""
        assert env.step("git -C fixtures/old.git log --format=%s --all")[0] == "start\n"
        assert env.step(SEARCH)[0] == ""


def _open(folder: Path, hide: Callable[[Path, Path], None], name: str = "instances") -> SweBenchEnv:
    rows = write_instances(folder / name)
    context = rows.parent / "acme__pkg-1"
    (context / "srv").mkdir()
    git(context / "testbed", "checkout", "-q", "--", ".")  # without what is not committed
    hide(context / "testbed", context / "srv")
    for admin in context.glob("testbed/.git/worktrees/*"):
        (admin / "gitdir").write_text("/testbed/w.log/.git\n")
        (context / "testbed/w.log/.git").write_text(f"gitdir: /testbed/.git/worktrees/{admin.name}")
    with (context / "Dockerfile").open("a") as file:
        file.write("COPY srv /srv\n")
    (rows.parent / "row.jsonl").write_text(json.dumps(read_rows(rows)[0]))
    opened = make(
        "swe-bench", f"swe-bench:{rows.parent}/row.jsonl?images={rows.parent}/images.json"
    )
    assert isinstance(opened, SweBenchEnv)
    return opened
