"""Containers whose owner and engine's client are killed while the engine starts them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from intercode_sandbox.container import engine, orphans, removal
from support import requirements
from support.sandboxes import eventually, running

_NAME = "intercode-1-test"
_OWNER = """
import sys
from intercode_sandbox import SandboxSpec, images, open_sandbox
open_sandbox(SandboxSpec(images.resolve("host")), sys.argv[1])
"""
_WATCHED = """
import sys
from pathlib import Path
from intercode_sandbox.container import removal
print(removal.start_watcher(sys.argv[1], Path(sys.argv[2])).pid, flush=True)
sys.stdin.read()
"""
_STOPS = "echo $$ >{0}.new; mv {0}.new {0}; sleep 1000"  # tells its number
_DOCKER = 'shift 2; "{real}" create "$@"'  # the first half of `run --detach`
_PODMAN = 'exec "{real}" --runtime "{runtime}" "$@"'


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def start_owner(code: str, *arguments: str, path: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        text=True,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PATH": path},
    )


def kill_owner(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


# ----------------------------------------------------------------------- without an engine
def test_a_watcher_removes_what_a_killed_group_was_starting(tmp_path: Path) -> None:
    log, directory = tmp_path / "log", tmp_path / _NAME
    directory.mkdir()
    program = script(tmp_path / "engine", f'echo "$@" >>{log}; echo removed')
    client = subprocess.Popen(
        ["/bin/sh", "-c", f"read line; echo client >>{log}", "sh", f"--name={_NAME}"],
        stdin=subprocess.PIPE,
    )
    owner = start_owner(_WATCHED, str(program), str(directory), path=os.environ["PATH"])
    assert owner.stdout is not None
    watcher = int(owner.stdout.readline())
    kill_owner(owner)
    client.communicate(b"\n")
    eventually(lambda: not directory.exists(), "the directory is removed")
    eventually(lambda: watcher not in running(str(directory)), "the watcher has ended")
    assert log.read_text().splitlines() == ["client", f"rm --force {_NAME}"]


def test_the_process_that_a_monitor_waits_for_is_ended_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = script(tmp_path / "engine", f'echo engine "$@" >>{log}; echo removed')
    runtime = script(
        tmp_path / "runtime", f'echo runtime "$@" >>{log}; kill -9 $(cat {tmp_path}/monitor)'
    )
    shutil.copy("/bin/sh", tmp_path / "conmon")
    waits = script(tmp_path / "waits", f"{_STOPS.format(tmp_path / 'monitor')}")
    command = [tmp_path / "conmon", waits, "-c", "0123", "-r", runtime, "-n", _NAME]
    with subprocess.Popen(command, start_new_session=True) as monitor:
        try:
            eventually((tmp_path / "monitor").exists, "the monitor runs")
            removal.remove_container(str(program), _NAME)
            assert monitor.wait() == -signal.SIGKILL
        finally:
            os.killpg(monitor.pid, signal.SIGKILL)  # also its `sleep`
    lines = log.read_text().splitlines()
    assert lines[0] == "runtime delete --force 0123" and lines[-1] == f"engine rm --force {_NAME}"


# -------------------------------------------------------------------------- with an engine
@pytest.mark.docker
@pytest.mark.parametrize("name", engine.ENGINE_NAMES)
def test_a_container_that_was_being_started_is_removed(
    name: engine.EngineName, tmp_path: Path
) -> None:
    """Owner and client are killed after the engine has created the container, and before it starts
    it."""
    requirements.require(name)
    real, reached = engine.get_engine(name), tmp_path / "reached"
    stops = _STOPS.format(reached)
    if name == "docker":
        do = _DOCKER.format(real=real.program) + f"; {stops}"
    else:
        path = real.run("info", "--format", "{{.Host.OCIRuntime.Path}}")
        runtime = script(
            tmp_path / "runtime",
            f'for word; do [ "$word" != start ] || {{ {stops}; }}; done; exec {path} "$@"',
        )
        do = _PODMAN.format(real=real.program, runtime=runtime)
    script(
        tmp_path / name,
        f'if [ "$1" = run ]; then echo $$ "$@" >{tmp_path}/client; {do}; fi\n'
        f'exec "{real.program}" "$@"',
    )
    owner = start_owner(_OWNER, name, path=f"{tmp_path}:{os.environ['PATH']}")
    start = orphans.process_start_ticks(owner.pid)
    label = f"label={orphans.OWNER_LABEL}={owner.pid}.{start}.{orphans._boot_and_namespace()}"
    listed = ["ps", "--all", "--filter", label, "--format", "{{.Names}}"]
    try:
        eventually(reached.exists, "the engine is about to start the container", 60)
        words = (tmp_path / "client").read_text().split()
        made = next(word for word in words if word.startswith("--name=")).removeprefix("--name=")
        assert bool(running(made)) is (name == "podman"), "Podman's monitor waits"
        assert name == "podman" or real.run(*listed) == made  # Podman lists nothing meanwhile
    finally:
        kill_owner(owner)
        with suppress(FileNotFoundError):
            os.killpg(int((tmp_path / "client").read_text().split()[0]), signal.SIGKILL)
    eventually(lambda: not real.run(*listed), "the container is removed", 60)
    eventually(lambda: not running(made), "the monitor has ended")
