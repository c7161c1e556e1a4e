"""Tasks that are drawn from a secret."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import intercode
from intercode.core.config import EvalConfig
from intercode.core.errors import ConfigError, UsageError
from intercode.core.trajectories import TRAJECTORIES_FILE, read_trajectories
from intercode.core.types import Task
from intercode.datasets import load
from intercode.datasets.endless import require_fixed
from intercode.datasets.salt import salted
from intercode.evaluation.evaluate.run import evaluate

SALT = "a-salt-of-a-run-1"
_GUESSES = 1000


def draw(spec: str, environment: str, seed: int, index: int = 0) -> Task:
    task = load(spec, environment).tasks[index]
    assert task.instantiate is not None
    return task.instantiate(task, seed)


def secret_of(task: Task) -> object:
    """Return what a player wants to know: a flag, or golds and files."""
    return task.flag or (task.golds, task.initial_files, task.query)


@pytest.mark.parametrize(
    ("spec", "environment"),
    [("starter", "ctf"), ("families:ctf", "ctf"), ("families:bash/trail[difficulty=5]", "bash")],
)
def test_who_knows_generator_and_public_seeds_does_not_find_the_task(
    spec: str, environment: str
) -> None:
    public = load(spec, environment).tasks[0]
    assert public.instantiate is not None
    guesses = [secret_of(public.instantiate(public, seed)) for seed in range(_GUESSES)]
    assert secret_of(draw(spec, environment, 7)) in guesses, "without a salt, the player does"
    for seed in (0, 7):
        assert secret_of(draw(f"{spec}@salt={SALT}", environment, seed)) not in guesses
    other = load(f"{spec}@salt={SALT}2", environment).tasks[0]
    assert other.instantiate is not None
    with_other_salt = [secret_of(other.instantiate(other, seed)) for seed in range(_GUESSES)]
    assert secret_of(draw(f"{spec}@salt={SALT}", environment, 7)) not in with_other_salt


@pytest.mark.parametrize("spec", ["starter", "families:ctf"])
def test_the_recorded_name_draws_the_same_tasks_again(spec: str) -> None:
    dataset = load(f"{spec}@salt=random", "ctf")
    assert load(f"{spec}@salt=random", "ctf").name == dataset.name, "one salt in a process"
    again = load(dataset.name, "ctf")
    assert again.name == dataset.name and again.hash == dataset.hash
    for seed in (0, 7):
        one, other = (d.tasks[0].instantiate for d in (dataset, pickle.loads(pickle.dumps(again))))
        assert one is not None and other is not None
        drawn = one(dataset.tasks[0], seed), other(again.tasks[0], seed)
        assert drawn[0].id == drawn[1].id and secret_of(drawn[0]) == secret_of(drawn[1])
    assert load(f"{spec}@salt={SALT}", "ctf").name.endswith(f"@salt={SALT}")


@pytest.mark.sandbox
def test_a_record_names_salt_and_seed_and_plays_the_same_task() -> None:
    with intercode.make("ctf", dataset="families:ctf@salt=random") as env:
        env.reset(seed=5, options={"task": 0})
        name, task, seed = env.result_metadata()["dataset"], env.task, env.task_seed
    assert seed == 5 and task.id.endswith("/1000005") and "@salt=" in name
    assert "random" not in name
    for options in ({"task": task.id}, {"task": 0}):
        with intercode.make("ctf", dataset=name) as env:
            env.reset(seed=seed, options=options)
            assert (env.task.id, env.task.flag) == (task.id, task.flag)
    with intercode.make("ctf", dataset="families:ctf") as env:
        env.reset(seed=5, options={"task": 0})
        assert env.task.flag != task.flag


@pytest.mark.sandbox
@pytest.mark.heavy
def test_a_run_from_a_random_salt_is_resumed_replayed_and_verified(tmp_path: Path) -> None:
    """In processes of their own, each of which would draw another salt."""
    out, bundle = tmp_path / "run", tmp_path / "bundle.tar.gz"
    settings = EvalConfig("starter:ctf@salt=random", "gold", limit=2, out=out)
    evaluate(settings, quiet=True)
    rows = (out / TRAJECTORIES_FILE).read_text().splitlines(keepends=True)
    (out / TRAJECTORIES_FILE).write_text(rows[0])
    for command in (
        ["eval", "--resume", out], ["replay", out], ["bundle", out, "--out", bundle],
        ["verify", bundle, "--all"],
    ):  # fmt: skip
        program = [sys.executable, "-P", "-m", "intercode", *command]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "EQUAL    2 of 2 episodes" in done.stdout
    first, second = read_trajectories(out / TRAJECTORIES_FILE)
    assert first.run["dataset"] == second.run["dataset"] != "starter:ctf@salt=random"


def test_bad_salts_and_datasets_with_fixed_tasks() -> None:
    for wrong in ("", "short", "a b" * 10, "x" * 129):
        with pytest.raises(UsageError, match="write starter@salt=random"):
            salted(load("starter", "ctf"), wrong)
    for spec, environment in (("starter", "bash"), ("families:ctf@seed=0..1", "ctf")):
        with pytest.raises(UsageError, match="a salt changes nothing"):
            load(f"{spec}@salt={SALT}", environment)
    with pytest.raises(ConfigError, match=r"as in families:ctf@seed=0\.\.99"):
        require_fixed(load(f"families:ctf@salt={SALT}", "ctf"))
