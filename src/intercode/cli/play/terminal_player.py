"""A person at the terminal: what is shown, and the words that are no code."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from intercode.agents.base import Feedback
from intercode.agents.languages import language_of
from intercode.cli.play.input_rules import InputRules, input_rules_for
from intercode.cli.play.interrupts import InterruptGate
from intercode.core.errors import InterCodeError
from intercode.core.types import AgentOutput, Brief, Score, Step, Trajectory
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode.evaluation.play.player import Choice, Leader, Player

HELP = """\
  submit    hand in: the task is scored and the next one begins
  score     what handing in would earn now (that you asked is recorded)
  undo [N]  take the last turn, or the last N, back
  show      the episode so far
  skip      leave this task (what you tried is recorded, as not handed in)
  quit      stop; the task you are in is not recorded
  help      this list{aside}
{more}Everything else is run as {title}. So are these words with a blank before them."""
AGENT_HELP = """\
With an agent:
  Enter     let it do what it proposes
  (code)    run this in its place; the agent is told, and goes on from there
  edit      change what it proposes, then run that
  take      you lead from here: the agent is not asked until you say `back`
  back      the agent leads again
  run       it goes on to the end without asking (Ctrl-C stops it)
"""
PLAY_COMMANDS = ("submit", "score", "undo", "show", "skip", "quit", "help")
AGENT_COMMANDS = ("edit", "take", "back", "run")
_UNDO = re.compile(r"undo(?:\s+([1-9]\d*))?")


def is_command(text: str) -> bool:
    """Whether a text asks for something and is no code."""
    word = text.strip()
    return word in (*PLAY_COMMANDS, *AGENT_COMMANDS) or _UNDO.fullmatch(word) is not None


class Quit(Exception):  # noqa: N818
    """The person has had enough, or there is no more input."""


class Console(Protocol):
    """Where a person types and reads. ``gate``: what Ctrl-C stops; None: the whole session."""

    gate: InterruptGate | None

    def ask(self, prompt: str, typing: InputRules, default: str = "") -> str:
        """One action or word, which may take several lines. Raises Quit at the end of the input."""
        ...

    def say(self, text: str) -> None:
        """Show text, as lines of its own."""
        ...

    def code(self, text: str) -> None:
        """Show code."""
        ...


class TerminalPlayer(Player):
    """Reads what is to be done. ``saved`` is called after every turn; ``agent``: the name of the
    agent that plays as well, if any."""

    def __init__(
        self,
        console: Console,
        *,
        agent: str | None = None,
        on_turn: Callable[[InteractiveEpisode], None] | None = None,
    ) -> None:
        self.console, self.agent, self._on_turn = console, agent, on_turn
        self._episode: InteractiveEpisode | None = None
        self._shown_proposal: AgentOutput | None = None
        self._environment = "bash"

    # ------------------------------------------------------------- what is shown
    def start(self, brief: Brief, sitting: InteractiveEpisode) -> None:
        """Show the task, and the turns that were taken before."""
        self._environment, self._episode = brief.environment, sitting
        self.console.say(f"\n[{brief.task}] {brief.query}")
        if brief.notes:
            self.console.say(brief.notes)
        if brief.max_turns:
            self.console.say(f"(at most {brief.max_turns} actions)")
        self._show(sitting.steps)

    def observe(self, sitting: InteractiveEpisode, feedback: Feedback) -> None:
        """Print an observation as a terminal would."""
        if feedback.observation:
            self.console.say(feedback.observation)
        if feedback.timed_out:
            self.console.say("(stopped at the time limit)")
        self._save_session(sitting)

    def status(self, limit: int | None) -> str:
        """The task, the turns and, where it was asked for, the score, in one line."""
        sitting = self._episode
        if sitting is None:
            return ""
        parts = [sitting.env.task.id, f"turn {len(sitting.steps) + 1}"]
        parts[-1] += f" of {limit}" if limit else ""
        if sitting.last_score is not None:
            after, score = sitting.last_score
            when = "" if after == len(sitting.steps) else f" after turn {after}"
            parts.append(f"score {format_number(score.value)}{when}")
        return "  |  ".join([*parts, "help"])

    def note(self, text: str) -> None:
        """Print a remark."""
        self.console.say(f"({text})")

    def interruptible(self) -> AbstractContextManager[None]:
        """Ctrl-C is let through."""
        return self.console.gate.allowed() if self.console.gate else nullcontext()

    def interrupted(self) -> None:
        """Go on at the prompt where there is a terminal; else the session ends."""
        if self.console.gate is None:
            raise KeyboardInterrupt
        self.console.say("(stopped; nothing of it is kept)")

    def print_result(self, trajectory: Trajectory) -> None:
        """Say how it went."""
        if trajectory.end == "turn_limit":
            self.console.say("(no turns left)")
        verdict = "solved" if trajectory.success else "not solved"
        parts = trajectory.steps[-1].parts if trajectory.steps else {}
        self.console.say(f"{verdict}: {score_line(Score(trajectory.reward, parts))}")

    def _save_session(self, sitting: InteractiveEpisode) -> None:
        if self._on_turn:
            self._on_turn(sitting)

    def _show(self, steps: list[Step]) -> None:
        for number, step in enumerate(steps, 1):
            who = f" {step.actor}" if self.agent else ""
            self.console.say(f"[{number}{who}]")
            self.console.code(step.action or "(no code)")
            if step.observation:
                self.console.say(step.observation)

    # ------------------------------------------------------------- what is decided
    def choose(
        self, sitting: InteractiveEpisode, proposal: AgentOutput | None, leads: Leader
    ) -> Choice:
        """Read until there is something to do. Raises Quit."""
        self._save_session(sitting)
        offered = proposal if leads == "agent" else None
        if offered is not None and offered is not self._shown_proposal:
            self._propose(offered)
        self._shown_proposal = offered
        while True:
            text = self._ask(sitting, offered)
            choice = self._parse_input(text, sitting, offered)
            if choice is not None:
                return choice

    def _parse_input(
        self, text: str, sitting: InteractiveEpisode, offered: AgentOutput | None
    ) -> Choice | None:
        """What a text means; None where it only asked for something, which is done then."""
        word = text.strip()
        if text[:1] in (" ", "\t") and is_command(word):
            return Choice("act", word)
        if word == "quit":
            raise Quit
        if word == "skip":
            return Choice("stop")
        if undo := _UNDO.fullmatch(word):
            return Choice("undo", count=int(undo.group(1) or 1))
        if word in ("help", "show", "score"):
            self._run_command(word, sitting)
            return None
        if self.agent and word in AGENT_COMMANDS:
            return self._run_agent_command(word, sitting, offered)
        if text.strip():
            return Choice("act", text)
        return Choice("go") if offered else None

    def _run_command(self, word: str, sitting: InteractiveEpisode) -> None:
        if word == "help":
            typing, title = input_rules_for(self._environment), language_of(self._environment).title
            more = AGENT_HELP if self.agent else ""
            self.console.say(HELP.format(aside=typing.help_note, title=title, more=more))
        elif word == "show":
            self.console.say(sitting.env.task.query)
            self._show(sitting.steps)
        else:
            try:
                self.console.say(score_line(sitting.score()))
            except InterCodeError as e:
                self.console.say(f"(no score: {e})")

    def _run_agent_command(
        self, word: str, sitting: InteractiveEpisode, offered: AgentOutput | None
    ) -> Choice | None:
        if word == "take":
            return Choice("take")
        if word in ("back", "run"):
            return Choice("back") if word == "back" else Choice("run")
        if offered is None or offered.action is None:
            self.console.say("(nothing is proposed that could be edited)")
            return None
        text = self._ask(sitting, None, offered.action)
        return Choice("act", text) if text.strip() else None

    def _propose(self, proposal: AgentOutput) -> None:
        self.console.say(f"{self.agent} proposes:")
        if proposal.thought:
            self.console.say("\n".join(f"  # {line}" for line in proposal.thought.splitlines()))
        if proposal.action is None:
            self.console.say(f"  (no code) {proposal.message.strip()}")
        else:
            self.console.code("\n".join(f"  {line}" for line in proposal.action.splitlines()))

    def _ask(
        self, sitting: InteractiveEpisode, offered: AgentOutput | None, default: str = ""
    ) -> str:
        typing = input_rules_for(self._environment)
        prompt = typing.prompt.format(sitting.env.working_directory)
        if offered is not None:
            prompt = f"[Enter: run it] {prompt}"
        return self.console.ask(prompt, typing, default)


def score_line(score: Score) -> str:
    """A reward and its parts."""
    parts = ", ".join(f"{name} {format_number(value)}" for name, value in score.parts.items())
    return f"reward {format_number(score.value)}" + (f" ({parts})" if parts else "")


def format_number(value: Any) -> str:
    """A figure with three digits."""
    return f"{value:.3g}"
