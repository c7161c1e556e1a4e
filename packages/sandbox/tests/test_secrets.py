"""Secret environment variables, which no record shows."""

from __future__ import annotations

import asyncio
import io
import pickle
import tarfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercode_sandbox import AsyncSandbox, Limits, Sandbox, SandboxPool
from intercode_sandbox.api.execution import make_command
from intercode_sandbox.api.secrets import Secrets
from intercode_sandbox.errors import UsageError
from support import backend
from support.sandboxes import open_test_sandbox

_VALUE = "s3cret-válue"
_SECRETS = {"API_KEY": _VALUE}


_LINES = {"KEY": "----- BEGIN\n  line-one\nend\nline-two\n"}
_texts = st.lists(st.sampled_from(["a", "b", "aab", "\n", "é", "aabaac", "aab\u00e9aac"]))


def open_with_secrets(**spec: Any) -> Sandbox:
    return Sandbox.from_base(open_test_sandbox(**spec), Secrets(_SECRETS))


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
def test_errors_do_not_show_a_secret(tmp_path: Path) -> None:
    with open_with_secrets() as sandbox:
        uses: list[Callable[[], object]] = [
            lambda: sandbox.run([f"/{_VALUE}"]),
            lambda: sandbox.run("true", cwd=f"/{_VALUE}"),
            lambda: sandbox.spawn("true", cwd=_VALUE),
            lambda: sandbox.read(f"/{_VALUE}"),
            lambda: sandbox.write(f"/{_VALUE}/", "text"),
            lambda: sandbox.stat(f"/{_VALUE}"),
            lambda: sandbox.list_files(f"/{_VALUE}"),
            lambda: sandbox.remove(f"/{_VALUE}"),
            lambda: sandbox.upload(tmp_path / _VALUE, "/x"),
            lambda: sandbox.save(tmp_path / _VALUE / "x"),
            lambda: sandbox.kill(_VALUE),  # type: ignore[arg-type]
            lambda: sandbox.listen(_VALUE),  # type: ignore[arg-type]
            lambda: sandbox.download(f"/{_VALUE}", tmp_path / "x"),
            lambda: asyncio.run(AsyncSandbox.of(sandbox).run("true", cwd=f"/{_VALUE}")),
        ]
        for use in uses:
            with pytest.raises((OSError, UsageError)) as caught:
                use()
            error: BaseException | None = caught.value
            assert "[secret API_KEY]" in str(error)
            while error is not None:
                shown = f"{error} {error!r} {getattr(error, 'filename', '')}"
                assert _VALUE not in shown
                error = error.__context__


def test_a_secret_that_messages_quote_is_hidden() -> None:
    value = "hunt'er2\\sec\"ret"
    secrets = Secrets({"API_KEY": value})
    assert secrets.redact(f"no file: {value!r}") == "no file: '[secret API_KEY]'"


def test_an_error_that_the_caller_handles_already_stays_as_it_is() -> None:
    with pytest.raises(KeyError) as caught:
        try:
            raise ValueError(_VALUE)
        except ValueError:
            with Secrets(_SECRETS).redacted_errors():
                raise KeyError(_VALUE)  # noqa: B904
    assert caught.value.args == ("[secret API_KEY]",)
    assert isinstance(caught.value.__context__, ValueError)
    assert caught.value.__context__.args == (_VALUE,)


def test_an_error_with_read_only_arguments_is_raised_as_it_is() -> None:
    class OwnError(Exception):
        args = property(lambda self: ())  # type: ignore[assignment]

    with pytest.raises(OwnError), Secrets(_SECRETS).redacted_errors():
        raise OwnError


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
        with sandbox.snapshot() as snapshot:
            with Sandbox.from_snapshot(snapshot) as restored:
                assert restored.run("echo ${API_KEY-none}").stdout == "none\n"
            with Sandbox.from_snapshot(snapshot, secrets=_SECRETS) as restored:
                assert restored.run("echo $API_KEY").stdout == "[secret API_KEY]\n"
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
            shown = (await sandbox.run("echo $API_KEY")).stdout
            snapshot = await sandbox.snapshot()
            copy = await AsyncSandbox.from_snapshot(snapshot, secrets=_SECRETS)
            async with copy:
                shown += (await copy.run("echo $API_KEY")).stdout
            snapshot.close()
            return shown

    assert asyncio.run(run()) == "[secret API_KEY]\n" * 2
    with SandboxPool(size=1, recycle=True, backend=backend.chosen(), secrets=_SECRETS) as pool:
        for _ in range(3):
            with pool.sandbox() as sandbox:
                assert sandbox.run("echo $API_KEY").stdout == "[secret API_KEY]\n"


@pytest.mark.sandbox
def test_a_value_at_the_edge_of_what_is_left_out_is_not_shown() -> None:
    code = "head -c 2041 /dev/zero; printf %s $API_KEY; head -c 9000 /dev/zero; printf s3cret-"
    with open_with_secrets(limits=Limits(output=4096)) as sandbox:
        result = sandbox.run(code)
    assert b"s3c" not in result.output.encode() + result.stdout_bytes
    assert result.stdout.startswith("\0" * 2041 + "[secret\n[... ")
    assert result.stdout.endswith("\0[secret API_KEY]")


@pytest.mark.sandbox
def test_streams_that_do_not_end_or_take_turns_lose_nothing_and_show_no_value() -> None:
    pieces: list[str] = []
    with open_with_secrets() as sandbox:
        result = sandbox.run(
            "sleep 600 & printf answers", on_output=lambda text, _: pieces.append(text)
        )
        assert result.stdout == result.output == "".join(pieces) == "answers"
        code = "import os\nfor part in os.environ['API_KEY']: "
        code += "os.write(1, part.encode()), os.write(2, b'.')"
        mixed = sandbox.run(["python3", "-c", code])
        assert mixed.stdout == "[secret API_KEY]" and mixed.stderr == "." * len(_VALUE)
        assert sorted(mixed.output) == sorted(mixed.stdout + mixed.stderr)


def test_secrets_are_checked_before_a_sandbox_is_opened() -> None:
    for opening in (
        lambda: Sandbox("no image", secrets={"A": "short"}),
        lambda: Sandbox.load("/no/file", "no image", secrets={"A": "short"}),
        lambda: Sandbox.attach("no id", "no back end", secrets={"A": "short"}),
    ):
        with pytest.raises(UsageError, match="the secret A"):
            opening()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("A=B", _VALUE, "without '='"),
        ("A\ud800", _VALUE, "without '='"),
        ("", _VALUE, "without '='"),
        ("A", "short", "less than 6 bytes"),
        ("A", " short\n ", "less than 6 bytes"),
        ("A", " " * 9, "less than 6 bytes"),
        ("A", "\n1111111", "one repeated character"),
        ("A", f"{_VALUE}\0", "UTF-8"),
        ("A", f"{_VALUE}\udce9", "UTF-8"),
        ("A", 123456789, "UTF-8"),
    ],
)
def test_a_refused_secret_is_not_in_the_message(name: str, value: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        Secrets({name: value})
    assert "s3cret" not in str(caught.value) and "1111" not in str(caught.value)
    assert "short" not in str(caught.value) and "12345" not in str(caught.value)


def test_secrets_are_a_mapping_that_is_not_pickled() -> None:
    with pytest.raises(UsageError, match="a mapping") as caught:
        Secrets([_VALUE])  # type: ignore[arg-type]
    assert "s3cret" not in str(caught.value)
    with pytest.raises(TypeError, match="not written down"):
        pickle.dumps(Secrets(_SECRETS))


def test_the_longest_of_the_values_that_begin_at_a_place_is_replaced_once() -> None:
    secrets = Secrets({"SHORT": "abcdef", "LONG": "abcdefgh-tail", "MARK": "secret SHORT"})
    assert secrets.redact("abcdefgh-tail abcdefgh ") == "[secret LONG] [secret SHORT]gh "
    assert secrets.redact("abcdef \udcff") == "[secret SHORT] \udcff"


def test_white_space_around_a_value_and_its_single_lines_do_not_show_it() -> None:
    secrets = Secrets(_LINES)
    assert secrets.redact(f"<{_LINES['KEY']}>") == "<[secret KEY]\n>"
    assert secrets.redact("> line-one\n> end\n> line-two\n") == (
        "> [secret KEY]\n> end\n> [secret KEY]\n"
    )


def test_a_value_that_a_text_ends_in_is_not_shown_from_its_sixth_byte() -> None:
    secrets = Secrets(_SECRETS)
    assert secrets.redact("x s3cre") == "x s3cre"
    assert secrets.redact("x s3cret") == "x [secret API_KEY]"
    assert secrets.redact("x s3cret.") == "x s3cret."


@given(_texts, st.lists(st.text("ab\né", min_size=6, max_size=9), min_size=1, max_size=4))
def test_pieces_of_every_size_give_the_same_text(parts: list[str], values: list[str]) -> None:
    usable = [v for v in values if len(v.strip()) >= 6 and len(set(v.strip())) > 1]
    text = "".join([*parts, *usable, *parts])
    secrets = Secrets({f"N{number}": value for number, value in enumerate(usable)})
    data, expected = text.encode(), secrets.redact(text)
    assert [v for v in usable if v.strip() in expected] == []
    for size in range(1, len(data) + 1):
        redact = secrets.redact_pieces()
        pieces = [redact(data[at : at + size], False) for at in range(0, len(data), size)]
        assert b"".join([*pieces, redact(b"", True)]).decode() == expected
