"""The metadata of a run: conditions, prompts, generation parameters, versions and source code."""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import inspect
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import CodeType
from typing import Any

from intercode.agents.base import Agent
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import UsageError
from intercode.core.types import to_jsonable
from intercode.core.version import __version__
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.recorded_descriptions import RECORD_KEY
from intercode.models import FunctionModel, Model
from intercode.models.redaction import is_secret_header, is_secret_name
from intercode_sandbox.tiers.protections import threat_model_of

RUN_IDENTITY = (*trajectories.IDENTITY_KEYS, "timeout", "seed", "agent_options", "endpoint")
"""Settings that must be equal for two commands to be the same run. Not included: tasks, limit and
epochs, so that a run can be extended; its spending limits, so that it can be resumed; parallel and
shuffle, which change no result."""

RUN_ONLY_KEYS = (
    RECORD_KEY,
    "threat_model",
    "agent_metadata",
    "model_metadata",
    "versions",
    "code",
    "config",
)
"""Keys of run.json only. The record of each episode repeats the others, to be usable alone."""

TRACKED_PACKAGES = (
    "gymnasium",
    "aiohttp",
    "sqlglot",
    "mysql-connector-python",
    "tiktoken",
    "litellm",
    "anthropic",
    "google-genai",
    "xllamacpp",
)
"""Packages whose versions are recorded, because results may depend on them."""

MODEL_KEYS = ("thinking", "thoughts", "api", "template")
"""Keys of a model's metadata that affect its answers as the generation parameters do."""

_SECRET = re.compile(
    r"api[-_]?key|[-_]key$|^key$|authorization|secret|passw|credential|cookie|(^|auth_|access_)token$",
    re.IGNORECASE,
)
_LIBRARIES = {"site-packages", "dist-packages"}
"""Directories of installed packages."""
_GIT_TIMEOUT = 10.0
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")


def run_metadata(
    config: EvalConfig,
    env: InterCodeEnv,
    agent: Agent,
    model: Model | None,
    given_agent: object,
) -> dict[str, Any]:
    """Return the metadata of a run: that of its environment, its agent and its model.

    ``given_agent``: what the caller gave in place of the name of the agent. The metadata consists
    of JSON types and contains no secrets; see ``remove_secrets``.
    """
    called = model.function if isinstance(model, FunctionModel) else model
    parts: dict[str, object] = {"model": called, "reward": env.reward_function}
    sources = {name: source_of(part) for name, part in parts.items()}
    parts["agent"] = agent if given_agent is None else given_agent
    # the attributes of a named agent are made from its options
    sources["agent"] = source_of(parts["agent"], with_attributes=given_agent is not None)
    agent_metadata = _checked_metadata(agent)
    model_metadata = {} if model is None else model.metadata()
    bounds = [n for n in (config.max_turns, agent.max_turns) if n is not None]
    values = {
        **env.result_metadata(),
        "agent": config.agent,
        "model": None if model is None else config.model or model.name,
        "max_turns": min(bounds, default=None),
        "seed": config.seed,
        "agent_options": config.agent_options,
        "model_options": config.model_options,
        "prompts": sorted(_prompt_digests(agent_metadata)),
        "generation": _generation_settings(model_metadata, config),
        "agent_metadata": agent_metadata,
        "model_metadata": model_metadata,
        "version": __version__,
        "versions": package_versions(),
        "code": source_versions(config),
        "config": {k: v for k, v in to_jsonable(config).items() if k not in ("out", "parallel")},
    }
    if "sandboxes" in values:  # an environment with sandboxes, whose tier is that of isolation
        values["threat_model"] = threat_model_of(values["tier"])
    if env.name not in ENVIRONMENTS or ENVIRONMENTS.origin(env.name):
        values[RECORD_KEY] = env.description.record()  # readers may lack the class
    if own := {name: text for name, text in sorted(sources.items()) if text}:
        values["sources"] = own | imported_sources(parts.values())
    if model is not None:
        values["endpoint"] = model.endpoint
    cleaned: dict[str, Any] = remove_secrets(to_jsonable(values))
    return cleaned


def _checked_metadata(agent: Agent) -> dict[str, Any]:
    """Return what a run records of an agent. Raises UsageError if JSON cannot hold it."""
    values: Any = agent.metadata()
    if agent.max_restarts:
        values = {"max_restarts": agent.max_restarts, **values}
    try:
        json.dumps(to_jsonable(values), allow_nan=False)
        if isinstance(values, Mapping):
            return dict(values)
    except (TypeError, ValueError):
        pass
    raise UsageError(
        f"{type(agent).__name__}.metadata returned {values!r:.200}: return a dictionary of texts, "
        "numbers, lists and dictionaries, which JSON can hold"
    )


def episode_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's metadata that the record of each episode repeats."""
    return {k: v for k, v in metadata.items() if k not in RUN_ONLY_KEYS}


def package_versions() -> dict[str, str]:
    """Return the versions of this package, Python, the system and the tracked packages."""
    versions = {"intercode": __version__, "python": platform.python_version()}
    for name in TRACKED_PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {**versions, "system": f"{platform.system()} {platform.release()}"}


def _generation_settings(metadata: Mapping[str, Any], config: EvalConfig) -> dict[str, Any]:
    """Return the generation parameters in a model's metadata, or else its options."""
    more = {name: metadata[name] for name in MODEL_KEYS if metadata.get(name) is not None}
    return {**metadata.get("generation", config.model_options), **more}


def _is_secret(name: str) -> bool:
    return is_secret_name(name) or bool(_SECRET.search(name))


def remove_secrets(value: Any, secret: Callable[[str], bool] = _is_secret) -> Any:
    """Return JSON types without the values of secret names and without logins in URLs.

    Names of HTTP headers have rules of their own.
    """
    if isinstance(value, Mapping):
        kinds = {"headers": is_secret_header}
        public = ((k, v) for k, v in value.items() if not secret(str(k)))
        return {k: remove_secrets(v, kinds.get(k, _is_secret)) for k, v in public}
    if isinstance(value, list | tuple):
        return [remove_secrets(v) for v in value]
    return _LOGIN.sub("", value) if isinstance(value, str) else value


def _prompt_digests(value: Any) -> Iterator[str]:
    """Yield every ``sha256`` in an agent's metadata. They are those of its prompts."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "sha256" and isinstance(inner, str):
                yield inner
            else:
                yield from _prompt_digests(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _prompt_digests(inner)


def source_of(part: object, *, with_attributes: bool = True) -> str | None:
    """Return ``FILE:NAME@DIGEST`` of the class or function of a part of a run.

    The digest is the first digits of the SHA-256 of the source file and of what tells apart parts
    of one name in it: the place of what another function made, as each lambda may be, the values
    with which a function was made and, ``with_attributes``, those of an object. Without a file, it
    is that of the code. Returns None for the parts of this package, and for None.
    """
    code = _user_code(part)
    if code is None:
        return None
    settings, location = list(_function_settings(part)), list(_location(code))
    if with_attributes:
        settings += [*_attributes(part), *_attributes(code)]
    name, file = str(code.__qualname__), ""
    try:
        file = inspect.getsourcefile(code) or ""
        source = Path(file).read_bytes()
    except (TypeError, OSError):  # entered in a notebook or a shell
        try:
            source = inspect.getsource(code).encode()
        except (TypeError, OSError):
            file, location = "", []
            source = repr([_instructions(body) for body in _bodies(code)]).encode()
    settings += location
    made_with = json.dumps(settings).encode() if settings else b""
    where = f"{Path(file).name}:{name}" if file else name
    return f"{where}@{hashlib.sha256(source + made_with).hexdigest()[:8]}"


def imported_sources(parts: Iterable[object]) -> dict[str, str]:
    """Return ``FILE@DIGEST`` of each module that the source files of these parts import from their
    own directory or package, and that such a module imports in turn, by the path of the file.

    Modules of installed packages are left out, and so are imports by a computed name.
    """
    out: dict[str, str] = {}
    for code in filter(None, map(_user_code, parts)):
        try:
            file = Path(inspect.getsourcefile(code) or "").resolve(strict=True)
        except (TypeError, OSError):  # entered in a notebook or a shell
            continue
        root = file.parent
        while (root / "__init__.py").is_file():
            root = root.parent
        if file.is_file() and _LIBRARIES.isdisjoint(root.parts):
            for found in _imported_files(file, root) - {file}:
                digest = hashlib.sha256(found.read_bytes()).hexdigest()[:8]
                name = found.relative_to(root).as_posix()
                out[name] = f"{name}@{digest}"
    return dict(sorted(out.items()))


def _imported_files(first: Path, root: Path) -> set[Path]:
    """Return a source file and all below ``root`` that it imports, directly or not."""
    found, pending = {first}, [first]
    while pending:
        file = pending.pop()
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            for path in _module_paths(node, file, root):
                packages = (p for p in (path, *path.parents) if root in p.parents)
                for candidate in (path.with_suffix(".py"), *(p / "__init__.py" for p in packages)):
                    if candidate.is_file() and candidate not in found:
                        found.add(candidate)
                        pending.append(candidate)
    return found


def _module_paths(node: ast.AST, file: Path, root: Path) -> Iterator[Path]:
    """Yield the paths, without suffix, at which the modules of an import could be."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield root.joinpath(*alias.name.split("."))
    elif isinstance(node, ast.ImportFrom):
        base = file.parents[node.level - 1] if node.level else root
        base = base.joinpath(*(node.module or "").split(".")) if node.module else base
        if base != root:
            yield base
        yield from (base / alias.name for alias in node.names)


def _user_code(part: object) -> Any:
    """Return the function or class of a part of a run, None for those of this package."""
    while isinstance(part, functools.partial):
        part = part.func
    code: Any = part if inspect.isroutine(part) or isinstance(part, type) else type(part)
    module = getattr(code, "__module__", None) or ""
    return None if part is None or module.partition(".")[0] == "intercode" else code


def _function_settings(function: object) -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers with which a function was made: arguments of a partial
    function, and variables of enclosing functions that it does not assign."""
    values: dict[str, Any] = {}
    if isinstance(function, functools.partial):
        yield from _function_settings(function.func)
        values = {**{str(n): v for n, v in enumerate(function.args)}, **function.keywords}
    elif inspect.isfunction(function):
        assigned = {i.argval for i in dis.get_instructions(function) if i.opname == "STORE_DEREF"}
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            with suppress(ValueError):  # an empty cell
                values |= {} if name in assigned else {name: cell.cell_contents}
    for name, value in sorted(values.items()):
        if value is None or isinstance(value, str | int | float):
            yield name, repr(value)


def _bodies(code: Any) -> list[CodeType]:
    """Return the code of a function, or of the methods of a class."""
    functions = vars(code).values() if isinstance(code, type) else (code,)
    return [
        f.__code__
        for f in map(inspect.unwrap, filter(callable, functions))
        if isinstance(getattr(f, "__code__", None), CodeType)
    ]


def _instructions(body: CodeType) -> tuple[object, ...]:
    """Return what a function does, without the place where it is written."""
    constants = [_instructions(c) if isinstance(c, CodeType) else repr(c) for c in body.co_consts]
    return body.co_code.hex(), body.co_names, constants


def _location(code: Any) -> Iterator[tuple[str, Any]]:
    """Yield the place of a function or class that another function made: its name may be that of
    several in one file."""
    if "<" in code.__qualname__:
        spans = [span for body in _bodies(code) for span in body.co_positions()]
        yield from [("", at) for at in sorted({(s[0], s[2]) for s in spans if s[0] and s[3]})[:1]]


def _attributes(part: object) -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers that are attributes of an object, or of a class that a function
    made, and that its methods do not assign."""
    if inspect.isroutine(part) or isinstance(part, functools.partial):
        return
    if isinstance(part, type) and "<" not in part.__qualname__:
        return
    kind = part if isinstance(part, type) else type(part)
    methods = [
        m
        for c in kind.__mro__
        for n, m in vars(c).items()
        if inspect.isfunction(m) and n not in ("__init__", "__post_init__")
    ]
    assigned = {
        i.argval for m in methods for i in dis.get_instructions(m) if i.opname == "STORE_ATTR"
    }
    for name, value in sorted(getattr(part, "__dict__", {}).items()):
        simple = value is None or isinstance(value, str | int | float)
        if simple and name not in assigned and not name.startswith("__"):
            yield name, repr(value)


def source_versions(config: EvalConfig) -> dict[str, Any]:
    """Return where the user's own code comes from, for each setting ``package.module:object``.

    That is the name of the file and, in a git repository, the commit and whether the file differs
    from it.
    """
    named = {
        "agent": config.agent,
        "reward": config.env_options.get("reward"),
        "dataset": config.dataset,
    }
    sources = {}
    for setting, name in named.items():
        module = sys.modules.get((name or "").partition(":")[0])
        file = getattr(module, "__file__", None)
        if file and ":" in (name or "") and not (name or "").startswith("intercode."):
            sources[setting] = {"file": Path(file).name, **_commit(Path(file))}
    return sources


def _commit(file: Path) -> dict[str, Any]:
    commit = _git(file, "rev-parse", "HEAD")
    if commit is None:
        return {}
    status = _git(file, "status", "--porcelain", "--", file.name)
    return {"commit": commit, "changed": status != ""}


def _git(file: Path, *arguments: str) -> str | None:
    """Run git in the directory of a file. Returns None without git or a repository."""
    command = ["git", "-C", str(file.parent), "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
