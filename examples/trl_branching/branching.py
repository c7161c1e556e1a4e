"""GRPO with TRL where each group forks one live episode.

TRL's ``rollout_func`` owns the loop of an episode. Here the model begins one, which is then forked.
Each fork samples an answer, which is trained, and plays on to the end, which is its reward: a group
compares answers to one situation. How many turns come before is drawn, so that all are trained.

    python examples/trl_branching/branching.py  # without vLLM; best with a GPU
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import Any

import torch
from trl import GRPOConfig, GRPOTrainer
from trl.models import unwrap_model_for_generation

import intercode
from datasets import Dataset
from intercode.integrations.text_episode import TextEpisode

MAX_TURNS = 4
REQUEST = "Answer with one fenced block of code, which is run. If you are done, it holds `submit`."
Messages = list[dict[str, str]]


def rollout(prompts: list[str], trainer: GRPOTrainer) -> dict[str, Any]:
    """Return tokens and scores. A prompt is the id of a task: TRL passes no other column."""
    size = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
    if len(prompts) % size:
        raise ValueError(f"{len(prompts)} episodes of a process are no whole groups of {size}")
    found: dict[str, Any] = {"prompt_ids": [], "completion_ids": [], "score": []}
    for task in prompts[::size]:
        with ExitStack() as opened:
            episode = TextEpisode(opened.enter_context(intercode.make("bash", max_turns=MAX_TURNS)))
            for turns in (random.randrange(MAX_TURNS), 0):  # an episode that has ended has no fork
                if episode.done:
                    query = "\n\n".join([*episode.begin(task, seed=0), REQUEST])
                    messages = [{"role": "user", "content": query}]
                    play(trainer, episode, messages, turns)
            for fork in (forks := episode.fork(size)):
                opened.enter_context(fork.env)
            prompt, answers = sample(trainer, messages, size)
            for fork, ids in zip(forks, answers, strict=True):
                branch = [*messages]
                answer(trainer, fork, branch, ids)
                play(trainer, fork, branch, MAX_TURNS)
                found["prompt_ids"].append(prompt)
                found["completion_ids"].append(ids)
                found["score"].append(fork.score)
    return found | {"logprobs": None}  # TRL reads them with vLLM only


def play(trainer: GRPOTrainer, episode: TextEpisode, messages: Messages, turns: int) -> None:
    """Let the model play on for so many turns, or to the end of the episode."""
    for _ in range(turns):
        if not episode.done:
            _, [ids] = sample(trainer, messages, 1)
            answer(trainer, episode, messages, ids)


def answer(trainer: GRPOTrainer, episode: TextEpisode, messages: Messages, ids: list[int]) -> None:
    """Run the code of an answer, and append it and its output to the conversation."""
    text = trainer.processing_class.decode(ids, skip_special_tokens=True)
    messages.append({"role": "assistant", "content": text})
    messages.append({"role": "user", "content": episode.answer(text).message})


def sample(trainer: GRPOTrainer, messages: Messages, n: int) -> tuple[list[int], list[list[int]]]:
    """Return the tokens of the conversation, and those of ``n`` answers to it."""
    prompt = trainer.processing_class.apply_chat_template(
        messages, add_generation_prompt=True, return_dict=True, **trainer.chat_template_kwargs
    )["input_ids"]
    batch = torch.tensor([prompt] * n, device=trainer.accelerator.device)
    ones = torch.ones_like(batch)
    with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model:
        found = model.generate(batch, trainer.generation_config, attention_mask=ones)
    rows = found[:, len(prompt) :].tolist()
    ends = [[at for at, t in enumerate(row, 1) if t in trainer.eos_token_ids] for row in rows]
    return prompt, [row[: end[0] if end else None] for row, end in zip(rows, ends, strict=True)]


def train(model: Any, tokenizer: Any = None, **config: Any) -> None:
    """Train on the starter tasks. ``config``: settings of GRPOConfig."""

    def reward(score: list[float], **_: Any) -> list[float]:
        return score

    tasks = [{"prompt": task.id} for task in intercode.datasets.load("starter", "bash").tasks]
    GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        rollout_func=rollout,
        reward_funcs=reward,
        train_dataset=Dataset.from_list(tasks),
        args=GRPOConfig(report_to="none", **config),
    ).train()


if __name__ == "__main__":
    train("Qwen/Qwen3-0.6B", max_steps=300, output_dir="trl_branching")
