"""Datasets that many episodes of one replay ask for, loaded once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from intercode import datasets
from intercode.core.types import Dataset


def load_cached(spec: str, environment: str) -> Dataset:
    """As ``datasets.load``. What is no file of the user's own is kept, as long as INTERCODE_DATA
    stays what it is."""
    if datasets.is_dataset_file(spec):
        return datasets.load(spec, environment)
    return _load(spec, environment, os.environ.get("INTERCODE_DATA"))


def environment_for_options(env_options: Mapping[str, Any]) -> str:
    """The environment that a dataset is for, where it does not tell that itself: Code's, where the
    language of its tasks is a setting."""
    return "code" if "language" in env_options else "bash"


@lru_cache(maxsize=8)
def _load(spec: str, environment: str, _data: str | None) -> Dataset:
    return datasets.load(spec, environment)
