"""The address at which `intercode serve` listens."""

from __future__ import annotations

import pytest

from intercode.cli.serve import listen
from intercode.core.errors import UsageError


def test_serve_listens_or_raises_the_reason() -> None:
    with listen("127.0.0.1", 0) as place:
        port = place.getsockname()[1]
        assert port > 0
        with pytest.raises(UsageError, match=f"port {port}: .*--port 0 takes any"):
            listen("127.0.0.1", port)
    with pytest.raises(UsageError, match="port 99999: "):
        listen("127.0.0.1", 99999)
