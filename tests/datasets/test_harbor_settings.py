"""What becomes of each setting of Harbor's task.toml."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core.errors import DataError
from intercode.datasets import load
from intercode.integrations.harbor.env import HarborEnv
from intercode.integrations.harbor.tasks.tables import SETTINGS, named_settings
from support.harbor import write_steps_task, write_task

ROOT = Path(__file__).parents[2]
HARBOR = ROOT / ".venv-harbor/bin/python"
PRINT_SCHEMA = (
    "import json; from harbor.models.task.config import TaskConfig; "
    "print(json.dumps(TaskConfig.model_json_schema()))"
)
OPAQUE = ("task", "metadata", "tpu", "mcp_servers")
"""Tables of which no key has a treatment of its own."""


def schema_settings(
    schema: Mapping[str, Any], node: Mapping[str, Any], kind: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield each setting of a JSON schema as its table and its name."""
    if "$ref" in node:
        yield from schema_settings(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[1]], kind)
    for inner in (*node.get("anyOf", ()), *([node["items"]] if "items" in node else ())):
        yield from schema_settings(schema, inner, kind)
    for name, inner in node.get("properties", {}).items():
        yield kind, name
        if name not in OPAQUE:
            yield from schema_settings(schema, inner, name)


@pytest.mark.heavy
def test_the_schema_of_harbor_has_no_setting_without_a_treatment() -> None:
    """Reads the schema of the installed Harbor; without one, that of version 0.26.0."""
    recorded = Path(__file__).with_name("harbor_settings.json")
    known = {tuple(pair) for pair in json.loads(recorded.read_text())}
    if HARBOR.exists():
        run = subprocess.run([HARBOR, "-c", PRINT_SCHEMA], capture_output=True, check=True)
        schema = json.loads(run.stdout)
        known |= set(schema_settings(schema, schema))
    assert len(known) > 50
    assert sorted(f"{kind}.{name}" for kind, name in known if name not in SETTINGS[kind]) == []


def test_settings_without_an_effect_are_named(tmp_path: Path) -> None:
    toml = """
    artifacts = ["/app/out.txt"]
    [agent]
    timeout_sec = 60.0
    [environment]
    cpus = 2
    skills_dir = "/skills"
    from_the_future = true
    [[steps]]
    name = "one"
    agent.user = "nobody"
    """
    write_steps_task(tmp_path / "set/a", **{"task.toml": toml})
    write_task(tmp_path / "set/b", **{"task.toml": "[environment]\ncpus = 1"})
    (warning,) = load(f"harbor:{tmp_path}/set").warnings
    assert warning.endswith(
        "agent.timeout_sec (1), artifacts (1), environment.cpus (2), "
        "environment.from_the_future (1), environment.skills_dir (1)"
    )
    plain = write_task(tmp_path / "plain", **{"task.toml": "[environment]\nmemory_mb = 512"})
    assert load(f"harbor:{plain}").warnings == ()


@pytest.mark.sandbox
def test_each_command_names_them_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_task(tmp_path / "t", **{"task.toml": "[environment]\ncpus = 1"})
    task = f"harbor:{folder}"
    expected = [
        f"{task}: settings of task.toml without an effect here, and the number of tasks: "
        "environment.cpus (1)",
    ]
    config = tmp_path / "grid.toml"
    config.write_text(f'dataset = "{task}"\n[grid]\nagent = ["gold", "noop"]\n')
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    monkeypatch.chdir(tmp_path)
    for command in (
        ["play", task],
        ["eval", "--config", str(config), "--dry-run"],
        ["eval", "--config", str(config)],
    ):
        assert main(command) == 0
        said = capsys.readouterr().err.splitlines()
        assert [line for line in said if line.startswith(task)] == expected, command


def test_named_settings_do_not_change_the_hash(tmp_path: Path) -> None:
    """The hash is the one that this task had before these settings were read."""
    folder = write_task(tmp_path / "t")
    assert load(f"harbor:{folder}").hash == "01bf6574d937d8dc"
    (folder / "task.toml").write_text((folder / "task.toml").read_text() + "[future]\nx = 1\n")
    assert load(f"harbor:{folder}").hash == "01bf6574d937d8dc"


@pytest.mark.parametrize(
    ("toml", "allowed"),
    [
        ("", True),
        ("[environment]\nallow_internet = false", False),
        ("[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['pypi.org']", False),
        ("[agent]\nnetwork_mode = 'no-network'", False),
        ("[environment]\nnetwork_mode = 'no-network'\n[agent]\nnetwork_mode = 'public'", True),
    ],
)
def test_only_an_agent_that_may_use_a_network_gets_it(
    tmp_path: Path, toml: str, allowed: bool
) -> None:
    folder = write_task(tmp_path / "t", **{"task.toml": toml or "version = '1.0'"})
    (task,) = load(f"harbor:{folder}").tasks
    assert task.data["config"].allows_network is allowed
    with HarborEnv(f"harbor:{folder}", network="host") as env:
        spec = env._profile_impl.sandbox_spec(task, env.image, (), env.network)
        assert spec.network == ("host" if allowed else "none")


def test_what_would_change_the_grade_is_refused(tmp_path: Path) -> None:
    for name, files, message in (
        (
            "mode",
            {"task.toml": "[agent]\nnetwork_mode = 'some'"},
            "agent.network_mode' must be one of public, .* not 'some'",
        ),
        ("talk", {"trajectory.json": "{}"}, "a conversation that the agent continues"),
    ):
        with pytest.raises(DataError, match=message):
            load(f"harbor:{write_task(tmp_path / name, **files)}")


def test_names_of_settings() -> None:
    table = {"metadata": {"x": 1}, "verifier": {"collect": [{"command": "x", "new": 1}]}}
    assert list(named_settings(table)) == ["verifier.collect.new"]
