"""A model that is a function of Python: messages in, a text out."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool
from intercode_sandbox.platforms.forks import ForkSafeLock

ModelFunction = Callable[..., Any]
"""A function of a list of messages that returns a text, a message or a Completion. It may be
asynchronous, and may take the ``tools`` as well."""


class FunctionModel(Model):
    """Asks a function for every answer. Several threads call it at once, one for each episode.

    The name is that of the function, unless ``name`` is given. An asynchronous function runs on
    ``loop``, or else on an event loop for such functions in another thread. An exception of the
    function ends the episode with an error; ModelUnavailableError has it played again.

    >>> from intercode.models import FunctionModel
    >>> model = FunctionModel(lambda messages: messages[-1]["content"].upper())
    >>> model.complete([{"role": "user", "content": "ls"}]).text
    'LS'
    """

    def __init__(
        self,
        function: ModelFunction,
        name: str | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.function = function
        self.name = name or _name_of(function)
        self._loop = loop
        self._takes_tools = _takes_tools(function)

    def __repr__(self) -> str:
        return f"FunctionModel({self.name!r})"

    def metadata(self) -> dict[str, Any]:
        return {"name": self.name, "endpoint": None, "generation": {}, "price": None}

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """Return the answer of the function. Raises UsageError if it is not an answer."""
        more = {"tools": tools} if self._takes_tools else {}
        reply = self.function(list(messages), **more)
        if inspect.isawaitable(reply):
            reply = self._wait_for(reply)
        return self._completion(reply)

    def _wait_for(self, reply: Awaitable[Any]) -> Any:
        async def result() -> Any:
            return await reply

        loop = self._loop or _function_loop()
        future = asyncio.run_coroutine_threadsafe(result(), loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _completion(self, reply: Any) -> Completion:
        if isinstance(reply, Completion):
            return reply
        if isinstance(reply, str):
            return Completion(reply, Usage(requests=1), "stop", self.name)
        if isinstance(reply, Mapping) and isinstance(reply.get("content") or "", str):
            calls = tuple(reply.get("tool_calls") or ())
            if calls or reply.get("content") is not None:
                return Completion(
                    reply.get("content") or "",
                    Usage(requests=1),
                    "tool_calls" if calls else "stop",
                    self.name,
                    calls=calls,
                    reasoning=str(reply.get("reasoning") or ""),
                )
        raise UsageError(
            f"the model function {self.name} returned {_shown(reply)}; it has to return a text, a "
            "message such as {'role': 'assistant', 'content': 'ls'}, or a Completion"
        )


def as_model(model: Model | ModelFunction, loop: asyncio.AbstractEventLoop | None = None) -> Model:
    """Return a model as it is, or the model of a function. Raises UsageError for other objects."""
    if isinstance(model, Model):
        return model
    if not callable(model):
        raise UsageError(
            f"model = {_shown(model)} is no name, no Model and no function of messages"
        )
    return FunctionModel(model, loop=loop)


_loops: dict[int, asyncio.AbstractEventLoop] = {}  # a forked child has no thread
_lock = ForkSafeLock()


def _function_loop() -> asyncio.AbstractEventLoop:
    """Return this process's event loop for functions, which may block it: not the one of requests
    and remote sandboxes. All share it, as they may share a client of HTTP."""
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            name = "intercode-model-functions"
            threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
        return loop


def _name_of(function: ModelFunction) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name).strip("<>")


def _takes_tools(function: ModelFunction) -> bool:
    try:
        return "tools" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
