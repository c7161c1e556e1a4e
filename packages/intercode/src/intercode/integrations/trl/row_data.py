"""The rows of a trainer's data, and the text that is appended to their prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from intercode.agents.parsing import full_query
from intercode.core.errors import UsageError
from intercode.core.types import Brief, Dataset
from intercode.datasets.salt import secret_seed
from intercode.environments.base.options import pick_dataset
from intercode.environments.recorded_descriptions import describe_environment


def dataset_rows(
    environment: str,
    tool: str,
    dataset: str | Dataset,
    instruction: str | None,
    seeds: Sequence[int | None] | None,
) -> list[dict[str, object]]:
    """Return a row for each task and seed; see ``intercode.integrations.trl.rows``."""
    if seeds is not None:
        _check_seeds(seeds)
    if instruction is None:
        judged = describe_environment(environment).judged
        instruction = f"Do the task with the tool {tool}, then say that you are done. {judged}"
    tasks = pick_dataset(dataset, environment).tasks
    chosen = (
        [(task, secret_seed() if task.instantiate else None) for task in tasks]
        if seeds is None
        else [(task, seed) for seed in seeds for task in tasks]
    )
    return [
        {
            "prompt": [{"role": "user", "content": instruction}],
            "task": task.id,
            "seed": seed,
            "environment": environment,
        }
        for task, seed in chosen
    ]


def _check_seeds(seeds: object) -> None:
    """Raise UsageError for seeds that ``reset`` would refuse in the middle of a training."""
    given = list(seeds) if isinstance(seeds, Iterable) else [seeds]
    wrong = [s for s in given if s is not None and not (isinstance(s, Integral) and int(s) >= 0)]
    if wrong or not given or not isinstance(seeds, Iterable):
        raise UsageError(f"seeds are a range such as range(1000), or a list, not {seeds!r:.80}")


def prompt_suffix(prompt: Any, brief: Brief) -> str | None:
    """Return the text to append to a prompt: the query and its notes, and what is judged if it is
    not what the instruction says. None if the prompt holds the query.

    A prompt is a text, or messages of which the last is continued. Raises UsageError for another.
    """
    messages = prompt if isinstance(prompt, Iterable) else [prompt]
    if prompt is None or isinstance(prompt, str):
        texts = [prompt or ""]
    elif all(isinstance(message, Mapping) for message in messages):
        texts = [message.get("content") for message in messages]
    else:
        raise UsageError(f"a prompt is a text or a list of messages, not {prompt!r:.80}")
    if any(brief.query in str(text) for text in texts):
        return None
    separator = "\n\n" if texts and texts[-1] else ""
    return separator + full_query(brief)
