"""Makes the steps of an episode from the requests of a program and the answers of the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from intercode.agents.programs.program import Program, ToolResult
from intercode.core.errors import ModelRefusedError
from intercode.core.types import ExecResult, Step
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.evaluation.programs.actions import (
    ReportedAction,
    ShellHistory,
    action_of,
    describe_actions,
)
from intercode.evaluation.tracking.base import EpisodeTracker
from intercode.models.base import Completion, Message, Model, ToolCall
from intercode.models.bridge import BridgeRequest, RequestRefusedError
from intercode.models.bridge.answers import GivenAnswers
from intercode.models.conversation import is_context_overflow
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import decode

MAX_RECORDED_CHARACTERS = 16 << 20
"""The characters of messages that are recorded of an episode."""


class TurnLimitError(Exception):
    """The program asks for another answer after its last turn."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn whose actions the program is taking: the index of its step, its calls, how its actions
    were seen, and the results that have come."""

    index: int
    calls: tuple[ToolCall, ...]
    seen: list[dict[str, Any]] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)


class ProgramTurns:
    """The turns of a program in one episode.

    ``answer`` is what the bridge calls; it asks the model, within ``max_turns`` answers. A turn
    ends with the program's next request or by ``finish``. The results of its calls are taken from
    the first request that has them, which is a later one if the program asks for something beside
    them, such as a title. What changes in the directory ``scratch`` is left out. ``take_reports``
    returns what the program has said of its own actions since the last call; without a turn, each
    becomes a step.
    """

    def __init__(
        self,
        env: SandboxedEnv,
        model: Model,
        program: Program,
        history: ShellHistory,
        scratch: str,
        max_turns: int | None,
        tracker: EpisodeTracker,
        take_reports: Callable[[], Sequence[ReportedAction]] = tuple,
    ) -> None:
        self.steps: list[Step] = []
        self._env, self._model, self._program = env, model, program
        self._history, self._scratch = history, scratch
        self._max_turns, self._tracker = max_turns, tracker
        self._take_reports = take_reports
        self._given = GivenAnswers()
        self._conversation: list[Message] = []
        self._turn: _Turn | None = None
        self._waiting: dict[str, _Turn] = {}  # by the ids of calls without a result
        self._recorded_characters = 0
        self._seen: dict[str, list[dict[str, Any]]] = {}

    def answer(self, request: BridgeRequest) -> Completion:
        """Return the model's answer to a request, the first that no policy refuses.

        Raises TurnLimitError after the last turn, RequestRefusedError for a conversation that is
        too long for the model, and what ``Model.complete`` raises.
        """
        self.finish(request.messages)
        messages = self._given.restore(request.messages)
        while True:
            if self._max_turns is not None and len(self.steps) >= self._max_turns:
                raise TurnLimitError
            with self._tracker.turn(len(self.steps) + 1):
                completion = self._given.add(self._request(messages, request))
            refusal = self._refusal(completion)
            step = self._make_step(messages, completion)
            messages.append(completion.message())
            self._conversation = list(messages)
            if refusal is None:
                self._turn = _Turn(len(self.steps), completion.calls)
                self._waiting.update((call["id"], self._turn) for call in completion.calls)
                self.steps.append(step)
                return completion
            refused = replace(step, observation=refusal, refused=True, valid=False)
            self.steps.append(refused)
            messages += [
                Message(role="tool", content=refusal, tool_call_id=call["id"])
                for call in completion.calls
            ]

    def _request(self, messages: list[Message], request: BridgeRequest) -> Completion:
        try:
            return self._model.complete(messages, tools=request.tools)
        except ModelRefusedError as e:
            if not is_context_overflow(e):
                raise
            raise RequestRefusedError(
                "the conversation is too long for the model: prompt is too long",
                400,
                "context_length_exceeded",
            ) from e

    def _refusal(self, completion: Completion) -> str | None:
        refusals = (self._env.policy.refusal(action_of(call)) for call in completion.calls)
        return next(filter(None, refusals), None)

    def _make_step(self, messages: list[Message], completion: Completion) -> Step:
        """Return the record of a turn whose actions have not been taken yet."""
        old = self._conversation
        shared = 0
        while shared < min(len(old), len(messages)) and old[shared] == messages[shared]:
            shared += 1
        new = (*messages[shared:], completion.message())
        context: dict[str, Any] = {}
        if old and shared < len(old):
            context["conversation"] = {"continued_after": shared, "messages": len(messages)}
        self._recorded_characters += len(json.dumps(new, default=str))
        if self._recorded_characters > MAX_RECORDED_CHARACTERS:
            new, context["messages"] = (), "the record of this episode has reached its limit"
        return Step(
            "\n".join(map(action_of, completion.calls)),
            "",
            executed=bool(completion.calls),
            valid=None,
            exit_code=None,
            message=completion.text,
            thought=completion.reasoning,
            usage=completion.usage,
            messages=new,
            context=context,
        )

    def finish(self, messages: Sequence[Message] = ()) -> None:
        """End the turn, if there is one. ``messages`` are those of the program's next request."""
        turn, self._turn = self._turn, None
        reports = self._reports_of_this_turn()
        if turn is not None:
            self._end(turn, reports)
        elif reports:
            changes = self._changes()
            self.steps += (_step_of(report, changes) for report in reports)
        with_results = self._take_results(messages)
        if turn is not None and self.steps[turn.index].executed:
            with_results.add(turn.index)
        changes = self._changes() if with_results else ()
        for index in with_results:
            self.steps[index] = replace(self.steps[index], changes=changes)

    def _end(self, turn: _Turn, reports: Sequence[ReportedAction]) -> None:
        """Record how the actions of a turn were seen. What was done in a turn without calls was
        done for the last one that waits for results."""
        commands = self._history.new_commands()
        acting = turn
        if not turn.calls and self._waiting:
            acting = next(reversed(self._waiting.values()))
        new = describe_actions(
            acting.seen, turn.calls, commands, [report.entry for report in reports]
        )
        acting.seen.extend(new)
        step = self.steps[acting.index]
        if acting.seen:
            step = replace(step, context={**step.context, "seen": acting.seen})
            self._seen.update((call["id"], acting.seen) for call in acting.calls)
        if commands and not acting.calls:
            step = replace(step, action="\n".join(commands), executed=True)
        self.steps[acting.index] = step

    def _take_results(self, messages: Sequence[Message]) -> set[int]:
        """Add the results in ``messages`` to the steps of their calls. Return the indices of these
        steps."""
        found = {}
        for message in messages:
            if message["role"] == "tool" and (
                turn := self._waiting.pop(message["tool_call_id"], None)
            ):
                turn.results.append(self._program.read_result(message["content"]))
                found[turn.index] = turn
        for turn in found.values():
            kept = Collector(self._env.sandbox.spec.limits.output)
            text = "\n".join(r.output for r in turn.results)
            kept.add(text.encode("utf-8", "surrogatepass"))
            codes = [entry.get("exit_code") for entry in turn.seen]
            codes.append(turn.results[-1].exit_code)
            code = next((c for c in codes[::-1] if c is not None), None)
            output, valid = decode(kept.bytes()), None if code is None else code == 0
            self.steps[turn.index] = replace(
                self.steps[turn.index], observation=output, exit_code=code, valid=valid
            )
            self._env.episode.last_result = ExecResult(output, code)
        return set(found)

    def _reports_of_this_turn(self) -> list[ReportedAction]:
        """Return the new reports. Those that come late are added to the turn of their tool call."""
        reports = []
        for report in self._take_reports():
            if seen := self._seen.get(report.call):
                seen.append(report.entry)
            else:
                reports.append(report)
        return reports

    def _changes(self) -> tuple[str, ...]:
        paths = self._env.changed_paths()
        return tuple(p for p in paths if not f"{p}/".startswith(f"{self._scratch}/"))

    def finish_without_sandbox(self) -> None:
        """End the turn in which the sandbox was lost."""
        turn, self._turn = self._turn, None
        if turn is not None:
            self.steps[turn.index] = replace(self.steps[turn.index], valid=False)


def _step_of(report: ReportedAction, changes: tuple[str, ...]) -> Step:
    """Return the record of an action that belongs to no answer of the model."""
    code = report.entry.get("exit_code")
    return Step(
        report.entry["action"],
        decode(report.output.bytes()),
        valid=None if code is None else code == 0,
        exit_code=code,
        changes=changes,
        context={"seen": [report.entry]},
    )
