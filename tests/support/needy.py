"""Datasets that say which programs their tasks need."""

from __future__ import annotations

from dataclasses import replace

from intercode import datasets
from intercode.core.types import Dataset


def needy() -> Dataset:
    """The starter tasks, as if they needed a program that nobody has."""
    return replace(datasets.load("starter:ctf"), programs=("python3", "no-such-program"))


def content() -> Dataset:
    """The starter tasks with a program that everybody has."""
    return replace(datasets.load("starter:ctf"), programs=("cat",))
