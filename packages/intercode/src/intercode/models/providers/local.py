"""A model on this machine, by llama.cpp's server (the extra ``local``)."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from intercode.core.errors import ConfigError, ModelRefusedError
from intercode.models.base import Completion, Message, Tool
from intercode.models.conversation import is_context_overflow
from intercode.models.endpoint import UNLIMITED, CallLimits
from intercode.models.options import check_integer
from intercode.models.providers import local_server
from intercode.models.providers.local_file import smollm2, smollm2_digest
from intercode.models.providers.openai import OpenAIModel
from intercode.models.transport.http import HttpConnections, parse_base_url
from intercode.models.transport.retry import AttemptError
from intercode_sandbox.platforms.files import file_digest
from intercode_sandbox.platforms.forks import give_up_after_fork

LIBRARY = "xllamacpp"
MAX_ANSWER_TOKENS = 512
"""The most tokens of an answer unless the options say otherwise: small models may never end one."""
_END_SECONDS = 10.0
_LOG_BYTES = 1500


class LocalModel(OpenAIModel):
    """A model whose server runs on this machine, and ends with this process.

    ``name`` is a GGUF file, or empty for SmolLM2-135M-Instruct, which is downloaded if it is not in
    the cache. The server starts with the first request. It listens on the loopback interface, and
    demands a key that no other process has. It answers ``parallel`` requests at once, each of at
    most ``context`` tokens with its answer, in ``threads``: by default in half as many as there are
    processors, because each waits for the others in a loop, and sandboxes need processors, too.

    Raises ConfigError if the extra ``local`` or the file is missing, and what ``smollm2`` and
    ``smollm2_digest`` raise.
    """

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        context: int = 4096,
        parallel: int = 4,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        del base_url, api_key  # the server has its own
        if find_spec(LIBRARY) is None:
            raise ConfigError(
                "a local model needs llama.cpp's server: pip install 'intercode-gym[local]', or "
                f"{LIBRARY} alone"
            )
        check_integer("context", context)
        check_integer("parallel", parallel)
        check_integer("threads", threads)
        file = Path(name).expanduser().absolute() if name else smollm2()
        if not file.is_file():
            raise ConfigError(f"there is no file {file}: write local:FILE with a GGUF file")
        if "max_completion_tokens" not in options:
            options = {"max_tokens": MAX_ANSWER_TOKENS, **options}
        options = {"concurrency": parallel, **options}
        key = secrets.token_hex(16)
        super().__init__(file.stem, "http://127.0.0.1/v1", key, provider="local", **options)
        digest = file_digest(file) if name else smollm2_digest(file)
        self.endpoint = f"local:{digest[:12]}"
        threads = threads or max(1, (os.cpu_count() or 1) // 2)
        settings = {"context": context, "parallel": parallel, "threads": threads}
        self._context = context
        self._about = {"sha256": digest, "server": _library_version(), **settings}
        self._server = LocalServer({"file": str(file), "key": key, **settings})

    @property
    def address(self) -> str:
        """See Endpoint: the same for all servers of a file."""
        return self.endpoint

    def metadata(self) -> dict[str, Any]:
        """See Endpoint; with the digest of the file and the version of the server."""
        return super().metadata() | self._about

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        limits: CallLimits = UNLIMITED,
    ) -> Completion:
        """See Endpoint. Raises ModelRefusedError if the server does not start."""
        self._start()
        return super().complete(messages, tools=tools, limits=limits)

    async def acomplete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        limits: CallLimits = UNLIMITED,
    ) -> Completion:
        """See Endpoint. Raises ModelRefusedError if the server does not start."""
        await asyncio.to_thread(self._start)
        return await super().acomplete(messages, tools=tools, limits=limits)

    async def attempt(
        self, client: HttpConnections, request: dict[str, Any], seconds: float
    ) -> Completion:
        """See Endpoint. Raises ModelRefusedError if the server has ended."""
        try:
            return await super().attempt(client, request, seconds)
        except AttemptError:
            if not (end := self._server.end()):
                raise
        raise self.refusal(end)

    def close(self) -> None:
        """Close the connections and end the server. May be called again."""
        super().close()
        self._server.close()

    def refusal(self, what: str, status: int | None = None) -> ModelRefusedError:
        """See Endpoint; with the setting that makes room for a longer prompt."""
        error = super().refusal(what, status)
        if is_context_overflow(error):
            error.args = (
                f"{error}: model_options.context is {self._context} tokens, with the answer; give "
                f"more, as in --set model_options.context={2 * self._context}",
            )
        return error

    def _start(self) -> None:
        address = self._server.start()
        if not address:
            raise self.refusal(self._server.end() or "its server does not start")
        self.url, _ = parse_base_url(f"{address}/v1", self.url.path.removeprefix("/v1"))


class LocalServer:
    """llama.cpp's server in a process of its own, which ends with this one.

    ``settings`` are those of ``local_server``.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._address = ""

    def start(self) -> str:
        """Return the address of the server, which then serves; empty if it has ended instead."""
        with self._lock:
            if self._process is None:
                self._log = tempfile.TemporaryFile()  # noqa: SIM115  # the server writes to it
                self._process = _launch(self._log)
                self._address = _handshake(self._process, self._settings)
            return self._address

    def end(self) -> str:
        """Return how the server has ended, with the last that it said; empty if it runs."""
        process, log = self._process, self._log
        if process is None or log is None:
            return ""
        with suppress(subprocess.TimeoutExpired):
            # it has closed its output and is about to end, or it answers
            process.wait(0 if self._address else _END_SECONDS)
        if process.returncode is None:
            return ""
        size = os.fstat(log.fileno()).st_size
        last = os.pread(log.fileno(), _LOG_BYTES, max(0, size - _LOG_BYTES))
        said = last.decode("utf-8", "replace").strip() or "nothing"
        return f"its server has ended with status {process.returncode}; it said last:\n{said}"

    def close(self) -> None:
        """End the server. May be called again."""
        with self._lock:
            process, self._process, self._address = self._process, None, ""
            if process is not None:
                _stop(process)


def _launch(log: IO[bytes]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", local_server.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        start_new_session=True,
    )
    assert process.stdin is not None
    give_up_after_fork(process.stdin, lambda stdin: stdin.close())
    return process


def _handshake(process: subprocess.Popen[bytes], settings: Mapping[str, Any]) -> str:
    """Return the address that the server prints when it serves; empty if it ends before."""
    assert process.stdin is not None and process.stdout is not None
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            process.stdin.flush()
        return process.stdout.readline().decode().strip()
    except BaseException:
        _stop(process)
        raise


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a server by closing its standard input; kill it if that does not end it."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    process.stdout.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _library_version() -> str:
    try:
        return f"{LIBRARY} {version(LIBRARY)}"
    except PackageNotFoundError:
        return LIBRARY
