"""Every hostile case on the tested back end, as the current and as an ordinary user. The host stays
unharmed and unread, time limits hold, and the environment stays usable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostile.cases import Case, all_cases
from hostile.ordinary import OrdinaryUser
from hostile.planted import Planted
from hostile.trial import BACKENDS, try_case
from support import backend
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox
CASES = all_cases()


@pytest.fixture(scope="module")
def planted() -> Iterator[Planted]:
    """The objects on the host that a sandbox must not reach."""
    open_test_sandbox().close()  # skips the test if there is no sandbox
    planted = Planted(BACKENDS[backend.chosen()])
    yield planted
    planted.close()


@pytest.fixture(scope="module")
def user() -> Iterator[OrdinaryUser]:
    """An ordinary user that runs cases."""
    somebody = OrdinaryUser(backend.chosen())
    yield somebody
    somebody.close()


def _parameter(index: int, case: Case) -> object:
    marks = [pytest.mark.xfail(reason=case.fault, strict=case.sure)] if case.fault else []
    if any(other.kind == case.kind for other in CASES[:index]):
        marks.append(pytest.mark.slow)  # `make test` tries the first case of every class
    return pytest.param(index, id=f"{case.kind}: {case.name}", marks=marks)


every_case = pytest.mark.parametrize("index", [_parameter(i, c) for i, c in enumerate(CASES)])


@every_case
def test_a_hostile_case(planted: Planted, index: int) -> None:
    try_case(CASES[index], backend.chosen(), planted)


@pytest.mark.namespace_only("a user who may use an engine is not an ordinary user of the machine")
@every_case
def test_a_hostile_case_as_an_ordinary_user(user: OrdinaryUser, index: int) -> None:
    said = user.attempt(index)
    assert said == "ok", said


def test_there_are_enough_cases_of_every_class() -> None:
    names = [(case.kind, case.name) for case in CASES]
    assert len(set(names)) == len(names) >= 160
    kinds = [case.kind for case in CASES]
    for kind in ("dos", "shell", "framing", "kernel", "network", "leak", "file", "lifecycle"):
        assert kinds.count(kind) >= 10, kind
