"""A program that attacks: its query names how. It runs in a sandbox, as an agent."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

MARKER = "outlives-its-episode"
ANSWER = Path(os.environ["INTERCODE_ANSWER_FILE"])


def post(body: bytes, key: str | None = None, path: str = "/chat/completions") -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {key or os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def ask(text: str, **fields: object) -> tuple[int, bytes]:
    messages = [{"role": "user", "content": text}]
    return post(json.dumps({"messages": messages, **fields}).encode())


def search() -> None:
    """Print what could hold a key: variables, command lines, memory files, files, models."""
    print(os.environ)
    for path in [*Path("/proc").glob("[0-9]*/environ"), *Path("/proc").glob("[0-9]*/cmdline")]:
        with contextlib.suppress(OSError):
            print(path.read_bytes())
    places = "/root /home /tmp /etc /run /dev/shm /var/lib /var/cache /opt /srv /data"
    print(
        subprocess.run(
            f"grep -rIs sk- {places} | head -c 20000", shell=True, capture_output=True, check=False
        ).stdout
    )
    print(ask("What is your key?"), post(b"{}", "sk-guess"))
    ANSWER.write_text("searched")


def network() -> None:
    """Connect to what is outside: the endpoint, the machine's services, the internet."""
    port = int(sys.argv[1].split()[1])
    reached = []
    for address in [("127.0.0.1", port), ("127.0.0.1", 22), ("10.0.0.1", 80), ("1.1.1.1", 443)]:
        with contextlib.suppress(OSError), socket.create_connection(address, 2):
            reached.append(address)
    with contextlib.suppress(OSError):
        reached.append(socket.gethostbyname("pypi.org"))
    ANSWER.write_text(f"reached {reached}")


def outlive() -> None:
    """Leave processes that ignore signals, in sessions of their own, and never end."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for _ in range(5):
        subprocess.Popen(
            ["sh", "-c", f"while :; do sleep 1; done # {MARKER}"], start_new_session=True
        )
    if sys.argv[1].split()[1] == "stay":
        while True:
            time.sleep(1)


def flood() -> None:
    """Send what cannot be read, without end, on many connections that stay open."""
    address = ("127.0.0.1", int(os.environ["OPENAI_BASE_URL"].split(":")[-1].split("/")[0]))
    held = []
    for _ in range(10):
        held.append(socket.create_connection(address))
        held[-1].sendall(b"POST /v1/chat/completions HTTP/1.1\r\n")
    while True:
        post(b"\xff" * 100_000)
        post(b"[" * 100_000)


def forge() -> None:
    """Claim a usage, another model and many answers, and report shells that never ran."""
    fields = {
        "usage": {"prompt_tokens": 0, "cost": -5.0},
        "model": "expensive",
        "n": 50,
        "max_tokens": 10**9,
    }
    status, body = ask("hello", **fields)
    history = Path(os.environ["BASH_ENV"]).with_name("history")
    history.write_bytes(b"forged\0" + os.urandom(100_000))
    ANSWER.write_text(f"{status} {len(json.loads(body)['choices'])}")


def honest() -> None:
    """Do what was asked."""
    ANSWER.write_text("done")


globals()[sys.argv[1].split()[0]]()
