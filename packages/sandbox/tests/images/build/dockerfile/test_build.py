"""Dockerfiles built without a daemon, on a static image, on `host` and on Debian."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.errors import ConfigError, DataError, UsageError
from intercode_sandbox.images import dockerfile
from intercode_sandbox.images.build import built_images, steps
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.types import Image
from support import requirements

pytestmark = pytest.mark.sandbox


@pytest.fixture
def context(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    (files / "sub").mkdir(parents=True)
    (files / "x").write_text("x\n")
    (files / "sub" / "y").write_text("y\n")
    (files / "l").symlink_to("x")
    (tmp_path / "secret.log").write_text("no\n")
    (tmp_path / ".dockerignore").write_text("*.log\n")
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tar:
        tar.add(files, "packed")
    return tmp_path


def build(context: Path, text: str, **more: object) -> Image:
    (context / "Dockerfile").write_text(text)
    return resolve_or_build(f"dockerfile:{context}", **more)  # type: ignore[arg-type]


def shown(image: Image, code: str) -> str:
    with open_sandbox(SandboxSpec(image)) as sandbox:
        assert sandbox.changes() == {}
        return sandbox.run(["/bin/bash", "-c", code], cwd=image.cwd).output


def test_the_digest_covers_the_set_user_id_bit(context: Path) -> None:
    modes = ("755", "4755", "6755")
    copied = [build(context, f"FROM host\nCOPY --chmod={mode} files/x /srv/\n") for mode in modes]
    assert copied[0].digest != copied[1].digest == copied[2].digest
    run = [build(context, f"FROM host\nRUN install -m {mode} /bin/true /srv/x\n") for mode in modes]
    assert run[0].digest != run[1].digest == run[2].digest


def test_common_instructions_and_a_git_repository(context: Path) -> None:
    """FROM, RUN, COPY, and a file system under git."""
    text = """\
FROM host
ARG WHO=world
ENV GREETING="hello $WHO" OTHER=a\\ b
WORKDIR /work
COPY files/ ./
COPY files/x files/l more/
COPY --chmod=750 <<"EOT" run.sh
#!/bin/bash
echo "$GREETING"
EOT
ADD a.tgz /opt/
SHELL ["/bin/bash", "-c"]
RUN <<EOT
set -e
git init -q . && git add -A
git -c user.name=a -c user.email=a@b commit -qm start
EOT
RUN ["touch", "one file"]
RUN cat > said <<A
$OTHER in $PWD
A
EXPOSE 80
CMD ["bash"]
"""
    lines: list[str] = []
    image = build(context, text, progress=lines.append)
    assert (image.cwd, image.env) == ("/work", {"GREETING": "hello world", "OTHER": "a b"})
    code = "git log --format=%s; git status --short; ./run.sh; cat said more/l; ls . sub"
    assert shown(image, code).splitlines() == [
        "start",
        '?? "one file"',
        "?? said",
        "hello world",
        "a b in /work",
        "x",
        ".:",
        "l",
        "more",
        "one file",
        "run.sh",
        "said",
        "sub",
        "x",
        "",
        "sub:",
        "y",
    ]
    code = "stat -c %A,%U run.sh more/l l; cat /opt/packed/sub/y; readlink /opt/packed/l"
    assert shown(image, code) == "-rwxr-x---,root\n-rw-r--r--,root\nlrwxrwxrwx,root\ny\nx\n"
    record = next(r for r in built_images.built_images() if r.digest == image.digest)
    assert record.notes == ("EXPOSE 80", 'CMD ["bash"]')
    assert lines[0] == "Dockerfile:2: ARG WHO=world"
    assert build(context, text) == image
    assert resolve_or_build(f"dockerfile:{context}/Dockerfile") == image
    changed = build(context, text, args={"WHO": "you"})
    assert changed.env["GREETING"] == "hello you" and changed.digest != image.digest
    with pytest.raises(UsageError, match="--build-arg NONE: no ARG"):
        build(context, text, args={"NONE": "1"})


def test_stages_and_names_of_images(context: Path) -> None:
    text = """\
FROM mine AS one
RUN mkdir /out && echo made > /out/thing
FROM mine AS broken
RUN false
FROM mine
COPY --from=one /out/ /srv/
COPY --from=other:1 /etc/issue /srv/
"""
    tree = context / "tree"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc" / "issue").write_text("an issue\n")
    table = {"mine": "host", "other:1": f"dir:{tree}"}
    image = build(context, text, aliases=table)
    assert shown(image, "cat /srv/thing /srv/issue; ls /out 2>&1 | wc -l") == "made\nan issue\n1\n"
    one = build(context, text, aliases=table, target="one")
    assert shown(one, "cat /out/thing; ls /srv") == "made\n"
    with pytest.raises(DataError, match=r"Dockerfile:4: RUN false failed \(1\)"):
        build(context, text, aliases=table, target="broken")


def test_entry_points(context: Path) -> None:
    """A stage inherits that of its base, and replaces it."""
    text = """\
FROM host AS none
FROM none AS listed
ENV A=1
ENTRYPOINT ["/run", "$A"]
ENTRYPOINT ["/entry", "$A"]
FROM listed AS same
FROM listed AS text
SHELL ["/bin/bash", "-c"]
ENTRYPOINT exec /entry "$A"
FROM text AS empty
ENTRYPOINT []
"""
    images = {
        name: build(context, text, target=name)
        for name in ("none", "listed", "same", "text", "empty")
    }
    assert {name: image.entrypoint for name, image in images.items()} == {
        "none": (),
        "listed": ("/entry", "$A"),
        "same": ("/entry", "$A"),
        "text": ("/bin/bash", "-c", 'exec /entry "$A"'),
        "empty": (),
    }
    assert images["listed"].digest == images["same"].digest != images["text"].digest
    assert images["empty"].digest == build(context, "FROM host\nENV A=1\n").digest
    digest = images["text"].digest.removeprefix("sha256:")
    built = resolve_or_build(f"built:{digest}")
    assert built.entrypoint == images["text"].entrypoint
    (context / "Dockerfile").write_text("FROM base\n")
    base = {"base": f"built:{digest}"}
    assert resolve_or_build(f"dockerfile:{context}", aliases=base).entrypoint == built.entrypoint


def test_names_from_the_users_table(context: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = context / "images.toml"
    monkeypatch.setenv("INTERCODE_CONFIG", str(context))
    table.write_text('[from]\n"example.invalid/mine:3" = "host"\n')
    image = build(context, "FROM example.invalid/mine:3\nRUN echo 1 > /srv/a\n")
    assert shown(image, "cat /srv/a") == "1\n"
    table.write_text('[form]\na = "host"\n')
    with pytest.raises(ConfigError, match="did you mean 'from'"):
        build(context, "FROM a\n")


def test_an_image_from_nothing(context: Path) -> None:
    image = build(context, "FROM scratch\nCOPY files/x /a/b/x\nWORKDIR /a/../c\n")
    assert image.cwd == "/c" and image.root is not None and not list(image.root.iterdir())
    names = {
        str(p.relative_to(layer.root)) for layer in image.layers for p in layer.root.rglob("*")
    }
    assert names == {"a", "a/b", "a/b/x", "c"}


def test_copies_go_through_links_and_leave_directories_as_they_are(context: Path) -> None:
    tree = context / "tree"
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "tmp").mkdir()
    (tree / "tmp").chmod(0o1777)
    (tree / "bin").symlink_to("usr/bin")
    (tree / "escape").symlink_to("../../../../..")
    text = f"FROM dir:{tree}\nCOPY files/x /bin/tool\nCOPY files/x /tmp/\nCOPY files/x /escape/in\n"
    image = build(context, text)
    seen = {}
    for layer in image.layers:
        for path in layer.root.rglob("*"):
            seen[str(path.relative_to(layer.root))] = path.lstat().st_mode & 0o7777
    assert seen == {
        "usr": 0o755,
        "usr/bin": 0o755,
        "usr/bin/tool": 0o644,
        "tmp": 0o1777,
        "tmp/x": 0o644,
        "in": 0o644,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("COPY none /a", "Dockerfile:2: COPY none: there is no such file in the context"),
        ("COPY secret.log /a", "no such file in the context"),
        ("COPY ../x /a", "leads out of the context"),
        ("COPY files/x a.tgz /a", "2 files to /a: write /a/"),
        ("COPY /a", "write COPY SOURCE"),
        ("COPY outside /a", "there is no such file|target of the link is missing"),
        ("ADD https://example.invalid/x /a", "URLs are not supported"),
        ("COPY --parents files/x /a", "COPY --parents is not supported"),
        ("COPY --chmod=rw files/x /a", "octal"),
        ("RUN --mount=type=secret,id=a true", "--mount=type=secret,id=a is not supported"),
        ("RUN echo gone wrong; exit 7", r"failed \(7\): gone wrong"),
        ("RUN []", "there is no program"),
        ("ONBUILD RUN true", "ONBUILD"),
        ("COPY [z-a] /a", "'\\[z-a\\]' is not a valid pattern"),
        ("COPY files/x /usr/lib/x", "/usr is this machine's own"),
        ("COPY files/x /etc", "^"),
        ("SHELL bash -c", "write a list"),
    ],
)
def test_errors_name_the_line(context: Path, text: str, why: str) -> None:
    (context / "outside").symlink_to("/etc/passwd")
    if why == "^":  # a directory accepts the file
        assert shown(build(context, f"FROM host\n{text}\n"), "cat /etc/x") == "x\n"
        return
    with pytest.raises(DataError, match=why):
        build(context, f"FROM host\n{text}\n")


def test_a_file_that_is_not_there_or_builds_on_itself(context: Path) -> None:
    with pytest.raises(UsageError, match="name a directory with a Dockerfile"):
        resolve_or_build(f"dockerfile:{context}/none")
    with pytest.raises(UsageError, match="uses itself as a base"):
        build(context, f"FROM dockerfile:{context}/Dockerfile\n")


@pytest.mark.slow
def test_an_unknown_stage_is_an_error_with_the_nearest_name(context: Path) -> None:
    def only_host(spec: str) -> Image:
        if spec != "host":
            raise UsageError(f"no {spec}")
        return resolve_or_build(spec)

    text = "FROM host AS builder\nFROM host\nCOPY --from=bilder /a /b\n"
    (context / "Dockerfile").write_text(text)
    why = (
        r"Dockerfile:3: no earlier stage is called 'bilder'; did you mean 'builder'\? .*COPY --from"
    )
    with pytest.raises(UsageError, match=why):
        dockerfile.build_dockerfile(context, BaseImageResolver(only_host), lambda _: None)


def test_no_path_leads_to_files_of_this_machine(context: Path) -> None:
    """A Dockerfile in the context must not refer to a base outside of it."""
    (context / "inner").mkdir()
    (context / "inner" / "Dockerfile").write_text(f"FROM dir:{context.parent}\n")
    for name in (f"dir:{context.parent}", f"dockerfile:{context}/inner"):
        with pytest.raises(UsageError, match="is outside of"):
            build(context, f"FROM {name}\n")
    with pytest.raises(DataError, match="'\\[z-a\\]' is not a valid pattern"):
        (context / ".dockerignore").write_text("[z-a]\n")
        build(context, "FROM host\n")


@pytest.mark.rootfs
def test_a_line_without_an_end_is_reported_in_pieces(context: Path) -> None:
    base, heard = requirements.image("nl2bash"), list[str]()
    build(
        context,
        f"FROM {base}\nRUN head -c 3000000 /dev/zero | tr '\\0' x\n",
        progress=heard.append,
        force=True,
    )
    assert sum(map(len, heard)) > 3_000_000 and max(map(len, heard)) <= 1 << 16


@pytest.mark.rootfs
def test_commands_that_need_several_ids(context: Path) -> None:
    """Other owners, new users and su, as set-up scripts of packages use them."""
    base = requirements.image("nl2bash")
    text = (
        f"FROM {base}\nRUN useradd -m joe && touch /home/joe/f && chown joe:joe /home/joe/f "
        "&& su joe -c 'id -un > ~/me' && stat -c %U /home/joe/f >> /home/joe/me\n"
        "RUN rm -r /home/joe/f /srv && mkdir /srv && stat -c %u /home/joe/me > /srv/id\n"
    )
    image = build(context, text)
    assert shown(image, "cat /home/joe/me; ls /home/joe; ls /srv") == "joe\njoe\nme\nid\n"
    owners = {p.lstat().st_uid for layer in image.layers for p in layer.root.rglob("*")}
    assert len(owners) == 1


@pytest.mark.rootfs
def test_commands_see_nothing_of_this_machine(
    context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "leaked")
    inspect = (
        "env; ls /proc | grep -c '^[0-9]'; cat /proc/1/environ | tr '\\0' ' '; ls -A /dev/shm;"
        f"ls {context} 2>&1; echo x > /proc/sys/kernel/hostname; mknod /srv/d b 8 0; kill -9 1;"
        "mount -t tmpfs x /mnt; touch /sys/x; echo the end"
    )
    base = requirements.image("nl2bash")
    image = build(context, f"FROM {base}\nRUN ({inspect}) > /srv/told 2>&1\n")
    output = shown(image, "cat /srv/told")
    assert "SECRET_OF_MINE" not in output and "the end" in output
    assert f"cannot access '{context}'" in output
    for refused in (
        "hostname: Read-only",
        "mknod: /srv/d",
        "/mnt: ",
        "touch: cannot touch '/sys/x'",
    ):
        assert refused in output, output
    count = next(line for line in output.splitlines() if line.isdigit())
    assert int(count) <= 6


@pytest.mark.slow
def test_unreadable_results_are_refused_and_removed(context: Path) -> None:
    """The directories are deeper than the limit on paths."""
    text = "FROM host\nRUN cd /tmp; for i in $(seq {}); do mkdir aaa && cd aaa; done; true\n"
    before = set(steps.steps_directory().glob("*.half-*"))
    for levels in (600, 3000):
        with pytest.raises(DataError, match=r"Dockerfile:2: .* more than 500 directories deep"):
            build(context, text.format(levels))
    assert set(steps.steps_directory().glob("*.half-*")) <= before
    assert shown(build(context, text.format(400)), "find /tmp -type d | wc -l") == "401\n"
