"""Lets InterCode's agents use the model of an Inspect task.

The agents run in a thread, and send their requests through Inspect's event loop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from anyio import from_thread
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolInfo, ToolParams
from inspect_ai.util import LimitExceededError

from intercode.core.errors import BudgetError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool, ToolCall


class InspectModel(Model):
    """Implements ``Model`` with the model of the running Inspect task.

    Inspect counts tokens, caches answers, retries requests and enforces its limits. ``limit`` is
    the error of the Inspect limit that ended the episode, or None.
    """

    def __init__(self) -> None:
        self._model = get_model()
        self.name = str(self._model)
        self.limit: LimitExceededError | None = None

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """Request an answer; see ``Model``. Raises BudgetError if a limit of Inspect is reached."""
        try:
            output = from_thread.run(
                self._generate,
                [to_inspect_message(m) for m in messages],
                [_to_tool_info(t) for t in tools],
            )
        except LimitExceededError as e:
            self.limit = e
            raise BudgetError(str(e)) from e
        return from_inspect_output(output)

    async def _generate(self, messages: list[ChatMessage], tools: list[ToolInfo]) -> ModelOutput:
        return await self._model.generate(messages, tools=tools)


def to_inspect_message(message: Message) -> ChatMessage:
    """Convert a message to Inspect's message type."""
    text = message["content"]
    if message["role"] == "system":
        return ChatMessageSystem(content=text)
    if message["role"] == "user":
        return ChatMessageUser(content=text)
    if message["role"] == "tool":
        return ChatMessageTool(content=text, tool_call_id=message.get("tool_call_id"))
    calls = [
        InspectToolCall(
            id=call["id"],
            function=call["function"]["name"],
            arguments=_parse_arguments(call["function"]["arguments"]),
        )
        for call in message.get("tool_calls", ())
    ]
    return ChatMessageAssistant(content=text, tool_calls=calls or None)


def _parse_arguments(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}


def _to_tool_info(tool: Tool) -> ToolInfo:
    parameters = ToolParams.model_validate(tool.parameters)
    return ToolInfo(name=tool.name, description=tool.description, parameters=parameters)


def from_inspect_output(output: ModelOutput) -> Completion:
    """Convert the output of an Inspect model to a ``Completion``."""
    usage = output.usage
    calls = [
        ToolCall(
            id=call.id,
            type="function",
            function={"name": call.function, "arguments": json.dumps(call.arguments)},
        )
        for call in output.message.tool_calls or ()
    ]
    usage_counts = Usage(usage.input_tokens, usage.output_tokens) if usage else Usage()
    return Completion(
        output.completion, usage_counts, output.stop_reason, output.model, calls=tuple(calls)
    )
