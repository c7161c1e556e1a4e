"""examples/learn: each kind of credit trains, a run that was interrupted goes on, figures and
tables are made, and no test task was met in training. What is learned is measured by hand
(examples/learn/README.md)."""

from __future__ import annotations

import json
import runpy
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support import requirements
from support.snippets import Reader, commands, read_snippets

if find_spec("torch") is None:  # each worker would import it
    pytest.skip("make training", allow_module_level=True)
EXAMPLES = Path(__file__).parent.parent / "examples"
FOLDER = EXAMPLES / "learn"
PAGE = EXAMPLES / "learn/README.md"
LESS = {"curves": (), "difficulty": ("--tasks", "1"), "leaks": ("--episodes", "1")}
"""What makes the commands of the page short. The others train from one seed."""
pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(EXAMPLES / "grpo_bash"))
    import settings
    import torch

    monkeypatch.setattr(settings, "GROUPS", 1)
    import training

    from intercode_lab.families.family import FAMILIES

    monkeypatch.setattr(FAMILIES, "_entries", dict(FAMILIES._entries))  # practice.py changes it
    torch.set_num_threads(1)  # several wait for each other where tests run in parallel
    monkeypatch.setattr(settings, "TEST_SEEDS", range(1_000_000, 1_000_002))
    yield training
    names = {
        path.stem for folder in (FOLDER, EXAMPLES / "grpo_bash") for path in folder.glob("*.py")
    }
    for name in names & set(sys.modules):
        del sys.modules[name]


def small(setting: Any) -> Any:
    return replace(setting, imitated=2)


def page_commands(part: str) -> list[list[str]]:
    """Return the programs of the page's block that has this part, with their options."""
    [block] = [s.body for s in read_snippets(PAGE.read_text("utf-8")) if part in s.body]
    return [shlex.split(command, comments=True)[1:] for command, _ in commands(block)]


@pytest.mark.parametrize("credit", ["final", "delta", "fork"])
def test_a_run_goes_on_and_its_curve_shows_it(
    training: ModuleType, credit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import curves
    import leaks
    from settings import trails

    seeds, begin = set[int](), training.begin

    def remember(env: Any, seed: int, wording: int) -> Any:
        seeds.add(seed)
        return begin(env, seed, wording)

    monkeypatch.setattr(training, "begin", remember)
    run, setting = tmp_path / "five-turns-0", small(trails(5))
    first = training.train(run, setting, credit, 0, 8)
    assert set(first) == {
        f"{what} {when}" for what in setting.tests for when in ("before", "after")
    }
    after = training.train(run, setting, credit, 0, 40)  # with more episodes, and then with fewer
    with pytest.raises(ValueError, match=f"{run} holds another run: episodes: 40 there, 8 now"):
        training.train(run, setting, credit, 0, 8)
    with pytest.raises(ValueError, match=r"imitation: 2 episodes .* there, 3 episodes .* now"):
        training.train(run, replace(setting, imitated=3), credit, 0, 40)
    assert training.train(run, setting, credit, 0, 40) == after
    assert {k: v for k, v in after.items() if "before" in k} == {
        k: v for k, v in first.items() if "before" in k
    }
    monkeypatch.setattr(leaks, "draw", lambda _, seeds: list(seeds))
    known = set(leaks.training_tasks(setting, credit, 0, 40))
    assert seeds <= known and (credit == "fork" or seeds == known)
    rows = [json.loads(line) for line in (run / "curve.jsonl").read_text().splitlines()]
    assert len(rows) > 1 and sum(row["episodes"] for row in rows) >= 40
    later = [row["episodes"] - row["whole"] for row in rows]  # forks of later turns
    assert any(later) == (credit == "fork") and all(row["solved"] <= row["whole"] for row in rows)
    curves.WINDOW = 8
    played = [count for count, _ in curves.read_curve(run)]
    assert played == list(accumulate(row["episodes"] for row in rows))
    stored, other = json.loads((run / "result.json").read_text()), tmp_path / "five-turns-1"
    assert curves.finished_runs(tmp_path) == {"five-turns": {run: stored}}
    other.mkdir()
    (other / "result.json").write_text(json.dumps({**stored, "episodes": 8}))
    with pytest.raises(SystemExit, match=f"{other} was not made as the other runs"):
        curves.finished_runs(tmp_path)
    with pytest.raises(SystemExit, match="no finished run"):
        curves.finished_runs(run)


def test_the_commands_of_the_page_run_one_after_another(
    training: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """With less of everything, and in this process: the page's numbers take half an hour."""
    import pointers
    import runs
    import settings
    import skills

    def shorten(module: ModuleType, name: str) -> None:
        make = getattr(module, name)

        def made(*given: Any, **named: Any) -> Any:
            setting = small(make(*given, **named))
            return replace(setting, tests=dict(list(setting.tests.items())[-1:]))

        monkeypatch.setattr(module, name, made)

    def train(folder: Path, setting: Any, credit: str, seed: int, episodes: int) -> Any:
        return training.train(folder, setting, credit, seed, 8)

    monkeypatch.chdir(tmp_path)
    for module, name in (
        (settings, "trails"),
        (settings, "graded"),
        (skills, "skills"),
        (pointers, "compose"),
    ):
        shorten(module, name)
    monkeypatch.setattr(runs, "train", train)
    monkeypatch.setattr(runs, "worker_processes", ThreadPoolExecutor)
    monkeypatch.setattr(settings, "TEST_SEEDS", range(1_000_000, 1_000_001))
    for program, option in (("single", "--seeds"), ("difficulty", "--tasks")):
        monkeypatch.setattr(sys, "argv", [program, option, "0"])
        with pytest.raises(SystemExit):
            runpy.run_path(str(EXAMPLES / "learn" / f"{program}.py"), run_name="__main__")
        assert f"argument {option}: '0' is not a whole number" in capsys.readouterr().err
    for program, *options in page_commands("learn/single.py"):
        smaller = LESS.get(Path(program).stem, ("--seeds", "1"))
        monkeypatch.setattr(sys, "argv", [program, *options, *smaller])
        runpy.run_path(str(EXAMPLES.parent / program), run_name="__main__")
    shares = json.loads((tmp_path / "difficulty.json").read_text())
    solved = [shares[f"{family}, solver"] for family in skills.FAMILIES]
    assert all((each[0], each[-1]) == (1.0, 0.0) for each in solved), shares
    for figure in ("interaction.svg", "credit.svg"):
        assert "<svg" in (tmp_path / figure).read_text()
    printed = capsys.readouterr().out
    assert "player, 1 seed" in printed and "fork, seed 0: longer trails before " in printed
    for folder in ("without trail-of-notes", "without trail"):
        assert f"composition.py {folder}: " in printed and f"{folder}, seed 0: " in printed


def test_a_policy_that_points_knows_no_name_and_no_wording(training: ModuleType) -> None:
    import torch
    from player import Situation
    from pointers import PointerPolicy

    policy, found = PointerPolicy(), []
    for query, name, folder in (
        ("Please open start and go on", "start", "notes"),
        ("Files lead from hall to treasure", "hall", "house"),
    ):
        turns = [("ls", f"{folder}\n{name}\n"), (f"cat {name}", "see old/room-1.\n")]
        actions, logs = policy(Situation(query, turns))
        assert torch.allclose(logs.exp().sum(), torch.tensor(1.0))
        chance = dict(zip(actions, logs.exp().tolist(), strict=True))
        places = (name, folder, "old/room-1")
        found.append([chance[f"cat {place}"] for place in places] + [chance["submit"]])
    assert found[0] == pytest.approx(found[1])
    assert len({round(p, 6) for p in found[0]}) == 4


def test_no_test_task_was_met_in_training(training: ModuleType) -> None:
    import leaks
    from pointers import compose
    from settings import trails
    from skills import HELD_OUT, skills

    tests = {
        name: test for name, test in compose("trail-of-notes").tests.items() if HELD_OUT in name
    }
    assert len(tests) == 4
    for setting, credit, count in (
        (small(trails(5)), "fork", 44),
        (small(skills()), "success", 22),
        (replace(small(compose("trail-of-notes")), tests=tests), "success", 22),
    ):
        train = leaks.training_tasks(setting, credit, seed=0, episodes=160)
        assert len(train) == count
        for name, tasks in setting.tests.items():
            if not tasks.sampled:
                shared = leaks.shared(train, leaks.draw(tasks, range(1_000_000, 1_000_006)))
                assert shared["world"] == 0, name
                assert shared["query"] == 0 or "wording" not in name, name
                assert shared["family"] == (0 if HELD_OUT in name else 6), name
    first = train[0]
    assert leaks.shared(train, [first]) == {"world": 1, "query": 1, "family": 1}


def test_what_needs_a_gpu_runs_with_a_tiny_model_of_that_name(
    training: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The commands of examples/learn/README.md, then the program of docs/training.md. The model is
    made from scratch: it shows that they run, and nothing more."""
    trl = pytest.importorskip("trl", reason="make training")
    import curves
    import language_model
    import tiny
    from skills import MAX_TURNS, skills

    played: list[tuple[int, str]] = []
    act = language_model.BashEnvironment._act

    def remember(self: Any, action: str) -> str:
        played.append((self._env.max_turns, action))
        return str(act(self, action))

    monkeypatch.setattr(language_model.BashEnvironment, "_act", remember)
    monkeypatch.chdir(tmp_path)
    shown = language_model.load(skills().train[0].dataset, "0..7", 0).tasks
    model, tokenizer = tiny.make(
        [(task.query, f"cat {task.query.split()[0]}") for task in shown], steps=60
    )
    model.save_pretrained("Qwen/Qwen3-0.6B")
    training_steps = list[int]()
    step = language_model.GRPOTrainer.training_step

    def count_step(self: Any, *given: Any) -> Any:
        training_steps.append(self.state.global_step)
        loss = step(self, *given)
        assert self.max_tool_calling_iterations == self.environments[0]._env.max_turns
        return loss

    monkeypatch.setattr(language_model.GRPOTrainer, "training_step", count_step)
    tests = {name: test for name, test in skills().tests.items() if name in ("trail", "wrapped")}
    few = replace(skills(), tests=tests)
    monkeypatch.setattr(language_model, "skills", lambda: few)
    config = {"per_device_train_batch_size": 4, "num_generations": 2, **tiny.TRAINING}
    config["num_iterations"] = 1
    del config["max_tool_calling_iterations"]
    short = partial(
        language_model.train,
        tokenizer=tokenizer,
        train_seeds="0..15",
        test_seeds="1000..1015",
        instruction="",
        config=config,
    )
    monkeypatch.setattr(language_model, "train", short)
    *programs, draw = page_commands("learn/language_model.py")
    stored = {}
    for command, steps, turns, begun in (
        (programs[0], "1", MAX_TURNS, [0]),
        (programs[1], "1", 1, [0]),
        (programs[1], "3", 1, [1, 2]),  # goes on
        (programs[1], "3", 1, []),  # is finished
    ):
        monkeypatch.setattr(sys, "argv", [*command, "--steps", steps])
        played.clear()
        training_steps.clear()
        language_model.main()
        assert training_steps == begun
        assert {limit for limit, _ in played} == ({turns} if begun else set())
        assert not begun or any(action.startswith("cat ") for _, action in played)
        folder = tmp_path / f"runs/language-model/turns-{turns}-0"
        printed = capsys.readouterr().out.splitlines()
        shares = [line.partition(": ") for line in printed if line.startswith(tuple(tests))]
        assert [name for name, _, _ in shares] == [
            f"{name} {when}" for when in ("before", "after") for name in tests
        ]
        result = json.loads((folder / "result.json").read_text())
        assert result["episodes"] == 4 * int(steps)
        before = {name: share for name, share in result["success"].items() if "before" in name}
        assert stored.setdefault(folder, before) == before  # it is not measured again
    monkeypatch.setattr(sys, "argv", [*programs[1], "--steps", "1"])
    with pytest.raises(SystemExit, match="holds another run: steps: 3 there, 1 now"):
        language_model.main()
    (folder / "result.json").unlink()  # as if it was interrupted after its last step
    monkeypatch.setattr(sys, "argv", [*programs[1], "--steps", "3"])
    language_model.main()
    assert json.loads((folder / "result.json").read_text())["episodes"] == 12
    assert not training_steps
    curves.WINDOW = 4
    assert [episodes for episodes, _ in curves.read_curve(folder)] == [4, 8, 12]
    monkeypatch.setattr(sys, "argv", draw)
    runpy.run_path(str(EXAMPLES.parent / draw[0]), run_name="__main__")
    assert "turns-1: 1 seeds of 12 episodes" in capsys.readouterr().out
    assert "<svg" in (folder.parent / "language-model.svg").read_text()
    monkeypatch.setattr(language_model.GRPOTrainer, "training_step", step)

    requirements.require("data")
    requirements.require("rootfs")
    directory = requirements.input_directory("INTERCODE_DATA", "data")
    monkeypatch.setenv("INTERCODE_DATA", str(directory))
    smaller = tiny.TRAINING | {"max_steps": 1, "report_to": "none"}
    make_config, rewards = trl.GRPOConfig, list[float | None]()
    monkeypatch.setattr(trl, "GRPOConfig", lambda **given: make_config(**given | smaller))
    monkeypatch.setattr(trl, "GRPOTrainer", partial(trl.GRPOTrainer, processing_class=tokenizer))
    score = language_model.BashEnvironment.get_reward

    def remember_reward(self: Any) -> float | None:
        rewards.append(score(self))
        return rewards[-1]

    monkeypatch.setattr(language_model.BashEnvironment, "get_reward", remember_reward)
    text = (EXAMPLES.parent / "docs/training.md").read_text("utf-8")
    [program] = [s for s in read_snippets(text) if "GRPOTrainer(" in s.body]
    reader = Reader(tmp_path, EXAMPLES.parent)
    reader.run(program)
    assert reader.names["trainer"].state.global_step == 1
    assert len(rewards) == 8 and all(isinstance(reward, float) for reward in rewards), rewards


def test_stages_follow_each_other_and_play_as_many_episodes_as_turns(training: ModuleType) -> None:
    from settings import curricula, numbered_task, task_numbers

    def order(name: str, episodes: int) -> list[str]:
        setting, found = curricula()[name], list[str]()
        for number in task_numbers("final", episodes):
            part, _ = numbered_task(setting, 0, number)
            found.append(setting.train[part].dataset[-2])
        return found

    assert order("easy first", 2400) == sorted("1234" * 60) + ["4"] * 60
    assert order("hard first", 1920) == order("easy first", 1920)[::-1]
    assert order("mixed", 32) == list("1234")
    assert sorted(order("mixed", 1920)) == order("easy first", 1920)
    assert set(order("hardest alone", 1920)) == {"4"}


def test_a_seed_that_could_train_on_tasks_of_the_test_is_refused(
    training: ModuleType, tmp_path: Path
) -> None:
    from settings import trails

    with pytest.raises(ValueError, match="seed 10 "):
        training.train(tmp_path, trails(5), "final", 10, 8)
