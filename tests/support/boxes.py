"""Boxes for tests: the machine's own programs, with small layers of the test's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intercode import images
from intercode.errors import SandboxUnavailableError
from intercode.sandboxes.base import SandboxSpec
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.types import Layer, LayerSpec


def open_box(**spec: Any) -> NamespaceSandbox:
    """A new box; the test is skipped where this machine gives none."""
    try:
        return NamespaceSandbox(SandboxSpec(images.resolve("host"), **spec))
    except SandboxUnavailableError as e:
        pytest.skip(f"no namespace sandbox on this machine ({e}): see `intercode doctor`")


def layer_of(root: Path) -> Layer:
    """A directory of the test's own as a layer."""
    return images.layer(LayerSpec("dir", root))


def eventually(condition: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Wait until a condition holds; fail with ``what`` when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
