"""Caches loaded datasets for commands that use the same one many times, such as replay."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from intercode import datasets
from intercode.core.types import Dataset


def load_cached(spec: str, environment: str) -> Dataset:
    """Load a dataset as ``datasets.load`` does, from a cache unless it is a file of rows.

    A dataset is loaded again when INTERCODE_DATA has changed.
    """
    if datasets.is_dataset_file(spec):
        return datasets.load(spec, environment)
    return _load(spec, environment, os.environ.get("INTERCODE_DATA"))


def environment_for_options(env_options: Mapping[str, Any]) -> str:
    """Return the environment for rows that do not imply one: ``code`` if a language is set."""
    return "code" if "language" in env_options else "bash"


@lru_cache(maxsize=8)
def _load(spec: str, environment: str, _data: str | None) -> Dataset:
    return datasets.load(spec, environment)
