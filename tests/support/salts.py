"""Checks of datasets whose tasks are drawn from a secret."""

from __future__ import annotations

import pickle

from intercode.core.types import Task
from intercode.datasets import load

SALT = "a-salt-of-a-run-1"
_GUESSES = 1000


def draw(spec: str, environment: str, seed: int, index: int = 0) -> Task:
    task = load(spec, environment).tasks[index]
    assert task.instantiate is not None
    return task.instantiate(task, seed)


def secret_of(task: Task) -> object:
    """Return what a player wants to know: a flag, or golds and files."""
    return task.flag or (task.golds, task.initial_files, task.query)


def check_secrecy(spec: str, environment: str) -> None:
    """Fail if somebody who knows the generator and the public seeds finds a salted task."""
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


def check_name(spec: str) -> None:
    """Fail unless the recorded name of a salted dataset draws its tasks again."""
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
