"""One cluster for all tests over nodes, because starting it takes longer than the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.raylets import Raylets


@pytest.fixture(scope="session")
def raylets() -> Iterator[Raylets]:
    """A cluster with one node that lives as long as the tests."""
    pytest.importorskip("ray", reason="no Ray: pip install 'intercode-gym[ray]'")
    cluster = Raylets()
    try:
        cluster.add(cpus=2)
        yield cluster
    finally:
        cluster.close()
