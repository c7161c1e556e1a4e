"""Tables of names that a version renamed on purpose, and functions that apply them.

Keys of the tables are names of the recorded version, values are names of the new one. Empty the
tables when a new recording replaces the old one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from subprocess import CompletedProcess
from typing import Any

from intercode.core.config import recorded_settings

FLAGS = {
    "--again": ("image build", "--force"),
    "--even-if": ("compare", "--allow-mismatch"),
    "--bare": ("export", "--messages-only"),
    "--against": ("check", "--baseline"),
    "--idle": ("serve", "--idle-timeout"),
    "--diffs": ("eval", "--record-diffs"),
}
"""Old flag -> a verb that has it, and the new flag."""
SETTINGS = {"pay": "reward_mode", "reuse": "recycle", "apart": "separate_stderr"}
"""Settings of environments."""
METHODS = {"facts": "result_metadata"}
"""Public methods of environments."""
KEYS = {
    **SETTINGS,
    "diffs": "record_diffs",
    "cached_golds": "use_gold_cache",
    "agent_facts": "agent_metadata",
    "model_facts": "model_metadata",
    "boxes": "sandboxes",
    "gold_cache": "golds",  # the recording of 0.1.0 has another name for it
    "cut": "omitted_bytes",
    "facts": "metadata",
    "kept": "cached_tasks",
    "prints": "fingerprints",
    "searched": "search",
    "made": "created",
    "when": "built_at",
    "alike": "equivalent",
    "own": "native",
    "places": "chunk_of",
    "pieces": "chunks",
    "piece-0": "chunk-0",
}
"""Keys of records and of JSON output."""
VALUES: dict[str, dict[str, str]] = {
    "reward_mode": {"end": "final", "every-turn": "per-turn", "difference": "delta"},
    "sandboxes": {"renewed": "recycled"},
    "golds": {"cached where proven": "cached"},
    "actor": {"person": "human"},
}
"""New key -> old value -> new value."""
TEXTS: list[tuple[str, str]] = [(r"^person$", "human"), (r"^look$", "probe")]
"""Regular expressions over all other exact texts, and what replaces a match."""


def rename_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command in a version that has fewer commands."""
    command, *rest = words
    if command == "merge":
        return ["report", *("--merge" if word == "--out" else word for word in rest)]
    if command == "regrade":
        return ["replay", *("--score" if word == "--profile" else word for word in rest)]
    if command == "verify":
        return ["replay", *rest]
    if command in ("bundle", "leaderboard", "harbor"):
        return ["export", *rest, "--to", command]
    if command == "data" and rest[0] == "convert":
        _, name, release, out = rest
        return ["new", out, "--convert", name, "--from", release]
    if command == "data":
        return ["list", "--fetch", *rest[1:]]
    return list(words)


ENVIRONMENT_DEFAULTS = {"profile": "standard", "network": "none", "backend": "auto"}
"""What the record of a run said of its environment if nothing was given."""
_SWITCHES = ("deterministic", "hashes", "diffs", "shuffle")
_NAMES = {"diffs": "record_diffs", "clock": "deterministic.clock"}
_TABLES = {
    "--env-option": "",
    "--agent-option": "agent_options.",
    "--model-option": "model_options.",
    "--limits": "limits.",
    "--mcp": "mcp.",
}
_VALUES = ("network", "timeout", "reward", "clock", "runner")
_RULES = ("policy", "deny", "allow")


def rename_options(words: Sequence[str]) -> list[str]:
    """Return the words of a command in a version that has settings in place of rare options."""
    command, *rest = words
    if command not in ("eval", "play", "check", "replay", "serve"):
        return list(words)
    named, left = [command], iter(rest)
    for word in left:
        name = word.removeprefix("--")
        if word == "--no-keep":
            named += ["--set", "use_gold_cache=false"]
        elif word in _TABLES:
            named += ["--set", f"{_TABLES[word]}{next(left)}"]
        elif word == "--log-content":
            named += ["--log", "content"]
        elif name in _SWITCHES and word != name:
            named += ["--set", f"{_NAMES.get(name, name.replace('-', '_'))}=true"]
        elif name in _VALUES and word != name and (command, name) != ("replay", "reward"):
            named += ["--set", f"{_NAMES.get(name, name)}={next(left)}"]
        elif name in _RULES and word != name:
            named += ["--set", f"policy{'' if name == 'policy' else f'.{name}'}={next(left)}"]
        else:
            named.append("--tasks" if (command, word) == ("play", "--task") else word)
    return named


class Vocabulary:
    """The names of the version under test, read from its help and its error messages.

    ``call`` runs ``intercode`` with the given words.
    """

    def __init__(self, call: Callable[..., CompletedProcess[str]]) -> None:
        self.flags = {
            old: new if new in call(*verb.split(), "--help").stdout else old
            for old, (verb, new) in FLAGS.items()
        }
        self._has_settings = "is now --set" in call("eval", "--clock", "real").stderr
        wrong = ("--set" if self._has_settings else "--env-option", "nosuch=1", "--dry-run")
        refusal = call("eval", "starter", "--agent", "gold", *wrong).stderr  # lists the settings
        self.settings = {o: n if n in refusal else o for o, n in SETTINGS.items()}
        self._has_fewer_commands = "is now" in call("regrade").stderr

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the words of a command, written with old names, in the version's names."""
        named = rename_command(words) if words and self._has_fewer_commands else list(words)
        return rename_options(named) if named and self._has_settings else named

    def translate(self, word: str) -> str:
        """Return a word of a command line, written with old names, in the version's names."""
        setting, equals, value = word.partition("=")
        if not equals:
            return self.flags.get(word, word)
        name = self.settings.get(setting, setting)
        if name != setting:
            value = VALUES.get(name, {}).get(value, value)
        return f"{name}={value}"


def rename_text(text: str, key: str = "") -> str:
    """Return a text of JSON with new names. ``key`` is the new name of its key."""
    text = VALUES.get(key, {}).get(text, text)
    for pattern, replacement in TEXTS:
        text = re.sub(pattern, replacement, text)
    return text


def rename_config(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a run's record, without defaults, with those of the environment in a
    table of their own."""
    settings = recorded_settings(record)
    own = settings.pop("env_options", {}).items()
    settings["env_options"] = {k: v for k, v in own if v != ENVIRONMENT_DEFAULTS.get(k)}
    return settings


def rename_label(label: str) -> str:
    """Return the label of a value, with new names of the keys among its words."""
    return " ".join(KEYS.get(word, word) for word in label.split(" "))
