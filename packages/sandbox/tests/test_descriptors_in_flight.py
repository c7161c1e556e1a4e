"""A sandbox cannot prevent others from opening by exhausting a user's descriptors in flight."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.sandbox

_OWNER = """
import os, resource
if os.environ.get("INTERCODE_SANDBOX") != "podman":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (700, hard))
from intercode_sandbox import images
from intercode_sandbox import Limits, SandboxSpec, open_sandbox

FILL = '''
import array, os, socket, sys, time
null = os.open("/dev/null", os.O_RDONLY)
pairs = [socket.socketpair() for _ in range(200)]
for ours, _ in pairs:
    try:
        for _ in range(20):
            rights = array.array("i", [null] * 250)
            ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    except OSError as e:
        print("full" if e.errno == 109 else e, flush=True)
        break
time.sleep(600)
'''
spec = SandboxSpec(images.resolve("host"), limits=Limits(open_files=4096))
with open_sandbox(spec) as bad:
    bad.write("/tmp/fill", FILL.encode())
    wait = "until [ -s /tmp/said ]; do sleep 0.1; done"
    bad.run(["sh", "-c", f"python3 /tmp/fill > /tmp/said & {wait}"], timeout=120)
    print(bad.run(["cat", "/tmp/said"]).output.strip())
    for _ in range(4):  # more than wait to be asked
        with open_sandbox(spec) as good:
            print(good.run(["echo", "made"]).output.strip())
"""


@pytest.mark.slow
def test_sandboxes_open_while_another_one_exhausts_descriptors_in_flight() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OWNER], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split() == ["full", *["made"] * 4], done.stdout + done.stderr
