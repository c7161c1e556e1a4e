"""Trains a language model with TRL's GRPO on the tasks of families.py, and tests it on the family
that is held out.

    python examples/learn/language_model.py --model Qwen/Qwen3-0.6B --steps 300
    python examples/learn/language_model.py --model Qwen/Qwen3-0.6B --steps 300 --turns 1
    python examples/learn/curves.py --runs runs/language-model

It uses a GPU if there is one, and else the processor, which is slow. Run it again after an
interruption, or with more --steps: it goes on after its last checkpoint.

The model writes its own commands: it is given no programs. Tasks, wordings and difficulties are
those of skills.py, but with fixed seeds, and each is solved or not (binary=True).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from settings import count
from skills import MAX_TURNS, skills
from stored_runs import RunError, check_stored
from trl import GRPOConfig, GRPOTrainer

from datasets import Dataset as Rows
from intercode import datasets
from intercode.core import Dataset
from intercode.integrations.trl import BashEnvironment, CtfEnvironment, rows

TRAIN_SEEDS, TEST_SEEDS = "0..3999", "4000..4119"
"""About a third of them have the wording: 2,621 tasks of training, and 29 to 50 of each test."""


def load(dataset: str, seeds: str, wording: int) -> Dataset:
    """Return the tasks of some seeds that have a wording."""
    drawn = datasets.load(f"{dataset}@seed={seeds}")
    tasks = tuple(task for task in drawn.tasks if task.data["phrasing"] == wording)
    return Dataset(drawn.name, drawn.environment, tasks, comparable=False)


def train(
    model: str,
    tokenizer: Any = None,
    *,
    steps: int,
    output: str,
    turns: int = MAX_TURNS,
    seed: int = 0,
    train_seeds: str = TRAIN_SEEDS,
    test_seeds: str = TEST_SEEDS,
    instruction: str | None = None,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, float]:
    """Train for so many steps, and return the success on each test before and after, of sampled
    answers. Raises RunError if ``output`` holds a longer run, or one that was made otherwise.

    ``turns``: the actions of an episode. ``instruction``: what a prompt says before the query
    (None: what the tool is and what is scored). ``config``: settings of GRPOConfig that replace
    those below. ``output`` gets checkpoints, ``before.json``, ``result.json``, and ``curve.jsonl``
    as those of training.py.
    """
    setting, folder = skills(), Path(output)
    training = [load(t.dataset, train_seeds, t.wording) for t in setting.train]
    tests = {
        name: load(t.dataset, test_seeds, t.wording)
        for name, t in setting.tests.items()
        if not t.sampled
    }
    settings = {
        "num_generations": 8,
        "per_device_train_batch_size": 32,
        "per_device_eval_batch_size": 8,
        "num_generations_eval": 1,
        "max_completion_length": 1024,
        "lr_scheduler_type": "constant",
        "max_tool_calling_iterations": turns,
        "seed": seed,
        **config,
    }
    made_with = {
        "model": model,
        "turns": turns,
        "instruction": instruction,
        "settings": settings,
        "training": [part.hash for part in training],
        "tests": {name: part.hash for name, part in tests.items()},
    }
    before, result = folder / "before.json", folder / "result.json"
    folder.mkdir(parents=True, exist_ok=True)
    stored = {file: json.loads(file.read_text()) for file in (before, result) if file.is_file()}
    for found in stored.values():
        check_stored(folder, found, made_with, steps, "steps")
    if result in stored and stored[result]["steps"] == steps:
        return dict(stored[result]["success"])

    every = [*training, *tests.values()]
    factories = {
        name: partial(kind, _union(name, every), max_turns=turns, binary=True, recycle=True)
        for name, kind in (("bash", BashEnvironment), ("ctf", CtfEnvironment))
    }
    has_gpu = torch.cuda.is_available()
    files = {
        "output_dir": output,
        "save_strategy": "steps",
        "save_steps": 10,
        "save_total_limit": 1,
        "logging_steps": 1,
        "report_to": "none",
        "bf16": has_gpu,
        "use_cpu": not has_gpu,
    }
    last = _last_checkpoint(folder)
    trained = last is not None and last.name == f"checkpoint-{steps}"
    trainer = GRPOTrainer(
        model=str(last) if trained else model,
        processing_class=tokenizer,
        environment_factory=factories,
        train_dataset=_make_rows(training, instruction),
        args=GRPOConfig(**{**files, **settings, "max_steps": steps}),
    )

    def measure(when: str) -> dict[str, float]:
        return {
            f"{name} {when}": float(
                trainer.evaluate(_make_rows([part], instruction))["eval_reward"]
            )
            for name, part in tests.items()
        }

    success = stored[before]["success"] if before in stored else measure("before")
    run = {"steps": steps, "made_with": made_with, "success": success}
    before.write_text(json.dumps(run))
    if not trained:
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    episodes = _write_curve(folder, trainer.args.generation_batch_size)
    success = success | measure("after")
    result.write_text(json.dumps({**run, "episodes": episodes, "success": success}))
    return success


def _make_rows(parts: list[Dataset], instruction: str | None) -> Rows:
    return Rows.from_list([row for p in parts for row in rows(p.environment, p, instruction)])


def _union(environment: str, parts: list[Dataset]) -> Dataset:
    """Return all tasks of an environment, each once."""
    tasks = {t.id: t for part in parts if part.environment == environment for t in part.tasks}
    return Dataset("families", environment, tuple(tasks.values()), comparable=False)


def _last_checkpoint(folder: Path) -> Path | None:
    """Return the last checkpoint that is whole: its state is written last."""
    whole = [state.parent for state in folder.glob("checkpoint-*/trainer_state.json")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _write_curve(folder: Path, size: int) -> int:
    """Write the success of each batch of so many training episodes, and return how many were
    played. An episode whose sandbox was lost counts as the mean of the others."""
    last = _last_checkpoint(folder)
    assert last is not None, "TRL saves the last step"
    history = json.loads((last / "trainer_state.json").read_text())["log_history"]
    shares = [row["reward"] for row in history if row.get("reward", -1) >= 0]  # no NaN
    curve = [{"episodes": size, "whole": size, "solved": round(share * size)} for share in shares]
    (folder / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in curve))
    return size * len(curve)


def main() -> None:
    """Train, and print the success on each test before and after."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--model", required=True, help="a model of the hub that calls tools")
    options.add_argument("--steps", type=count, default=300, help="of training (default 300)")
    options.add_argument(
        "--turns", type=count, default=MAX_TURNS, help=f"of an episode (default {MAX_TURNS})"
    )
    options.add_argument("--seed", type=int, default=0, help="of the training (default 0)")
    options.add_argument(
        "--output", help="a directory (default runs/language-model/turns-TURNS-SEED)"
    )
    args = options.parse_args()
    output = args.output or f"runs/language-model/turns-{args.turns}-{args.seed}"
    try:
        report = train(
            args.model, steps=args.steps, output=output, turns=args.turns, seed=args.seed
        )
    except RunError as e:
        raise SystemExit(str(e)) from e
    for name, share in report.items():
        print(f"{name}: {share:.2f}")


if __name__ == "__main__":
    main()
