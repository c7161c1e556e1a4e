"""Which episodes may share a row: one agent, one model, one set of conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode.core.types import Trajectory
from intercode.results.statistics.metrics import drop_retried_failures

SETTINGS = ("generation", "agent_options", "env_options", "max_turns", "timeout", "seed")
WHOLE_SETTINGS = ("prompts", "endpoint")
"""As ``SETTINGS``, but no tables."""
_MAX_LENGTH = 40


def variant_labels(runs: Sequence[tuple[str, Trajectory]]) -> list[str]:
    """A label for each of several runs, given by where it lies and one of its episodes.

    ``temperature = 0.7`` and the like for every setting that is not the same in all; ``from FILE``
    for a further one with the settings of one before, nothing for the first of those.
    """
    facts = [_flatten_settings(episode.run) for _, episode in runs]
    names = sorted({name for one in facts for name in one})
    apart = [n for n in names if any(one.get(n) != facts[0].get(n) for one in facts)]
    out: list[str] = []
    seen: set[str] = set()
    for (log, _), one in zip(runs, facts, strict=True):
        label = ", ".join(f"{n} = {_shorten(one.get(n))}" for n in apart)
        further = f"from {log}"
        out.append(label if label not in seen else f"{label}, {further}".removeprefix(", "))
        seen.add(label)
    return out


def _flatten_settings(run: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those in tables by their own."""
    found: dict[str, Any] = {}
    for name in SETTINGS + WHOLE_SETTINGS:
        value = run.get(name)
        found |= value if isinstance(value, Mapping) and name in SETTINGS else {name: value}
    return {name: value for name, value in found.items() if value not in (None, {}, [])}


def _shorten(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."


def different_tasks_warning(entries: Sequence[ResultSet]) -> list[str]:
    """The warning that belongs to a column whose rows rest on different tasks; with how many tasks
    each row has, and how many are in all of them."""
    sets = [frozenset(t.task for t in entry.episodes) for entry in entries]
    if len(set(sets)) < 2:
        return []
    counts = ", ".join(
        f"{entry.agent} {entry.model} {len(tasks)}"
        for entry, tasks in zip(entries, sets, strict=True)
    )
    common = len(frozenset.intersection(*sets))
    return [
        f"{entries[0].dataset}: rows that rest on different tasks cannot be compared (tasks: "
        f"{counts}; in all of them: {common})."
    ]


SOURCE_RUN = "run"
SOURCE_PUBLISHED = "published"
_SOURCES = {"authors": SOURCE_PUBLISHED, "reference": "re-run of published actions"}


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Episodes that one row of a table is made of.

    ``dataset`` is without the file system for the paper's tasks, so that four logs make one row;
    ``conditions`` says what the episodes were obtained with, ``log`` where the first of them lies,
    ``variant`` which settings tell it from an entry that has all else in common with it.
    """

    environment: str
    dataset: str
    agent: str
    model: str
    conditions: str
    source: str
    log: Path
    episodes: tuple[Trajectory, ...]
    variant: str = ""

    @property
    def description(self) -> str:
        """The conditions, and the variant where there is one."""
        return f"{self.conditions}, {self.variant}" if self.variant else self.conditions

    @property
    def key(self) -> tuple[str, ...]:
        """What two entries must not have in common, or they would be one row."""
        return (*self.key_without_variant, self.variant)

    @property
    def key_without_variant(self) -> tuple[str, ...]:
        """The same without the variant."""
        return (self.environment, self.dataset, self.agent, self.model, self.conditions)


def describe_conditions(episode: Trajectory) -> str:
    """What makes a result comparable, in one line.

    For a run of ours: data with hash, profile with scoring version, image with digest, architecture
    and sandbox tier, and "not comparable" where the run says so; ``?`` for what it does not say.
    A reward that is not the profile's own, a policy and determinism are named where there are any.
    """
    run = episode.run
    if run.get("source", SOURCE_RUN) != SOURCE_RUN:
        return _SOURCES[run["source"]]

    def tagged(name: str, tag: str, sign: str, length: int) -> str:
        value = str(run.get(name) or "?")
        return f"{value}{sign}{_short_digest(run[tag], length)}" if run.get(tag) else value

    boxed = run.get("environment") != "sql"  # SQL has an engine, which the tier names, and no image
    parts = [
        tagged("dataset", "dataset_hash", "#", 8),
        tagged("profile", "scoring", " ", 12),
        *([tagged("image", "image_digest", "@", 12)] if boxed else []),
        str(run.get("arch") or "?"),
        str(run.get("tier") or run.get("sandbox") or "?"),
    ]
    own = f"{run.get('environment')}-{run.get('profile')}"
    parts += [f"reward {run['reward']}"] if run.get("reward") not in (None, own) else []
    parts += [f"policy {run['policy'].get('digest', '?')[:8]}"] if run.get("policy") else []
    parts += ["deterministic"] if run.get("determinism") else []
    parts += ["network"] if run.get("network") == "host" else []
    parts += ["not comparable"] if run.get("comparable") is False else []
    return ", ".join(parts)


def collect_result_sets(logs: Sequence[tuple[Path, Sequence[Trajectory]]]) -> list[ResultSet]:
    """Entries out of logs. Published logs of different tasks join; runs of ours never do."""
    out: list[ResultSet] = []
    for path, episodes in logs:
        parts: dict[tuple[str, ...], list[ResultSet]] = {}
        for episode in episodes:
            entry = _result_set(path, episode)
            parts.setdefault((*entry.key, entry.source), []).append(entry)
        for same in parts.values():
            episodes = drop_retried_failures(e.episodes[0] for e in same)
            _add_result_set(out, replace(same[0], episodes=tuple(episodes)))
    return _with_variants(out)


def _with_variants(entries: Sequence[ResultSet]) -> list[ResultSet]:
    """The entries, with a variant for those that would look alike."""
    out = list(entries)
    alike: dict[tuple[str, ...], list[int]] = {}
    for n, entry in enumerate(entries):
        alike.setdefault(entry.key_without_variant, []).append(n)
    for numbers in alike.values():
        labels = variant_labels([(str(out[n].log), out[n].episodes[0]) for n in numbers])
        for n, label in zip(numbers, labels, strict=True):
            out[n] = replace(out[n], variant=label)
    return out


def _add_result_set(entries: list[ResultSet], new: ResultSet) -> None:
    """Join an entry with the one that it belongs to, or put it last under a label of its own."""
    at = {e.key: n for n, e in enumerate(entries)}.get(new.key)
    if at is None:
        entries.append(new)
        return
    old = entries[at]
    apart = {t.task for t in old.episodes}.isdisjoint(t.task for t in new.episodes)
    if new.source != SOURCE_RUN and apart:
        entries[at] = replace(old, episodes=old.episodes + new.episodes)
    else:
        _add_result_set(
            entries, replace(new, variant=f"{new.variant}from {new.log} ")
        )  # until told apart


def _result_set(path: Path, episode: Trajectory) -> ResultSet:
    run = episode.run
    dataset = str(run.get("dataset") or "?")
    model = str(run.get("model") or "none")
    return ResultSet(
        environment=str(run.get("environment") or "?"),
        dataset=re.sub(r"^nl2bash:fs_\d+$", "nl2bash", dataset),
        agent=str(run.get("agent") or "?"),
        model=f"{model} (schema given)" if run.get("schema_given") else model,
        conditions=describe_conditions(episode),
        source=str(run.get("source", SOURCE_RUN)),
        log=path,
        episodes=(episode,),
    )


def _short_digest(value: object, length: int) -> str:
    return str(value).removeprefix("sha256:")[:length]


def why_not_comparable(episodes: Iterable[Trajectory]) -> str:
    """Why these results cannot be put beside those of others; empty where they can."""
    images = {str(t.run.get("image")) for t in episodes if t.run.get("comparable") is False}
    if not images:
        return ""
    if images == {"host"}:
        return "the programs under test are this machine's own"
    return "tasks or image are not pinned ones of a published benchmark"
