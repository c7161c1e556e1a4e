"""Reads a compose file as Docker Compose does, before its one service becomes a sandbox: variables,
environment files, profiles, and values that are numbers."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # Inspect installs it
from inspect_ai.util import ComposeConfig
from pydantic import ValidationError

from intercode.core.errors import UsageError

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)"
    r"(?:(?P<operator>:?[-?+])(?P<word>(?:[^{}]|\$\{[^{}]*\})*))?\}|(?P<invalid>))"
)
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?:=(.*))?")
_TOP_WITHOUT_EFFECT = {"version", "name", "configs", "secrets"}
_WITHOUT_EFFECT = {
    "container_name",
    "labels",
    "annotations",
    "logging",
    "stop_signal",
    "oom_score_adj",
    "attach",
    "cpu_shares",
    "cpu_count",
    "cpu_percent",
    "profiles",
    "develop",
}
"""Keys of a service that change nothing for the programs in it."""
_MAX_VALUES = 100_000
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_VALUES_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "platform": (f"linux/{_ARCHITECTURE}", "linux"),
    "security_opt": (["no-new-privileges:true"], ["no-new-privileges"]),
    "healthcheck": ({"disable": True},),
    "isolation": ("default",),
    "scale": (1,),
}
"""Further keys, with the values that change nothing."""
_BUILD_WITHOUT_EFFECT = {"cache_from", "cache_to", "labels", "shm_size", "tags"}
OWN_BUILD = "x-intercode"
"""The key of a build under which are its keys that Inspect's type of builds lacks."""
_TEXTS = ("user", "mem_limit", "hostname", "working_dir", "image")

Variables = Mapping[str, str]


def sample_variables(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables with which Inspect gives compose files the metadata of a sample."""
    names = {f"SAMPLE_METADATA_{key.replace(' ', '_').upper()}": key for key in metadata}
    return {name: str(metadata[key]) for name, key in names.items()}


def needs_sample(config: str) -> bool:
    """Return whether a configuration is a file that names a variable of samples."""
    try:
        return b"SAMPLE_METADATA_" in Path(config).read_bytes()
    except (OSError, ValueError):
        return False


def read_compose_file(path: Path, variables: Variables) -> ComposeConfig:
    """Return a compose file with its variables replaced: by ``variables``, the environment, or the
    file ``.env`` beside it. Raises UsageError for a broken file."""
    try:
        raw = yaml.safe_load(path.read_text("utf-8"))
        if _count(raw, {}) > _MAX_VALUES:
            raise ValueError("an alias is a part of itself, or the aliases stand for too much")
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as e:
        reason = " ".join(str(e).split())
        raise UsageError(f"Invalid compose file format: {path}: {reason}") from e
    if not isinstance(raw, dict) or not isinstance(raw.get("services"), dict):
        raise UsageError(f"Invalid compose file format: {path} has no services: add one")
    dotenv = path.with_name(".env")
    known = {**(_read_env_file(dotenv) if dotenv.is_file() else {}), **os.environ, **variables}
    values = _replace(raw, known)
    services = {
        name: _plain_service(service, path.parent, known)
        for name, service in values["services"].items()
        if not (isinstance(service, dict) and service.get("profiles"))
    }
    rest = {k: v for k, v in values.items() if k not in _TOP_WITHOUT_EFFECT}
    try:
        return ComposeConfig.model_validate({**rest, "services": services})
    except ValidationError as e:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}".lstrip(": ")
            for fault in e.errors()
        )
        raise UsageError(
            f"a sandbox cannot honour the compose file {path} ({faults}); use Docker for this "
            "task, or a configuration without it"
        ) from e


def _count(value: Any, counts: dict[int, int]) -> int:
    """Return the number of values in decoded YAML, with the value of an alias at each place."""
    if id(value) not in counts:
        counts[id(value)] = _MAX_VALUES  # of an alias within itself
        parts = value.values() if isinstance(value, dict) else value
        inside = parts if isinstance(value, dict | list) else ()
        counts[id(value)] = 1 + sum(_count(part, counts) for part in inside)
    return counts[id(value)]


def _plain_service(service: Any, directory: Path, known: Variables) -> Any:
    """Return a service with the types that Inspect expects, and its environment in one place."""
    if not isinstance(service, dict):
        return service
    plain = {
        k: v
        for k, v in service.items()
        if k not in _WITHOUT_EFFECT and v not in _VALUES_WITHOUT_EFFECT.get(k, ())
    }
    limits = plain.get("deploy") or {}
    for name in ("resources", "limits"):
        limits = (limits.get(name) if isinstance(limits, dict) else None) or {}
    for settings, names in ((plain, _TEXTS), (limits, ("memory",))):
        for name in names:
            if isinstance(settings.get(name), int | float):
                settings[name] = str(settings[name])
    files, given = plain.pop("env_file", None), plain.pop("environment", None)
    environment = _environment(files or [], given or {}, directory, known)
    if isinstance(build := plain.get("build"), dict):
        plain["build"] = _plain_build(build, directory, known)
    return {**plain, "environment": environment}


def _plain_build(build: dict[str, Any], directory: Path, known: Variables) -> dict[str, Any]:
    plain = {k: v for k, v in build.items() if k not in _BUILD_WITHOUT_EFFECT}
    args, target = plain.pop("args", None), plain.pop("target", None)
    if not isinstance(target, str | int | None):
        raise UsageError(f"target of a build in the compose file is no text: {target!r}")
    own = {
        "args": _environment([], args or {}, directory, known),
        "target": None if target in (None, "") else str(target),
    }
    return {**plain, OWN_BUILD: own}


def _environment(files: Any, given: Any, directory: Path, known: Variables) -> dict[str, str]:
    """Return the variables that the keys ``env_file`` and ``environment`` of a service set."""
    for value, kinds in ((files, str | dict | list), (given, dict | list)):
        if not isinstance(value, kinds):
            raise UsageError(f"the compose file has {value!r} where a list or a mapping should be")
    environment: dict[str, str] = {}
    for entry in [files] if isinstance(files, str | dict) else files:
        named = entry if isinstance(entry, dict) else {"path": entry}
        file = directory / str(named.get("path"))
        if file.is_file() or named.get("required", True):
            environment |= _read_env_file(file)
    if not isinstance(given, dict):
        given = dict(_name_and_value(str(entry)) for entry in given)
    for name, value in given.items():
        found = known.get(str(name)) if value is None else _text(value)
        if found is not None:  # a name alone: the value of the environment, if there is one
            environment[str(name)] = found
    return environment


def _name_and_value(entry: str) -> tuple[str, str | None]:
    name, equals, value = entry.partition("=")
    return name, value if equals else None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of an environment file. Raises UsageError for one that cannot be
    read."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path} cannot be read as an environment file: {e}") from e
    found: dict[str, str] = {}
    for line in lines:
        if line.strip().startswith("#") or not (match := _LINE.fullmatch(line)):
            continue
        name, value = match[1], match[2]
        if value is None:
            if name in os.environ:
                found[name] = os.environ[name]
            continue
        value = value.strip()
        if value[:1] in ("'", '"') and value.find(value[0], 1) > 0:
            quote = value[0]
            text = value[1 : value.index(quote, 1)]
            found[name] = text if quote == "'" else _replace_text(text, {**os.environ, **found})
        else:
            plain = re.sub(r"(^|\s)#.*", "", value).strip()
            found[name] = _replace_text(plain, {**os.environ, **found})
    return found


def _replace(value: Any, known: Variables) -> Any:
    """Replace the variables in all texts of decoded YAML, but not in keys."""
    if isinstance(value, dict):
        return {key: _replace(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace(item, known) for item in value]
    return _replace_text(value, known) if isinstance(value, str) else value


def _replace_text(text: str, known: Variables) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        if match["invalid"] is not None:
            raise UsageError(f"{text!r} has a $ that begins no variable: write $$ for the sign")
        name, operator, word = match["plain"] or match["name"], match["operator"], match["word"]
        value = known.get(name)
        present = bool(value) if operator and operator[0] == ":" else value is not None
        match (operator or "")[-1:]:
            case "-":
                return value or "" if present else _replace_text(word, known)
            case "+":
                return _replace_text(word, known) if present else ""
            case "?" if not present:
                raise UsageError(f"the variable {name} is needed: {word or 'set it'}")
        return value or ""

    return _VARIABLE.sub(replacement, text)
