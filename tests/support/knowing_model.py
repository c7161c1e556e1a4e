"""A mock model of Inspect that knows the answers, to check that Inspect scores as we do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

from intercode.core.types import Dataset, Task
from support.recorded_endpoint import fence

_LANGUAGES = {"bash": "bash", "ctf": "bash", "python": "python", "sql": "sql"}


def knowing(dataset: Dataset) -> Model:
    """Return a model that plays each task's gold and submits.

    In Capture the Flag it plays the program that finds the flag, if there is one, and submits the
    flag. If several tasks have the same query it tries the flag of each.
    """
    answers = _answers(dataset)
    by_length = sorted(answers, key=len, reverse=True)

    def answer(messages: Sequence[ChatMessage], *_: Any) -> ModelOutput:
        turn = sum(m.role == "assistant" for m in messages)
        asked = "\n".join(m.text for m in messages if m.role == "user")
        query = next(q for q in by_length if q in asked)
        known = answers[query]
        output = ModelOutput.from_content("mock", known[min(turn, len(known) - 1)])
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def _answers(dataset: Dataset) -> dict[str, list[str]]:
    """Return the answers to each query, turn by turn."""
    tag = _LANGUAGES[dataset.environment]
    same = defaultdict[str, list[Task]](list)
    for task in dataset.tasks:
        same[task.query].append(task)
    answers = {}
    for query, tasks in same.items():
        if dataset.environment == "ctf":
            found = tasks[0].data.get("solution") if len(tasks) == 1 else None
            played = [_acted(f"execute[{found}]")] if found else []
            answers[query] = played + [_acted(f"submit {t.flag}") for t in tasks]
        else:
            answers[query] = [fence(tasks[0].solution or "", tag), fence("submit", tag)]
    return answers


def _acted(action: str) -> str:
    return f"Thought: this is known.\nAction: {action}"
