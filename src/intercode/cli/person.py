"""A person at the terminal as an agent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar

from intercode.agents.base import Feedback
from intercode.agents.languages import language_of
from intercode.cli.typing_in import typing_of
from intercode.types import Brief, Move, Score, Trajectory

HELP = """\
  submit    hand in: the task is scored and the next one begins
  score     what handing in would earn now
  skip      leave this task (what you tried is recorded, as not handed in)
  quit      stop; the task you are in is not recorded
  help      this list{aside}
Everything else is run as {title}."""


class Quit(Exception):  # noqa: N818
    """The person has had enough, or there is no more input."""


class Person:
    """Reads actions from standard input. ``score`` gives the present score, ``directory`` the
    working directory that the prompt shows; both are asked when they are needed."""

    name: ClassVar[str] = "human"
    wants_score: bool = False
    max_turns: int | None = None

    def __init__(
        self,
        *,
        score: Callable[[], Score] | None = None,
        directory: Callable[[], str] | None = None,
    ) -> None:
        self._score, self._directory = score, directory
        self._environment = "bash"
        if sys.stdin.isatty():
            import readline  # noqa: F401  # gives input() a history and editing

    def start(self, brief: Brief) -> None:
        """Show the task."""
        self._environment = brief.environment
        print(f"\n[{brief.task}] {brief.query}")
        if brief.notes:
            print(brief.notes)
        if brief.max_turns:
            print(f"(at most {brief.max_turns} actions)")

    def act(self, feedback: Feedback | None) -> Move | None:
        """Show what happened, then read until there is an action. Raises Quit."""
        if feedback is not None:
            show(feedback)
        while True:
            line = self._read()
            word = line.strip()
            if word == "quit":
                raise Quit
            if word == "skip":
                return None
            if word == "help":
                title = language_of(self._environment).title
                print(HELP.format(aside=typing_of(self._environment).aside, title=title))
            elif word == "score":
                print(_score_line(self._score()) if self._score else "no score here")
            elif word:
                return Move(line)

    def tell(self, trajectory: Trajectory) -> None:
        """Say how it went, with what the last action printed where no turn was left to see it."""
        if trajectory.end == "turn_limit":
            last = trajectory.steps[-1]
            show(Feedback(last.observation, last.valid, last.timed_out))
            print("(no turns left)")
        verdict = "solved" if trajectory.success else "not solved"
        parts = trajectory.steps[-1].parts if trajectory.steps else {}
        print(f"{verdict}: {_score_line(Score(trajectory.reward, parts))}")

    def _read(self) -> str:
        """One action, which may take several lines."""
        typing = typing_of(self._environment)
        lines = [_line(typing.prompt.format(self._directory() if self._directory else ""))]
        while lines[0].strip() and typing.is_unfinished(lines):
            lines.append(_line(typing.more))
        return "\n".join(lines)


def show(feedback: Feedback) -> None:
    """Print an observation as a terminal would."""
    text = feedback.observation
    if text:
        print(text, end="" if text.endswith("\n") else "\n")
    if feedback.timed_out:
        print("(stopped at the time limit)")


def _line(prompt: str) -> str:
    try:
        text = input(prompt)
    except EOFError as e:
        raise Quit from e
    if not sys.stdin.isatty():
        print(text)  # so that a scripted session reads like a typed one
    return text


def _score_line(score: Score) -> str:
    parts = ", ".join(f"{name} {_number(value)}" for name, value in score.parts.items())
    return f"reward {_number(score.value)}" + (f" ({parts})" if parts else "")


def _number(value: Any) -> str:
    return f"{value:.3g}"
