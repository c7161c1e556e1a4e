"""Runs verifiers' own end-to-end tests with our runtime in place of `subprocess` and `docker`.

    PYTHONPATH=PACKAGES .venv-verifiers/bin/python benchmarks/verifiers_tests.py [-k EXPRESSION]

PACKAGES is the list of packages/*/src, with colons. With --docker, and this command under
`.ci/docker --network`, it is verifiers' own runtime for Docker, on the image that .ci/docker
imports. The programs of the runtime's helper come from the Debian archives of this machine.

`.ci/separate verifiers .venv-verifiers` makes that environment. The tests are those of the source
distribution of that version, which is downloaded from PyPI, as pytest is. It runs each test that
names `subprocess` or `docker` as the runtime of a harness or of a tool server, but not those that
need other registries than PyPI or packages of its repository. A scripted model answers. The
sandboxes download packages from PyPI.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import certifi

import intercode.integrations.verifiers  # noqa: F401 - before verifiers, also in worker processes
from support.answering_endpoint import AnsweringEndpoint

_REPLACED = ("subprocess", "docker")
_OTHER_REGISTRIES = ("rlm", "codex", "claude_code", "hermes_agent", "kimi_code", "pi", "openclaw")
_REMOTE = ("prime", "modal", "e2b", "podman", "apptainer", "browser_use")
_BY_NAME = ("test_env_id_shared_agentic_judge", "test_env_id_agentic_judge")  # without marks
_NOT_THERE = "test_shared_tool_isolation"  # needs a package that only the repository has
_TOOLS = "/opt/tools"  # in a sandbox
_ENV = {
    "PATH": f"{_TOOLS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SSL_CERT_FILE": f"{_TOOLS}/authorities.pem",
}
_DOCKER = {"type": "docker", "image": "intercode-test:verifiers"}
_HELPER = "localhost/verifiers-network:1"  # verifiers builds it from an image of a registry


def answer(endpoint: list[AnsweringEndpoint], messages: list[dict[str, Any]]) -> Any:
    """Answer as the tests expect: use the tool of the task, else repeat what the user said."""
    request = next(r for r in endpoint[0].requests if r["messages"] is messages)
    tools = [tool["function"]["name"] for tool in request.get("tools", ())]
    used = sum(message["role"] == "tool" for message in messages)
    said = _text([m for m in messages if m["role"] == "user"][-1])
    for suffix, times, arguments in (
        ("back", 1, {"message": "hello world"}),
        ("bump", 3, {}),
        ("bash", 1, {"command": _command(said)}),
    ):
        name = next((tool for tool in tools if tool.endswith(suffix)), None)
        if name and used < times and arguments != {"command": ""}:
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"call_{used}", "type": "function", "function": function}
            return {"content": None, "tool_calls": [call]}
    return _text(messages[-1]) if used else said


def _command(said: str) -> str:
    if "/tmp/verdict.json" in said:
        verdict = {"name": "solved", "reason": "It is.", "verdict": "yes"}
        return f"echo '{json.dumps({'verdicts': [verdict]})}' > /tmp/verdict.json"
    return "printf 'hello world' > answer.txt" if "answer.txt" in said else ""


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def build_images(tools: Path) -> None:
    """Build both images for Docker: of containers, and of the helper that closes their network."""
    settings = " ".join(f"{name}={value}" for name, value in _ENV.items())
    copied = f"COPY . {_TOOLS}/\nENV {settings}"
    install = "apt-get update -qq && apt-get install -y -qq --no-install-recommends"
    helper = f"COPY . /etc/apt/\nRUN {install} iptables iproute2"
    for name, context, steps in (
        (_DOCKER["image"], tools, copied),
        (_HELPER, Path("/etc/apt"), helper),
    ):
        subprocess.run(
            ["docker", "build", "--quiet", "--tag", name, "--file", "-", context],
            check=True,
            env={**os.environ, "DOCKER_BUILDKIT": "0"},
            input=f"FROM intercode-test\n{steps}\n".encode(),
        )


class Placement:
    """A plugin of pytest that selects the tests and gives them a runtime."""

    def __init__(self, runtime: dict[str, Any]) -> None:
        self.runtime = runtime
        self.passed, self.run = 0, 0

    def _replaced(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value.get("type") in _REPLACED:
            return {**{k: v for k, v in value.items() if k != "type"}, **self.runtime}
        return {key: self._replaced(inner) for key, inner in value.items()}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Leave out other tests, and replace the runtimes of configurations."""
        left_out = {*_OTHER_REGISTRIES, *_REMOTE}
        items[:] = [
            item
            for item in items
            if (set(item.keywords) & {*_REPLACED} or item.name in _BY_NAME)
            and not set(item.keywords) & left_out
            and item.originalname != _NOT_THERE
        ]
        plugins = config.pluginmanager.get_plugins()
        conftest: Any = next(plugin for plugin in plugins if hasattr(plugin, "_eval_config"))
        make = conftest._eval_config

        def configured(*args: Any, **kwargs: Any) -> Any:
            return make(*args, **{key: self._replaced(value) for key, value in kwargs.items()})

        conftest._eval_config = configured
        evaluate = conftest.run_eval

        async def reported(config: Any) -> Any:
            episodes = await evaluate(config)
            for trace in (trace for episode in episodes for trace in episode.traces):
                print(*(error.message for error in trace.errors), sep="\n")
            return episodes

        conftest.run_eval = reported

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count tests."""
        if report.when == "call":
            self.run += 1
            self.passed += report.passed


def main() -> int:
    """Run the tests, print how many pass, and return pytest's exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-k", default="", help="as pytest's -k")
    parser.add_argument("--docker", action="store_true", help="verifiers' own runtime for Docker")
    options = parser.parse_args()
    release = f"verifiers=={version('verifiers')}"
    pip = [sys.executable, "-m", "pip", "--quiet"]
    endpoint: list[AnsweringEndpoint] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [*pip, "download", "--no-deps", "--no-binary", "verifiers", "-d", folder, release],
            check=True,
        )
        subprocess.run(
            [*pip, "install", "--target", folder / "pytest", "pytest", "pytest-asyncio"], check=True
        )
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        tools = folder / "tools"
        tools.mkdir()
        shutil.copy(Path(sys.executable).parent / "uv", tools)
        authorities = os.environ.get("SSL_CERT_FILE") or certifi.where()
        shutil.copy(authorities, tools / "authorities.pem")
        sys.path.append(str(folder / "pytest"))
        import pytest

        if options.docker:
            build_images(tools)
        ours = {"type": "intercode", "layers": {_TOOLS: str(tools)}, "env": _ENV}
        placement = Placement(_DOCKER if options.docker else ours)
        endpoint.append(AnsweringEndpoint(lambda messages: answer(endpoint, messages)))
        with endpoint[0]:
            os.environ |= {
                "PRIME_API_KEY": "none",
                "PRIME_INFERENCE_URL": endpoint[0].url,
                "PATH": f"{tools}:{os.environ['PATH']}",  # uv builds packages of tool servers
            }
            os.chdir(next(folder.glob("verifiers-*/")))
            status = pytest.main(
                ["-p", "no:cacheprovider", "-k", options.k, "tests/v1/test_e2e.py"], [placement]
            )
    print(f"{release}: {placement.passed} of {placement.run} tests pass")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
