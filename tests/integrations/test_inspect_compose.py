"""Compose files are read as Docker Compose reads them, in which Inspect's tasks are written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from intercode.core.errors import SandboxKilledError, SandboxLostError, UsageError
from intercode.integrations.inspect.compose import _VALUES_WITHOUT_EFFECT, sample_variables
from intercode.integrations.inspect.configuration import SandboxConfig, read_config
from intercode.integrations.inspect.sandbox import InterCodeSandbox, Unavailable

_PLATFORM = _VALUES_WITHOUT_EFFECT["platform"][0]


def config_of(directory: Path, service: str, top: str = "", **variables: str) -> SandboxConfig:
    """Return the configuration of a compose file whose service has these lines."""
    file = directory / "compose.yaml"
    lines = "".join(f"    {line}\n" for line in ("image: host", *service.splitlines()))
    file.write_text(f"{top}services:\n  a:\n{lines}")
    return read_config(str(file), variables)


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "outside")
    monkeypatch.setenv("EMPTY", "")
    for name in ("ABSENT", "TAG", "SAMPLE_METADATA_TOOL_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$FROM_OUTSIDE-${FROM_OUTSIDE}", "outside-outside"),
        ("$$FROM_OUTSIDE $${ABSENT}", "$FROM_OUTSIDE ${ABSENT}"),
        ("[$ABSENT][${ABSENT}]", "[][]"),
        ("${ABSENT:-a b}${EMPTY:-c}", "a bc"),
        ("[${ABSENT-a}${EMPTY-c}]", "[a]"),
        ("${FROM_OUTSIDE:+yes}[${EMPTY:+no}]", "yes[]"),
        ("[${EMPTY+set}${ABSENT+no}]", "[set]"),
        ("${ABSENT:-${FROM_OUTSIDE}}", "outside"),
        ("${FROM_OUTSIDE:?needed}", "outside"),
        ("$TAG", "of the file"),  # .env
        ("$SAMPLE_METADATA_TOOL_NAME", "of the sample"),
    ],
)
def test_variables_are_replaced(text: str, value: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# comment\nTAG='of the file' # more\nFROM_OUTSIDE=hidden\n")
    sample = sample_variables({"tool name": "of the sample", "n": 3})
    config = config_of(tmp_path, f'environment: {{X: "{text}"}}\ncommand: ["{text}"]', **sample)
    assert config.env == {"X": value}
    assert config.command == (value,)


@pytest.mark.parametrize(
    ("text", "message"),
    [("${ABSENT:?give it}", "ABSENT is needed: give it"), ("$(id)", "write \\$\\$"), ("${", "\\$")],
)
def test_variables_that_cannot_be_replaced_are_an_error(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        config_of(tmp_path, f'hostname: "{text}"')


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (
            "environment: {A: 1, B: true, C: 1.5, D: null, FROM_OUTSIDE: null}",
            {"env": {"A": "1", "B": "true", "C": "1.5", "FROM_OUTSIDE": "outside"}},
        ),
        (
            "environment: [A=b=c, FROM_OUTSIDE, ABSENT, E=]",
            {"env": {"A": "b=c", "FROM_OUTSIDE": "outside", "E": ""}},
        ),
        ("env_file: more.env\nenvironment: {B: own}", {"env": {"A": "1 # no", "B": "own"}}),
        (
            "env_file: [{path: absent.env, required: false}, more.env]",
            {"env": {"A": "1 # no", "B": "x y"}},
        ),
        ("user: 1000\nmem_limit: 536870912", {"user": "1000", "memory": 512 << 20}),
        ("deploy: {resources: {limits: {memory: 1g, cpus: 2}}}", {"memory": 1 << 30}),
        (
            f"platform: {_PLATFORM}\nsecurity_opt: ['no-new-privileges:true']\nscale: 1\n"
            "healthcheck: {disable: true}\ndevelop: {watch: []}",
            {},
        ),
        ("container_name: n\nlabels: [a=b]\nlogging: {driver: none}\nx-own: {a: 1}", {}),
    ],
)
def test_what_docker_compose_takes_is_taken(
    service: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "more.env").write_text("A='1 # no'\nexport B=x y # comment\n\n")
    config = config_of(tmp_path, service)
    assert config == SandboxConfig(**expected)


def test_names_versions_extensions_and_profiles_change_nothing(tmp_path: Path) -> None:
    top = "version: '3'\nname: mine\nx-base: &base {working_dir: /srv}\n"
    assert config_of(tmp_path, "<<: *base", top) == SandboxConfig(directory="/srv")
    more = "hostname: h\n  b: {image: debian:12, profiles: [debug]}"
    file = tmp_path / "compose.yaml"
    file.write_text(f"services:\n  a:\n    image: host\n    {more}\n")
    assert read_config(str(file)) == SandboxConfig(hostname="h")


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("extends: {service: b}", "extends.*use Docker"),
        ("platform: linux/riscv64", "platform"),
        ("scale: 2", "scale"),
        ("build: https://example.org/a.git#main:sub", "address https://example.org/a.git.*clone"),
        ("build: {context: 'git@example.org:a/b.git'}", "address git@example.org:a/b.git.*clone"),
        ("working_dir: here", "no absolute path"),
        ("env_file: absent.env", "absent.env"),
        ("deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}", "devices"),
        ("build: {context: ., target: [1]}", r"target .* no text: \[1\]"),
        ("build: {context: ., args: 5}", "has 5 where a list"),
        ("environment: 5", "has 5 where a list"),
        ("env_file: 5", "has 5 where a list"),
        ("command: [", "Invalid compose file format"),
        ("\tcommand: x", "Invalid compose file format"),
        ("command: echo 'a", "the command .*No closing quotation"),
        ("environment: &e [*e]", "an alias is a part of itself"),
        (f"x-a: {'[' * 3000}{']' * 3000}", "recursion depth"),
        (
            "x-0: &x0 [a]\n" + "".join(f"x-{n + 1}: &x{n + 1} [*x{n}, *x{n}]\n" for n in range(40)),
            "the aliases stand for too much",
        ),
    ],
)
def test_everything_else_is_one_error(service: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        config_of(tmp_path, service)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        ("args: {A: 1}", "last 1 inside"),
        ("target: first", "first inside"),
        ("target: 0", "first inside"),
        ("args: {A: 1, BUILDKIT_INLINE_CACHE: 1}", "last 1 inside"),
        ("args: {A: $FROM_OUTSIDE}", "last outside inside"),
        ("tags: [a], args: [A=$TAG]", "last t inside"),
    ],
)
@pytest.mark.sandbox
def test_a_build_has_its_arguments_stage_and_context(build: str, text: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TAG=t\n")
    (tmp_path / "parts/sub").mkdir(parents=True)
    (tmp_path / "parts/file").write_text("inside\n")
    (tmp_path / "parts/sub/Dockerfile").write_text(
        "FROM host AS first\nARG A\nCOPY file /file\n"
        "RUN echo first $A $(cat /file) > /stage\n"
        "FROM first\nARG A\nRUN echo last $A $(cat /file) > /stage\n"
    )
    where = "context: parts, dockerfile: sub/Dockerfile"
    config = config_of(tmp_path, f"build: {{{where}, {build}}}")
    with InterCodeSandbox.open(config).sandbox as sandbox:
        assert sandbox.read("/stage").decode() == f"{text}\n"


def test_a_build_for_another_machine_is_refused_before_it(tmp_path: Path) -> None:
    config = config_of(tmp_path, "build: {context: ., args: {A: 1}}")
    there = config.model_copy(update={"backend": "remote:http://127.0.0.1:1"})
    with pytest.raises(UsageError, match="would be on this machine, not at remote:http"):
        there.find_image()


def test_an_image_of_the_sample_is_not_resolved_before_it(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text("services:\n  a:\n    image: ${SAMPLE_METADATA_IMAGE}\n")
    asyncio.run(InterCodeSandbox.task_init("t", str(file)))
    assert read_config(str(file), sample_variables({"image": "host"})) == SandboxConfig()


@pytest.mark.sandbox
def test_errors_of_files_are_those_that_inspect_shows_the_model() -> None:
    """Any other error ends the sample, and Inspect may play it again."""
    opened = InterCodeSandbox.open(SandboxConfig())
    with opened.sandbox:
        asyncio.run(opened.exec(["sh", "-c", "mkfifo /tmp/fifo; ln -s a /tmp/a; echo > /tmp/f"]))
        for path in ("x" * 5000, "/tmp/a", "/tmp/f/x", "/tmp/fifo", "/dev/null", "/tmp"):
            for call in (opened.read_file(path), opened.write_file(path, "text")):
                try:
                    asyncio.run(call)
                except (PermissionError, FileNotFoundError, IsADirectoryError):
                    pass


@pytest.mark.sandbox
def test_a_file_that_is_written_again_keeps_its_mode() -> None:
    async def modes() -> str:
        await opened.exec(["sh", "-c", "echo > /tmp/run; chmod 755 /tmp/run; ln -s run /tmp/link"])
        for name in ("link", "new"):
            await opened.write_file(f"/tmp/{name}", "echo")
        return (await opened.exec(["stat", "-c", "%a", "/tmp/run", "/tmp/new"])).stdout

    opened = InterCodeSandbox.open(SandboxConfig())
    with opened.sandbox:
        assert asyncio.run(modes()) == "755\n644\n"


def test_a_path_that_ends_in_a_slash_is_no_file() -> None:
    opened = InterCodeSandbox.open(SandboxConfig(directory="/tmp"))
    with opened.sandbox:
        with pytest.raises(IsADirectoryError):
            asyncio.run(opened.write_file("new/", "text"))
        opened.sandbox.write("/tmp/file", "text")
        with pytest.raises(FileNotFoundError):
            asyncio.run(opened.read_file("file/"))
        assert "new" not in opened.sandbox.list_files("/tmp")


def test_a_file_of_a_sandbox_that_its_code_has_ended_is_not_there() -> None:
    class Ended:
        def read(self, *_: Any, **__: Any) -> bytes:
            raise SandboxKilledError("out of memory")

        def write(self, *_: Any, **__: Any) -> None:
            raise SandboxLostError("the machine")

        stat = write

    opened = InterCodeSandbox(Ended(), "/")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="out of memory"):
        asyncio.run(opened.read_file("a"))
    with pytest.raises(Unavailable, match="the machine"):
        asyncio.run(opened.write_file("a", "b"))
