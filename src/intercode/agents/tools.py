"""The tools that a model may call in each environment, and reading how it calls them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from intercode.models.base import Tool, ToolCall


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
