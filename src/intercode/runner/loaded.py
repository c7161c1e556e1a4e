"""Datasets that many episodes of one replay ask for, loaded once."""

from __future__ import annotations

import os
from functools import lru_cache

from intercode import datasets
from intercode.datasets.files import SUFFIXES
from intercode.types import Dataset


def loaded(spec: str, environment: str) -> Dataset:
    """As ``datasets.load``. What is no file of the user's own is kept, as long as INTERCODE_DATA
    stays what it is."""
    if spec.lower().endswith(SUFFIXES):
        return datasets.load(spec, environment)
    return _loaded(spec, environment, os.environ.get("INTERCODE_DATA"))


@lru_cache(maxsize=8)
def _loaded(spec: str, environment: str, _data: str | None) -> Dataset:
    return datasets.load(spec, environment)
