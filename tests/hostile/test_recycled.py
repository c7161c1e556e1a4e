"""Nothing that hostile cases leave in a sandbox survives its recycling."""

from __future__ import annotations

import pytest

from hostile.__main__ import sampled
from hostile.cases import Case, all_cases
from hostile.planted import Planted
from hostile.trial import BACK_ENDS
from intercode.core.errors import SandboxError, SandboxLostError
from intercode.sandbox.contract import Sandbox
from intercode.sessions.bash.persistent import BashSession
from support import back_end
from support.sandbox_description import describe
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox


def _suffer(sandbox: Sandbox, case: Case, planted: Planted) -> None:
    session = BashSession(sandbox)
    for action in case.actions:
        session.run(planted.fill(action), case.limit)
    session.close()


@pytest.mark.slow
def test_a_recycled_sandbox_is_clean_after_hostile_cases() -> None:
    open_test_sandbox().close()  # skips the test if there is no sandbox
    opens = BACK_ENDS[back_end.chosen()]
    planted = Planted(opens)
    renewed = []
    with opens() as new:
        assert isinstance(new, Sandbox)
        expected = describe(new)
    for case in sampled(all_cases(), 40, seed=5):
        with opens() as sandbox:
            assert isinstance(sandbox, Sandbox)
            try:
                _suffer(sandbox, case, planted)
                sandbox.recycle()
            except (SandboxError, SandboxLostError):
                continue  # the sandbox refuses to be recycled and is not used again
            assert sandbox.changes() == {} and sandbox.processes() == (), case.name
            assert describe(sandbox) == expected, case.name
            renewed.append(case.name)
    planted.close()
    assert len(renewed) >= 25, renewed
