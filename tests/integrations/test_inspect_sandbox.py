"""Inspect's conformance suite for sandbox providers, on the image INTERCODE_CHECK_IMAGE."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from intercode.integrations.inspect.sandbox import InterCodeSandbox, SandboxConfig
from intercode_sandbox.namespace.launcher import Launcher
from support import backend

pytestmark = [pytest.mark.sandbox, pytest.mark.anyio]
ONE_USER = "a sandbox has one user, as the kernel maps one id for an ordinary user"
MAY_ALL = "the user is root with the capabilities that Docker leaves to root: modes do not bind it"
PAM = b"auth required pam_permit.so\naccount required pam_permit.so\n"
IMAGE = os.environ.get("INTERCODE_CHECK_IMAGE", "host")
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
    has_users = not backend.is_container() and not Launcher.get().user_ids_error
    config = SandboxConfig(image=IMAGE, user="nobody" if has_users else None, directory="/work")
    made = await InterCodeSandbox.sample_init("check", config, {})
    default = made["default"].as_type(InterCodeSandbox)
    why = None if has_users else CANNOT.get(request.node.originalname)
    if why and not (why is MAY_ALL and default.sandbox.tier.startswith("container")):
        request.applymarker(pytest.mark.xfail(reason=why, strict=True))
    if IMAGE == "host":  # it has no settings of PAM, which `adduser` needs
        default.sandbox.write("/etc/pam.d/other", PAM)
    yield default
    await InterCodeSandbox.sample_cleanup("check", None, made, False)
