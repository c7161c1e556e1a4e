"""Tasks that are drawn from a secret."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from intercode.core.config import EvalConfig
from intercode.core.errors import UsageError
from intercode.core.trajectories import TRAJECTORIES_FILE, read_trajectories
from intercode.datasets import load
from intercode.datasets.salt import salted
from intercode.evaluation.evaluate.run import evaluate
from support.salts import SALT, check_name, check_secrecy


def test_who_knows_generator_and_public_seeds_does_not_find_the_task() -> None:
    check_secrecy("starter", "ctf")


def test_the_recorded_name_draws_the_same_tasks_again() -> None:
    check_name("starter")


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
        ["eval", "--resume", out],
        ["replay", out],
        ["export", out, "--to", "bundle", "--out", bundle],
        ["replay", bundle, "--sample", "all"],
    ):
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
    with pytest.raises(UsageError, match="a salt changes nothing"):
        load(f"starter@salt={SALT}", "bash")
