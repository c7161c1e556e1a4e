"""Groups episodes into result sets: one agent, one model, one set of conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode.core.logs import find_logs, ignored_files, load_log
from intercode.core.logs.formats import LOG_FORMATS, SOURCE_RUN, LogFormat
from intercode.core.trajectories import planned_episodes
from intercode.core.types import Trajectory
from intercode.environments.recorded_descriptions import description_of
from intercode.results.short_text import shorten_distinct
from intercode.results.statistics import metrics
from intercode.results.statistics.metrics import Episodes, drop_retried_failures
from intercode.results.statistics.samples import all_samples

SETTINGS = ("generation", "agent_options", "env_options", "max_turns", "timeout", "seed")
WHOLE_SETTINGS = ("prompts", "endpoint")
"""As ``SETTINGS``, for values that are not tables."""
_MAX_LENGTH = 40
_MAX_NAMED_ROWS = 4  # in a note


def variant_labels(runs: Sequence[tuple[str, Trajectory]]) -> list[str]:
    """Return a label for each of several runs, given by its path and one of its episodes.

    ``temperature = 0.7`` and the like for every setting that differs between them; ``from FILE``
    for a further run with the same settings as one before, nothing for the first of those.
    """
    settings = [_flatten_settings(episode.run) for _, episode in runs]
    names = sorted({name for one in settings for name in one})
    differing = [n for n in names if any(one.get(n) != settings[0].get(n) for one in settings)]
    out: list[str] = []
    seen: set[str] = set()
    texts = {n: _short_values([one.get(n) for one in settings]) for n in differing}
    for number, (log, _) in enumerate(runs):
        label = ", ".join(f"{n} = {texts[n][number]}" for n in differing)
        further = f"from {log}"
        out.append(label if label not in seen else f"{label}, {further}".removeprefix(", "))
        seen.add(label)
    return out


def _flatten_settings(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name, with the entries of tables by their own names."""
    settings: dict[str, Any] = {}
    for name in SETTINGS + WHOLE_SETTINGS:
        value = run.get(name)
        settings |= value if isinstance(value, Mapping) and name in SETTINGS else {name: value}
    return {name: value for name, value in settings.items() if value not in (None, {}, [])}


def _short_values(values: Sequence[Any]) -> list[str]:
    return shorten_distinct(["none" if v is None else str(v) for v in values], _MAX_LENGTH)


def different_tasks_warning(result_sets: Sequence[ResultSet]) -> list[str]:
    """Return the warning for a column whose rows have different tasks, with the number of tasks
    of each row and of those in all rows."""
    sets = [frozenset(t.task for t in result_set.episodes) for result_set in result_sets]
    if len(set(sets)) < 2:
        return []
    sizes = sorted(map(len, sets))
    counts = ", ".join(
        f"{result_set.agent} {result_set.model} {len(tasks)}"
        for result_set, tasks in zip(result_sets, sets, strict=True)
    )
    if len(sets) > _MAX_NAMED_ROWS:
        counts = f"{sizes[0]} to {sizes[-1]} a row"
    common = len(frozenset.intersection(*sets))
    return [
        f"{result_sets[0].dataset}: rows that rest on different tasks cannot be compared (tasks: "
        f"{counts}; in all of them: {common})."
    ]


STRATEGY_FIGURES = ("success %", "turns", "error %", "error % true")
FIGURE_DIGITS = (("turns", 2), ("error %", 2), ("error % true", 2))
"""The decimals of the figures in tables, where they are not 1."""


@dataclass(frozen=True, slots=True)
class ResultSet:
    """The episodes of one row of a table.

    ``dataset`` is without the file system for the paper's tasks, so that four logs make one row.
    ``conditions`` describes what the episodes depend on, ``log`` is the path of the first of them,
    and ``variant`` the settings that distinguish it from a result set with the same other values.
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
        """The conditions, and the variant if there is one."""
        return f"{self.conditions}, {self.variant}" if self.variant else self.conditions

    @property
    def key(self) -> tuple[str, ...]:
        """The key that distinguishes the rows of a table."""
        return (*self.key_without_variant, self.variant)

    @property
    def key_without_variant(self) -> tuple[str, ...]:
        """The key without the variant."""
        return (self.environment, self.dataset, self.agent, self.model, self.conditions)


def describe_conditions(episode: Trajectory) -> str:
    """Return what a result depends on, in one line.

    For a run of ours: data with hash, profile with scoring version, image with digest, architecture
    and sandbox tier, and "not comparable" if the run says so; ``?`` for unknown values. A reward
    function other than the profile's, a policy, limits and determinism are added if present.
    """
    run = episode.run
    if run.get("source", SOURCE_RUN) != SOURCE_RUN:
        log_format: LogFormat = LOG_FORMATS.load_named(str(run["source"]))
        return log_format.conditions

    def tagged(name: str, tag: str, sign: str, length: int) -> str:
        value = _without_folders(str(run.get(name) or "?"))
        digest = str(run.get(tag) or "").removeprefix("sha256:")[:length]
        return f"{value}{sign}{digest}" if run.get(tag) else value

    has_image = description_of(run).image != "none"  # else the tier names the engine
    parts = [
        tagged("dataset", "dataset_hash", "#", 8),
        tagged("profile", "scoring", " ", 12),
        *([tagged("image", "image_digest", "@", 12)] if has_image else []),
        str(run.get("arch") or "?"),
        str(run.get("tier") or run.get("sandbox") or "?"),
    ]
    own = f"{run.get('environment')}-{run.get('profile')}"
    parts += [f"reward {run['reward']}"] if run.get("reward") not in (None, own) else []
    parts += [f"policy {run['policy'].get('digest', '?')[:8]}"] if run.get("policy") else []
    parts += ["deterministic"] if run.get("determinism") else []
    parts += ["network"] if run.get("network") == "host" else []
    parts += [str(run["network"])] if str(run.get("network")).startswith("allow:") else []
    limits = run.get("limits") or {}
    parts += ["limits " + " ".join(f"{k}={v}" for k, v in limits.items())] if limits else []
    parts += ["not comparable"] if run.get("comparable") is False else []
    return ", ".join(parts)


def _without_folders(name: str) -> str:
    """Return the name of an image, with the last two parts of an absolute path in it."""
    kind, colon, path = name.partition(":")
    return kind + colon + "/".join(Path(path).parts[-2:]) if path.startswith("/") else name


def load_result_sets(paths: Sequence[Path]) -> list[ResultSet]:
    """Return the result sets of all logs and runs at some paths. Raises UsageError for a path
    without logs."""
    return collect_result_sets([(path, load_log(path)) for path in find_logs(paths)])


def collect_result_sets(logs: Sequence[tuple[Path, Sequence[Trajectory]]]) -> list[ResultSet]:
    """Return the result sets of logs. Published logs of different tasks are joined; our runs never
    are."""
    out: list[ResultSet] = []
    for path, episodes in logs:
        parts: dict[tuple[str, ...], list[ResultSet]] = {}
        for episode in episodes:
            result_set = _result_set(path, episode)
            parts.setdefault((*result_set.key, result_set.source), []).append(result_set)
        for group in parts.values():
            episodes = drop_retried_failures(e.episodes[0] for e in group)
            _add_result_set(out, replace(group[0], episodes=tuple(episodes)))
    return _with_variants(out)


def _with_variants(result_sets: Sequence[ResultSet]) -> list[ResultSet]:
    """Return the result sets, with a variant for those that would look alike."""
    out = list(result_sets)
    alike: dict[tuple[str, ...], list[int]] = {}
    for n, result_set in enumerate(result_sets):
        alike.setdefault(result_set.key_without_variant, []).append(n)
    for numbers in alike.values():
        labels = variant_labels([(str(out[n].log), out[n].episodes[0]) for n in numbers])
        for n, label in zip(numbers, labels, strict=True):
            out[n] = replace(out[n], variant=label)
    return out


def _add_result_set(result_sets: list[ResultSet], new: ResultSet) -> None:
    """Join a result set with the one that it belongs to, or append it under a label of its own."""
    at = {e.key: n for n, e in enumerate(result_sets)}.get(new.key)
    if at is None:
        result_sets.append(new)
        return
    old = result_sets[at]
    disjoint = {t.task for t in old.episodes}.isdisjoint(t.task for t in new.episodes)
    if new.source != SOURCE_RUN and disjoint:
        result_sets[at] = replace(old, episodes=old.episodes + new.episodes)
    else:
        _add_result_set(
            result_sets, replace(new, variant=f"{new.variant}from {new.log} ")
        )  # _with_variants replaces this label


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


def strategy_figures(episodes: Episodes) -> tuple[float | None, ...]:
    """Return the STRATEGY_FIGURES of episodes."""
    return (
        metrics.success_rate(episodes),
        metrics.mean_turns(episodes),
        metrics.error_rate(episodes),
        metrics.error_rate(episodes, metrics.true_error_share),
    )


def failure_notes(result_set: ResultSet) -> list[str]:
    """Return the note on episodes that ended in an error of the infrastructure, if there are
    any."""
    count = metrics.count_failed(result_set.episodes)
    if not count:
        return []
    label = f"{result_set.model}, {result_set.agent} ({result_set.description})"
    bound = metrics.upper_bound(result_set.episodes)
    return [
        f"{label}: errors (episodes that ended in one, counted as not solved): {count}; success is "
        f"at most {bound:.1f} %."
    ]


def unfinished_notes(logs: Iterable[tuple[Path, Sequence[Trajectory]]]) -> Iterator[str]:
    """Yield a note for each run of which episodes are still to be played."""
    for path, episodes in logs:
        played, planned = len(all_samples(episodes)), planned_episodes(path)
        if played < planned:
            yield (
                f"{path} is not finished: {played} of {planned} episodes are played; `intercode "
                f"eval --resume {path}` plays the rest."
            )


def ignored_notes(paths: Sequence[Path]) -> list[str]:
    """Return a note for each file below these directories that is no log."""
    return [f"left out: {path}: no log of episodes." for path in ignored_files(paths)]


def mixed_conditions_warning(result_sets: Iterable[ResultSet]) -> list[str]:
    """Return the warning for a table whose rows were obtained under different conditions."""
    if len({e.conditions for e in result_sets}) < 2:
        return []
    return ["rows with different conditions must not be compared."]


def why_not_comparable(episodes: Iterable[Trajectory]) -> str:
    """Return why these results cannot be compared with those of others; empty if they can."""
    images = {str(t.run.get("image")) for t in episodes if t.run.get("comparable") is False}
    if not images:
        return ""
    if images == {"host"}:
        return "the programs under test are this machine's own"
    return "tasks or image are not pinned ones of a published benchmark"
