"""Inspect's ways to configure a sandbox: the name of an image, a Dockerfile, a compose file."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from inspect_ai import Task, task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import ComposeConfig, sandbox

from intercode.core.errors import UsageError
from intercode.integrations.inspect.configuration import SandboxConfig, read_config
from intercode.integrations.inspect.sandbox import InterCodeSandbox
from intercode_sandbox.namespace.launcher import Launcher
from support import requirements


@solver
def says(command: str) -> Solver:
    """Answers with what a command prints."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        result = await sandbox().exec(["sh", "-c", command])
        state.output = ModelOutput.from_content("mock", result.stdout + result.stderr)
        return state

    return solve


@task
def docker_task(directory: str, command: str) -> Task:
    return Task(dataset=[Sample(input="x")], solver=says(command), sandbox=("docker", directory))


def _run(which: Task, where: Path, **settings: str) -> EvalLog:
    [log] = inspect_eval(
        which,
        model="mockllm/model",
        log_dir=str(where / "logs"),
        display="none",
        sandbox=settings.get("sandbox"),  # type: ignore[arg-type]
    )
    return log


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ("/tasks/my.task/recipe:python", "recipe:python"),
        ("/tasks/recipe:own/image.toml", "recipe:/tasks/own/image.toml"),
        ("/tasks/dir:/srv/root", "dir:/srv/root"),
        ("/tasks/dockerfile:.", "dockerfile:/tasks"),
        ("/tasks/registry:localhost:5000/a/b:1", "registry:localhost:5000/a/b:1"),
        ("/dir:/srv/root", "dir:/srv/root"),
        ("dir:here", "dir:here"),
        ("/tasks/host", "host"),
        ("/tasks/Dockerfile", "dockerfile:/tasks/Dockerfile"),
        ("/my.tasks/docker.io/library/debian:12", "docker.io/library/debian:12"),
        ("/tasks/ghcr.io/x/y.z:1.2", "ghcr.io/x/y.z:1.2"),
        (None, "host"),
    ],
)
def test_a_text_names_an_image_as_inspect_passes_it(given: str | None, image: str) -> None:
    config = read_config(given)
    assert config == SandboxConfig(image=image)


@pytest.mark.parametrize("given", ["/tasks/nothing", "/tasks/settings.yaml", "/tasks/debian:12"])
def test_a_text_that_names_nothing_is_an_error(given: str) -> None:
    with pytest.raises(UsageError, match=f"{given} names neither an image"):
        read_config(given)


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("volumes: ['.:/data']", "cannot honour volumes"),
        ("privileged: true", "cannot honour privileged"),
        ("network_mode: bridge", "'bridge'; a sandbox has 'none' or 'host'"),
        ("mem_limit: lots", "'lots' is no size"),
        ("unknown: 1", "Unknown field: 'unknown'"),
    ],
)
def test_what_a_sandbox_cannot_honour_is_an_error(
    service: str, message: str, tmp_path: Path
) -> None:
    compose = tmp_path / "compose.yaml"
    compose.write_text(f"services:\n  default:\n    image: host\n    {service}\n")
    with pytest.raises(ValueError, match=message):
        asyncio.run(InterCodeSandbox.task_init("t", str(compose)))


@pytest.mark.parametrize("name", ["settings.yaml", "target.yml", "compose", "dev.conf"])
def test_a_compose_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    compose = tmp_path / name
    compose.write_text("services:\n  a:\n    image: host\n    working_dir: /srv\n")
    assert read_config(str(compose)) == SandboxConfig(directory="/srv")
    compose.write_text("FROM debian\n")
    with pytest.raises(ValueError, match=f"Invalid compose file format: .*{name}"):
        read_config(str(compose))


@pytest.mark.sandbox
def test_the_working_directory_is_that_of_the_image_as_with_docker() -> None:
    opened = InterCodeSandbox.open(SandboxConfig())
    with opened.sandbox:
        done = asyncio.run(opened.exec(["sh", "-c", "pwd"]))
        assert (opened.working_directory, done.stdout) == ("/", "/\n")


@pytest.mark.sandbox
def test_a_null_byte_is_the_error_that_inspect_reports_to_the_model() -> None:
    opened = InterCodeSandbox.open(SandboxConfig())
    with opened.sandbox:
        for call in (
            opened.exec(["echo", "a\0b"]),
            opened.exec(["env"], env={"A": "\0"}),
            opened.exec(["pwd"], cwd="/\0"),
            opened.exec(["id"], user="\0"),
            opened.write_file("a\0b", "text"),
            opened.read_file("a\0b"),
        ):
            with pytest.raises(ValueError, match=r"^embedded null byte$"):
                asyncio.run(call)


def test_several_services_are_an_error(tmp_path: Path) -> None:
    compose = tmp_path / "compose.yaml"
    compose.write_text("services:\n  a:\n    image: host\n  b:\n    image: host\n")
    with pytest.raises(UsageError, match="one service, not a, b"):
        asyncio.run(InterCodeSandbox.task_init("t", str(compose)))


@pytest.mark.sandbox
@pytest.mark.namespace_only("other back ends have one user")
def test_commands_run_as_the_user_of_a_compose_file() -> None:
    if why := Launcher.get().user_ids_error:
        pytest.skip(f"sandboxes have one user: {why}")
    given = {"services": {"default": {"image": "host", "user": "1000:1000"}}}
    config = read_config(ComposeConfig.model_validate(given))
    opened = InterCodeSandbox.open(config)
    with opened.sandbox as sandbox:
        directory = opened.working_directory
        assert config.user == "1000:1000" and directory == "/"
        directory = "/home/1000"
        assert sandbox.run("touch file", cwd=directory, user=config.user).ok
        assert sandbox.run(["id", "-u"], user=config.user).output == "1000\n"
        assert sandbox.run(["stat", "-c", "%u %g", directory]).output == "1000 1000\n"


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_compose_file_of_a_docker_task_is_honoured(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(
        textwrap.dedent("""
        services:
          default:
            image: host
            init: true
            entrypoint: [sh, -c]
            command: ["echo started by $$0 > $$PWD/$$COLOUR; exec tail -f /dev/null"]
            network_mode: none
            hostname: inner
            working_dir: /srv/work
            mem_limit: 512m
            environment:
              - COLOUR=blue
        """)
    )
    which = docker_task(
        str(tmp_path / "compose.yaml"),
        "cat /etc/hostname; until cat /srv/work/blue; do sleep 0.1; done",
    )
    log = _run(which, tmp_path, sandbox="intercode")
    assert log.status == "success", log.error
    [sample] = log.samples or ()
    assert sample.output.completion.split() == ["inner", "started", "by", "sh"]


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_dockerfile_of_a_docker_task_is_built(tmp_path: Path) -> None:
    requirements.require("image:python")
    (tmp_path / "greeting").write_text("hello\n")
    (tmp_path / "Dockerfile").write_text(
        "FROM recipe:python\nWORKDIR /work\nCOPY greeting .\nRUN echo built >> greeting\n"
    )
    which = docker_task(str(tmp_path / "Dockerfile"), "cat greeting; python3 -c 'print(6 * 7)'")
    log = _run(which, tmp_path, sandbox="intercode")
    assert log.status == "success", log.error
    [sample] = log.samples or ()
    assert sample.output.completion.split() == ["hello", "built", "42"]


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.namespace_only("other back ends have one user")
def test_a_user_of_the_image_may_write_its_home_and_the_working_directory(tmp_path: Path) -> None:
    if why := Launcher.get().user_ids_error:
        pytest.skip(f"sandboxes have one user: {why}")
    requirements.require("image:python")
    (tmp_path / "Dockerfile").write_text(
        "FROM recipe:python\nRUN useradd -m ada && mkdir -p /app/data\n"
    )
    image, directory = f"dockerfile:{tmp_path}", "/app"
    opened = InterCodeSandbox.open(SandboxConfig(image=image, user="ada", directory=directory))
    with opened.sandbox as sandbox:
        done = sandbox.run("touch ~/file file data/file && pwd", cwd=directory, user="ada")
        assert done.output == "/app\n"


def test_the_network_may_have_rules() -> None:
    assert SandboxConfig(network="allow:Index.test").network == "allow:index.test:443"
    with pytest.raises(ValueError, match=r"a\.\.test"):
        SandboxConfig(network="allow:a..test")
