"""A box per test, and one with a small tree underneath; in namespaces, every test with both kinds
of supervisor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.core.types import Layer
from intercode.sandbox.namespace.launcher import Launcher
from intercode.sandbox.supervisor import programs
from intercode.sandbox.supervisor.client import SupervisedSandbox
from support import back_end
from support.boxes import layer_of, open_box
from support.kept_container import KeptContainer, SmallImage, require_engine


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Boxes of the module's tests are kept by the program, or by the interpreter. PID 1 of a
    container is the program always."""
    if "supervisor" in vars(metafunc.module):
        return  # it has a supervisor of its own
    kinds = ["compiled"] if back_end.is_container() else ["compiled", "python"]
    metafunc.parametrize("supervisor", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module", autouse=True)
def supervisor(request: pytest.FixtureRequest) -> Iterator[None]:
    """See ``pytest_generate_tests``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(programs.ENVIRONMENT_VARIABLE, request.param)
        Launcher.stop()
        programs.supervisor_program.cache_clear()
        path, why = programs.supervisor_program()
        if request.param == "compiled" and path is None:
            pytest.skip(f"the supervisor is {why}")
        yield
        Launcher.stop()
    programs.supervisor_program.cache_clear()


@pytest.fixture
def box() -> Iterator[SupervisedSandbox]:
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
def treed(tree: Layer) -> Iterator[SupervisedSandbox]:
    with open_box(layers=(tree,)) as opened:
        yield opened


@pytest.fixture(scope="session")
def small_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallImage]:
    """For containers that are driven by the messages of their supervisor alone."""
    made = SmallImage(require_engine(), tmp_path_factory.mktemp("supervisor"))
    yield made
    made.remove()


@pytest.fixture(scope="session")
def _kept(small_image: SmallImage) -> Iterator[KeptContainer]:
    with KeptContainer(small_image) as container:
        yield container


@pytest.fixture
def kept(_kept: KeptContainer) -> KeptContainer:
    """A container as it was at its start."""
    _kept.ask("recycle")
    return _kept


@pytest.fixture
def own(small_image: SmallImage) -> Iterator[KeptContainer]:
    """A container for one test."""
    with KeptContainer(small_image) as container:
        yield container
