"""The address at which `intercode serve` listens."""

from __future__ import annotations

import pytest

from intercode.cli import main
from intercode.cli.serve import BOUND_NAMES
from intercode.core.errors import UsageError
from intercode_sandbox.command.address import listen


def test_serve_listens_or_raises_the_reason() -> None:
    with listen("127.0.0.1", 0) as place:
        port = place.getsockname()[1]
        assert port > 0
        with pytest.raises(UsageError, match=f"port {port}: .*--port 0 takes any"):
            listen("127.0.0.1", port)
    with pytest.raises(UsageError, match="port 99999: "):
        listen("127.0.0.1", 99999)


def test_the_bounds_of_sandboxes_are_those_of_their_own_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert {"token_file", "limit", "allow_network"} == BOUND_NAMES
    assert main(["serve", "bash", "--limit", "memory=2g"]) == 2
    assert "--limit is for --protocol sandboxes, not for --protocol openenv" in (
        capsys.readouterr().err
    )
    sandboxes = ["serve", "--protocol", "sandboxes"]
    assert main([*sandboxes, "--max-memory", "2"]) == 2
    assert "--max-memory: the option is now --limit memory=SIZE" in capsys.readouterr().err
    assert main([*sandboxes, "--limit", "memory=0"]) == 2
    assert "the limit memory has to be greater than 0, not 0" in capsys.readouterr().err
    assert main([*sandboxes, "--limit", "memry=2g"]) == 2
    assert "unknown limit 'memry'; did you mean 'memory'?" in capsys.readouterr().err
