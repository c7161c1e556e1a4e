"""Connects TRL's GRPO to Bash tasks, with a model made from scratch on the CPU, within minutes.

docs/training.md says what it shows, and that it shows no learning of the tasks.

python examples/grpo_bash/train.py
python examples/grpo_bash/train.py --model Qwen/Qwen3-0.6B --steps 300  # on a GPU
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import curve
import drills
import tiny
from trl import GRPOConfig, GRPOTrainer

from datasets import Dataset
from intercode.integrations.trl import BashEnvironment, rows


def main() -> None:
    """Train, and print the success on the held-out tasks before and after."""
    options = argparse.ArgumentParser()
    options.add_argument("--model", default="tiny", help="a model of the hub that calls tools")
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--output", default="grpo_bash", help="a directory")
    args = options.parse_args()
    tasks, train, held_out = drills.load()
    model, tokenizer, settings, instruction = args.model, None, dict[str, Any](), None
    if model == "tiny":
        model, tokenizer = tiny.make([(t.query, t.gold) for t in tasks.tasks if t.id in train])
        settings, instruction = tiny.TRAINING, ""  # its vocabulary has only the words of the tasks
    data = {row["task"]: row for row in rows("bash", tasks, instruction)}
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        environment_factory=partial(BashEnvironment, tasks, max_turns=5, binary=True, recycle=True),
        train_dataset=Dataset.from_list([data[task] for task in train]),
        eval_dataset=Dataset.from_list([data[task] for task in held_out]),
        args=GRPOConfig(
            output_dir=args.output,
            max_steps=args.steps,
            per_device_train_batch_size=64,
            per_device_eval_batch_size=len(held_out),
            num_generations=8,
            num_generations_eval=1,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            **settings,
        ),
    )
    before = trainer.evaluate()["eval_reward"]
    trainer.train()
    after = trainer.evaluate()["eval_reward"]
    print(f"success on {len(held_out)} held-out tasks: before {before:.2f}, after {after:.2f}")
    history = [{"step": 0, "eval_reward": before}, *trainer.state.log_history]
    print("curve:", curve.draw(history, f"{args.output}/curve.svg"))


if __name__ == "__main__":
    main()
