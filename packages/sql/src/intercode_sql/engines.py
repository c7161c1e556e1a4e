"""The engines by name. An engine is a class that an entry point of ``GROUP`` names.

The class has the name of the engine as ``kind``, the settings that it takes as ``SETTINGS``, and
``start``, which takes them and returns an ``SqlEngine``. ``PRELOADED`` says that workers are forked
from a process that has loaded it.
"""

from __future__ import annotations

import difflib
import functools
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from intercode_sql.base import SqlDeterminism, SqlEngine
from intercode_sql.errors import EngineUnavailableError, SqlUsageError, UnknownEngineError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "intercode_sql.engines"
"""The group of entry points."""
_PURPOSES = {"dsn": "uses no server", "determinism": "uses the real clock"}


class EngineClass(Protocol):
    """What the class of an engine has."""

    kind: str
    SETTINGS: frozenset[str]

    @classmethod
    def start(cls, **settings: Any) -> SqlEngine:
        """Open the engine. ``settings`` are those of ``SETTINGS`` that were given."""
        ...


@functools.cache
def _entries() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # 20 ms, which an import should not take

    found = {entry.name: entry for entry in sorted(entry_points(group=GROUP))}
    if not found:
        raise EngineUnavailableError(
            "no engine is installed: a checkout of intercode-sql must be installed again "
            "(pip install -e packages/sql)"
        )
    return found


def engine_names() -> tuple[str, ...]:
    """Return the names of all installed engines, sorted.

    >>> from intercode_sql import engine_names
    >>> {"embedded", "mysql", "sqlite"} <= set(engine_names())
    True
    """
    return tuple(sorted(_entries()))


def own_engine_names() -> tuple[str, ...]:
    """Return the names of the engines whose code lies in this package, sorted."""
    own = __name__.partition(".")[0]
    return tuple(
        name for name, entry in sorted(_entries().items()) if entry.module.partition(".")[0] == own
    )


def engine_class(kind: str) -> EngineClass:
    """Return the class of an engine. Raises UnknownEngineError, and EngineUnavailableError if what
    it needs is not installed."""
    entry = _entries().get(str(kind))
    if entry is None:
        similar = difflib.get_close_matches(str(kind), engine_names(), n=1, cutoff=0.5)
        hint = f"did you mean {similar[0]!r}? " if similar else ""
        raise UnknownEngineError(
            f"unknown engine {kind!r}; {hint}known: {', '.join(engine_names())}"
        )
    try:
        found: EngineClass = entry.load()
    except ImportError as e:
        raise EngineUnavailableError(
            f"the engine {kind} needs {e.name}: pip install 'intercode-sql[{kind}]'"
        ) from e
    return found


def open_engine(
    kind: str, dsn: str | None = None, determinism: SqlDeterminism | None = None
) -> SqlEngine:
    """Open the engine of that name.

    Args:
        kind: The name of the engine; see ``engine_names``.
        dsn: The address of a server, for an engine that uses one:
            ``mysql://user:password@host:port`` or ``mysql://user@/?unix_socket=/path`` (None: the
            engine starts a private server).
        determinism: The time and the random numbers of statements, for an engine that can fix them
            (None: the real ones).

    Raises:
        UnknownEngineError: There is no engine of that name.
        SqlUsageError: The engine does not take a setting.
        EngineUnavailableError: This machine lacks what the engine needs.
    """
    given = {"dsn": dsn, "determinism": determinism}
    settings = {name: value for name, value in given.items() if value is not None}
    found = engine_class(kind)
    for name in settings.keys() - found.SETTINGS:
        raise SqlUsageError(
            f"the engine {kind!r} {_PURPOSES[name]}: leave out {name}, or take "
            f"{' or '.join(_engines_with(name))}"
        )
    return found.start(**settings)


def preloaded_engines() -> list[Any]:
    """Return the classes of engines that the process from which workers are forked has loaded."""
    found = []
    for name in engine_names():
        with suppress(EngineUnavailableError):
            found.append(engine_class(name))
    return [one for one in found if getattr(one, "PRELOADED", False)]


def _engines_with(setting: str) -> list[str]:
    """Return the names of the engines that take a setting."""
    found = []
    for name in engine_names():
        try:
            if setting in engine_class(name).SETTINGS:
                found.append(repr(name))
        except EngineUnavailableError:
            continue
    return found
