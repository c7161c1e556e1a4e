"""Messages to a supervisor that was compiled with sanitizers: requests with wrong fields, lengths
and descriptors."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from intercode.core.errors import SandboxError
from intercode_sandbox import Limits, SandboxSpec, images
from intercode_sandbox.namespace import launcher
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from intercode_sandbox.supervisor import build, programs
from intercode_sandbox.supervisor.runtime import protocol

_FLAGS = (
    "-std=gnu11",
    "-O1",
    "-g",
    "-pthread",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)
_OPTIONS = """
const char *__asan_default_options(void) { return "detect_leaks=0:abort_on_error=1"; }
const char *__ubsan_default_options(void) { return "print_stacktrace=1:abort_on_error=1"; }
"""
_REPORTS = ("AddressSanitizer", "UndefinedBehaviorSanitizer", "runtime error:")
_OWN_FAILURE = "AddressSanitizer: CHECK failed: sanitizer_linux_libcdep"
"""The sanitizer itself fails where a command ends before it begins: it has no /proc/self there."""
_ANSWER_SECONDS = 15.0
_OPERATIONS = (
    "spawn",
    "changes",
    "changed_paths",
    "kill",
    "size",
    "open",
    "write",
    "recycle",
    "seal",
    "upper",
    "kill_since",
    "signal",
    "freeze",
    "processes",
    "end_all",
    "replace_files",
    "checkpoint",
    "restore_checkpoint",
    "end",
    "storage_limit",
    "touched_paths",
    "nothing",
    "",
)
_FIELDS = (
    "argv",
    "cwd",
    "env",
    "targets",
    "given_fds",
    "path",
    "mode",
    "digests",
    "pause",
    "child",
    "number",
    "pid",
    "mark",
    "keep",
    "on",
    "copies",
    "budget",
    "",
)
_TEXTS = (
    "",
    "/",
    "/bin/true",
    "true",
    "sleep",
    "9",
    "/tmp",
    "/tmp/made",
    "/tmp/made/below",
    "..",
    "/proc",
    "/proc/self/mem",
    "/dev/null",
    "/dev/full",
    "PATH",
    "a=b",
    "\0",
    "\udc80",
    "\ud800",
    "é",
    "🙂",
    "/" * 5000,
    "x/" * 2100,
    "x" * 70_000,
    "%s%n",
    "\n",
    '"',
    "\\",
)
_NUMBERS = st.one_of(
    st.integers(-3, 70),
    st.sampled_from((399, 400, 415, 1023, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 63, -(1 << 63))),
)
_DESCRIPTORS = ("null", "file", "root", "memory", "socket")
Message = tuple[dict[str, Any] | bytes, list[str]]
"""A request, or bytes in the place of its length and text, and the descriptors that go with it."""


SOURCES = Path(build.__file__).parent / "c"


def compile_supervisor(folder: Path, sources: Path = SOURCES) -> Path:
    """Compile the supervisor with sanitizers, with gcc or clang. Raises FileNotFoundError if there
    is none, and CalledProcessError if it has no sanitizers."""
    compiler = next(filter(shutil.which, ("gcc", "clang")), None)
    if compiler is None:
        raise FileNotFoundError("neither gcc nor clang")
    options = folder / "options.c"
    options.write_text(_OPTIONS)
    files = [*map(str, sorted(sources.rglob("*.c"))), str(options)]
    program = folder / "supervisor"
    command = [compiler, *_FLAGS, f"-I{sources}", "-o", str(program), *files]
    subprocess.run(command, check=True, capture_output=True, text=True)
    program.chmod(0o755)
    return program


class Messages:
    """A supervisor with sanitizers, which neither reports a fault nor falls silent."""

    limit, memory = 60.0, 256 << 20

    def __init__(self, sources: Path = SOURCES) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-supervisor-"))
        program = compile_supervisor(self.folder, sources)
        self.log = self.folder / "log"
        Launcher.stop()
        with (
            mock.patch.object(programs, "find_program", lambda name: program),
            mock.patch.object(launcher, "ERRORS", None),
            _errors_to(self.log),
        ):
            Launcher.get()
        self.spec = SandboxSpec(images.resolve("host"), limits=Limits(address_space=1 << 47))
        self.check()

    def cases(self) -> st.SearchStrategy[list[Message]]:
        """Return a strategy of the messages to one supervisor."""
        leaves = st.one_of(st.sampled_from(_TEXTS), _NUMBERS, st.booleans(), st.none())
        keys = st.sampled_from((*_FIELDS, "\0", "x" * 300))
        values = st.recursive(
            leaves,
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=3),
            max_leaves=6,
        )
        spawn = st.fixed_dictionaries(
            {
                "do": st.just("spawn"),
                "argv": st.sampled_from((["true"], ["sleep", "9"], ["sh", "-c", "exit 3"])),
                "cwd": st.sampled_from(("/", "/tmp", "/none")),
                "env": st.sampled_from(({"PATH": "/bin:/usr/bin"}, {}, {"PATH": "::"})),
                "targets": st.lists(_NUMBERS, max_size=4),
            }
        )
        request = st.fixed_dictionaries(
            {"do": st.sampled_from(_OPERATIONS)}, optional=dict.fromkeys(_FIELDS, values)
        )
        lengths = st.sampled_from((0, 1, 8, 100, (1 << 32) - 1)).map(struct.Struct("!I").pack)
        texts = st.one_of(
            st.binary(max_size=30),
            st.sampled_from(
                (
                    b"[" * 40,
                    b"{" * 40,
                    b'{"do',
                    b'"\\u',
                    b'"\\ud800\\u0041"',
                    b"1e999",
                    b"-",
                    b"[1,",
                    b"{}",
                    b"[]",
                    b"1",
                    b'{"a":1,"a":',
                    b"\0{}",
                )
            ),
        )
        framed = texts.map(lambda text: struct.pack("!I", len(text)) + text)
        raw = st.one_of(framed, st.builds(bytes.__add__, lengths, texts))
        whole = st.one_of(request, spawn, values.map(lambda v: {"do": "spawn", "argv": v}))
        descriptors = st.lists(st.sampled_from(_DESCRIPTORS), max_size=16)
        return st.lists(
            st.tuples(st.one_of(whole, whole, raw), descriptors), min_size=1, max_size=5
        )

    def attack(self, case: list[Message]) -> None:
        """Send the messages to a new supervisor until it ends."""
        try:
            with NamespaceSandbox(self.spec) as sandbox:
                connection = sandbox.connection._socket
                assert connection is not None
                connection.settimeout(_ANSWER_SECONDS)
                for message, descriptors in case:
                    if not _exchange(connection, message, descriptors):
                        break
        except SandboxError as e:
            assert self.report() == "", self.report()
            raise AssertionError("the supervisor did not start") from e
        finally:
            self.check()

    def report(self) -> str:
        """Return what a sanitizer has reported since the last call."""
        lines = self.log.read_text(errors="replace").splitlines()
        text = "\n".join(line for line in lines if _OWN_FAILURE not in line)
        return text[-3000:] if any(word in text for word in _REPORTS) else ""

    def check(self) -> None:
        """Raise AssertionError with the report of a sanitizer."""
        with NamespaceSandbox(self.spec) as sandbox:  # the one before has ended by then
            assert sandbox.run(["true"], timeout=_ANSWER_SECONDS).exit_code == 0
        text = self.report()
        os.truncate(self.log, 0)
        assert not text, text

    def close(self) -> None:
        """End the launcher, and remove the program."""
        Launcher.stop()
        shutil.rmtree(self.folder)


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Write to a file what a child that starts in the block writes to its standard error."""
    sys.stderr.flush()
    before = os.dup(2)
    log = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    os.dup2(log, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(log)


def _exchange(connection: socket.socket, message: dict[str, Any] | bytes, names: list[str]) -> bool:
    """Send a message and receive the answer. Return False if the supervisor has ended, or waits for
    more than was sent."""
    given = [_opened(name) for name in names]
    try:
        if isinstance(message, bytes):
            connection.sendall(message)
            return False
        text = json.dumps(message).encode()
        with suppress(OSError):
            data = struct.pack("!I", len(text)) + text
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(given)}i", *given))]
            sent = connection.sendmsg([data], rights if given else [])
            connection.sendall(data[sent:])
        try:
            answer, received = protocol.receive(connection, single=True)
        except (EOFError, ConnectionError):
            return False
        protocol.close_all(received)
        assert isinstance(answer["ok"], bool)
        return True
    finally:
        protocol.close_all(given)


def _opened(name: str) -> int:
    """Return a new descriptor of a kind."""
    if name == "memory":
        return os.memfd_create("fuzz")
    if name == "socket":
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).detach()
    return os.open("/" if name == "root" else "/dev/null", os.O_RDWR if name == "null" else 0)
