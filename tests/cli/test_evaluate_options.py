"""``intercode eval``: dry runs, task files, limits and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main, output
from intercode.cli.evaluate.options import read_settings
from intercode.evaluation.evaluate import plan
from intercode.evaluation.evaluate.plan import make_plan
from support.faulty_endpoint import FaultyEndpoint, ok, status
from support.sandboxes import eventually

pytestmark = pytest.mark.sandbox
ANSWER = ok("```bash\necho 4\n```", usage={"prompt_tokens": 100, "completion_tokens": 20})


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    path = tmp_path / "sums.json"
    rows = [{"query": f"print {n} squared", "gold": f"echo $(({n}*{n}))"} for n in range(4)]
    path.write_text(json.dumps(rows))
    return str(path)


def test_a_dry_run_writes_and_sends_nothing(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultyEndpoint(ANSWER) as server:
        words = [
            "eval",
            dataset,
            "--agent",
            "try-again",
            "--model",
            "m",
            "--dry-run",
            "--base-url",
            server.base_url,
            "--epochs",
            "3",
            "--max-turns",
            "2",
            "--set",
            "model_options.max_tokens=50",
            "--out",
            str(tmp_path / "out"),
        ]
        assert main(words) == 0
        assert server.requests == []
    printed = capsys.readouterr().out
    assert "12 to play, 0 finished: 4 tasks x 3 epochs" in printed
    assert "requests  at most 24" in printed
    assert "and 1,200 in answers" in printed
    assert "cost      unknown" in printed and "no price is known" in printed
    assert not (tmp_path / "out").exists()
    words[words.index("--set") + 1] = 'model_options.price={"input": 1, "output": 1000000}'
    assert main(words) == 0
    assert "cost      at most $1.2e+04" in capsys.readouterr().out  # 24 answers of 500 tokens


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"])
def test_a_dry_run_needs_no_key(
    model: str, dataset: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("INTERCODE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    words = ["eval", dataset, "--agent", "react", "--model", model]
    assert main([*words, "--dry-run"]) == 0
    assert "cost      at most $" in capsys.readouterr().out
    assert main(words) == 2
    assert "no key for" in capsys.readouterr().err


def test_tasks_come_from_a_file(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = tmp_path / "chosen"
    chosen.write_text("# the even ones\nsums/0   # first\n\n2\n")
    words = ["eval", dataset, "--agent", "gold", "--out", str(tmp_path / "out")]
    assert main([*words, "--tasks", str(chosen)]) == 0
    assert "2/2 done" in capsys.readouterr().err
    chosen.write_text("sums/9\n")
    assert main([*words, "--tasks", str(chosen)]) == 2
    assert "'sums/9'; it has 4, such as sums/" in capsys.readouterr().err
    chosen.write_text("# none\n")
    assert main([*words, "--tasks", str(chosen)]) == 2
    assert "lists no task" in capsys.readouterr().err
    assert main([*words, "--tasks", "absent.txt"]) == 2
    assert "no such file" in capsys.readouterr().err
    settings = tmp_path / "run.toml"
    settings.write_text(f'dataset = "{dataset}"\nagent = "gold"\ntasks = "{chosen}"\n')
    chosen.write_text("3\n")
    assert main(["eval", "--config", str(settings), "--out", str(tmp_path / "out")]) == 0
    assert "1/1 done" in capsys.readouterr().err


def test_a_run_resumes_from_its_directory_alone(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = [
        "eval",
        dataset,
        "--agent",
        "noop",
        "--epochs",
        "2",
        "--set",
        "timeout=3",
        "--seed",
        "5",
    ]
    assert main([*words, "--set", "policy.deny=command:rm", "--out", str(out)]) == 0
    log = out / "trajectories.jsonl"
    rows = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(rows[:3]))
    capsys.readouterr()
    assert main(["eval", "--resume", str(out)]) == 0
    assert "8/8 done" in capsys.readouterr().err
    assert log.read_bytes().startswith(b"".join(rows[:3])) and log.read_bytes().count(b"\n") == 8
    assert main(["eval", "--resume", str(out), "--set", "timeout=4"]) == 2
    assert "a run with timeout 3, not 4:" in capsys.readouterr().err
    assert main(["eval", "--resume", str(tmp_path)]) == 2
    assert "is no run" in capsys.readouterr().err


def test_a_limit_stops_the_run_with_status_4(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with FaultyEndpoint(ANSWER) as server:
        words = [
            "eval",
            dataset,
            "--agent",
            "single-turn",
            "--model",
            "m",
            "--parallel",
            "1",
            "--base-url",
            server.base_url,
            "--set",
            "model_options.max_tokens=20",
            "--out",
            str(out),
        ]
        assert main([*words, "--max-tokens", "400"]) == 4
        printed, said = capsys.readouterr()
        assert "single-turn" in printed  # the table of the finished episodes
        assert "episodes still to be played: the run's limit is reached" in said
        assert f"--out {out} and a higher limit resumes it" in said
        assert main([*words, "--max-tokens", "4000"]) == 0
        assert "4/4 done" in capsys.readouterr().err
        assert len(server.requests) == 4


@pytest.mark.slow
def test_too_many_errors_stop_the_run_with_status_4(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultyEndpoint(ok("```bash\nls\n```"), status(503)) as server:
        words = [
            "eval",
            dataset,
            "--agent",
            "single-turn",
            "--model",
            "m",
            "--parallel",
            "1",
            "--base-url",
            server.base_url,
            "--set",
            "model_options.max_attempts=1",
            "--out",
            str(tmp_path / "out"),
            "--fail-on-error",
        ]
        assert main([*words, "25%"]) == 4
    said = capsys.readouterr().err
    assert "2 of 4 episodes ended in an error" in said
    assert "errors in 2 of the episodes" in said
    assert main([*words, "many"]) == 2
    assert "a share such as '10%'" in capsys.readouterr().err


def test_an_unknown_runner_is_named(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", dataset, "--agent", "gold", "--out", str(tmp_path / "out")]
    assert main([*words, "--set", "runner=rat"]) == 2
    assert "unknown runner 'rat'; did you mean 'ray'?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_list_of_tasks_is_no_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "3").write_text("sums/1\n")
    (tmp_path / "chosen").write_text("sums/1\n")
    assert read_settings({"tasks": "3"})["tasks"] == ["3"]
    assert read_settings({"tasks": "chosen"})["tasks"] == ["sums/1"]
    names = [f"sums/{n}" for n in range(100)]
    assert read_settings({"tasks": ",".join(names)})["tasks"] == names


def test_a_log_says_what_is_loaded_if_that_takes_long(
    dataset: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["eval", dataset, "--agent", "gold", "--dry-run"]
    monkeypatch.setattr(output, "LOG_DELAY", 600.0)
    assert main(words) == 0
    assert "loading" not in capsys.readouterr().err
    monkeypatch.setattr(output, "LOG_DELAY", 0.01)
    printed: list[str] = []

    def is_printed() -> bool:
        printed.append(capsys.readouterr().err)
        return "loading" in "".join(printed)

    def make_late(*arguments: Any, **options: Any) -> Any:
        eventually(is_printed, "the log says it")
        return make_plan(*arguments, **options)

    monkeypatch.setattr(plan, "make_plan", make_late)
    assert main(words) == 0
    printed.append(capsys.readouterr().err)
    assert "".join(printed).count(f"loading {dataset} for gold ...") == 1
