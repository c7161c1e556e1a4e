"""Training refuses the profile ``original`` unless it is allowed by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import UsageError
from intercode.integrations.trl import SqlEnvironment


def _skyrl(**settings: Any) -> Any:
    pytest.importorskip("skyrl_gym", reason="pip install 'intercode-gym[skyrl]'")
    from intercode.integrations.skyrl import InterCodeTextEnv

    return InterCodeTextEnv({"environment": "sql", **settings}, {"task": 0})


def _served(**settings: Any) -> Any:
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    from intercode.integrations.openenv.server import ServedEnv

    allowed = settings.pop("allow_exploitable", False)
    return ServedEnv(lambda: intercode.make("sql", **settings), allow_exploitable=allowed)


OPENERS: dict[str, Callable[..., Any]] = {
    "Pool": lambda **settings: intercode.Pool("sql", 1, **settings),
    "make_vec": lambda **settings: intercode.make_vec("sql", 1, **settings),
    "TRL": lambda **settings: SqlEnvironment("starter", **settings),
    "SkyRL": _skyrl,
    "OpenEnv": _served,
}


@pytest.mark.paper
@pytest.mark.parametrize("name", OPENERS)
def test_the_original_profile_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"solve nothing.*allow_exploitable=True"):
        OPENERS[name](profile="original")


@pytest.mark.paper
@pytest.mark.parametrize("name", OPENERS)
def test_the_original_profile_can_be_allowed(name: str) -> None:
    assert OPENERS[name](profile="original", allow_exploitable=True) is not None


@pytest.mark.paper
def test_serve_refuses_it(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    command = [
        sys.executable,
        "-m",
        "intercode",
        "serve",
        "sql",
        "--profile",
        "original",
        "--package",
    ]
    done = subprocess.run([*command, str(tmp_path / "a")], capture_output=True, text=True)
    assert done.returncode == 2 and "--allow-exploitable" in done.stderr
    assert not (tmp_path / "a").exists()
    subprocess.run([*command, str(tmp_path / "b"), "--allow-exploitable"], check=True)
    assert "allow_exploitable=True" in (tmp_path / "b/server/app.py").read_text()


@pytest.mark.paper
def test_evaluations_take_it() -> None:
    with intercode.make("sql", profile="original") as env:
        assert env.profile == "original"
