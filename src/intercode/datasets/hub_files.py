"""Which files of a dataset's repository on the hub hold the rows of a split."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.registry import unknown_name_error
from intercode.datasets.files import SUFFIXES

_SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""Words that tell a split in the names of files and directories."""
_METADATA_FILES = ("readme", "dataset_infos", "dataset_dict", "config")

Splits = dict[str, list[str]]


def split_files(
    repo: str, names: Sequence[str], configs: Any, config: str | None, split: str | None
) -> list[str]:
    """The files of a split, in order.

    ``configs`` is what the dataset's card says of its files; where it says nothing, names tell:
    a directory's or file's name that is or begins with a split's, everything else is ``train``.
    Raises UsageError that names what there is, where the choice is not clear or nothing is there.
    """
    known = _declared_splits(names, configs) or _splits_by_name(names)
    if not any(files for splits in known.values() for files in splits.values()):
        raise UsageError(
            f"{repo} has no {', '.join(SUFFIXES)} file; most datasets have been made Parquet by "
            f"the hub: try hub:{repo}@refs/convert/parquet"
        )
    chosen = known[_select(repo, "config", config, known, _default_config(configs))]
    return chosen[_select(repo, "split", split, chosen, None)]


def _select(
    repo: str, what: str, asked: str | None, known: Mapping[str, Any], default: str | None
) -> str:
    if asked is not None:
        if asked not in known:
            raise unknown_name_error(f"{what} of {repo}", asked, list(known))
        return asked
    if len(known) == 1:
        return next(iter(known))
    if default in known:
        return str(default)
    there = ", ".join(sorted(known))
    raise UsageError(f"{repo} has several of them: choose one with ?{what}=… from {there}")


def _default_config(configs: Any) -> str | None:
    rows = [row for row in configs or () if isinstance(row, Mapping)]
    marked = [str(row.get("config_name")) for row in rows if row.get("default")]
    return marked[0] if marked else "default"


def _declared_splits(names: Sequence[str], configs: Any) -> dict[str, Splits]:
    """What a card says: ``data_files`` is a pattern, a list of them, or one of
    ``{split, path}``."""
    found: dict[str, Splits] = {}
    for row in configs or ():
        if not isinstance(row, Mapping) or "data_files" not in row:
            continue
        given = row["data_files"]
        parts = given if isinstance(given, list) else [given]
        folder = str(row.get("data_dir") or "")
        splits = found.setdefault(str(row.get("config_name", "default")), {})
        for part in parts:
            split, paths = ("train", part)
            if isinstance(part, Mapping):
                split, paths = str(part.get("split", "train")), part.get("path", [])
            for pattern in paths if isinstance(paths, list) else [paths]:
                wanted = str(PurePosixPath(folder, str(pattern)))
                fits = sorted(n for n in names if _glob_pattern(wanted).fullmatch(n))
                splits.setdefault(split, []).extend(fits)
    return found


@cache
def _glob_pattern(text: str) -> re.Pattern[str]:
    """A glob in which ``*`` stays within a directory and ``**`` does not."""
    parts = [
        ".*" if part == "**" else translate(part)[4:-3].replace(".*", "[^/]*")
        for part in text.split("/")
    ]
    return re.compile("/".join(parts).replace(".*/", "(?:.*/)?"))


def _splits_by_name(names: Sequence[str]) -> dict[str, Splits]:
    """By splits' names, under the directory above as the config where there is one: the hub's own
    conversion lays files out as ``CONFIG/SPLIT/0000.parquet``."""
    found: dict[str, Splits] = {}
    for name in sorted(names):
        path = PurePosixPath(name)
        aside = path.stem.lower() in _METADATA_FILES or path.name.startswith(".")
        if path.suffix.lower() not in SUFFIXES or aside:
            continue
        split = _split_name(path.stem)
        above = path.parts[:-1]
        if split is None and above:
            split, above = _split_name(above[-1]), above[:-1] if _split_name(above[-1]) else above
        config = "/".join(part for part in above if part != "data") or "default"
        found.setdefault(config, {}).setdefault(split or "train", []).append(name)
    return found


def _split_name(word: str) -> str | None:
    first = re.split(r"[^a-z]", word.lower(), maxsplit=1)[0]
    return next((split for split, words in _SPLITS.items() if first in words), None)
