"""Any endpoint with one of OpenAI's protocols: Responses, Chat Completions, or text completions."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, cast

from intercode.core.errors import ConfigError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Tool, make_call
from intercode.models.endpoint import Endpoint, lower_max_tokens
from intercode.models.options import (
    GenerationOptions,
    check_stream,
    describe_refused_options,
    split_options,
)
from intercode.models.providers.chat_requests import (
    chat_messages,
    render_prompt,
    request_fields,
    stop_sequences,
    tool_specs,
    validate_template,
)
from intercode.models.providers.chat_responses import (
    InvalidResponseError,
    count_or_none,
    parse_error,
    parse_response,
    parse_response_data,
)
from intercode.models.providers.event_stream import join_events
from intercode.models.providers.table import find_provider
from intercode.models.tokens import PROMPT_TEXT, chat_logprobs
from intercode.models.transport.http import (
    EVENT_STREAM,
    HttpConnections,
    HttpResponse,
    parse_base_url,
    recorded_address,
    validate_key,
)
from intercode.models.transport.retry import (
    OVERLOAD_STATUSES,
    AttemptError,
    is_transient,
    parse_retry_after,
)

Api = Literal["responses", "chat", "completions"]
PATHS: dict[Api, str] = {
    "responses": "/responses",
    "chat": "/chat/completions",
    "completions": "/completions",
}

LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
RESPONSES_LIMIT_FIELD = "max_output_tokens"
LARGE_RESPONSE_BYTES = 1 << 20  # larger responses are parsed in a thread of their own
_LIMIT_TOO_HIGH = re.compile(
    r"max_(completion_|output_)?tokens|context (length|window)|maximum context", re.I
)
_NO_ENCRYPTED_REASONING = re.compile(r"encrypted.content", re.I)
_MIN_LIMIT = 256


class OpenAIModel(Endpoint):
    """A model behind an OpenAI-compatible endpoint. One instance serves many threads.

    ``base_url`` ends before ``/chat/completions``. ``api`` is ``responses``, ``chat``, or
    ``completions`` for the legacy endpoint, which is sent the conversation as one text rendered by
    ``template`` (see docs/models.md) and has no tools; its default is that of ``provider`` in the
    table of providers, or ``chat``. ``responses`` sends the model's own reasoning back in later
    turns, encrypted, and has the endpoint store nothing. ``thoughts`` is the field in which
    reasoning is sent back in later turns, if the endpoint expects that (DeepSeek:
    ``reasoning_content``). ``stream`` has answers sent in parts, so that ``timeout`` bounds the
    silence between these and not the whole answer (the default for providers, unless token ids are
    wanted, of which llama.cpp leaves the last out of a stream). For ``options`` see docs/models.md.
    The key never appears in messages or reprs.

    >>> from intercode.models import open_model
    >>> with open_model("my-model", "http://localhost:8000/v1", temperature=0) as model:
    ...     type(model).__name__, model.name
    ('OpenAIModel', 'my-model')
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None = None,
        *,
        provider: str = "",
        api: Api | None = None,
        template: str | None = None,
        thoughts: str | None = None,
        stream: bool | None = None,
        **options: Any,
    ) -> None:
        row = find_provider(provider)
        api = api or (cast(Api, row.api) if row else "chat")
        if api not in PATHS:
            raise ConfigError(f"api = {api!r} is not one of {', '.join(PATHS)}")
        generation, conduct, _ = split_options(options)
        if api == "responses":
            require_known_options(generation)
        self.url, user = parse_base_url(base_url, PATHS[api])
        self._key = validate_key(api_key)
        self._credentials = user
        secrets = [s for s in (self._key, user[1] if user else None) if s]
        super().__init__(
            name,
            recorded_address(self.url),
            generation,
            conduct,
            provider=provider,
            secrets=secrets,
        )
        self.api, self.thoughts = api, thoughts
        self.template = validate_template(template)
        limit = LIMIT_FIELDS[generation.max_completion_tokens is not None]
        self._limit_field = {"limit": RESPONSES_LIMIT_FIELD if api == "responses" else limit}
        self._learned = {"keeps reasoning": True}
        self.stream = check_stream(stream, default=bool(provider) and not generation.token_ids)

    @property
    def address(self) -> str:
        return str(self.url)

    @property
    def attempt_timeout(self) -> float:
        """See Endpoint: a stream may go on as long as the patience of the call."""
        return math.inf if self.stream else super().attempt_timeout

    def metadata(self) -> dict[str, Any]:
        """See Endpoint; with the template if one is used."""
        metadata = super().metadata() | {"api": self.api, "thoughts": self.thoughts}
        return metadata | ({"template": self.template} if self.api == "completions" else {})

    def connect(self) -> HttpConnections:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "intercode",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        elif self._credentials:
            both = base64.b64encode(":".join(self._credentials).encode()).decode("ascii")
            headers["Authorization"] = f"Basic {both}"
        return HttpConnections(self.url, headers | dict(self.generation.headers))

    def request(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        """See Endpoint; the limit on the answer's tokens is ``max_tokens`` in each of the APIs.
        Raises ConfigError for tools if the endpoint has none."""
        if self.api == "responses":
            body = request_body(
                self.generation, messages, tools, keep_reasoning=self._learned["keeps reasoning"]
            )
            return {"model": self.name, **body}
        fields = {"model": self.name, **request_fields(self.generation, self.api)}
        if self.api == "completions":
            if tools:
                raise ConfigError("api = 'completions' has no tools: use api = 'chat'")
            if ends := stop_sequences(self.template):
                fields.setdefault("stop", ends)
            return {**fields, "prompt": render_prompt(messages, self.template)}
        request = {**fields, "messages": chat_messages(messages, self.thoughts)}
        return {**request, "tools": tool_specs(tools)} if tools else request

    def limit_answer(self, request: dict[str, Any], max_tokens: int) -> dict[str, Any]:
        return lower_max_tokens(request, max_tokens)

    async def attempt(
        self, client: HttpConnections, request: dict[str, Any], seconds: float
    ) -> Completion:
        """See Endpoint.

        If the endpoint does not know the name of the field with the token limit, the request is
        sent again with the other name; if the model has no encrypted reasoning, without asking for
        it. A limit that a budget set and that is too high for the endpoint is halved.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        requests, renamed = 0, False
        silence = self.request_options.timeout if self.stream else None
        while True:
            requests += 1
            name = self._limit_field["limit"]
            body = json.dumps(_with_limit_field(request, name) | self._stream_fields())
            data = body.encode("ascii")  # JSON escapes lone surrogates, which UTF-8 cannot encode
            try:
                answer = await client.post(data, max(until - clock(), 0.001), silence)
            except AttemptError as e:
                raise AttemptError(
                    self.redact(str(e)),
                    overloaded=e.overloaded,
                    timed_out=e.timed_out,
                    response_lost=e.response_lost,
                    requests_sent=requests,
                ) from e.__cause__
            if answer.status not in (400, 422):
                completion = await self._parse_response(answer, requests)
                completion = await self._with_prompt_ids(client, completion, until)
                return _with_stop_texts(completion, request)
            message, _ = parse_error(answer.body)
            if not renamed and self._is_wrong_limit_field(request, name, message):
                self._limit_field["limit"] = _other_limit_field(name)
                renamed = True
            elif (simpler := self._without_reasoning(request, message)) is not None:
                request = simpler
            elif (shorter := self._with_half_limit(request, message)) is not None:
                request = shorter
            else:
                return await self._parse_response(answer, requests)

    async def _with_prompt_ids(
        self, client: HttpConnections, completion: Completion, until: float
    ) -> Completion:
        """Return an answer with the ids of its prompt where the engine, llama.cpp, tells its text
        alone: the engine is asked for them as it tokenised it."""
        tokens = dict(completion.tokens)
        text = tokens.pop(PROMPT_TEXT, None)
        if text is not None and "prompt_ids" not in tokens:
            request = {"content": text, "add_special": True, "parse_special": True}
            data = json.dumps(request).encode("ascii")
            with suppress(ValueError, KeyError, TypeError):  # then the answer has no such ids
                tokens["prompt_ids"] = json.loads(await self._tokenize(client, data, until))[
                    "tokens"
                ]
        return replace(completion, tokens=tokens)

    async def _tokenize(self, client: HttpConnections, data: bytes, until: float) -> bytes:
        path = self.url.path.removesuffix(PATHS[self.api]).removesuffix("/v1") + "/tokenize"
        clock = asyncio.get_running_loop().time
        seconds = max(min(until - clock(), self.request_options.timeout), 0.001)
        try:
            return (await client.post(data, seconds, path=path)).body
        except AttemptError:  # llama.cpp closes the connection of a stream, which is used first
            return (await client.post(data, seconds, path=path)).body

    def _stream_fields(self) -> dict[str, Any]:
        """Return the fields that have an answer sent in parts."""
        if not self.stream:
            return {}
        usage = {} if self.api == "responses" else {"stream_options": {"include_usage": True}}
        return {"stream": True, **usage}

    def _is_wrong_limit_field(self, request: dict[str, Any], name: str, message: str) -> bool:
        """Return whether a refusal says that the token limit has another field name."""
        fixed = self.generation.max_completion_tokens is not None
        if fixed or "max_tokens" not in request:
            return False
        return all(re.search(rf"\b{n}\b", message) for n in (name, _other_limit_field(name)))

    def _without_reasoning(self, request: dict[str, Any], message: str) -> dict[str, Any] | None:
        """Return the request without the wish for encrypted reasoning, if a refusal concerns that;
        else None."""
        include = request.get("include", [])
        kind = ENCRYPTED_REASONING
        if kind not in include or not _NO_ENCRYPTED_REASONING.search(message):
            return None
        self._learned["keeps reasoning"] = False
        return {**request, "include": [name for name in include if name != kind]}

    def _with_half_limit(self, request: dict[str, Any], message: str) -> dict[str, Any] | None:
        """Return the request with half the token limit, if a budget set the limit and it is too
        high; else None."""
        limit = request.get("max_tokens", 0)
        if (
            self.generation.max_answer_tokens is not None
            or limit <= _MIN_LIMIT
            or not _LIMIT_TOO_HIGH.search(message)
        ):
            return None
        return {**request, "max_tokens": limit // 2}

    async def _parse_response(self, answer: HttpResponse, sent: int) -> Completion:
        if answer.status >= 300:
            raise self._status_error(answer, sent)
        body = answer.body
        decode = join_events if answer.content_type == EVENT_STREAM else json.loads
        parse = parse_answer if self.api == "responses" else parse_response_data
        try:
            if len(body) > LARGE_RESPONSE_BYTES:
                return await asyncio.to_thread(parse_response, body, sent, parse, decode)
            return parse_response(body, sent, parse, decode)
        except InvalidResponseError as e:
            unusable = e
        # outside the except block: the exception chain must not hold the server's unredacted text
        if unusable.status is not None and not is_transient(unusable.status):
            raise self.refusal(str(unusable), unusable.status)
        raise AttemptError(self.redact(str(unusable)), response_lost=True, requests_sent=sent)

    def _status_error(self, answer: HttpResponse, requests: int) -> Exception:
        message, code = parse_error(answer.body)
        message = f"HTTP {answer.status}: {message}"
        if answer.status < 400:
            location = answer.headers.get("Location", "nowhere")
            message += (
                f" (sent to {location}; if the endpoint has moved, give that as its base URL)"
            )
            transient = answer.status in (302, 303, 307)
        else:
            transient = is_transient(answer.status) and code != "insufficient_quota"
        if not transient:
            remedy = describe_refused_options(message, self.generation)
            return self.refusal(message + remedy, answer.status)
        wait = parse_retry_after(answer.headers.get("Retry-After"))
        overloaded = answer.status in OVERLOAD_STATUSES
        return AttemptError(
            self.redact(message), wait, overloaded=overloaded, requests_sent=requests
        )


def _other_limit_field(name: str) -> str:
    return LIMIT_FIELDS[name == LIMIT_FIELDS[0]]


def _with_stop_texts(completion: Completion, request: Mapping[str, Any]) -> Completion:
    """Return an answer with ids with the texts at which the engine was to end it."""
    stop = request.get("stop")
    if not stop or "ids" not in completion.tokens:
        return completion
    texts = [stop] if isinstance(stop, str) else stop
    return replace(completion, tokens={**completion.tokens, "stop_texts": texts})


def _with_limit_field(request: dict[str, Any], name: str) -> dict[str, Any]:
    if name == LIMIT_FIELDS[0] or "max_tokens" not in request:
        return request
    renamed = dict(request)
    renamed[name] = renamed.pop("max_tokens")
    return renamed


# Requests and answers in the format of OpenAI's Responses API.
ITEMS_KEY = "openai_responses"
"""The key under which a message's ``provider`` holds the items of an answer."""

ENCRYPTED_REASONING = "reasoning.encrypted_content"
"""What ``include`` asks for, so that reasoning can be sent back without being stored there."""

_UNKNOWN_OPTIONS = ("seed", "stop", "frequency_penalty", "presence_penalty", "token_ids")


def request_body(
    generation: GenerationOptions,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    *,
    keep_reasoning: bool,
) -> dict[str, Any]:
    """Return a request without the model's name; the limit on the answer is ``max_tokens`` here.

    Nothing is stored by the endpoint. ``keep_reasoning`` asks it for encrypted reasoning, which is
    sent back in later turns; models without reasoning refuse that.
    """
    include = [ENCRYPTED_REASONING] if keep_reasoning else []
    if generation.logprobs or generation.top_logprobs:
        include.append("message.output_text.logprobs")
    effort = generation.reasoning_effort
    body: dict[str, Any] = {
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "top_logprobs": generation.top_logprobs,
        "max_tokens": generation.max_answer_tokens,
        "reasoning": {"effort": effort} if effort else None,
        "include": include or None,
        "store": False,
        "input": [item for message in messages for item in _items(message)],
        "tools": [_tool_item(tool) for tool in tools] or None,
    }
    body |= generation.extra
    return {name: value for name, value in body.items() if value is not None}


def require_known_options(generation: GenerationOptions) -> None:
    """Raise ConfigError for options that this API does not have."""
    given = [name for name in _UNKNOWN_OPTIONS if getattr(generation, name)]
    if given:
        raise ConfigError(
            f"the Responses API has no option {', '.join(given)}: leave it out, or use Chat "
            "Completions with the option api=chat"
        )


def _tool_item(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


def _items(message: Message) -> list[dict[str, Any]]:
    """Return the input items of a message: those of an earlier answer unchanged, if it has them."""
    provider = message.get("provider")
    if isinstance(provider, Mapping) and isinstance(provider.get(ITEMS_KEY), list):
        return list(provider[ITEMS_KEY])
    text = message["content"]
    if message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        return [{"type": "function_call_output", "call_id": call_id, "output": text}]
    calls = message.get("tool_calls", [])
    items = [{"role": message["role"], "content": text}] if text or not calls else []
    for call in calls:
        items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def parse_answer(data: Mapping[str, Any], requests: int) -> Completion:
    """Return the completion in a decoded response. ``requests`` is how many were sent to get it.

    Raises InvalidResponseError.
    """
    output = data.get("output")
    if not isinstance(output, list) or not all(isinstance(item, Mapping) for item in output):
        raise InvalidResponseError("the response has no list of output items")
    try:
        parts = [p for i in output if i.get("type") == "message" for p in i["content"]]
        calls = tuple(
            make_call(i["call_id"], i["name"], i.get("arguments", "{}"))
            for i in output
            if i.get("type") == "function_call"
        )
        text = "".join(p.get("text") or p.get("refusal") or "" for p in parts)
        thoughts = [i for i in output if i.get("type") == "reasoning"]
        summary = [s["text"] for i in thoughts for s in i.get("summary") or ()]
    except (KeyError, TypeError, AttributeError) as e:
        raise InvalidResponseError(f"the response has an invalid output item: {e!r}") from e
    logprobs = [e for p in parts for e in p.get("logprobs") or ()]
    return Completion(
        text=text,
        usage=_parse_usage(data.get("usage"), requests),
        finish_reason=_finish_reason(data, bool(calls)),
        model=str(data.get("model") or ""),
        calls=calls,
        reasoning="\n\n".join(summary),
        provider={ITEMS_KEY: output} if thoughts else None,
        tokens=chat_logprobs(logprobs),
    )


def _finish_reason(data: Mapping[str, Any], has_calls: bool) -> str | None:
    """Return the reason in the words of Chat Completions; None if the response has no status."""
    details = data.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if reason:
        return {"max_output_tokens": "length"}.get(str(reason), str(reason))
    if data.get("status") != "completed":
        return "length" if data.get("status") == "incomplete" else None
    return "tool_calls" if has_calls else "stop"


def _parse_usage(usage: Any, requests: int) -> Usage:
    usage = usage if isinstance(usage, Mapping) else {}
    prompt, answer = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    return Usage(
        count_or_none(usage.get("input_tokens")),
        count_or_none(usage.get("output_tokens")),
        requests,
        cached_tokens=count_or_none((prompt or {}).get("cached_tokens")),
        reasoning_tokens=count_or_none((answer or {}).get("reasoning_tokens")),
    )
