"""Tool calling: the model calls a function to run code and another to submit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from intercode.agents.base import Feedback
from intercode.agents.model_agent import ModelAgent
from intercode.agents.parsing import (
    EMPTY_ANSWER_REASON,
    ONLY_THOUGHTS_REASON,
    ParsedAnswer,
    split_thought,
)
from intercode.core.types import Brief
from intercode.models.base import Completion, Tool, ToolCall


@dataclass(frozen=True, slots=True)
class ToolSet:
    """What a model may call: ``run`` is the name of the tool that runs code and ``code`` that of
    its argument; ``answer`` is what ``submit`` may be given, empty where nothing, and ``needed``
    whether it has to."""

    run_tool: str
    code_argument: str
    answer_argument: str = ""
    answer_required: bool = False

    def tools(self, run: str, submit: str) -> tuple[Tool, Tool]:
        """The two tools with what a model is told of them."""
        text = {"type": "string"}
        answer = {self.answer_argument: text} if self.answer_argument else {}
        return (
            Tool(
                self.run_tool, run, _object_schema({self.code_argument: text}, [self.code_argument])
            ),
            Tool(
                "submit",
                submit,
                _object_schema(answer, [self.answer_argument] if self.answer_required else []),
            ),
        )

    def parse_call(self, call: ToolCall) -> tuple[str | None, str]:
        """(the action, why there is none) of a call as the model wrote it."""
        name = call["function"].get("name", "")
        if name not in (self.run_tool, "submit"):
            return None, f"there is no tool {name!r}, only {self.run_tool} and submit"
        wanted = self.code_argument if name == self.run_tool else self.answer_argument
        arguments, why = _parse_arguments(call)
        if arguments is None:
            return None, f"the arguments of {name} are {why}"
        value = arguments.get(wanted, "")
        if not isinstance(value, str):
            return None, f"{wanted} has to be text, not {json.dumps(value)[:80]}"
        if name == "submit":
            if self.answer_required and not value.strip():
                return None, f"submit needs {wanted}"
            return f"submit {value.strip()}".rstrip(), ""
        if not value.strip():
            return None, f"{name} needs {wanted}, the code to run"
        return value, ""


TOOL_SETS = {
    "bash": ToolSet("run_command", "command"),
    "code": ToolSet("run_code", "code"),
    "harbor": ToolSet("run_command", "command"),
    "ctf": ToolSet("run_command", "command", "flag", answer_required=True),
    "sql": ToolSet("run_query", "statement"),
    "python": ToolSet("run_code", "code", "name"),
}
"""By environment; one that is not known here has ``run(code)``, and ``submit`` takes an answer."""


def tool_set_of(environment: str) -> ToolSet:
    """The tools of an environment."""
    return TOOL_SETS.get(environment.lower().partition(":")[0]) or ToolSet("run", "code", "answer")


def sanitize_calls(calls: Sequence[ToolCall], turn: int) -> list[ToolCall]:
    """The calls in a form that every endpoint takes back: each with an id of its own, and
    arguments that are a JSON object; what is none becomes an empty one."""
    out: list[ToolCall] = []
    seen: set[str] = set()
    for number, call in enumerate(calls):
        name = call.get("id") or ""
        if not name or name in seen:
            name = f"call_{turn}_{number}"
        seen.add(name)
        function = dict(call["function"])
        if _parse_arguments(call)[0] is None or not function.get("arguments"):
            function["arguments"] = "{}"
        out.append(cast(ToolCall, {**call, "id": name, "type": "function", "function": function}))
    return out


def _parse_arguments(call: ToolCall) -> tuple[Mapping[str, Any] | None, str]:
    """(the arguments, what is wrong with them)."""
    text = call["function"].get("arguments") or "{}"
    if isinstance(text, dict):  # some endpoints decode them
        return text, ""
    try:
        value = json.loads(text, strict=False)  # line breaks as they are, as some models write them
    except (ValueError, RecursionError) as e:
        return None, f"no JSON ({e})"
    if not isinstance(value, dict):
        return None, f"no JSON object but {str(text)[:80]}"
    return value, ""


def _object_schema(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


NO_CALL_REASON = "the answer calls no tool"
ONE_CALL_PER_TURN = (
    "Not run: one call counts a turn, and the first one was taken. Call again if need be."
)
INTERVENTION_RESULT = "This was not run: somebody else took a turn in your place."


class ToolCallingAgent(ModelAgent):
    """Native function calls: a tool that runs code, typed by the environment, and ``submit``, which
    is what is scored. The first call of an answer counts; the others are told that they were not
    run. Code in the text of an answer does not count."""

    name = "tool-calling"
    prompt_file = "tool_calling.txt"
    required_sections = (*ModelAgent.required_sections, "run", "submit")

    def tools_for(self, brief: Brief) -> Sequence[Tool]:
        """The environment's tools, described in the prompt's sections ``run`` and ``submit``."""
        self._tool_set = tool_set_of(brief.environment)
        self._calls: list[ToolCall] = []
        return self._tool_set.tools(self.fill_prompt("run"), self.fill_prompt("submit"))

    def add_feedback(self, feedback: Feedback) -> None:
        """Tell the model what came of its calls."""
        told = self.format_feedback(feedback) if self._had_code else feedback.observation
        if not self._calls:
            self.conversation.add_user(told)
        self._add_results(told)

    def record_intervention(
        self, action: str, feedback: Feedback, before: Feedback | None = None
    ) -> None:
        """Learn of a turn that somebody else took; see ModelAgent."""
        if before is not None and not self._intervened:
            self.add_feedback(before)
        self._add_results(INTERVENTION_RESULT)
        super().record_intervention(action, feedback)

    def parse(self, completion: Completion) -> ParsedAnswer:
        """The first call of an answer."""
        text, thought = split_thought(completion.text)
        self._calls = sanitize_calls(completion.calls, self._turns)
        if not self._calls:
            return ParsedAnswer(
                None,
                thought,
                text,
                NO_CALL_REASON
                if text
                else ONLY_THOUGHTS_REASON
                if thought
                else EMPTY_ANSWER_REASON,
            )
        code, why = self._tool_set.parse_call(completion.calls[0])
        replaced = sum(
            a["function"] != b["function"]
            for a, b in zip(self._calls, completion.calls, strict=True)
        )
        about = {"arguments_replaced": replaced} if replaced else {}
        return ParsedAnswer(code, thought, text, why, about)

    def add_answer(self, completion: Completion, text: str) -> None:
        """Have the answer stay with its calls in a form that endpoints take back."""
        super().add_answer(replace(completion, calls=tuple(self._calls)), text)

    def _add_results(self, told: str) -> None:
        """Give each open call its result."""
        for number, call in enumerate(self._calls):
            self.conversation.add_tool_result(call["id"], ONE_CALL_PER_TURN if number else told)
        self._calls = []
