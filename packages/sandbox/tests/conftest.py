"""Fixtures: sandboxes, one on a small layer, containers, and a server of sandboxes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from intercode_sandbox import Sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.types import Layer
from support.sandbox_server import ServerProcess, serving_sandboxes
from support.sandboxes import layer_of, open_one, open_test_sandbox
from support.supervised_container import SmallImage, SupervisedContainer, require_engine

NEED_THE_PRODUCT = [
    "test_changes.py",
    "test_containers.py",
    "test_control_groups.py",
    "test_determinism.py",
    "test_first_thread_ended.py",
    "test_hidden_files.py",
    "test_inherited.py",
    "test_kills.py",
    "test_landlock_tier.py",
    "test_lifecycle.py",
    "test_limits.py",
    "test_limits_of_tiers.py",
    "test_no_tier.py",
    "test_recycling.py",
    "test_remote.py",
    "test_remote_access.py",
    "test_remote_bounds.py",
    "test_remote_snapshots.py",
    "test_threat_model.py",
]
"""Tests of sandboxes that environments, sessions or commands of the product use."""
collect_ignore = [] if find_spec("intercode") else NEED_THE_PRODUCT


@pytest.fixture
def sandbox() -> Iterator[BaseSandbox]:
    with open_test_sandbox() as opened:
        yield opened


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with open_one() as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Layer:
    """A layer with entries of every kind below ``/data``."""
    root = tmp_path_factory.mktemp("tree") / "layer"
    data = root / "data"
    (data / "dir").mkdir(parents=True)
    (data / "empty").mkdir()
    (data / "file").write_text("old\n")
    (data / "dir" / "a").write_text("a\n")
    (data / "dir" / "b").write_text("b\n")
    (data / "link").symlink_to("dir")
    (data / "away").symlink_to("/data/dir")
    for path in (root, data, data / "dir", data / "empty"):
        path.chmod(0o755)
    for path in (data / "file", data / "dir" / "a", data / "dir" / "b"):
        path.chmod(0o644)
    return layer_of(root)


@pytest.fixture
def treed(tree: Layer) -> Iterator[BaseSandbox]:
    with open_test_sandbox(layers=(tree,)) as opened:
        yield opened


@pytest.fixture(scope="session")
def small_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallImage]:
    """The image of containers that a test addresses by the supervisor's protocol."""
    made = SmallImage(require_engine(), tmp_path_factory.mktemp("supervisor"))
    yield made
    made.remove()


@pytest.fixture(scope="session")
def _shared_container(small_image: SmallImage) -> Iterator[SupervisedContainer]:
    with SupervisedContainer(small_image) as shared:
        yield shared


@pytest.fixture
def container(_shared_container: SupervisedContainer) -> SupervisedContainer:
    """A shared container, recycled before the test."""
    _shared_container.ask("recycle")
    return _shared_container


@pytest.fixture
def own_container(small_image: SmallImage) -> Iterator[SupervisedContainer]:
    """A container for one test."""
    with SupervisedContainer(small_image) as shared:
        yield shared


@pytest.fixture(scope="session")
def remote() -> Iterator[ServerProcess]:
    """A server of sandboxes with the default limits."""
    with serving_sandboxes() as started:
        yield started
