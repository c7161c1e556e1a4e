"""What a record says of its origin is a name, and never a file that would be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core.types import Trajectory
from intercode.environments.base.replay.rules import replay_rules_for
from intercode.results.report.result_sets import describe_conditions
from intercode_sandbox.errors import UnknownNameError


@pytest.mark.parametrize("reader", [describe_conditions, replay_rules_for])
def test_a_record_runs_no_file(tmp_path: Path, reader: object) -> None:
    file = tmp_path / "evil.py"
    file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nf = print\n")
    episode = Trajectory("t", 0, "q", (), run={"source": f"{file}:f", "environment": "bash"})
    for record in (episode, Trajectory("t", 0, "q", (), run={**episode.run, "source": {"a": 1}})):
        with pytest.raises(UnknownNameError):
            assert callable(reader) and reader(record)
    environment = Trajectory("t", 0, "q", (), run={"environment": f"{file}:f"})
    if reader is replay_rules_for:
        with pytest.raises(UnknownNameError):
            replay_rules_for(environment)
    assert not (tmp_path / "ran").exists()
