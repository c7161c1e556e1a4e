"""A box per test, and one with a small tree underneath; every test with both kinds of keeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.sandboxes.namespace import compiled
from intercode.sandboxes.namespace.launcher import Launcher
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.types import Layer
from support.boxes import layer_of, open_box


@pytest.fixture(scope="module", params=["compiled", "python"], autouse=True)
def keeper(request: pytest.FixtureRequest) -> Iterator[None]:
    """Boxes of the module's tests are kept by the program, or by the interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(compiled.SWITCH, request.param)
        Launcher.stop()
        compiled.keeper.cache_clear()
        path, why = compiled.keeper()
        if request.param == "compiled" and path is None:
            pytest.skip(f"the keeper is {why}")
        yield
        Launcher.stop()
    compiled.keeper.cache_clear()


@pytest.fixture
def box() -> Iterator[NamespaceSandbox]:
    with open_box() as opened:
        yield opened


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Layer:
    """A layer with a little of everything below ``/data``."""
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
def treed(tree: Layer) -> Iterator[NamespaceSandbox]:
    with open_box(layers=(tree,)) as opened:
        yield opened
