"""Contenders of the benchmarks: other ways to start a command, and the authors' environment."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring import Contender, whole_machine

from intercode import datasets
from intercode.datasets.bash.nl2bash import find_data

BWRAP = [
    "bwrap",
    "--unshare-all",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--symlink",
    "usr/bin",
    "/bin",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "bash",
    "-c",
    "true",
]
BASE = "intercode-test"  # the nl2bash recipe's root as a Docker image: see .ci/docker
THEIRS = "intercode-nl2bash"  # the image's name in the authors' environment
DRIVER = Path(__file__).with_name("authors_episodes.py")
DOCKERFILE = f"""
FROM {BASE}
ADD files /
RUN if [ -f /files ]; then bash /files; rm /files; fi
COPY docker.gitignore /.gitignore
RUN git config --global user.email x@x && git config --global user.name x && cd / && \
    git init -q && git add -A && git commit -q -m initial
WORKDIR /
CMD ["/bin/bash"]
"""


def bubblewrap() -> Contender | str:
    """Return a command in all namespaces of bubblewrap, or the reason why it cannot run."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    run = subprocess.run(BWRAP, capture_output=True, text=True)
    if run.returncode:
        return f"bubblewrap does not work here: {run.stderr.strip()}"
    return Contender(lambda: subprocess.run(BWRAP, check=True))


def docker(*words: str, **more: str) -> str:
    """Run the Docker client and return what it prints. Raises CalledProcessError."""
    environment = {**os.environ, **more}
    run = subprocess.run(
        ["docker", *words], capture_output=True, text=True, check=True, env=environment
    )
    return run.stdout.strip()


def without_docker() -> str:
    """Return why there is no comparison with Docker; empty if there is one."""
    try:
        docker("image", "inspect", BASE)
    except FileNotFoundError:
        return "there is no `docker` command"
    except subprocess.CalledProcessError as e:
        return f"Docker has no image {BASE} (see .ci/docker): {e.stderr.strip()}"
    return ""


@contextmanager
def running_container() -> Iterator[str]:
    """Run an idle container of the image, for ``docker exec``."""
    name = docker("run", "-d", "--rm", "--network", "none", BASE, "sleep", "infinity")
    try:
        yield name
    finally:
        docker("kill", name)


def executing(container: str, command: str = "true") -> Contender:
    """Return a function that runs ``docker exec`` with a command in bash."""
    words = ["docker", "exec", container, "bash", "-c", command]
    return Contender(lambda: subprocess.run(words, check=True), every=5)


def creating() -> Contender:
    """Return a function that runs a command in bash in a new container."""
    words = ["docker", "run", "--rm", "--network", "none", BASE, "bash", "-c", "true"]
    return Contender(lambda: subprocess.run(words, check=True), every=5)


def authors_tasks() -> list[int]:
    """Return the positions of the sound tasks in the authors' file system 1."""
    tasks = datasets.load("nl2bash:verified").tasks
    return [int(task.id.rpartition("/")[2]) for task in tasks if task.group == "fs_1"]


class Authors:
    """The authors' BashEnv on Docker, in a process of an interpreter with their dependencies. Their
    image is made from the same root file system as ours, with the files of file system 1. Raises
    CalledProcessError if the image cannot be made."""

    def __init__(self, checkout: Path) -> None:
        self._work = tempfile.TemporaryDirectory()
        work = self._work.name
        Path(work, "Dockerfile").write_text(DOCKERFILE)
        files = datasets.load("nl2bash:fs_1").tasks[0].files[0].path  # a tar, or a script
        shutil.copy(files, Path(work, "files"))
        shutil.copy(checkout / "docker" / "docker.gitignore", work)
        docker("build", "-q", "--network", "none", "-t", THEIRS, work, DOCKER_BUILDKIT="0")
        tasks = find_data().tasks / "nl2bash_fs_1.json"
        self._process = subprocess.Popen(
            [authors_python(), str(DRIVER), str(checkout.absolute()), str(tasks)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=work,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        self._positions = itertools.cycle(authors_tasks())
        self.step_true()  # has started, and been reset once

    def _ask(self, line: object) -> dict[str, float]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found

    def play(self) -> dict[str, float]:
        """Play the next sound task: milliseconds of reset, step, submit, and of the whole machine's
        processor time ("cpu"); 1 for "solved" if so."""
        before = whole_machine()
        found = self._ask(next(self._positions))
        return {**found, "cpu": 1000 * (whole_machine() - before)}

    def step_true(self) -> float:
        """Return the milliseconds of a step of `true`."""
        return self._ask("true")["true"]

    def close(self) -> None:
        """End the process, and remove the containers."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        for name in (f"{THEIRS}_ic_ctr", f"{THEIRS}_ic_ctr_eval"):
            subprocess.run(["docker", "rm", "-f", name], capture_output=True)
        self._work.cleanup()


def authors_python() -> str:
    """Return the Python with the authors' dependencies: INTERCODE_AUTHORS_PYTHON, or this one."""
    return os.environ.get("INTERCODE_AUTHORS_PYTHON", sys.executable)
