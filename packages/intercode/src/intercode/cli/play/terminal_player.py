"""The human at the terminal: prints the episode and reads actions and commands."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from intercode.agents.base import Feedback
from intercode.cli.output import escape_all_but_colours
from intercode.cli.play.interrupts import InterruptGate
from intercode.core.errors import InterCodeError
from intercode.core.types import ActionLanguage, AgentOutput, Brief, Score, Step, Trajectory, Typing
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode.evaluation.play.player import Choice, Leader, Player
from intercode_sandbox.command.output import escape_control
from intercode_sandbox.lines import split_lines

HELP = """\
  submit    submit: the task is scored and the next one begins
  score     print the score of the current state (the request is recorded)
  undo [N]  take back the last turn, or the last N
  show      print the episode so far
  skip      leave this task (your turns are recorded, as not submitted)
  quit      stop; the current task is not recorded
  help      print this list{aside}
{more}Everything else is run as {title}. Put a space before one of these words to run it as code."""
AGENT_HELP = """\
With an agent:
  Enter     run what the agent proposes
  (code)    run this instead; the agent sees it and continues from there
  edit      edit the proposal, then run it
  take      take over: the agent is not asked until you type `back`
  back      hand back to the agent
  run       let the agent go on to the end without asking (Ctrl-C stops it)
"""
PLAY_COMMANDS = ("submit", "score", "undo", "show", "skip", "quit", "help")
AGENT_COMMANDS = ("edit", "take", "back", "run")
_UNDO = re.compile(r"undo(?:\s+([1-9]\d*))?")


def is_command(text: str) -> bool:
    """Return whether a text is a command of `intercode play`, not code."""
    word = text.strip()
    return word in (*PLAY_COMMANDS, *AGENT_COMMANDS) or _UNDO.fullmatch(word) is not None


class Quit(Exception):  # noqa: N818
    """The human typed `quit`, or the input has ended."""


class Console(ABC):
    """Where the human types and reads.

    ``gate`` decides what Ctrl-C stops. Without one, Ctrl-C ends the session.
    """

    gate: InterruptGate | None = None

    @abstractmethod
    def ask(self, prompt: str, rules: Typing, default: str = "") -> str:
        """Read one action or command of one or more lines. Raises Quit at the end of the input."""

    def say(self, text: str) -> None:
        """Print text on lines of its own, of which only colours may control the terminal."""
        text = escape_all_but_colours(text)
        print(text, end="" if text.endswith("\n") else "\n", flush=True)

    def code(self, text: str) -> None:
        """Print code."""
        self.say(text)


class TerminalPlayer(Player):
    """Plays at a console.

    ``agent`` is the name of the agent that plays as well, if any. ``on_turn`` is called before
    each choice and after each turn.
    """

    def __init__(
        self,
        console: Console,
        *,
        agent: str | None = None,
        on_turn: Callable[[InteractiveEpisode], None] = lambda _: None,
    ) -> None:
        self.console, self.agent, self._on_turn = console, agent, on_turn
        self._episode: InteractiveEpisode | None = None
        self._shown_proposal: AgentOutput | None = None
        self._language = ActionLanguage("code")

    # ------------------------------------------------------------- output
    def start(self, brief: Brief, episode: InteractiveEpisode) -> None:
        """Print the task and the turns of an earlier session."""
        self._language, self._episode = brief.description.language, episode
        self.console.say(f"\n[{brief.task}] {brief.query}")
        if brief.notes:
            self.console.say(brief.notes)
        if brief.max_turns:
            self.console.say(f"(at most {brief.max_turns} actions)")
        self._show(episode.steps)

    def observe(self, episode: InteractiveEpisode, feedback: Feedback) -> None:
        """Print an observation."""
        if feedback.observation:
            self.console.say(feedback.observation)
        if feedback.timed_out:
            self.console.say("(stopped at the time limit)")
        self._on_turn(episode)

    def status(self, limit: int | None) -> str:
        """Return one line with the task, the turn and the last score that was requested."""
        episode = self._episode
        if episode is None:
            return ""
        parts = [episode.env.task.id, f"turn {len(episode.steps) + 1}"]
        parts[-1] += f" of {limit}" if limit else ""
        if episode.last_score is not None:
            after, score = episode.last_score
            suffix = "" if after == len(episode.steps) else f" after turn {after}"
            parts.append(f"score {format_number(score.value)}{suffix}")
        return "  |  ".join([*parts, "help"])

    def note(self, text: str) -> None:
        """Print a remark."""
        self.console.say(f"({text})")

    def interruptible(self) -> AbstractContextManager[None]:
        """Return a context in which Ctrl-C raises KeyboardInterrupt."""
        return self.console.gate.allowed() if self.console.gate else nullcontext()

    def interrupted(self) -> None:
        """Return to the prompt at a terminal. Raises KeyboardInterrupt without one."""
        if self.console.gate is None:
            raise KeyboardInterrupt
        self.console.say("(stopped; its effects are undone)")

    def print_result(self, trajectory: Trajectory) -> None:
        """Print whether the task is solved."""
        if trajectory.end == "turn_limit":
            self.console.say("(no turns left)")
        verdict = "solved" if trajectory.success else "not solved"
        parts = trajectory.steps[-1].parts if trajectory.steps else {}
        self.console.say(f"{verdict}: {score_line(Score(trajectory.reward, parts))}")

    def _show(self, steps: list[Step]) -> None:
        for number, step in enumerate(steps, 1):
            who = f" {step.actor}" if self.agent else ""
            self.console.say(f"[{number}{who}]")
            self.console.code(step.action or "(no code)")
            if step.observation:
                self.console.say(step.observation)

    # ------------------------------------------------------------- input
    def choose(
        self, episode: InteractiveEpisode, proposal: AgentOutput | None, leader: Leader
    ) -> Choice:
        """Read commands until one is a choice. Raises Quit."""
        self._on_turn(episode)
        offered = proposal if leader == "agent" else None
        if offered is not None and offered is not self._shown_proposal:
            self._propose(offered)
        self._shown_proposal = offered
        while True:
            text = self._ask(episode, offered)
            choice = self._parse_input(text, episode, offered)
            if choice is not None:
                return choice

    def _parse_input(
        self, text: str, episode: InteractiveEpisode, offered: AgentOutput | None
    ) -> Choice | None:
        """Return the choice that a text makes, or None after running a command that makes none."""
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
            self._run_command(word, episode)
            return None
        if self.agent and word in AGENT_COMMANDS:
            return self._run_agent_command(word, episode, offered)
        if text.strip():
            return Choice("act", text)
        return Choice("accept") if offered else None

    def _run_command(self, word: str, episode: InteractiveEpisode) -> None:
        if word == "help":
            rules, title = self._language.typing, self._language.title
            more = AGENT_HELP if self.agent else ""
            self.console.say(HELP.format(aside=rules.help_note, title=title, more=more))
        elif word == "show":
            self.console.say(episode.env.task.query)
            self._show(episode.steps)
        else:
            try:
                self.console.say(score_line(episode.score()))
            except InterCodeError as e:
                self.console.say(f"(no score: {e})")

    def _run_agent_command(
        self, word: str, episode: InteractiveEpisode, offered: AgentOutput | None
    ) -> Choice | None:
        if word == "take":
            return Choice("take_over")
        if word in ("back", "run"):
            return Choice("hand_back" if word == "back" else "run")
        if offered is None or offered.action is None:
            self.console.say("(there is no proposal to edit)")
            return None
        text = self._ask(episode, None, offered.action)
        return Choice("act", text) if text.strip() else None

    def _propose(self, proposal: AgentOutput) -> None:
        self.console.say(f"{self.agent} proposes:")
        if proposal.thought:
            self.console.say("\n".join(f"  # {line}" for line in split_lines(proposal.thought)))
        if proposal.action is None:
            self.console.say(f"  (no code) {proposal.message.strip()}")
        else:
            self.console.code("\n".join(f"  {line}" for line in split_lines(proposal.action)))

    def _ask(
        self, episode: InteractiveEpisode, offered: AgentOutput | None, default: str = ""
    ) -> str:
        rules = self._language.typing
        prompt = rules.prompt.format(escape_control(episode.env.working_directory))
        if offered is not None:
            prompt = f"[Enter: run it] {prompt}"
        return self.console.ask(prompt, rules, default)


def score_line(score: Score) -> str:
    """Format a reward and its parts."""
    parts = ", ".join(f"{name} {format_number(value)}" for name, value in score.parts.items())
    return f"reward {format_number(score.value)}" + (f" ({parts})" if parts else "")


def format_number(value: Any) -> str:
    """Format a number with three significant digits."""
    return f"{value:.3g}"
