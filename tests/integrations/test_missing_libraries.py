"""An integration without the library of its framework says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("integration", "library", "install"),
    [
        ("harbor.provider", "harbor", "harbor"),
        ("inspect", "inspect_ai", "'intercode-gym[inspect]'"),
        ("mini_swe_agent", "minisweagent", "'intercode-gym[agents]'"),
        ("skyrl", "skyrl_gym", "'intercode-gym[skyrl]'"),
        ("verifiers", "verifiers", "'intercode-gym[verifiers]'"),
    ],
)
def test_the_error_names_what_to_install(integration: str, library: str, install: str) -> None:
    program = f"import sys; sys.modules[{library!r}] = None; import intercode.integrations."
    done = subprocess.run(
        [sys.executable, "-c", program + integration], capture_output=True, text=True, check=False
    )
    assert f": pip install {install}\n" in done.stderr
