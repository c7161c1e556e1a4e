"""Secret environment variables, which no record shows."""

from __future__ import annotations

import asyncio
import io
import pickle
import tarfile
import traceback
from pathlib import Path

import pytest

from intercode_sandbox import AsyncSandbox, Sandbox, SandboxPool
from intercode_sandbox.api.execution import make_command
from intercode_sandbox.api.secrets import Secrets
from intercode_sandbox.errors import UsageError
from support import backend
from support.sandboxes import open_test_sandbox

_VALUE = "s3cret-válue"
_SECRETS = {"API_KEY": _VALUE}


def open_with_secrets() -> Sandbox:
    return Sandbox.from_base(open_test_sandbox(), Secrets(_SECRETS))


@pytest.mark.sandbox
def test_programs_get_a_secret_and_results_do_not_show_it() -> None:
    pieces: list[str] = []
    code = f'echo "$API_KEY"; echo "err $API_KEY" >&2; test "$API_KEY" = {_VALUE} && echo same'
    with open_with_secrets() as sandbox:
        result = sandbox.run(code, on_output=lambda text, _: pieces.append(text))
        assert result.stdout == "[secret API_KEY]\nsame\n"
        assert result.stderr == "err [secret API_KEY]\n"
        assert _VALUE not in "".join(pieces) and "[secret API_KEY]" in "".join(pieces)
        assert _VALUE.encode() not in result.stdout_bytes + result.stderr_bytes
        assert "s3cret" not in repr(result) + str(result)
        own = sandbox.run("echo $API_KEY", env={"API_KEY": "another"})
        assert own.stdout == "another\n"
        with sandbox.spawn("echo $API_KEY") as process:
            assert sandbox.secrets.redact(process.read().decode()) == "[secret API_KEY]\n"


@pytest.mark.sandbox
def test_a_value_that_arrives_in_pieces_is_not_shown() -> None:
    pieces: list[str] = []
    code = "head -c 65530 /dev/zero | tr '\\0' x; echo $API_KEY; printf s3cre"
    with open_with_secrets() as sandbox:
        result = sandbox.run(code, on_output=lambda text, _: pieces.append(text))
    assert "".join(pieces) == result.stdout == f"{'x' * 65530}[secret API_KEY]\ns3cre"


@pytest.mark.sandbox
def test_no_record_of_a_sandbox_has_a_secret(tmp_path: Path) -> None:
    with open_with_secrets() as sandbox:
        shown = [repr(sandbox.secrets), repr(sandbox.base.spec), repr(sandbox.base.env)]
        shown += [repr(sandbox.base.__dict__), repr(make_command(sandbox.base, "true"))]
        secret = make_command(sandbox.base, "true", secrets=sandbox.secrets)
        shown.append(repr(secret))
        for command in (["/no/program"], ["true", "\0"], "x" * (1 << 22)):
            try:
                shown.append(repr(sandbox.run(command)))
            except (OSError, UsageError):
                shown.append(traceback.format_exc())
        shown.append(
            sandbox.run("cat /proc/1/environ; env -u API_KEY cat /proc/self/environ").output
        )
        shown.append(repr(sandbox.changes()))
        sandbox.save(tmp_path / "saved")
        with sandbox.snapshot() as snapshot, Sandbox.from_snapshot(snapshot) as restored:
            assert restored.run("echo ${API_KEY-none}").stdout == "none\n"
        with sandbox.fork()[0] as copy:
            assert copy.run("echo $API_KEY").stdout == "[secret API_KEY]\n"
    with tarfile.open(tmp_path / "saved") as archive:
        for member in archive:
            content = archive.extractfile(member) or io.BytesIO()
            shown.append(content.read().decode("utf-8", "replace"))
    assert [text for text in shown if "s3cret" in text or "válue" in text] == []


@pytest.mark.sandbox
def test_sandboxes_of_asyncio_and_of_pools_have_secrets() -> None:
    async def run() -> str:
        async with AsyncSandbox(backend=backend.chosen(), secrets=_SECRETS) as sandbox:
            return (await sandbox.run("echo $API_KEY")).stdout

    assert asyncio.run(run()) == "[secret API_KEY]\n"
    with SandboxPool(size=1, recycle=True, backend=backend.chosen(), secrets=_SECRETS) as pool:
        for _ in range(3):
            with pool.sandbox() as sandbox:
                assert sandbox.run("echo $API_KEY").stdout == "[secret API_KEY]\n"


def test_a_refused_secret_is_not_in_the_message() -> None:
    for values in (
        {"A=B": _VALUE},
        {"A": "short"},
        {"A": f"{_VALUE}\0"},
        {"A": 123456789},
        [_VALUE],
        {"": _VALUE},
    ):
        with pytest.raises(UsageError) as caught:
            Secrets(values)  # type: ignore[arg-type]
        assert "s3cret" not in str(caught.value) and "12345" not in str(caught.value)
        assert "short" not in str(caught.value)
    with pytest.raises(TypeError, match="not written down"):
        pickle.dumps(Secrets(_SECRETS))


def test_a_secret_that_is_a_part_of_another_is_replaced_after_it() -> None:
    secrets = Secrets({"SHORT": "abcdef", "LONG": "abcdefgh"})
    assert secrets.redact("abcdefgh abcdef") == "[secret LONG] [secret SHORT]"
    assert secrets.redact_bytes(b"\xff abcdefgh") == b"\xff [secret LONG]"


def test_pieces_of_every_size_give_the_same_text() -> None:
    text = "aabaabaac aabaab aabaabaa" * 3
    secrets = Secrets({"A": "aabaac", "B": "baabaa"})
    for size in range(1, len(text)):
        redact = secrets.redact_pieces()
        pieces = [redact(text[at : at + size], False) for at in range(0, len(text), size)]
        joined = "".join([*pieces, redact("", True)])
        assert "aabaac" not in joined and "baabaa" not in joined
