"""Task directories in Harbor's format."""

from __future__ import annotations

from pathlib import Path

TOML = """\
version = "1.0"
[metadata]
difficulty = "easy"
category = "files"
tags = ["one", "two"]
[verifier]
timeout_sec = 20.0
env = { EXPECTED = "hello", FALLBACK = "${NOT_THERE:-back}" }
[agent]
timeout_sec = 60.0
[environment]
memory_mb = 512
storage_mb = 300
env = { GREETING = "hello" }
"""
DOCKERFILE = """\
FROM host
WORKDIR /app
COPY words.txt /app/
ENV PLACE=/app
"""
TEST = """\
#!/bin/bash
mkdir -p /logs/verifier
[ "$FALLBACK" = back ] && [ "$(pwd)" = /app ] || exit 3
if [ "$(cat "$PLACE/out.txt")" = "$EXPECTED" ] && grep -q secret-line /tests/more/data.txt; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
    exit 1
fi
"""
SOLVE = '#!/bin/bash\nset -e\n. /solution/word.sh\necho "$WORD" > /app/out.txt\nexit 0\n'


def write_task(folder: Path, **files: str) -> Path:
    """Write a task that asks for a file. ``files``: other contents, by path with ``__`` for ``/``;
    an empty one leaves the file out."""
    contents = {
        "task.toml": TOML,
        "instruction.md": "# Greet\n\nWrite the greeting to /app/out.txt.\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/words.txt": "some words\n",
        "tests/test.sh": TEST,
        "tests/more/data.txt": "secret-line of the tests\n",
        "solution/solve.sh": SOLVE,
        "solution/word.sh": "WORD=$GREETING",
    }
    contents |= {name.replace("__", "/"): text for name, text in files.items()}
    for name, text in contents.items():
        if text:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder


def write_service_task(folder: Path, **files: str) -> Path:
    """Write the task of ``write_task`` for an image whose ENTRYPOINT serves /app/out.txt at a port,
    after a while. The tests ask this service, with one connection before they end."""
    contents = {
        "task.toml": TOML + SERVICE_CHECK,
        "environment/Dockerfile": DOCKERFILE + SERVICE_ENTRYPOINT,
        "environment/serve.sh": SERVICE,
        "tests/test.sh": "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/8765\n"
        '[ "$(cat <&3)" = hello ] && echo 1 > /logs/verifier/reward.txt\n',
    }
    return write_task(folder, **(contents | files))


SERVICE_CHECK = """\
[environment.healthcheck]
command = "exec 3<>/dev/tcp/127.0.0.1/8765"
interval_sec = 0.1
retries = 100
"""
SERVICE_ENTRYPOINT = """\
COPY --chmod=755 serve.sh /srv/bin/
ENV PATH=/srv/bin:$PATH
ENTRYPOINT ["serve.sh", "--slow"]
"""
SERVICE = """\
#!/bin/sh
[ "$*" = "--slow sh -c sleep infinity" ] && [ "$(pwd) $PLACE" = "/app /app" ] || exit 3
shift
sleep 0.2
perl -MIO::Socket::INET -e '
    $server = IO::Socket::INET->new(LocalPort => 8765, Listen => 5, ReuseAddr => 1) or die;
    while ($client = $server->accept) { print $client `cat /app/out.txt`; close $client }
' &
exec "$@"
"""
IGNORING = {
    "tests/.harborignore": "*.log\n/cache/\ndata/*\n!data/kept\n# comment\nfirst.txt\n",
    "tests/deep/.harborignore": "!*.log\n/no-deep\n",
    "solution/.harborignore": "notes\n",
    "steps/one/tests/.harborignore": "*.log\n!b.log\n",
}
"""Files that leave out others in a task with several steps; links are made beside."""
LEFT_OUT = (
    "tests/a.log",
    "tests/cache",
    "tests/cache/kept",
    "tests/data/gone",
    "tests/first.txt",
    "tests/deep/no-deep",
    "tests/link-to-a-log",
    "solution/notes",
    "steps/one/tests/a.log",
)
INCLUDED = (
    "tests/test.sh",
    "tests/data/kept",
    "tests/deep/b.log",
    "tests/deep/cache/kept",
    "tests/link-to-kept",
    "solution/solve.sh",
    "steps/one/tests/b.log",
    "steps/two/tests/a.log",
)


def write_ignoring_task(folder: Path) -> Path:
    """Write a task whose .harborignore files leave out LEFT_OUT and not INCLUDED."""
    names = [
        name for name in (*LEFT_OUT, *INCLUDED) if "link" not in name and name != "tests/cache"
    ]
    write_steps_task(folder, **dict.fromkeys(names, "#!/bin/sh\n") | IGNORING)
    (folder / "tests/link-to-a-log").symlink_to("a.log")
    (folder / "tests/link-to-kept").symlink_to("data/kept")
    return folder


STEPS_TOML = """\
[verifier.env]
EXPECTED = "unused"
[[steps]]
name = "one"
min_reward = 1.0
verifier.env = { EXPECTED = "first" }
[[steps]]
name = "two"
verifier.env = { EXPECTED = "second" }
[[steps]]
name = "three"
"""
STEP_TEST = """\
#!/bin/bash
. /tests/expect.sh
[ "$(cat "$PLACE/out.txt")" = "$EXPECTED" ] && [ ! -e /app/tests-were-here ] && reward=1
touch /app/tests-were-here
echo "${reward:-0}" > /logs/verifier/reward.txt
"""


def write_steps_task(folder: Path, **files: str) -> Path:
    """Write a task of three steps, each of which asks for another word in the same file.

    The first brings a file, the second a set-up script, and the third tests of its own.
    """
    solve = "#!/bin/sh\necho {} > /app/out.txt\n"
    contents = {
        "task.toml": STEPS_TOML,
        "instruction.md": "",
        "tests__test.sh": STEP_TEST,
        "tests__expect.sh": ": nothing\n",
        "solution__word.sh": "",
        "solution__solve.sh": solve.format("third"),
        "steps__one__instruction.md": "Write first.\n",
        "steps__one__workdir__given.txt": "given\n",
        "steps__one__solution__solve.sh": solve.format("first"),
        "steps__two__instruction.md": "Write second.\n",
        "steps__two__workdir__setup.sh": "echo $(pwd) $GREETING-two > set-up.txt\n",
        "steps__two__solution__solve.sh": solve.format("second"),
        "steps__three__instruction.md": "Write third.\n",
        "steps__three__tests__expect.sh": "EXPECTED=third\n",
    }
    return write_task(folder, **(contents | files))
