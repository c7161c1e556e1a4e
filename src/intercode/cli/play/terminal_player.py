"""A person at the terminal: what is shown, and the words that are no code."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from intercode.agents.base import Feedback
from intercode.agents.languages import language_of
from intercode.cli.play.input_rules import Typing, typing_of
from intercode.cli.play.interrupts import Gate
from intercode.core.errors import InterCodeError
from intercode.core.types import Brief, Move, Score, Step, Trajectory
from intercode.evaluation.play.interactive_episode import Sitting
from intercode.evaluation.play.player import Choice, Guide, Leads

HELP = """\
  submit    hand in: the task is scored and the next one begins
  score     what handing in would earn now (that you asked is recorded)
  undo [N]  take the last turn, or the last N, back
  show      the episode so far
  skip      leave this task (what you tried is recorded, as not handed in)
  quit      stop; the task you are in is not recorded
  help      this list{aside}
{more}Everything else is run as {title}. So are these words with a blank before them."""
WITH_AGENT = """\
With an agent:
  Enter     let it do what it proposes
  (code)    run this in its place; the agent is told, and goes on from there
  edit      change what it proposes, then run that
  take      you lead from here: the agent is not asked until you say `back`
  back      the agent leads again
  run       it goes on to the end without asking (Ctrl-C stops it)
"""
WORDS = ("submit", "score", "undo", "show", "skip", "quit", "help")
AGENT_WORDS = ("edit", "take", "back", "run")
_UNDO = re.compile(r"undo(?:\s+([1-9]\d*))?")


def is_word(text: str) -> bool:
    """Whether a text asks for something and is no code."""
    word = text.strip()
    return word in (*WORDS, *AGENT_WORDS) or _UNDO.fullmatch(word) is not None


class Quit(Exception):  # noqa: N818
    """The person has had enough, or there is no more input."""


class Console(Protocol):
    """Where a person types and reads. ``gate``: what Ctrl-C stops; None: the whole session."""

    gate: Gate | None

    def ask(self, prompt: str, typing: Typing, default: str = "") -> str:
        """One action or word, which may take several lines. Raises Quit at the end of the input."""
        ...

    def say(self, text: str) -> None:
        """Show text, as lines of its own."""
        ...

    def code(self, text: str) -> None:
        """Show code."""
        ...


class Person(Guide):
    """Reads what is to be done. ``saved`` is called after every turn; ``agent``: the name of the
    agent that plays as well, if any."""

    def __init__(
        self,
        console: Console,
        *,
        agent: str | None = None,
        saved: Callable[[Sitting], None] | None = None,
    ) -> None:
        self.console, self.agent, self._saved = console, agent, saved
        self._sitting: Sitting | None = None
        self._shown: Move | None = None
        self._environment = "bash"

    # ------------------------------------------------------------- what is shown
    def start(self, brief: Brief, sitting: Sitting) -> None:
        """Show the task, and the turns that were taken before."""
        self._environment, self._sitting = brief.environment, sitting
        self.console.say(f"\n[{brief.task}] {brief.query}")
        if brief.notes:
            self.console.say(brief.notes)
        if brief.max_turns:
            self.console.say(f"(at most {brief.max_turns} actions)")
        self._show(sitting.steps)

    def told(self, sitting: Sitting, feedback: Feedback) -> None:
        """Print an observation as a terminal would."""
        if feedback.observation:
            self.console.say(feedback.observation)
        if feedback.timed_out:
            self.console.say("(stopped at the time limit)")
        self._save(sitting)

    def status(self, limit: int | None) -> str:
        """The task, the turns and, where it was asked for, the score, in one line."""
        sitting = self._sitting
        if sitting is None:
            return ""
        parts = [sitting.env.task.id, f"turn {len(sitting.steps) + 1}"]
        parts[-1] += f" of {limit}" if limit else ""
        if sitting.scored is not None:
            after, score = sitting.scored
            when = "" if after == len(sitting.steps) else f" after turn {after}"
            parts.append(f"score {number(score.value)}{when}")
        return "  |  ".join([*parts, "help"])

    def note(self, text: str) -> None:
        """Print a remark."""
        self.console.say(f"({text})")

    def stoppable(self) -> AbstractContextManager[None]:
        """Ctrl-C is let through."""
        return self.console.gate.opened() if self.console.gate else nullcontext()

    def interrupted(self) -> None:
        """Go on at the prompt where there is a terminal; else the session ends."""
        if self.console.gate is None:
            raise KeyboardInterrupt
        self.console.say("(stopped; nothing of it is kept)")

    def tell(self, trajectory: Trajectory) -> None:
        """Say how it went."""
        if trajectory.end == "turn_limit":
            self.console.say("(no turns left)")
        verdict = "solved" if trajectory.success else "not solved"
        parts = trajectory.steps[-1].parts if trajectory.steps else {}
        self.console.say(f"{verdict}: {score_line(Score(trajectory.reward, parts))}")

    def _save(self, sitting: Sitting) -> None:
        if self._saved:
            self._saved(sitting)

    def _show(self, steps: list[Step]) -> None:
        for number, step in enumerate(steps, 1):
            who = f" {step.actor}" if self.agent else ""
            self.console.say(f"[{number}{who}]")
            self.console.code(step.action or "(no code)")
            if step.observation:
                self.console.say(step.observation)

    # ------------------------------------------------------------- what is decided
    def choose(self, sitting: Sitting, proposal: Move | None, leads: Leads) -> Choice:
        """Read until there is something to do. Raises Quit."""
        self._save(sitting)
        offered = proposal if leads == "agent" else None
        if offered is not None and offered is not self._shown:
            self._propose(offered)
        self._shown = offered
        while True:
            text = self._ask(sitting, offered)
            choice = self._understood(text, sitting, offered)
            if choice is not None:
                return choice

    def _understood(self, text: str, sitting: Sitting, offered: Move | None) -> Choice | None:
        """What a text means; None where it only asked for something, which is done then."""
        word = text.strip()
        if text[:1] in (" ", "\t") and is_word(word):
            return Choice("act", word)
        if word == "quit":
            raise Quit
        if word == "skip":
            return Choice("stop")
        if undo := _UNDO.fullmatch(word):
            return Choice("undo", count=int(undo.group(1) or 1))
        if word in ("help", "show", "score"):
            self._answer(word, sitting)
            return None
        if self.agent and word in AGENT_WORDS:
            return self._lead(word, sitting, offered)
        if text.strip():
            return Choice("act", text)
        return Choice("go") if offered else None

    def _answer(self, word: str, sitting: Sitting) -> None:
        if word == "help":
            typing, title = typing_of(self._environment), language_of(self._environment).title
            more = WITH_AGENT if self.agent else ""
            self.console.say(HELP.format(aside=typing.aside, title=title, more=more))
        elif word == "show":
            self.console.say(sitting.env.task.query)
            self._show(sitting.steps)
        else:
            try:
                self.console.say(score_line(sitting.score()))
            except InterCodeError as e:
                self.console.say(f"(no score: {e})")

    def _lead(self, word: str, sitting: Sitting, offered: Move | None) -> Choice | None:
        if word == "take":
            return Choice("take")
        if word in ("back", "run"):
            return Choice("back") if word == "back" else Choice("run")
        if offered is None or offered.action is None:
            self.console.say("(nothing is proposed that could be edited)")
            return None
        text = self._ask(sitting, None, offered.action)
        return Choice("act", text) if text.strip() else None

    def _propose(self, proposal: Move) -> None:
        self.console.say(f"{self.agent} proposes:")
        if proposal.thought:
            self.console.say("\n".join(f"  # {line}" for line in proposal.thought.splitlines()))
        if proposal.action is None:
            self.console.say(f"  (no code) {proposal.message.strip()}")
        else:
            self.console.code("\n".join(f"  {line}" for line in proposal.action.splitlines()))

    def _ask(self, sitting: Sitting, offered: Move | None, default: str = "") -> str:
        typing = typing_of(self._environment)
        prompt = typing.prompt.format(sitting.env.working_directory)
        if offered is not None:
            prompt = f"[Enter: run it] {prompt}"
        return self.console.ask(prompt, typing, default)


def score_line(score: Score) -> str:
    """A reward and its parts."""
    parts = ", ".join(f"{name} {number(value)}" for name, value in score.parts.items())
    return f"reward {number(score.value)}" + (f" ({parts})" if parts else "")


def number(value: Any) -> str:
    """A figure with three digits."""
    return f"{value:.3g}"
