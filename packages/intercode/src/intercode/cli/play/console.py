"""The console of ``intercode play``: prints the episode, reads actions and commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from intercode.cli.output import escape_all_but_colours
from intercode.core.errors import InterCodeError
from intercode.core.types import ActionLanguage, AgentOutput, Brief, Score, Step, Trajectory
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
_AGENT_CHOICES = {
    "take": Choice("take_over"),
    "back": Choice("hand_back"),
    "run": Choice("run"),
}
_UNDO = re.compile(r"undo(?:\s+([1-9]\d*))?")


def is_command(text: str) -> bool:
    """Return whether a text is a command of `intercode play`, not code."""
    word = text.strip()
    return word in (*PLAY_COMMANDS, *AGENT_COMMANDS) or _UNDO.fullmatch(word) is not None


class Quit(Exception):  # noqa: N818
    """The human typed `quit`, or the input has ended."""


class Console(Player):
    """A human who reads standard output, and whose actions come from standard input line by line.

    What is read from a pipe is printed too, so that the output of a scripted session looks like
    that of a typed one. ``language`` is that of the actions, and ``agent`` the name of the agent
    that plays as well, if any. ``save`` is called before each choice and after each turn.
    """

    def __init__(self, language: ActionLanguage, agent: str | None = None) -> None:
        self.language, self.agent = language, agent
        self.save: Callable[[InteractiveEpisode], None] = lambda _: None
        self._shown_proposal: AgentOutput | None = None

    def session(self) -> AbstractContextManager[None]:
        """Return the context in which a session is played."""
        return nullcontext()

    # ------------------------------------------------------------- output
    def say(self, text: str) -> None:
        """Print text on lines of its own, of which only colours may control the terminal."""
        text = escape_all_but_colours(text)
        print(text, end="" if text.endswith("\n") else "\n", flush=True)

    def code(self, text: str) -> None:
        """Print code."""
        self.say(text)

    def note(self, text: str) -> None:
        """Print a remark."""
        self.say(f"({text})")

    def start(self, brief: Brief, episode: InteractiveEpisode) -> None:
        """Print the task and the turns of an earlier session."""
        self.say(f"\n[{brief.task}] {brief.query}")
        if brief.notes:
            self.say(brief.notes)
        if brief.max_turns:
            self.note(f"at most {brief.max_turns} actions")
        self._show(episode.steps)

    def observe(self, episode: InteractiveEpisode, feedback: Step) -> None:
        """Print an observation."""
        if feedback.observation:
            self.say(feedback.observation)
        if feedback.timed_out:
            self.note("stopped at the time limit")
        self.save(episode)

    def print_result(self, trajectory: Trajectory) -> None:
        """Print whether the task is solved."""
        if trajectory.end == "turn_limit":
            self.note("no turns left")
        verdict = "solved" if trajectory.success else "not solved"
        parts = trajectory.steps[-1].parts if trajectory.steps else {}
        self.say(f"{verdict}: {_score_line(Score(trajectory.score, parts))}")

    def _show(self, steps: list[Step]) -> None:
        for number, step in enumerate(steps, 1):
            self.say(f"[{number} {step.actor}]" if self.agent else f"[{number}]")
            self.code(step.action or "(no code)")
            if step.observation:
                self.say(step.observation)

    def _propose(self, proposal: AgentOutput) -> None:
        self.say(f"{self.agent} proposes:")
        if proposal.thought:
            self.say("\n".join(f"  # {line}" for line in split_lines(proposal.thought)))
        if proposal.action is None:
            self.say(f"  (no code) {proposal.message.strip()}")
        else:
            self.code("\n".join(f"  {line}" for line in split_lines(proposal.action)))

    # ------------------------------------------------------------- input
    def choose(
        self, episode: InteractiveEpisode, proposal: AgentOutput | None, leader: Leader
    ) -> Choice:
        """Read commands until one is a choice. Raises Quit."""
        self.save(episode)
        offered = proposal if leader == "agent" else None
        if offered is not None and offered is not self._shown_proposal:
            self._propose(offered)
        self._shown_proposal = offered
        while (choice := self._read_choice(episode, offered)) is None:
            continue
        return choice

    def _read_choice(
        self, episode: InteractiveEpisode, offered: AgentOutput | None
    ) -> Choice | None:
        """Return the choice that the next input makes. Runs a command that makes none, and returns
        None."""
        text = self._ask(episode, offered)
        word = text.strip()
        if text[:1] in (" ", "\t") and is_command(word):
            return Choice("act", word)
        if word == "quit":
            raise Quit
        if word == "skip":
            return Choice("stop")
        if undo := _UNDO.fullmatch(word):
            return Choice("undo", count=int(undo[1] or 1))
        if self.agent and word in _AGENT_CHOICES:
            return _AGENT_CHOICES[word]
        if self.agent and word == "edit":
            return self._edit(episode, offered)
        if word in ("help", "show", "score"):
            self._run_command(word, episode)
            return None
        if word:
            return Choice("act", text)
        return Choice("accept") if offered else None

    def _run_command(self, word: str, episode: InteractiveEpisode) -> None:
        if word == "help":
            note, more = self.language.typing.help_note, AGENT_HELP if self.agent else ""
            self.say(HELP.format(aside=note, title=self.language.title, more=more))
        elif word == "show":
            self.say(episode.env.task.query)
            self._show(episode.steps)
        else:
            try:
                self.say(_score_line(episode.score()))
            except InterCodeError as e:
                self.note(f"no score: {e}")

    def _edit(self, episode: InteractiveEpisode, offered: AgentOutput | None) -> Choice | None:
        if offered is None or offered.action is None:
            self.note("there is no proposal to edit")
            return None
        text = self._ask(episode, None, offered.action)
        return Choice("act", text) if text.strip() else None

    def _ask(
        self, episode: InteractiveEpisode, offered: AgentOutput | None, default: str = ""
    ) -> str:
        prompt = self.language.typing.prompt.format(escape_control(episode.env.working_directory))
        return self.ask(prompt if offered is None else f"[Enter: run it] {prompt}", default)

    def ask(self, prompt: str, default: str = "") -> str:
        """Read an action or command of one or more lines. ``default`` is a text to be edited, which
        has to be typed again without a terminal. Raises Quit at the end of the input."""
        if default:
            self.note("type it anew")
        typing = self.language.typing
        lines = [self._line(prompt)]
        while lines[0].strip() and typing.is_unfinished(lines):
            lines.append(self._line(typing.continuation_prompt))
        return "\n".join(lines)

    def _line(self, prompt: str) -> str:
        try:
            text = input(prompt)
        except EOFError as e:
            raise Quit from e
        if not sys.stdin.isatty():
            print(text)
        return text


def _score_line(score: Score) -> str:
    parts = ", ".join(f"{name} {format_number(value)}" for name, value in score.parts.items())
    return f"reward {format_number(score.value)}" + (f" ({parts})" if parts else "")


def format_number(value: float) -> str:
    """Format a number with three significant digits."""
    return f"{value:.3g}"
