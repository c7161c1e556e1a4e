"""Tool calling: the model calls one function to run code and another to submit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from intercode.agents.model_agent import ModelAgent
from intercode.agents.parsing import ParsedAnswer, empty_answer, split_thought
from intercode.core.types import TOOL_CALL, AgentOutput, Brief, EnvironmentDescription, Step
from intercode.models.base import Completion, Tool, ToolCall

NO_CALL_REASON = "the answer calls no tool"
ONE_CALL_PER_TURN = (
    "Not run: one call counts a turn, and the first one was taken. Call again if need be."
)
FURTHER_TOOLS_NOTE = (
    "There are further tools, which act in the same environment and cost a turn as well"
)
INTERVENTION_RESULT = "This was not run: somebody else took a turn in your place."


class ToolCallingAgent(ModelAgent):
    """Lets a model run code by native function calls.

    One tool, which depends on the environment, runs code, and ``submit`` ends the episode and is
    scored. The tools of MCP servers come besides. Only the first call of an answer is run; the
    results of the others say so. Code in the text of an answer does not count.
    """

    prompt_file = "tool_calling.txt"
    calls_tools = True
    required_sections = (*ModelAgent.required_sections, "run", "submit")

    def tools_for(self, brief: Brief) -> Sequence[Tool]:
        """Return the environment's tools, described by the prompt's sections ``run`` and
        ``submit``, and those of MCP servers."""
        self._tool_set = tool_set_of(brief.description)
        self._calls: list[ToolCall] = []
        if brief.tools:
            names = ", ".join(tool.name for tool in brief.tools)
            notes = f"{brief.notes}\n\n{FURTHER_TOOLS_NOTE}: {names}."
            self._values["notes"] = notes.lstrip("\n")
        own = self._tool_set.tools(self.fill_prompt("run"), self.fill_prompt("submit"))
        return *own, *brief.tools

    def add_feedback(self, feedback: Step) -> None:
        """Add the results of the last calls to the conversation."""
        result = self.feedback_message(feedback)
        if not self._calls:
            self.conversation.add_user(result)
        self._add_results(result)

    def record_intervention(self, action: str, feedback: Step, before: Step | None = None) -> bool:
        if before is not None:
            self.add_feedback(before)
        self._add_results(INTERVENTION_RESULT)
        return super().record_intervention(action, feedback)

    def request_action(self) -> AgentOutput:
        """Return the next action. The conversation gets the calls of the answer in a form that
        endpoints accept later."""
        completion = self.conversation.request_answer()
        parsed = self.style.parse(self, completion)
        return self.make_output(replace(completion, calls=tuple(self._calls)), parsed)

    def parse(self, completion: Completion) -> ParsedAnswer:
        """Return the first call of an answer."""
        text, thought = split_thought(completion.text)
        self._calls = sanitize_calls(completion.calls, self.turn)
        if not self._calls:
            return (
                ParsedAnswer(None, thought, text, NO_CALL_REASON) if text else empty_answer(thought)
            )
        code, reason = self._parse_call(completion.calls[0])
        replaced = sum(
            a["function"] != b["function"]
            for a, b in zip(self._calls, completion.calls, strict=True)
        )
        context = {"arguments_replaced": replaced} if replaced else {}
        return ParsedAnswer(code, thought, text, reason, context)

    def _parse_call(self, call: ToolCall) -> tuple[str | None, str]:
        """Return (the action, why there is none) of a call as the model wrote it."""
        name, further = call["function"].get("name", ""), [t.name for t in self.brief.tools]
        if name not in further:
            return self._tool_set.parse_call(call, further)
        arguments, reason = _parse_arguments(call)
        if arguments is None:
            return None, f"the arguments of {name} are {reason}"
        return f"{TOOL_CALL} {name} {json.dumps(arguments, ensure_ascii=False)}", ""

    def _add_results(self, result: str) -> None:
        for number, call in enumerate(self._calls):
            self.conversation.add_tool_result(call["id"], ONE_CALL_PER_TURN if number else result)
        self._calls = []


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools that a model may call in an environment.

    ``run_tool`` is the name of the tool that runs code and ``code_argument`` that of its argument.
    ``answer_argument`` is the argument of ``submit``, empty if it takes none; ``answer_required``
    says whether it must be given.
    """

    run_tool: str
    code_argument: str
    answer_argument: str = ""
    answer_required: bool = False

    def tools(self, run: str, submit: str) -> tuple[Tool, Tool]:
        """Return the two tools with their descriptions."""
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

    def parse_call(self, call: ToolCall, further: Sequence[str] = ()) -> tuple[str | None, str]:
        """Return (the action, why there is none) of a call as the model wrote it. ``further`` are
        the names of other tools that there are."""
        name = call["function"].get("name", "")
        if name not in (self.run_tool, "submit"):
            known = ", ".join([*further, self.run_tool])
            return None, f"there is no tool {name!r}, only {known} and submit"
        argument = self.code_argument if name == self.run_tool else self.answer_argument
        arguments, reason = _parse_arguments(call)
        if arguments is None:
            return None, f"the arguments of {name} are {reason}"
        value = arguments.get(argument, "")
        if not isinstance(value, str):
            return None, f"{argument} has to be text, not {json.dumps(value)[:80]}"
        if name == "submit":
            if self.answer_required and not value.strip():
                return None, f"submit needs {argument}"
            return f"submit {value.strip()}".rstrip(), ""
        if not value.strip():
            return None, f"{name} needs {argument}, the code to run"
        return value, ""


def tool_set_of(description: EnvironmentDescription) -> ToolSet:
    """Return the tool set of an environment."""
    d = description
    return ToolSet(d.tool, d.argument, d.answer, d.answer_required)


def sanitize_calls(calls: Sequence[ToolCall], turn: int) -> list[ToolCall]:
    """Return the calls in a form that every endpoint accepts in later requests: each with an id of
    its own and with a JSON object as arguments; other arguments become an empty object."""
    sanitized: list[ToolCall] = []
    seen: set[str] = set()
    for number, call in enumerate(calls):
        name = call.get("id") or ""
        if not name or name in seen:
            name = f"call_{turn}_{number}"
        seen.add(name)
        function = dict(call["function"])
        if _parse_arguments(call)[0] is None or not function.get("arguments"):
            function["arguments"] = "{}"
        sanitized.append(
            cast(ToolCall, {**call, "id": name, "type": "function", "function": function})
        )
    return sanitized


def _parse_arguments(call: ToolCall) -> tuple[Mapping[str, Any] | None, str]:
    """Return (the arguments, what is wrong with them)."""
    text = call["function"].get("arguments") or "{}"
    if isinstance(text, dict):  # some endpoints decode them
        return text, ""
    try:
        value = json.loads(text, strict=False)  # some models write unescaped line breaks
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
