"""Task packages: their settings, defaults and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode import datasets
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset
from intercode_sandbox.images.build.on_demand import resolve_or_build

ROWS = """\
{"query": "say one", "gold": "echo one"}
{"query": "say two", "gold": "echo two", "cwd": "/"}
"""


def made(folder: Path, settings: str = "", rows: str = ROWS, **files: str) -> Dataset:
    """Return the dataset of a package with this task.toml, these rows and these further files."""
    folder.mkdir(exist_ok=True)
    (folder / "task.toml").write_text(settings)
    (folder / "tasks.jsonl").write_text(rows)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return datasets.load(str(folder))


def test_an_empty_task_toml_is_enough(tmp_path: Path) -> None:
    dataset = made(tmp_path / "mine")
    assert (dataset.environment, dataset.image, dataset.reward) == ("bash", "host", None)
    assert [t.id for t in dataset.tasks] == ["mine/0", "mine/1"]
    assert dataset.name == str(tmp_path / "mine") and not dataset.comparable
    assert datasets.load(str(tmp_path / "mine" / "task.toml")).hash == dataset.hash


def test_everything_that_a_package_may_say(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("question,gold\nsay one,echo one\nskip me,true\n")
    settings = """
description = "Some words"
environment = "bash"
tasks = "more.csv"
image = "registry:example.org/some/image"
reward = "judge.py:score"
preprocess = "judge.py:row"
programs = ["jq", "git"]
[defaults]
cwd = "/work"
probe = "echo here"
probe_paths = ["/work"]
"""
    hook = """
def row(row):
    if row["question"] == "skip me":
        return None
    return {"query": row.pop("question").upper(), **row, "extra": row["cwd"]}
def score(task, agent, gold): ...
"""
    dataset = made(tmp_path, settings, judge_py=hook)
    (task,) = dataset.tasks
    assert (task.query, task.cwd, task.data) == ("SAY ONE", "/work", {"extra": "/work"})
    assert (task.probe, task.probe_paths) == ("echo here", ("/work",))
    assert dataset.reward == f"{tmp_path}/judge.py:score"
    assert (dataset.image, dataset.notes) == ("registry:example.org/some/image", "Some words")
    assert dataset.programs == ("jq", "git")


@pytest.mark.parametrize(
    ("settings", "file", "image"),
    [
        ("", "Dockerfile", "dockerfile:{}/Dockerfile"),
        ('image = "Dockerfile.big"', "Dockerfile.big", "dockerfile:{}/Dockerfile.big"),
        ('image = "root.tar.gz"', "root.tar.gz", "tar:{}/root.tar.gz"),
        ('image = "oci:saved.tar"', "saved.tar", "oci:{}/saved.tar"),
        ('image = "recipe:nl2bash"', "x", "recipe:nl2bash"),
        ('image = "."', "x", "dir:{}"),
    ],
)
def test_the_image_is_one_beside_it_or_any(
    tmp_path: Path, settings: str, file: str, image: str
) -> None:
    (tmp_path / file).write_text("")
    assert made(tmp_path, settings).image.rstrip("/.") == image.format(tmp_path)


@pytest.mark.parametrize(
    "image",
    [
        "{out}",
        "../out",
        "dir:{out}",
        "dir:../out",
        "tar:{out}/root.tar",
        "oci:{out}",
        "oci:../out",
        "docker-archive:{out}/a.tar",
        "dockerfile:{out}",
        "recipe:{out}/recipe.toml",
        "link",
        "dir:link",
        "dir:~",
    ],
)
def test_no_image_outside_of_the_package_is_used(
    tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "link").symlink_to(tmp_path / "out")
    name = image.format(out=tmp_path / "out")
    with pytest.raises(UsageError, match=r"leads out of|there is no") as error:
        resolve_or_build(made(tmp_path / "mine", f'image = "{name}"').image)
    assert name.partition(":")[2] in str(error.value) or name in str(error.value)


@pytest.mark.parametrize("key", ["tasks", "reward", "preprocess"])
def test_no_other_file_outside_of_the_package_is_used(tmp_path: Path, key: str) -> None:
    (tmp_path / "out.py").write_text("raise RuntimeError('executed')\n")
    with pytest.raises(DataError, match=r"out\.py.* leads out of"):
        name = "../out.py" if key == "tasks" else "../out.py:f"
        made(tmp_path / "mine", f'{key} = "{name}"')


def test_the_base_of_a_dockerfile_is_in_its_directory(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "Dockerfile").write_text(f"FROM dir:{tmp_path}/out\n")
    dataset = made(tmp_path / "mine", "")
    with pytest.raises(UsageError, match=f"FROM dir:{tmp_path}/out is outside of"):
        resolve_or_build(dataset.image)


def test_a_recipe_of_a_package_is_refused_with_its_dockerfile(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text("echo private\n")
    dataset = made(tmp_path / "mine", "", recipe_toml='base = "host"\nsetup = "../setup.sh"\n')
    with pytest.raises(UsageError, match=r"Write what follows to .*mine/Dockerfile") as error:
        resolve_or_build(dataset.image)
    assert "FROM host" in error.value.verbatim and "private" not in error.value.verbatim


def test_a_probe_without_a_reward_is_scored_by_its_lines(tmp_path: Path) -> None:
    dataset = made(tmp_path, '[defaults]\nprobe = "see.sh"', see_sh="echo seen\n")
    assert dataset.reward == "probe" and dataset.tasks[0].probe == "echo seen\n"
    plain = made(tmp_path, "")
    assert plain.reward is None and plain.hash != dataset.hash


@pytest.mark.parametrize(
    ("settings", "rows", "message"),
    [
        ("imgae = 'host'", ROWS, "did you mean 'image'"),
        ("image = 'no.such'", ROWS, "'no.such' is neither a file in"),
        ("image = 3", ROWS, "task.toml: 'image' must be a text, not 3"),
        ("programs = [3]", ROWS, "task.toml: 'programs.0.' must be a text, not 3"),
        ("image =", ROWS, "no TOML|not valid TOML|not TOML"),
        ("tasks = 'other.jsonl'", ROWS, "cannot read .*other.jsonl"),
        ("preprocess = 'no.py:f'", ROWS, "cannot read .*no.py"),
        ("preprocess = 'os:sep'", ROWS, "is not a function"),
        ("preprocess = 'json:loads'", ROWS, "line 1: the hook loads failed: TypeError"),
        ("[defaults]\nprobe = 'no.sh'", ROWS, "'probe' names 'no.sh'"),
        ("[defaults]\nprobe = 'ls'", '{"query": "q", "flag": "f"}', "not 'ctf'"),
    ],
)
def test_errors_name_the_fault_and_the_file(
    tmp_path: Path, settings: str, rows: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        made(tmp_path, settings, rows)


def test_a_directory_of_harbor_s_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "instruction.md").write_text("Do it.")
    with pytest.raises(UsageError, match="did you mean harbor:"):
        made(tmp_path, 'version = "1.0"')


def test_a_directory_without_tasks(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text("")
    with pytest.raises(UsageError, match="no file of tasks"):
        datasets.load(str(tmp_path))
    with pytest.raises(DataError, match="broken JSON"):
        made(tmp_path, "", "{")


def test_a_name_of_ours_goes_before_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "starter")
    made(tmp_path / "mine")
    assert len(datasets.load("mine")) == 2 and len(datasets.load("./starter")) == 2
    assert len(datasets.load("starter")) > 2


def test_a_hook_for_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("question,gold\nsay one,echo one\n")
    (tmp_path / "hooks.py").write_text("def loud(row): return {**row, 'query': row['query'] + '!'}")
    (tmp_path / "up.py").write_text(
        "def up(row): return {**row, 'question': row['question'] + '!'}"
    )
    spec = f"{tmp_path}/rows.csv?query=question&preprocess={tmp_path}/up.py:up"
    assert datasets.load(spec).tasks[0].query == "say one!" and datasets.load(spec).name == spec
    with pytest.raises(DataError, match="line 2: the hook loud failed: KeyError: 'query'"):
        datasets.load(f"{tmp_path}/rows.csv?preprocess={tmp_path}/hooks.py:loud")


def test_a_loader_in_a_module_without_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("own_loader.py").write_text(
        "from intercode.core.types import Dataset, Task\n"
        "def load(): return Dataset('own', 'bash', (Task('a', 'print a', 'echo a'),))\n"
    )
    assert datasets.load("own_loader:load").name == "own_loader:load"
    with Path("own_loader.py").open("a") as module:
        module.write("TASKS, COUNT = load(), 1\n")
    assert datasets.load("own_loader.py:TASKS").tasks == datasets.load("own_loader.py:load").tasks
    with pytest.raises(UsageError, match="neither a Dataset nor a function"):
        datasets.load("own_loader.py:COUNT")
    with pytest.raises(UsageError, match="unknown name in own_loader 'lod'; did you mean 'load'"):
        datasets.load("own_loader:lod")
    with pytest.raises(UsageError, match="unknown dataset 'own_loade'"):
        datasets.load("own_loade:load")


def test_a_path_that_is_not_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"^no such file .*; did you mean starter:bash\?$"):
        datasets.load("starter/bash")
    for spec in (str(tmp_path), f"{tmp_path}:subset", "folder", "folder/"):
        with pytest.raises(UsageError, match=r"^the directory \S+ has no task\.toml: write one"):
            datasets.load(spec)
    for spec in ("./nodir", "./nodir:subset", "./nodir@1234567", str(tmp_path / "nodir")):
        with pytest.raises(UsageError, match=r"^no such file or directory: \S*/nodir$"):
            datasets.load(spec)
