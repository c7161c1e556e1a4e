"""Every hostile case on every back end: the host unharmed and unread, the time kept, the
environment usable afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostile.cases import Case, all_cases
from hostile.planted import Planted
from hostile.trial import BACK_ENDS, Trial
from intercode.errors import SandboxUnavailableError

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module", params=sorted(BACK_ENDS))
def ground(request: pytest.FixtureRequest) -> Iterator[tuple[str, Planted]]:
    """A back end's name and what is planted on the host beside it."""
    try:
        planted = Planted(BACK_ENDS[request.param])
    except SandboxUnavailableError as e:
        pytest.skip(f"no {request.param} sandbox on this machine ({e}): see `intercode doctor`")
    yield request.param, planted
    planted.close()


def _parameter(case: Case) -> object:
    marks = [pytest.mark.xfail(reason=case.fault, strict=False)] if case.fault else []
    # not strict: some of these faults are races
    return pytest.param(case, id=f"{case.kind}: {case.name}", marks=marks)


@pytest.mark.parametrize("case", [_parameter(case) for case in all_cases()])
def test_a_hostile_case(ground: tuple[str, Planted], case: Case) -> None:
    back_end, planted = ground
    Trial(case, back_end, planted).run()


def test_there_are_enough_cases_of_every_class() -> None:
    cases = all_cases()
    names = [(case.kind, case.name) for case in cases]
    assert len(set(names)) == len(names) >= 160
    kinds = [case.kind for case in cases]
    for kind in ("dos", "shell", "framing", "kernel", "network", "leak", "file", "lifecycle"):
        assert kinds.count(kind) >= 10, kind
