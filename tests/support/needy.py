"""Datasets that declare the programs that their tasks need."""

from __future__ import annotations

from dataclasses import replace

from intercode import datasets
from intercode.core.types import Dataset


def needy() -> Dataset:
    """Return the starter tasks with the name of a program that does not exist."""
    return replace(datasets.load("starter:ctf"), programs=("python3", "no-such-program"))


def content() -> Dataset:
    """Return the starter tasks with the name of a program that every machine has."""
    return replace(datasets.load("starter:ctf"), programs=("cat",))
