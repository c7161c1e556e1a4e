"""The settings of a run, which the command line, TOML files and Python give, and their readers."""

from __future__ import annotations

import itertools
import json
import operator
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from intercode.core.errors import ConfigError, UsageError
from intercode.core.settings import check_ranges, check_types, setting
from intercode_sandbox.lines import split_lines
from intercode_sandbox.registry import suggest_name, unknown_name_error
from intercode_sandbox.toml import read_toml
from intercode_sandbox.valid_text import has_surrogates

_MAX_TASKS = 1_000_000  # named one by one, so that an endless listing is an error
_SIMILAR = 0.7
"""How similar a name is to that of a missing setting if it is taken for a mistake."""


@dataclass(frozen=True)
class EvalConfig:
    """The settings of a run. Raises ConfigError for a value that is wrong.

    The options of ``intercode eval``, the keys of its TOML file, the arguments of ``evaluate`` and
    the ``config`` of run.json have these names. A run has no settings of the environment among
    them: they are in ``env_options``, and a name that is not listed here goes there.
    """

    dataset: str = setting(
        MISSING,
        "name[:subset], such as starter (its Bash tasks), starter:sql or nl2bash:fs_1, or a "
        ".json/.jsonl/.csv file",
    )
    agent: str = setting(
        MISSING,
        "strategy: try-again, single-turn, gold, noop, ... (see `intercode list agents`), "
        "program:NAME, program:COMMAND, or package:CLASS",
        option="NAME",
    )
    model: str | None = setting(
        None,
        "the language model of the agent, with its API key in the environment; or "
        "FILE.py:FUNCTION, called with the list of messages ({role, content}), which returns the "
        "answer as a text",
        option="PROVIDER/NAME",
    )
    base_url: str | None = setting(
        None, "address of an OpenAI-compatible endpoint (or set OPENAI_BASE_URL)", option="URL"
    )
    env_options: Mapping[str, Any] = setting(
        dict, "settings of the environment (`intercode list environments`)"
    )
    agent_options: Mapping[str, Any] = setting(dict, "settings of the agent")
    model_options: Mapping[str, Any] = setting(
        dict, "settings of the model, such as temperature = 0.7"
    )
    max_turns: int | None = setting(
        None,
        "actions an episode may take (default: the agent's own, mostly 10)",
        option="N",
        least=1,
    )
    parallel: int = setting(
        4,
        "episodes at the same time; results do not depend on it",
        option="N",
        least=1,
        most=10_000,
    )
    limit: int | None = setting(None, "only the first N tasks", option="N", least=1)
    sample: int | None = setting(
        None,
        "a random sample of N tasks, stratified by hardness or group; the seed determines it",
        option="N",
        least=1,
    )
    tasks: tuple[str, ...] = setting(
        (),
        "only these, by id, by position from 0, or by a range such as 0-5; or a file that names "
        "one on each line",
        option="ID,ID,...|FILE",
    )
    epochs: int = setting(
        1,
        "play each task K times, for pass@k and for narrower intervals",
        option="K",
        least=1,
        most=100_000,
    )
    shuffle: bool = setting(
        False, "play in an order that the seed determines; results do not depend on it"
    )
    seed: int | None = setting(
        None,
        "seed of the episodes: task i in epoch e gets N + i + e * (tasks in the dataset)",
        option="N",
        least=0,
    )
    out: Path | None = setting(
        None,
        "directory of the run (default: runs/<dataset>-<agent>-<model>-<date>)",
        option="DIR",
    )
    save_every: int | None = setting(
        None,
        "save each episode in progress after every N turns, so that it goes on from there after a "
        "crash",
        option="N",
        least=1,
    )
    max_tokens: int | None = setting(
        None, "tokens that the run may use, prompts and answers together", option="N", least=1
    )
    max_cost: float | None = setting(
        None, "US dollars that the run may spend", option="USD", above=0
    )
    max_seconds: float | None = setting(None, "seconds that the run may take", option="S", above=0)
    max_tokens_per_episode: int | None = setting(
        None, "tokens that an episode may use, prompts and answers together", least=1
    )
    max_cost_per_episode: float | None = setting(
        None, "US dollars that an episode may spend", above=0
    )
    max_seconds_per_episode: float | None = setting(
        None, "seconds that an episode may take", above=0
    )
    fail_on_error: int | str | None = setting(
        None,
        "stop when more episodes than this ended in an error, such as 5 or 10%",
        option="N|N%",
    )
    log: tuple[str, ...] = setting(
        (),
        "wandb or otel: report the run to Weights & Biases, or as OpenTelemetry spans, as it goes "
        "on; content: with texts of tasks, models and actions, but never golds; may be given "
        "several times",
        option="NAME ...",
    )
    runner: str = setting(
        "local",
        "where environments run: on this machine (local); on the Ray cluster that it is part of "
        "(ray), that has the head ray:HOST:PORT, or a new one (ray:local); results do not depend "
        "on it",
    )

    def __post_init__(self) -> None:
        log = (self.log,) if isinstance(self.log, str) else self.log
        values: dict[str, Any] = {"log": tuple(map(str, log))}
        if not isinstance(self.tasks, tuple) or self.tasks:
            values["tasks"] = task_names(self.tasks)
        if self.out is not None:
            values["out"] = _directory(self.out)
        vars(self).update(values)
        if self.log == (CONTENT,):
            raise ConfigError(
                "log = 'content' reports to nobody: name a tracker, too, such as otel"
            )
        try:
            check_types(self)
            check_ranges(self)
        except UsageError as e:
            listed = [name for name in _GRID_SETTINGS if isinstance(getattr(self, name), list)]
            hint = "; put the list in a table [grid]" if listed else ""
            raise ConfigError(f"{e}{hint}") from e
        for name in ("dataset", "agent"):
            if not getattr(self, name):
                raise ConfigError(f"no {name} is given; name one, such as {_EXAMPLES[name]}")
        for name, value in self.env_options.items():
            if callable(value):
                raise ConfigError(
                    f"{name} = {value!r}: name it, as in package.module:NAME or file.py:NAME"
                )
        if self.sample and self.limit:
            raise ConfigError("sample and limit exclude each other: give one of them")
        max_failed_episodes(self.fail_on_error, 1)

    @property
    def backend(self) -> str:
        """The back end of sandboxes."""
        return str(self.env_options.get("backend") or "auto")


SETTING_NAMES = tuple(f.name for f in fields(EvalConfig))
"""The names of the settings of a run."""
CONTENT = "content"
"""Among the trackers of ``log``: they get texts as well."""
_GRID_SETTINGS = ("dataset", "agent", "model")
_EXAMPLES = {"dataset": "starter", "agent": "--agent try-again"}
RENAMED_SETTINGS = {
    "sandbox": "backend={}",
    "clock": "deterministic.clock={}",
    "address": "runner=ray:{}",
    "log_content": "log=content",
    "deny": "policy.deny={}",
    "allow": "policy.allow={}",
}
"""Settings that have another name than in the version before, with what gives their value now."""
POLICY_RULES = ("deny", "allow")
"""The lists of rules in a policy."""


def make_config(values: Mapping[str, Any], source: str = "the settings") -> EvalConfig:
    """Return the configuration with these values. None stands for the default value.

    ``source``: where the values come from, for messages. Raises ConfigError for an invalid value or
    if the dataset or the agent is missing, UnknownNameError if another name is like that one.
    """
    given = {name: value for name, value in values.items() if value is not None}
    settings = collect_settings(given, source)
    for name in ("dataset", "agent"):
        for other in () if settings.get(name) else settings.get("env_options", {}):
            if suggest_name(other, [name], _SIMILAR):
                raise unknown_name_error(f"setting in {source}", other, list(SETTING_NAMES))
        settings.setdefault(name, "")
    try:
        return EvalConfig(**settings)
    except ConfigError as e:
        raise ConfigError(f"{source}: {e}") from e


def collect_settings(values: Mapping[str, Any], source: str = "the settings") -> dict[str, Any]:
    """Return the settings of a run among ``values``, with all others in ``env_options``.

    Raises ConfigError for the name of a version before.
    """
    for name, value in values.items():
        if name in RENAMED_SETTINGS:
            new, _, form = RENAMED_SETTINGS[name].partition("=")
            line = json.dumps(value if form == "{}" else form.format(value), default=str)
            raise ConfigError(f"{source}: {name} is now {new}: write {new} = {line}")
    own = {name: value for name, value in values.items() if name in SETTING_NAMES}
    more = {name: value for name, value in values.items() if name not in SETTING_NAMES}
    if more:
        table = own.get("env_options", {})
        if not isinstance(table, Mapping):
            raise ConfigError(f"{source}: env_options is a table, not {table!r:.80}")
        own["env_options"] = join_settings(table, more)
    return own


def join_settings(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others over them.

    Tables are joined, and the rules of a policy are added to those before. ``True`` leaves a
    table, which it would only switch on. Every other value replaces the one before. Raises
    ConfigError for a table over a value that is none.
    """
    joined = dict(before)
    for name, value in more.items():
        old = joined.get(name)
        if isinstance(value, Mapping) and old is not None and not isinstance(old, bool):
            table = _as_table(name, old)
            joined[name] = join_settings(table, value)
            if name == "policy":
                joined[name] |= _added_rules(table, value)
        elif not (value is True and isinstance(old, Mapping)):
            joined[name] = value
    return joined


def _added_rules(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the rules of two policies, by their lists. Raises ConfigError."""
    rules: dict[str, list[Any]] = {}
    for name in POLICY_RULES:
        if name in more:
            for table in (before, more):
                if not isinstance(table.get(name, []), list | tuple):
                    raise ConfigError(f"{name} is a list of rules, not {table[name]!r:.80}")
            old = before.get(name, [])
            rules[name] = [*old, *(rule for rule in more[name] if rule not in old)]
    return rules


def _as_table(name: str, value: object) -> Mapping[str, Any]:
    """Return the table that a setting has, to which another is joined. Raises ConfigError."""
    if isinstance(value, Mapping):
        return value
    if name == "policy" and isinstance(value, str):
        return read_toml(Path(value).expanduser())
    raise ConfigError(f"{name} = {value!r:.80} is no table: {name}.NAME cannot be added to it")


def recorded_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a run's record, as ``make_config`` takes them.

    The records of versions before have settings of the environment beside those of the run.
    """
    values = {
        "backend" if name == "sandbox" else name: value
        for name, value in record.items()
        if value not in (None, [], {}) and value is not False
    }
    if (clock := values.pop("clock", None)) is not None:
        table = values.get("deterministic")
        values["deterministic"] = {**(table if isinstance(table, Mapping) else {}), "clock": clock}
    if values.pop("log_content", None):
        values["log"] = [*values.get("log", ()), CONTENT]
    if (address := values.pop("address", None)) is not None:
        values["runner"] = f"{values.get('runner', 'ray')}:{address}"
    return collect_settings(values)


def _directory(value: object) -> Path:
    """Return the setting ``out`` as a path. Raises ConfigError."""
    if not isinstance(value, str | Path):
        raise ConfigError(f"out = {value!r:.80} is no path: name a directory")
    text = str(value)
    if "\0" in text or has_surrogates(text):
        raise ConfigError(f"out = {text!r} is not text: name a directory")
    if not text:
        raise ConfigError("out is empty: name a directory, or leave it out")
    return Path(value)


def task_names(value: object) -> tuple[str, ...]:
    """Return the ids, positions and ranges of positions that the setting ``tasks`` stands for.

    ``value`` is an id, a position, a range, a text of several with commas between them, a file
    that lists them, or an iterable of ids, positions and ranges. Raises ConfigError for another
    value, and for one that names no task.
    """
    if isinstance(value, str | Path):
        text = str(value)
        listed = not re.fullmatch(r"[\d,-]+", text) and os.path.isfile(text)  # false if too long
        if listed or isinstance(value, Path):
            return tuple(read_task_list(Path(text)))
        if text.endswith(".txt"):
            raise ConfigError(f"tasks = {text!r}: there is no such file")
        names = tuple(name for part in text.split(",") if (name := part.strip()))
    else:
        items: Iterable[object] = [value]
        if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
            items = value
        listing = (name for item in items for name in _task_name(item))
        names = tuple(itertools.islice(listing, _MAX_TASKS + 1))
    if len(names) > _MAX_TASKS:
        raise ConfigError(f"tasks names more than {_MAX_TASKS:,} tasks; leave it out to play all")
    if not names:
        raise ConfigError(f"tasks = {value!r} names no task; leave it out to play all tasks")
    return names


def _task_name(value: object) -> Iterable[str]:
    """Return what one id, position or range of positions stands for."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, range):
        return (name for position in value for name in _task_name(position))
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 0:
        raise ConfigError(
            f"tasks: {value!r} is no task; give ids, positions from 0, or ranges such as '0-5'"
        )
    return (str(operator.index(value)),)


def read_task_list(path: Path) -> list[str]:
    """Return the tasks that a file lists, one id or position on each line. ``#`` begins a comment.

    Raises ConfigError for a file that cannot be read or lists no task.
    """
    try:
        lines = split_lines(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(
            f"tasks = {str(path)!r} cannot be read: {e}; ids are a list: tasks = [{str(path)!r}]"
        ) from e
    names = [name for line in lines if (name := re.sub(r"(^|\s)#.*", "", line).strip())]
    if not names:
        raise ConfigError(f"tasks: {path} lists no task; write one id or position on each line")
    return names


def max_failed_episodes(setting: int | str | None, episodes: int) -> int | None:
    """Return how many of ``episodes`` may end in an error, or None without a limit.

    ``setting`` is a number, or a share of the episodes such as ``10%``. Raises ConfigError for any
    other value.
    """
    if setting is None:
        return None
    text = str(setting).strip()
    if text.isdigit():
        return int(text)
    try:
        share = float(text.removesuffix("%")) if text.endswith("%") else -1.0
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise ConfigError(f"fail_on_error = {setting!r}: write a number, or a share such as '10%'")
    return int(share * episodes / 100 + 1e-9)
