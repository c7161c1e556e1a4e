"""Loading Harbor's task directories."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from intercode.core.errors import ConfigError, DataError, UsageError
from intercode.datasets import load
from intercode.integrations.harbor.tasks.task_directory import (
    read_exclusion,
    read_files,
    read_tests,
    solution_action,
)
from support.harbor import INCLUDED, LEFT_OUT, TOML, write_ignoring_task, write_task


def test_a_directory_of_tasks(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_task(tmp_path / "set" / name)
    (tmp_path / "set" / "notes").mkdir()
    dataset = load(f"harbor:{tmp_path}/set")
    assert [task.id for task in dataset.tasks] == ["set/a", "set/b"]
    assert (dataset.environment, dataset.comparable) == ("harbor", False)
    task = dataset.tasks[0]
    assert task.query == "# Greet\n\nWrite the greeting to /app/out.txt."
    assert (task.group, task.hardness, task.tags) == ("files", "easy", ("one", "two"))
    config = task.data["config"]
    assert (config.memory, config.storage) == (512 << 20, 300 << 20)
    assert (config.verifier_seconds, config.agent_seconds) == (20.0, 60.0)
    assert config.verifier_env == {"EXPECTED": "hello", "FALLBACK": "back"}
    assert config.env == {"GREETING": "hello"}
    assert task.data["image"] == f"dockerfile:{tmp_path}/set/a/environment"
    (alone,) = load(f"harbor:{tmp_path}/set/a").tasks
    assert alone.id == "a"


def test_the_hash_covers_everything_that_matters(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "t")
    seen = {load(f"harbor:{folder}").hash}
    for name in ("tests/more/data.txt", "environment/words.txt", "instruction.md", "task.toml"):
        (folder / name).write_text((folder / name).read_text() + "\n# more\n[metadata.x]\n")
        if name == "task.toml":
            (folder / name).write_text(TOML.replace("memory_mb = 512", 'memory = "1G"'))
        seen.add(load(f"harbor:{folder}").hash)
    assert len(seen) == 5
    assert load(f"harbor:{folder}").tasks[0].data["config"].memory == 1 << 30


def test_newer_files_and_prebuilt_images(tmp_path: Path) -> None:
    toml = """
    schema_version = "1.3"
    [task]
    name = "someone/greet"
    keywords = ["k"]
    [verifier]
    user = "root"
    [environment]
    docker_image = "someone/greet:1"
    workdir = "/srv"
    allow_internet = false
    """
    folder = write_task(tmp_path / "t", **{"task.toml": toml, "environment__Dockerfile": ""})
    (task,) = load(f"harbor:{folder}").tasks
    assert (task.data["image"], task.cwd, task.tags) == ("someone/greet:1", "/srv", ("k",))
    assert task.data["dockerfile"] == ""
    config = task.data["config"]
    assert (config.name, config.internet, config.verifier_seconds) == ("someone/greet", False, 600)


def test_a_task_without_a_network_in_the_newest_format(tmp_path: Path) -> None:
    toml = "[environment]\nnetwork_mode = 'no-network'"
    (task,) = load(f"harbor:{write_task(tmp_path / 't', **{'task.toml': toml})}").tasks
    assert not task.data["config"].internet


@pytest.mark.parametrize("name", ["dir:/root", "tar:x.tar", "recipe:/r.toml", "dockerfile:/x"])
def test_files_of_this_machine_cannot_be_the_image_of_a_task(tmp_path: Path, name: str) -> None:
    folder = write_task(tmp_path / "t", **{"task.toml": f"[environment]\ndocker_image = '{name}'"})
    with pytest.raises(DataError, match="refers to files of this machine"):
        load(f"harbor:{folder}")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"task.toml": "a ="}, "no TOML|not valid TOML|not TOML"),
        ({"task.toml": "steps = 3"}, "'steps' must be a list, not 3"),
        ({"task.toml": "[environment]\ngpus = 1"}, "GPUs"),
        ({"task.toml": "[environment]\nos = 'windows'"}, "'windows'"),
        ({"task.toml": "[verifier]\nenvironment_mode = 'own'"}, "shared, separate, not 'own'"),
        ({"task.toml": "[verifier]\nenvironment_mode = 'shared'\nenvironment = {}"}, "contradicts"),
        ({"task.toml": "[verifier.environment]\ngpus = 1"}, "GPUs"),
        ({"task.toml": "[verifier.environment]\ndocker_image = 'dir:/'"}, "files of this machine"),
        (
            {"task.toml": "[verifier]\nservice = 'db'"},
            "verifier.service' asks for a container .*'db'",
        ),
        (
            {"task.toml": "[[verifier.collect]]\ncommand = 'ls'\nservice = 'db'"},
            "service' asks for a container .*'db'",
        ),
        ({"task.toml": "[[verifier.collect]]"}, "verifier.collect.0.' has no 'command'"),
        ({"task.toml": "artifacts = ['/logs']\nverifier.environment = {}"}, "place of the tests"),
        ({"task.toml": "artifacts = ['/a/../b']\nverifier.environment = {}"}, "not an absolute"),
        ({"task.toml": "artifacts = 3\nverifier.environment = {}"}, "must be a list, not 3"),
        (
            {"task.toml": "verifier.environment = {}\n[[artifacts]]\nsource = '/a'\nexclude = 3"},
            "artifacts.0..exclude' must be a list of texts, not 3",
        ),
        (
            {"task.toml": "artifacts = [3]\nverifier.environment = {}"},
            "artifacts.0.' must be a text or a table, not 3",
        ),
        (
            {
                "task.toml": "artifacts = ['/a', { source = '/b', destination = 'a/c' }]\n"
                "verifier.environment = {}"
            },
            "'/a' and '/b' have overlapping destinations",
        ),
        (
            {"task.toml": "[verifier]\ntimeout_sec = -1"},
            "verifier.timeout_sec' must be greater than 0 and .*, not -1",
        ),
        ({"task.toml": "[environment]\nmemory = 'much'"}, "not a size"),
        ({"task.toml": "[environment]\nmemory_mb = 1e999"}, "not a size"),
        ({"task.toml": f"[environment]\nmemory = '{'9' * 400}G'"}, "not a size"),
        ({"task.toml": f"x = {'[' * 2000}"}, "not valid TOML"),
        ({"task.toml": f"x = {'1' * 5000}"}, "not valid TOML"),
        ({"task.toml": f"task.name = 0x{'f' * 5000}"}, "not valid TOML"),
        ({"task.toml": "[verifier.env]\nK = '${OPENAI_API_KEY}'"}, "OPENAI_API_KEY"),
        ({"task.toml": "environment = 3"}, "'environment' must be a table, not 3"),
        ({"environment__docker-compose.yaml": "services: {}"}, "is a compose file"),
        ({"environment__Dockerfile": ""}, "neither environment/Dockerfile"),
        ({"tests__test.sh": ""}, r"no tests/test\.sh"),
        ({"instruction.md": "\n"}, "is empty"),
    ],
)
def test_broken_and_unsupported_tasks_are_errors(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    folder = write_task(tmp_path / "t", **files)
    with pytest.raises(DataError, match=message):
        load(f"harbor:{folder}")


def test_a_number_of_retries_may_have_a_point_as_in_harbor(tmp_path: Path) -> None:
    text = "[environment.healthcheck]\ncommand = 'a'\nretries = 2.0"
    folder = write_task(tmp_path / "t", **{"task.toml": text})
    assert len(load(f"harbor:{folder}").tasks) == 1


def test_a_compose_file_that_harbor_does_not_read_is_a_file(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "t", **{"environment__docker-compose.yml": "services: {}"})
    assert len(load(f"harbor:{folder}").tasks) == 1


def test_skip_leaves_unplayable_tasks_out(tmp_path: Path) -> None:
    broken = {"a": {}, "b": {"task.toml": "[[steps]]"}, "c": {"tests__test.sh": ""}}
    for name, files in broken.items():
        write_task(tmp_path / "set" / name, **files)
    with pytest.raises(
        DataError, match=r"b: .*'steps.0.' has no 'name'.*; c: .*\?skip=unplayable plays the"
    ):
        load(f"harbor:{tmp_path}/set")
    dataset = load(f"harbor:{tmp_path}/set?skip=unplayable")
    assert [task.id for task in dataset.tasks] == ["set/a"]
    assert "left out are b: " in dataset.notes
    for wrong, message in (("skip=all", "skip=unplayable"), ("query=x", "'query'; known: skip$")):
        with pytest.raises(UsageError, match=message):
            load(f"harbor:{tmp_path}/set?{wrong}")


def test_a_task_directory_alone_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "one")
    with pytest.raises(ConfigError, match=f"did you mean harbor:{folder}"):
        load(str(folder))


def test_paths_without_tasks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no directory"):
        load(f"harbor:{tmp_path}/absent")
    with pytest.raises(UsageError, match=r"a directory with a task\.toml"):
        load(f"harbor:{tmp_path}")


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "t")
    (tmp_path / "private").write_text("key")
    (folder / "tests" / "inner").symlink_to("test.sh")
    assert "inner" in read_files(folder, "tests")
    (folder / "tests" / "outer").symlink_to(tmp_path / "private")
    with pytest.raises(DataError, match=r"tests/outer leads out of .*private"):
        load(f"harbor:{folder}")


@pytest.mark.parametrize(
    "part", ["instruction.md", "task.toml", "tests", "solution", "environment"]
)
def test_no_part_of_a_task_is_a_link_to_another_directory(tmp_path: Path, part: str) -> None:
    other = write_task(tmp_path / "other") / part
    folder = write_task(tmp_path / "set" / "t")
    (folder / part).rename(folder / "renamed")
    (folder / part).symlink_to(other)
    with pytest.raises(DataError, match=f"t/{part} leads out of {folder}, to {other}"):
        load(f"harbor:{folder}")
    (folder / part).unlink()
    (folder / part).symlink_to("renamed")  # a link within the task
    assert load(f"harbor:{folder}").tasks


def test_no_task_of_a_set_is_a_link_to_another_directory(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "private")
    write_task(tmp_path / "set" / "a")
    (tmp_path / "set" / "b").symlink_to(folder)
    with pytest.raises(DataError, match=f"set/b leads out of {tmp_path / 'set'}"):
        load(f"harbor:{tmp_path}/set")


def test_a_solution_that_is_absent_or_too_large(tmp_path: Path) -> None:
    assert solution_action({}, {}) is None
    assert solution_action({"solve.sh": (b"x" * 200_000, 0o755)}, {}) is None
    action = solution_action({"solve.sh": (b"true\n", 0o755), "b": (b"\0\1", 0o644)}, {"A": "b c"})
    assert action is not None
    assert "AAE=" in action and "A='b c' sh -c /solution/solve.sh" in action


def test_ignore_files_leave_out_tests_and_solutions(tmp_path: Path) -> None:
    """test_harbor_provider.py compares the same files with what Harbor leaves out."""
    pytest.importorskip("pathspec", reason="pip install 'intercode-gym[data]'")
    folder = write_ignoring_task(tmp_path / "t")
    excluded = read_exclusion(folder)
    assert [name for name in LEFT_OUT if not excluded(folder / name)] == []
    assert [name for name in (*INCLUDED, "environment/a.log") if excluded(folder / name)] == []
    assert "b.log" in read_tests(folder, "one") and "a.log" not in read_tests(folder, "one")
    task, hash_ = load(f"harbor:{folder}").tasks[0], load(f"harbor:{folder}").hash
    assert "notes" not in str(task.data["actions"])
    (folder / "tests/cache/kept").write_text("changed")
    assert load(f"harbor:{folder}").hash == hash_
    (folder / "tests/data/kept").write_text("changed")
    assert load(f"harbor:{folder}").hash != hash_
    (folder / "tests/data/.harborignore").mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        load(f"harbor:{folder}")


def test_ignore_files_need_pathspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pathspec", None)
    folder = write_task(tmp_path / "t")
    assert len(load(f"harbor:{folder}").tasks) == 1
    (folder / "tests/.harborignore").write_text("*.log")
    with pytest.raises(UsageError, match=r"pip install 'intercode-gym\[data\]'"):
        load(f"harbor:{folder}")
