"""Arguments of the authors' package, and the errors for invalid ones."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.paper.envs import BashEnv, IntercodeDataLoader, PythonEnv, SqlEnv, SWEEnv

ROWS = [
    {"query": "Print the word hello.", "gold": "echo hello"},
    {"query": "Make a directory d in /.", "gold": ["mkdir /d", "touch /d/f"], "n": None},
]


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS))
    return str(path)


@pytest.mark.sandbox
def test_a_file_of_ones_own_with_a_trajectory_of_each_submission(rows: str, tmp_path: Path) -> None:
    with BashEnv("host", data_path=rows, traj_dir=str(tmp_path), preprocess=prepared) as env:
        assert env.reset(0)[0] == ""
        assert env.step("cat /prepared") == ("0\n", 0, False, {"action_executed": True})
        assert env.step("echo hello")[0] == "hello\n"
        observation, reward, done, info = env.step("submit")
        assert (observation, done) == ("hello\n", True)
        assert info["reward"]["answer_similarity"] == 0.33
        assert info["diff_extra"] == [("prepared", "??")]
        assert reward == env.reward < 1
        env.step("submit")
        assert env.step("skip") == ("skipped", 0, True, {})
    logs = sorted((tmp_path / "logs_ic_bash").iterdir())
    assert len(logs) == 2
    log = json.loads(logs[0].read_text())
    assert log["trajectory"][1] == {"action": "echo hello", "observation": "hello\n"}
    assert (log["reward"], log["gold"], log["query_idx"]) == (reward, "echo hello", 0)


def prepared(record: dict[str, object]) -> list[str]:
    return [f"echo {ROWS.index(record)} > /prepared"]


@pytest.mark.sandbox
def test_the_standard_profile_corrects_the_authors_faults(rows: str) -> None:
    with BashEnv("host", data_path=rows, profile="standard") as env:
        env.reset(1)
        env.step('X="a b"; mkdir /d')
        env.step('touch "/d/$X"')
        assert env.step("submit")[1] < 1
        env.step('mv "/d/$X" /d/f')
        _, reward, _, info = env.step("submit")
        assert (reward, info["diff_extra"]) == (1.0, [])


@pytest.mark.sandbox
def test_a_failing_preprocess_is_an_error(rows: str) -> None:
    with (
        BashEnv("host", data_path=rows, preprocess=lambda record: ["false"]) as env,
        pytest.raises(RuntimeError, match="'false' failed"),
    ):
        env.reset(0)


@pytest.mark.sandbox
def test_without_data_it_is_a_shell_that_scores_nothing() -> None:
    with BashEnv("host") as env:
        assert env.reset() == (None, {})
        assert env.step("echo a; cd /usr")[0] == "a\n"
        assert env.step("submit")[1:] == (0.0, True, {"action_executed": True})
        assert env.get_available_actions() is None


@pytest.mark.sandbox
def test_a_function_can_be_typed_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("    return a + b\n\n"))
    with PythonEnv("host") as env:
        env.reset()
        env.step("def add(a, b):")
        observation, *_, info = env.step("add(2, 3)")
        assert observation == {"output": "5\n", "error": ""}
        # in the authors' code this says whether the action failed
        assert info["action_executed"] is False


def test_rows_lose_their_empty_cells(rows: str, tmp_path: Path) -> None:
    loader = IntercodeDataLoader(rows)
    assert len(loader) == 2
    assert loader.get(1) == {k: v for k, v in ROWS[1].items() if k != "n"}
    assert loader.get() in (loader.get(0), loader.get(1))
    with pytest.raises(UsageError, match="out of range"):
        loader.get(2)
    (tmp_path / "x.csv").write_text("query,gold\nq,\n")
    assert IntercodeDataLoader(str(tmp_path / "x.csv")).get(0) == {"query": "q"}


def test_faults_say_what_to_do(rows: str, tmp_path: Path) -> None:
    for name in ("ports", "volumes", "command", "environment"):
        with pytest.raises(UsageError, match="is an argument for Docker"):
            BashEnv("host", data_path=rows, **{name: {}})
    with pytest.raises(UnknownNameError, match="did you mean 'data_path'"):
        BashEnv("host", data_pth=rows)
    with pytest.raises(UsageError, match="neither an image of the authors"):
        BashEnv("my-image", data_path=rows)
    BashEnv("my-image", data_path=rows, image="host").close()
    with pytest.raises(UsageError, match="preprocess must be a function"):
        BashEnv("host", data_path=rows, preprocess=["ls"])
    with pytest.raises(UsageError, match="needs data_path"):
        SqlEnv("docker-env-sql")
    with pytest.raises(UsageError, match="reward 0"):
        SWEEnv("intercode-swe", data_path=rows)
    with pytest.raises(UsageError, match="pickle"):
        IntercodeDataLoader(str(tmp_path / "rows.pkl"))
    with pytest.raises(DataError, match="cannot read"):
        IntercodeDataLoader(str(tmp_path / "absent.json"))


def test_a_published_file_belongs_to_its_environment(data_dir: Path) -> None:
    with pytest.raises(UsageError, match="played by the ctf environment"):
        BashEnv("host", data_path=str(data_dir / "ctf" / "ic_ctf.json"))
    wanted = {
        "sql/wikisql/ic_wikisql_dev.json": "wikisql",
        "sql/spider/ic_spider_dev.json": "spider",
    }
    for path, name in wanted.items():
        with SqlEnv("docker-env-sql", data_path=str(data_dir / path)) as env:
            assert env.env.dataset.name == name
            assert len(env.env.dataset) == len(env.data_loader)
