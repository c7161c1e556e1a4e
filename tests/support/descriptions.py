"""The descriptions of environments for tests of agents and policies that play none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from intercode.core.languages import load_language
from intercode.core.types import ActionLanguage, Brief, EnvironmentDescription
from intercode.environments.base.policy import PolicyGuard
from intercode.environments.base.policy.policy import PolicySource
from intercode.environments.recorded_descriptions import describe_environment


def describe(name: str) -> EnvironmentDescription:
    """Return the description of an environment, or of ``code:LANGUAGE``."""
    environment, _, language = name.partition(":")
    found = describe_environment(environment)
    if not language:
        return found
    row = load_language(language)
    tags = row.tags or (row.title.lower(),)
    return replace(
        found, language=replace(found.language, name=language, title=row.title, tags=tags)
    )


def language_of(name: str) -> ActionLanguage:
    return describe(name).language


def brief(task: str, query: str, environment: str = "bash", **settings: Any) -> Brief:
    return Brief(task, query, environment, description=describe(environment), **settings)


def guard(policy: PolicySource | None, environment: str) -> PolicyGuard:
    return PolicyGuard(policy, environment, language_of(environment))
