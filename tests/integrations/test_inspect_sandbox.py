"""Inspect's conformance suite for sandbox providers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from intercode.integrations.inspect.sandbox import InterCodeSandbox, SandboxConfig

pytestmark = [pytest.mark.sandbox, pytest.mark.anyio]
ONE_USER = "a sandbox has one user, as the kernel maps one id for an ordinary user"
MAY_ALL = "the user is root with the capabilities that Docker leaves to root: modes do not bind it"
CANNOT = {
    "test_exec_as_user": ONE_USER,
    "test_read_file_not_allowed": MAY_ALL,
    "test_write_text_file_without_permissions": MAY_ALL,
    "test_write_binary_file_without_permissions": MAY_ALL,
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def sandbox_env(request: pytest.FixtureRequest) -> AsyncIterator[SandboxEnvironment]:
    made = await InterCodeSandbox.sample_init("check", SandboxConfig(), {})
    default = made["default"].as_type(InterCodeSandbox)
    why = CANNOT.get(request.node.originalname)
    if why and not (why is MAY_ALL and default.sandbox.tier.startswith("container")):
        request.applymarker(pytest.mark.xfail(reason=why, strict=True))
    yield default
    await InterCodeSandbox.sample_cleanup("check", None, made, False)
