"""What a run's results have to name: conditions, prompts, generation parameters, versions."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any

import intercode
from intercode.agents.base import Agent
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.types import to_jsonable
from intercode.evaluation.evaluate.source_code import source_versions
from intercode.models import Model
from intercode.models.redaction import is_secret_header, is_secret_name

RUN_IDENTITY = (*trajectories.IDENTITY_KEYS, "timeout", "seed", "agent_options")
"""What must be equal for two commands to be one run. Not: tasks, limit and epochs, so that a run
can be widened; limits on what it may spend, so that it can be continued; parallel, shuffle and the
endpoint's address, which change no result."""

RUN_ONLY_KEYS = ("agent_metadata", "model_metadata", "versions", "code", "config")
"""What run.json alone tells. An episode's own record repeats the rest, to be able to stand
alone."""

TRACKED_PACKAGES = ("gymnasium", "httpx", "sqlglot", "mysql-connector-python", "tiktoken", "litellm",
            "anthropic", "google-genai")  # fmt: skip
"""The packages on which a result may depend."""

MODEL_KEYS = ("thinking", "thoughts", "api", "template")
"""What a model tells beside its generation parameters that changes its answers as they do."""

_SECRET = re.compile(
    r"api[-_]?key|[-_]key$|^key$|authorization|secret|passw|credential|cookie|(^|auth_|access_)token$",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")


def run_metadata(
    config: EvalConfig, environment: Mapping[str, Any], agent: Agent, model: Model | None
) -> dict[str, Any]:
    """The facts of a run, as JSON types: those of its environment, its agent and its model.

    Nothing in them is a secret: see ``clean``.
    """
    told, generated = _own_metadata(agent), _own_metadata(model)
    bounds = [n for n in (config.max_turns, agent.max_turns) if n is not None]
    facts = {
        **environment,
        "agent": config.agent,
        "model": None if model is None else config.model or model.name,
        "max_turns": min(bounds, default=None),
        "seed": config.seed,
        "agent_options": config.agent_options,
        "model_options": config.model_options,
        "prompts": sorted(_prompt_digests(told)),
        "generation": _generation_settings(generated, config),
        "agent_metadata": told,
        "model_metadata": generated,
        "version": intercode.__version__,
        "versions": package_versions(),
        "code": source_versions(config),
        "config": {k: v for k, v in to_jsonable(config).items() if k not in ("out", "parallel")},
    }
    if endpoint := getattr(model, "endpoint", None):
        facts["endpoint"] = endpoint
    cleaned: dict[str, Any] = remove_secrets(to_jsonable(facts))
    return cleaned


def episode_metadata(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What of a run's facts every episode's record repeats."""
    return {k: v for k, v in facts.items() if k not in RUN_ONLY_KEYS}


def package_versions() -> dict[str, str]:
    """Of this package, Python, the system and the packages that a result may depend on."""
    found = {"intercode": intercode.__version__, "python": platform.python_version()}
    for name in TRACKED_PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {**found, "system": f"{platform.system()} {platform.release()}"}


def _generation_settings(told: Mapping[str, Any], config: EvalConfig) -> dict[str, Any]:
    """How answers were asked for; the model's options where it does not tell."""
    more = {name: told[name] for name in MODEL_KEYS if told.get(name) is not None}
    return {**told.get("generation", config.model_options), **more}


def _is_secret(name: str) -> bool:
    return is_secret_name(name) or bool(_SECRET.search(name))


def remove_secrets(value: Any, secret: Callable[[str], bool] = _is_secret) -> Any:
    """JSON types without whatever is named like a secret, headers by rules of their own, and
    without logins in addresses."""
    if isinstance(value, Mapping):
        kinds = {"headers": is_secret_header}
        kept = ((k, v) for k, v in value.items() if not secret(str(k)))
        return {k: remove_secrets(v, kinds.get(k, _is_secret)) for k, v in kept}
    if isinstance(value, list | tuple):
        return [remove_secrets(v) for v in value]
    return _LOGIN.sub("", value) if isinstance(value, str) else value


def _own_metadata(someone: Any) -> dict[str, Any]:
    """What an agent or a model tells of itself; a user's own may tell nothing."""
    metadata = getattr(someone, "metadata", None)
    return dict(metadata()) if callable(metadata) else {}


def _prompt_digests(value: Any) -> Iterator[str]:
    """Every ``sha256`` within an agent's facts: those of its prompts."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "sha256" and isinstance(inner, str):
                yield inner
            else:
                yield from _prompt_digests(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _prompt_digests(inner)
