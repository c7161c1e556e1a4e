"""Every hostile case on every back end, as whoever runs the tests and as an ordinary user: the host
unharmed and unread, the time kept, the environment usable afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostile.cases import Case, all_cases
from hostile.ordinary import OrdinaryUser
from hostile.planted import Planted
from hostile.trial import BACK_ENDS, try_case
from intercode.errors import SandboxUnavailableError

pytestmark = pytest.mark.sandbox
CASES = all_cases()


@pytest.fixture(scope="module", params=sorted(BACK_ENDS))
def ground(request: pytest.FixtureRequest) -> Iterator[tuple[str, Planted]]:
    """A back end's name and what is planted on the host beside it."""
    try:
        planted = Planted(BACK_ENDS[request.param])
    except SandboxUnavailableError as e:
        pytest.skip(f"no {request.param} sandbox on this machine ({e}): see `intercode doctor`")
    yield request.param, planted
    planted.close()


@pytest.fixture(scope="module", params=sorted(BACK_ENDS))
def user(request: pytest.FixtureRequest) -> Iterator[OrdinaryUser]:
    """An ordinary user who tries cases on a back end."""
    somebody = OrdinaryUser(request.param)
    yield somebody
    somebody.close()


def _parameter(index: int, case: Case) -> object:
    marks = [pytest.mark.xfail(reason=case.fault, strict=case.sure)] if case.fault else []
    return pytest.param(index, id=f"{case.kind}: {case.name}", marks=marks)


every_case = pytest.mark.parametrize("index", [_parameter(i, c) for i, c in enumerate(CASES)])


@every_case
def test_a_hostile_case(ground: tuple[str, Planted], index: int) -> None:
    back_end, planted = ground
    try_case(CASES[index], back_end, planted)


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
