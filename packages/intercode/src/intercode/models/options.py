"""The options of a model: what it generates, and how its endpoint is called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from intercode.core.errors import ConfigError, UsageError
from intercode.core.settings import check_types
from intercode.models.redaction import redact
from intercode.models.transport.retry import RetryPolicy
from intercode_sandbox.registry import unknown_name_error

CacheMode = Literal["use", "read-only", "refresh", "only"]
"""``use``: read and fill the cache; ``read-only``: read it only; ``refresh``: request every answer
again and fill it; ``only``: never send a request."""


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """Generation parameters. None leaves a parameter out of the request, so that the endpoint's
    default applies.

    ``max_tokens`` and ``max_completion_tokens`` set the same limit. The second also fixes the field
    name; the first is renamed if the endpoint requires it. ``token_ids`` requests the token ids of
    prompt and answer (vLLM, SGLang). ``extra`` is merged into the request body, where None removes
    a field. ``headers`` are added to the request.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | Sequence[str] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: str | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    token_ids: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def max_answer_tokens(self) -> int | None:
        """The limit on the answer's tokens, under whichever name it was given."""
        given = self.max_completion_tokens
        return self.max_tokens if given is None else given

    def metadata(self) -> dict[str, Any]:
        """Return every parameter, with secrets redacted."""
        return redact(shallow_asdict(self))


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """How an endpoint is called.

    ``timeout`` bounds one attempt and ``patience`` a whole call, in seconds. ``retry`` overrides
    ``max_attempts`` and ``patience``. ``concurrency`` is the maximum number of simultaneous
    requests. ``cache`` is a file, or True for the user's own cache. ``prices`` is a file of prices;
    ``price`` is this model's price: a table of ``input``, ``output``, ``cached`` and ``written``
    dollars per million tokens.
    """

    timeout: float = 600.0
    max_attempts: int = 6
    patience: float = 900.0
    concurrency: int = 256
    cache: bool | str | Path | None = None
    cache_mode: CacheMode = "use"
    prices: str | Path | None = None
    price: Mapping[str, float] | None = None
    retry: RetryPolicy | None = None

    def build_retry_policy(self) -> RetryPolicy:
        """Return the retry policy. Raises ConfigError for values out of range."""
        retry = self.retry or RetryPolicy(max_attempts=self.max_attempts, patience=self.patience)
        if retry.max_attempts < 1 or self.timeout <= 0 or self.concurrency < 1:
            raise ConfigError(
                f"max_attempts = {retry.max_attempts}, timeout = {self.timeout} s, concurrency = "
                f"{self.concurrency}: the first and last must be at least 1, timeout above 0"
            )
        return retry


def shallow_asdict(values: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without descending into them."""
    return {f.name: getattr(values, f.name) for f in fields(values)}


OPTION_NAMES = tuple(
    frozenset(f.name for f in fields(kind)) for kind in (GenerationOptions, RequestOptions)
)
"""The names of the generation options and of the request options, which every model has."""


def split_options(
    options: Mapping[str, Any], own: Sequence[str] = ()
) -> tuple[GenerationOptions, RequestOptions, dict[str, Any]]:
    """Split options into generation options, request options, and the model's ``own`` options.

    The value ``"none"`` means None, because TOML has no null. Raises UnknownNameError for an
    unknown option and ConfigError for a value of the wrong type.
    """
    names = OPTION_NAMES
    parts: tuple[dict[str, Any], ...] = ({}, {}, {})
    for name, value in options.items():
        value = None if value == "none" else value
        for part, known in zip(parts, (*names, set(own)), strict=True):
            if name in known:
                part[name] = value
                break
        else:
            raise unknown_name_error("model option", name, [*names[0], *names[1], *own])
    generation = GenerationOptions(**parts[0])
    conduct = RequestOptions(
        **{name: value for name, value in parts[1].items() if value is not None}
    )
    if not isinstance(conduct.prices, str | Path | None):
        raise ConfigError(f"model options: prices is a file of prices, not {conduct.prices!r:.80}")
    try:
        check_types(generation)
        check_types(conduct)
    except UsageError as e:
        raise ConfigError(f"model options: {e}") from e
    if generation.max_answer_tokens is not None and generation.max_answer_tokens < 1:
        raise ConfigError(
            f"max_tokens = {generation.max_answer_tokens}: an answer has at least 1 token"
        )
    for name, text in generation.headers.items():
        if not isinstance(text, str) or not (name + text).isascii() or not text.isprintable():
            raise ConfigError(
                f"the header {name!r} of the option headers must be printable ASCII text"
            )
    return generation, conduct, parts[2]


def check_stream(value: Any, default: bool) -> bool:
    """Return the option ``stream`` of a model. Raises ConfigError unless it is true or false."""
    if value is not None and not isinstance(value, bool):
        raise ConfigError(f"stream = {value!r} is neither true nor false")
    return default if value is None else value


def check_integer(name: str, value: object, minimum: int = 1) -> None:
    """Raise ConfigError unless an option is None or an integer of at least ``minimum``."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ConfigError(f"{name} is {value!r}; it must be an integer of at least {minimum}")


def check_bool(name: str, value: object) -> None:
    """Raise ConfigError unless an option is true or false: a text such as ``no`` would count as
    true."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; it must be true or false")


def describe_refused_options(message: str, generation: GenerationOptions) -> str:
    """Return how to leave out the options that a refusal names, as the end of its text; empty if it
    names none of those that were given."""
    unset = GenerationOptions()
    names = [f.name for f in fields(unset) if re.search(rf"\b{f.name}\b", message)]
    named = [n for n in names if getattr(generation, n) != getattr(unset, n)]
    return f"; leave out the model option {' and '.join(named)}" if named else ""
