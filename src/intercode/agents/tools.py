"""The tools that a model may call in each environment, and reading how it calls them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from intercode.models.base import Call, Tool


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What a model may call: ``run`` is the name of the tool that runs code and ``code`` that of
    its argument; ``answer`` is what ``submit`` may be given, empty where nothing, and ``needed``
    whether it has to."""

    run: str
    code: str
    answer: str = ""
    needed: bool = False

    def tools(self, run: str, submit: str) -> tuple[Tool, Tool]:
        """The two tools with what a model is told of them."""
        text = {"type": "string"}
        answer = {self.answer: text} if self.answer else {}
        return (
            Tool(self.run, run, _schema({self.code: text}, [self.code])),
            Tool("submit", submit, _schema(answer, [self.answer] if self.needed else [])),
        )

    def read(self, call: Call) -> tuple[str | None, str]:
        """(the action, why there is none) of a call as the model wrote it."""
        name = call["function"].get("name", "")
        if name not in (self.run, "submit"):
            return None, f"there is no tool {name!r}, only {self.run} and submit"
        wanted = self.code if name == self.run else self.answer
        arguments, why = _arguments(call)
        if arguments is None:
            return None, f"the arguments of {name} are {why}"
        value = arguments.get(wanted, "")
        if not isinstance(value, str):
            return None, f"{wanted} has to be text, not {json.dumps(value)[:80]}"
        if name == "submit":
            if self.needed and not value.strip():
                return None, f"submit needs {wanted}"
            return f"submit {value.strip()}".rstrip(), ""
        if not value.strip():
            return None, f"{name} needs {wanted}, the code to run"
        return value, ""


TOOLKITS = {
    "bash": Toolkit("run_command", "command"),
    "code": Toolkit("run_code", "code"),
    "harbor": Toolkit("run_command", "command"),
    "ctf": Toolkit("run_command", "command", "flag", needed=True),
    "sql": Toolkit("run_query", "statement"),
    "python": Toolkit("run_code", "code", "name"),
}
"""By environment; one that is not known here has ``run(code)``, and ``submit`` takes an answer."""


def toolkit_of(environment: str) -> Toolkit:
    """The tools of an environment."""
    return TOOLKITS.get(environment.lower().partition(":")[0]) or Toolkit("run", "code", "answer")


def sound(calls: Sequence[Call], turn: int) -> list[Call]:
    """The calls in a form that every endpoint takes back: each with an id of its own, and
    arguments that are a JSON object; what is none becomes an empty one."""
    out: list[Call] = []
    seen: set[str] = set()
    for number, call in enumerate(calls):
        name = call.get("id") or ""
        if not name or name in seen:
            name = f"call_{turn}_{number}"
        seen.add(name)
        function = dict(call["function"])
        if _arguments(call)[0] is None or not function.get("arguments"):
            function["arguments"] = "{}"
        out.append(cast(Call, {**call, "id": name, "type": "function", "function": function}))
    return out


def _arguments(call: Call) -> tuple[Mapping[str, Any] | None, str]:
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


def _schema(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
