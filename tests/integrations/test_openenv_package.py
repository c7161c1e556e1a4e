"""An environment as an OpenEnv package, as docs/openenv.md makes it: OpenEnv's validator, its
graders, and episodes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")

from typer.testing import CliRunner

import intercode
from intercode.cli import main
from intercode.core.errors import UsageError
from intercode.integrations.openenv.imports import without_gradio
from intercode.integrations.openenv.package import write_package
from support.serving import serving

with without_gradio():
    from openenv.cli.__main__ import app as openenv
    from openenv.core.generic_client import GenericEnvClient
    from openenv.validation.runner import run_validation
    from openenv.validation.types import CheckStatus, ProviderCapability

pytestmark = pytest.mark.sandbox
ENVIRONMENTS = ("bash", "sql", "python", "ctf", "code")
GRADED = {
    "runtime.startup",
    "runtime.reward_well_formed",
    "runtime.observation_schema",
    "runtime.state_contract",
    "static.manifest",
}


@dataclass
class _Here:
    """Do in a process of this machine what OpenEnv's validator does in a container, because images
    cannot be built without a registry."""

    name: ClassVar[str] = "here"
    capabilities: ClassVar[frozenset[Any]] = frozenset({ProviderCapability.IMAGE_BUILD})
    supported_network_modes: ClassVar[frozenset[str]] = frozenset({"public"})
    base_url: str

    def build(self, root: Path, execution: Any) -> str:
        assert (root / execution.dockerfile).is_file()
        return "sha256:" + "1" * 64

    def start(self, spec: Any) -> _Here:
        return self

    def inspect(self) -> dict[str, Any]:
        return {}

    def stop(self) -> None:
        """Do nothing, because the next test uses the server as well."""


def _in_plain_tier(environment: str) -> bool:
    """Return whether an environment is served in the tier of a plain container. It needs root."""
    return environment == "bash" and os.geteuid() == 0


@dataclass(frozen=True)
class _Package:
    environment: str
    home: Path
    url: str


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def package(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[_Package]:
    home = tmp_path_factory.mktemp("above") / f"intercode_{request.param}_env"
    assert main(["serve", request.param, "--package", str(home), "--max-turns", "5"]) == 0
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(home.parent), *sys.path])}
    if _in_plain_tier(request.param):
        variables["INTERCODE_SANDBOX"] = "chroot"
    with serving("-m", f"{home.name}.server.app", env=variables) as url:
        yield _Package(request.param, home, url)


@pytest.mark.slow
def test_openenvs_validator_and_graders_are_content(package: _Package) -> None:
    done = CliRunner().invoke(openenv, ["validate", str(package.home), "--level", "static"])
    assert done.exit_code == 0 and "Verdict: PASS" in done.output, done.output
    report = run_validation(package.home, provider=_Here(package.url))
    found = {r.check_id: r.status for r in report.results if r.status is not CheckStatus.SKIP}
    assert found == dict.fromkeys(GRADED, CheckStatus.PASS), report.results


@pytest.mark.slow
def test_its_client_plays_on_its_server(package: _Package) -> None:
    with intercode.make(package.environment) as env:
        env.reset(seed=3, options={"task": 2})
        solution, answers = env.task.solution or "", env.expects_answer
    with GenericEnvClient(base_url=package.url).sync() as client:
        begun = client.reset(seed=3, task=2)
        assert begun.observation["info"]["max_turns"] == 5
        if _in_plain_tier(package.environment):
            processes = client.step({"code": "ls /proc"}).observation["text"]
            assert processes == ""  # only this tier shows no processes
        ran = client.step({"code": solution}).observation["text"].strip()
        done = client.step({"code": f"submit {ran}" if answers else "submit"})
        assert done.done and done.reward == 1.0


@pytest.mark.slow
def test_the_package_can_be_imported(tmp_path: Path) -> None:
    write_package(tmp_path / "intercode_bash_env", "bash", "starter", {})
    code = "import intercode_bash_env as m; print(m.IntercodeBashAction(code='ls').code, m.__all__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("ls [") and "IntercodeBashEnv" in done.stdout, done.stderr


def test_the_container_has_the_languages_of_the_tasks(tmp_path: Path) -> None:
    for environment, install in (("bash", []), ("code", ["gcc", "nodejs"])):
        write_package(tmp_path / environment, environment, "starter", {})
        lines = (tmp_path / environment / "Dockerfile").read_text().splitlines()
        steps = [line for line in lines if "apt-get" in line]
        assert len(steps) == bool(install) and all(name in steps[0].split() for name in install)


def test_a_local_dataset_cannot_be_packaged(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}")
    with pytest.raises(UsageError, match="is on this machine"):
        write_package(tmp_path / "new", "bash", str(rows), {})
    with pytest.raises(UsageError, match="not empty"):
        write_package(tmp_path, "bash", "starter", {})
