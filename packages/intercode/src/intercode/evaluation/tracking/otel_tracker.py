"""Reports a run as spans of OpenTelemetry (the extra ``tracking``), by its semantic conventions for
generative AI.

An episode is a trace: ``invoke_agent`` with a span for each turn, in which ``chat`` is a request to
the model with all its retries and ``execute_tool`` an action. What the conventions have no name for
is named ``intercode.*``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from intercode.core.errors import ConfigError
from intercode.core.types import Step, Trajectory
from intercode.core.version import __version__
from intercode.evaluation.evaluate.progress.counts import Progress
from intercode.evaluation.evaluate.run_state import EpisodeKey
from intercode.evaluation.tracking.base import EpisodeTracker, RunTracker, TrackedRun
from intercode.models.base import Completion, Message, Tool
from intercode.models.providers.table import find_provider

PARAMETERS = {
    "temperature": float,
    "top_p": float,
    "max_tokens": int,
    "frequency_penalty": float,
    "presence_penalty": float,
    "seed": int,
}
"""The generation parameters that the conventions have a name for, with their types."""
Attributes = dict[str, Any]


class OtelTracker(RunTracker):
    """Spans of the tracer provider that this process has set, or else of one that sends them to the
    address in OTEL_EXPORTER_OTLP_ENDPOINT."""

    def __init__(self, run: TrackedRun) -> None:
        super().__init__(run)
        try:
            self._trace: Any = importlib.import_module("opentelemetry.trace")
            provider_class = importlib.import_module("opentelemetry.sdk.trace").TracerProvider
        except ImportError as e:
            raise _missing() from e
        current = self._trace.get_tracer_provider()
        self._own = None if isinstance(current, provider_class) else _make_provider(provider_class)
        self._tracer = (self._own or current).get_tracer("intercode", __version__)
        self._shared = _shared_attributes(run)

    def begin(self, progress: Progress) -> str:
        return "" if self._own is None else "otel: spans go to the OTLP endpoint of the environment"

    @contextmanager
    def episode(self, key: EpisodeKey) -> Iterator[EpisodeTracker]:
        """Play an episode in a span, which is the root of a trace."""
        agent = self.run.metadata.get("agent")
        attributes = {
            **self._shared,
            "gen_ai.operation.name": "invoke_agent",
            "intercode.task": key.task,
            "intercode.epoch": key.epoch,
            "intercode.run": self.run.out.name,
            "intercode.dataset": str(self.run.metadata.get("dataset")),
            "gen_ai.conversation.id": f"{self.run.out.name}/{key.task}#{key.epoch}",
        }
        with self.span(f"invoke_agent {agent}", attributes) as span:
            yield _EpisodeSpans(self, span)

    def end(self, progress: Progress, finished: bool) -> None:
        if self._own is not None:
            self._own.shutdown()  # sends what is left

    @contextmanager
    def span(self, name: str, attributes: Attributes, *, client: bool = False) -> Iterator[Any]:
        """Open a span inside the present one. An exception is recorded by its type only: its text
        could hold a key or a gold."""
        kind = self._trace.SpanKind.CLIENT if client else self._trace.SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            name,
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except Exception as e:
                self.fail(span, type(e).__name__)
                raise

    def fail(self, span: Any, kind: str) -> None:
        """Mark a span as ended in an error of this kind."""
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.StatusCode.ERROR, kind)

    @property
    def request_attributes(self) -> Attributes:
        """What every request of the run has."""
        given = self.run.metadata.get("generation") or {}
        parameters = {
            f"gen_ai.request.{name}": convert(given[name])
            for name, convert in PARAMETERS.items()
            if isinstance(given.get(name), int | float)
        }
        return {**self._shared, **parameters, "gen_ai.operation.name": "chat"}


class _EpisodeSpans(EpisodeTracker):
    def __init__(self, tracker: OtelTracker, span: Any) -> None:
        self._tracker, self._span = tracker, span
        self._content = tracker.run.content

    @contextmanager
    def turn(self, number: int) -> Iterator[None]:
        with self._tracker.span(f"turn {number}", {"intercode.turn": number}):
            yield

    @contextmanager
    def request(
        self, messages: Sequence[Message], tools: Sequence[Tool]
    ) -> Iterator[Callable[[Completion], None]]:
        attributes = self._tracker.request_attributes
        if self._content:
            attributes["gen_ai.input.messages"] = json.dumps([_message(m) for m in messages])
        name = f"chat {attributes.get('gen_ai.request.model', '')}".rstrip()
        with self._tracker.span(name, attributes, client=True) as span:
            yield lambda answer: span.set_attributes(_answer(answer, self._content))

    @contextmanager
    def action(self, action: str) -> Iterator[Callable[[Step], None]]:
        tool = str(self._tracker.run.metadata.get("environment"))
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "extension",
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = json.dumps({"action": action})

        with self._tracker.span(f"execute_tool {tool}", attributes) as span:

            def report(result: Step) -> None:
                span.set_attribute("intercode.valid", bool(result.valid))
                if result.exit_code is not None:
                    span.set_attribute("intercode.exit_code", result.exit_code)
                if result.timed_out:
                    self._tracker.fail(span, "timeout")
                if self._content:
                    span.set_attribute("gen_ai.tool.call.result", result.observation)

            yield report

    def end(self, trajectory: Trajectory | None) -> None:
        if trajectory is None:
            return self._tracker.fail(self._span, "interrupted")
        usage, span = trajectory.usage, self._span
        span.set_attributes(_usage(usage.prompt_tokens, usage.completion_tokens, usage.cost))
        span.set_attributes(
            {
                "intercode.episode": trajectory.id,
                "intercode.end": trajectory.end,
                "intercode.turns": trajectory.turns,
            }
        )
        if trajectory.end == "error":
            return self._tracker.fail(span, (trajectory.error or "_OTHER").partition(":")[0])
        span.add_event(
            "gen_ai.evaluation.result",
            {
                "gen_ai.evaluation.name": "reward",
                "gen_ai.evaluation.score.value": trajectory.score,
                "gen_ai.evaluation.score.label": "solved" if trajectory.success else "not solved",
            },
        )
        return None


def _make_provider(provider_class: Any) -> Any:
    """Return a provider that sends spans by OTLP over HTTP, as the standard environment variables
    say."""
    try:
        exporter = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as e:
        raise _missing() from e
    resources = importlib.import_module("opentelemetry.sdk.resources")
    export = importlib.import_module("opentelemetry.sdk.trace.export")
    named = resources.OTELResourceDetector().detect().attributes.get("service.name")
    resource = resources.Resource.create({} if named else {"service.name": "intercode"})
    provider = provider_class(resource=resource)
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    return provider


def _missing() -> ConfigError:
    return ConfigError("--log otel needs OpenTelemetry: pip install 'intercode-gym[tracking]'")


def _shared_attributes(run: TrackedRun) -> Attributes:
    """Return the attributes of agent, provider, model and server."""
    metadata = run.metadata
    attributes: Attributes = {"gen_ai.agent.name": str(metadata.get("agent"))}
    if not (model := metadata.get("model")):
        return attributes
    provider, slash, name = str(model).partition("/")
    row = find_provider(provider) if slash else None
    known = "" if row is None else row.telemetry
    attributes["gen_ai.request.model"] = name if known else str(model)
    # an endpoint of one's own speaks OpenAI's protocol, which is what this attribute names
    attributes["gen_ai.provider.name"] = known or "openai"
    address = urlsplit(str(metadata.get("endpoint") or ""))
    if address.hostname:
        attributes["server.address"] = address.hostname
        attributes["server.port"] = address.port or (80 if address.scheme == "http" else 443)
    return attributes


def _answer(answer: Completion, content: bool) -> Attributes:
    usage = answer.usage
    attributes = _usage(usage.prompt_tokens, usage.completion_tokens, usage.cost)
    more = {
        "gen_ai.response.model": answer.model or None,
        "gen_ai.response.finish_reasons": [answer.finish_reason] if answer.finish_reason else None,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "intercode.cached": answer.cached or None,
        "gen_ai.output.messages": (
            json.dumps([{**_message(answer.message()), "finish_reason": answer.finish_reason}])
            if content
            else None
        ),
    }
    return {**attributes, **{k: v for k, v in more.items() if v is not None}}


def _usage(prompt: int | None, completion: int | None, cost: float | None) -> Attributes:
    figures = {
        "gen_ai.usage.input_tokens": prompt,
        "gen_ai.usage.output_tokens": completion,
        "intercode.cost": cost,
    }
    return {k: v for k, v in figures.items() if v is not None}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message in the form of the conventions: a role and parts."""
    if message["role"] == "tool":
        part = {
            "type": "tool_call_response",
            "id": message.get("tool_call_id"),
            "response": message["content"],
        }
        return {"role": "tool", "parts": [part]}
    parts: list[dict[str, Any]] = []
    if message.get("content"):
        parts.append({"type": "text", "content": message["content"]})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append(
            {
                "type": "tool_call",
                "id": call["id"],
                "name": function["name"],
                "arguments": function["arguments"],
            }
        )
    return {"role": message["role"], "parts": parts}
