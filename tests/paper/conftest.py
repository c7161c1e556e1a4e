"""A sandbox per test."""

from support.fixtures import sandbox as sandbox
