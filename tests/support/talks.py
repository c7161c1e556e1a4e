"""Episodes with a conversation as our agents record it, and run directories with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory, Usage

PROMPT = "== run ==\nRun $language code.\n\n== submit ==\nHand in."


def call(number: int, command: str) -> dict[str, Any]:
    """Return a call of the tool that runs commands."""
    function = {"name": "run_command", "arguments": f'{{"command": "{command}"}}'}
    return {"id": f"c{number}", "type": "function", "function": function}


def talk(success: bool = True, tokens: bool = True, **changes: Any) -> Trajectory:
    """Return two turns of tool calling; the second solves the task, or fails."""
    first = {"role": "assistant", "content": "", "tool_calls": [call(1, "ls")], "reasoning": "look"}
    second = {"role": "assistant", "content": "now", "tool_calls": [call(2, "cat a")]}
    if tokens:
        first["tokens"] = {"prompt_ids": [1, 2, 3], "ids": [4, 5], "logprobs": [-0.5, -0.25]}
        second["tokens"] = {
            "prompt_ids": [1, 2, 3, 4, 5, 6],
            "ids": [7],
            "logprobs": [-0.125],
        }
    steps = (
        Step(
            "ls",
            "a",
            score=None,
            valid=False,
            exit_code=1,
            usage=Usage(100, 20, 1, cost=0.5),
            messages=(
                {"role": "system", "content": "You act."},
                {"role": "user", "content": "Task: q"},
                first,
            ),
        ),
        Step(
            "cat a",
            "hello",
            score=Score(float(success), {"output": 1.0}),
            usage=Usage(150, 10, 1, cost=0.25),
            messages=({"role": "tool", "tool_call_id": "c1", "content": "[told] a"}, second),
        ),
    )
    run = {
        "environment": "bash",
        "dataset": "mine.jsonl",
        "agent": "tool-calling",
        "model": "p/m",
        "profile": "standard",
        "scoring": "bash-2",
        "max_turns": 10,
        "version": "0.1.0",
        "started": "2026-01-31T10:00:00+00:00",
        "agent_metadata": {"prompt": {"text": PROMPT}},
    }
    values: dict[str, Any] = {"run": run, "end": "solved" if success else "turn_limit", "id": "e1"}
    return Trajectory("mine/1", 0, "q", steps, seconds=2.5, **(values | changes))


def human_episode(step_at: int = 0) -> Trajectory:
    """Return the same turns, but a human took the first action."""
    episode = talk()
    steps = list(episode.steps)
    steps[step_at] = Step("ls", "a", actor="human")
    return episode.replace(steps=tuple(steps), id="e2", task="mine/2")


META = {
    "environment": "bash",
    "dataset": "starter",
    "dataset_hash": "aa",
    "profile": "standard",
    "scoring": "bash-2",
    "agent": "try-again",
    "model": "p/m",
}


def run_in(directory: Path, rewards: tuple[float, ...] = (1.0, 0.0, 1.0), **meta: Any) -> Path:
    """Write a run directory with one episode for each reward."""
    trajectories.write_run_metadata(directory, {**META, **meta})
    for n, reward in enumerate(rewards):
        steps = (Step("ls", "a"), Step("cat a", "b", score=Score(reward, {"output": reward})))
        trajectories.append_trajectory(
            directory / trajectories.TRAJECTORIES_FILE,
            Trajectory(f"starter/{n}", n, "q", steps, end="submitted", id=f"e{n}"),
        )
    return directory
