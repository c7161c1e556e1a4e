"""The file system as the authors' git sees it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from intercode.core.errors import SandboxError
from intercode.paper.bash import git_status
from intercode.paper.bash.git_status import git_layer
from intercode.paper.bash.session import OriginalBashSession
from intercode_sandbox import images
from support.sandboxes import open_test_sandbox

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(
        shutil.which("git", path="/usr/bin") is None,
        reason="git must be in the image `host`: apt install git",
    ),
]


@pytest.fixture
def shell() -> Iterator[OriginalBashSession]:
    with open_test_sandbox(
        layers=(git_layer(images.resolve("host"), ()),), appearance="docker"
    ) as sandbox:
        yield OriginalBashSession(sandbox)


def sh(shell: OriginalBashSession, code: str) -> None:
    result = shell.execute_argv(["/bin/bash", "-c", code], "/", 30)
    assert result.ok, result.output


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("true", ()),
        ("mkdir -p /work/empty", ()),
        ("mkdir -p /work/d; echo x > /work/d/f", (("work/", "??"),)),
        ("echo x > /top", (("top", "??"),)),
        ("echo x > /etc/new; mkdir -p /work/var; echo x > /work/var/f", ()),
        ("mkdir /w; echo x > '/w/a b'; echo y > /z", (("w/", "??"), ("z", "??"))),
        ("cd /; echo x > t; git add t", (("t", "A"),)),
        ("rm /.gitignore; rmdir /etc/nothing 2>/dev/null; true", None),
    ],
)
def test_changes_that_git_reports(
    shell: OriginalBashSession, code: str, seen: tuple[tuple[str, str], ...] | None
) -> None:
    sh(shell, code)
    status = git_status.status(shell)
    assert status == seen if seen is not None else (".gitignore", "D") in status


def test_a_blank_in_a_name_garbles_the_rest(shell: OriginalBashSession) -> None:
    sh(shell, "echo x > '/a b'; echo y > /c")
    assert git_status.status(shell) == (('"a', "??"), ("??", 'b"'))


def test_checksums_by_the_authors_two_commands(shell: OriginalBashSession) -> None:
    sh(shell, "echo x > /f.txt; echo x > /plain")
    entries = git_status.status(shell)
    sums = git_status.checksums(shell, (*entries, ("gone.txt", "D")))
    assert sums["f.txt"] == "401b30e3b8b5d629635a5c613cdb7919  f.txt\n"
    assert "md5deep" in sums["plain"] and set(sums) == {"f.txt", "plain"}


def test_reset_undoes_what_git_sees_and_no_more(shell: OriginalBashSession) -> None:
    sh(
        shell,
        "echo x > /f; mkdir -p /work/d; echo x > /work/d/f; echo x > /etc/stays; rm /.gitignore",
    )
    sh(shell, git_status.RESET)
    assert git_status.status(shell) == ()
    assert shell.execute("cat /etc/stays; ls /work /f", "/", 20).output.startswith("x\n")
    assert shell.execute("ls /", "/", 20).output.split().count("work") == 0


def test_an_image_without_git_is_an_error() -> None:
    own_bin = "PATH=/usr/bin; rm /bin; mkdir /bin; cp /usr/bin/bash /bin/bash"
    with open_test_sandbox(env={"PATH": "/bin"}) as sandbox:
        sandbox.run(["bash", "-c", own_bin])
        session = OriginalBashSession(sandbox)
        with pytest.raises(SandboxError, match="needs git in the image"):
            git_status.prepare(session)
