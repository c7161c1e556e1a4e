"""Runs an agent's code in one interpreter, action after action, and forks it on request.

A bare interpreter in a sandbox gets this file as text. It answers requests on a socket of its own.
The agent's code runs in the same process and can do all that this file can, so the near side treats
every answer as the agent's. Only modules that cost nothing to load are used until an exception has
to be shown.
"""

from __future__ import annotations

import _io
import _signal  # type: ignore[import-not-found]
import _sitebuiltins
import _socket
import builtins
import marshal
import posix
import sys
from itertools import repeat
from sys import setprofile, settrace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

CONTROL_FD, BACKUP_FD = 63, 61  # the socket, and a copy of the output descriptor
_HEADER = 8  # bytes of a request's length, in hexadecimal
_ONLY_AST = 1024  # ast.PyCF_ONLY_AST, for compile()
_FUTURE_FLAGS = 0x1FE0000  # flags of `from __future__` for compile(), Python 3.8 or later
_ACCESS_MODE = 3  # O_ACCMODE, for open()
_FILE_NAME = "<intercode>"  # the name of this file in tracebacks
_HELD_SIGNALS = set(range(1, 32)) - {_signal.SIGINT}  # while no code of the agent runs
_TRIES = 100  # more than the signals that can be pending


def _open_files() -> Iterator[tuple[str, int, int]]:
    """Yield path, mode and flags of each open file."""
    for name in posix.listdir("/proc/self/fd"):
        try:
            path, kind = posix.readlink("/proc/self/fd/" + name), posix.fstat(int(name))[0]
            with _io.open("/proc/self/fdinfo/" + name) as f:
                yield path, kind, int(f.read().split("flags:")[1].split()[0], 8)
        except OSError:
            continue


def _open_files_without_proc() -> Iterator[tuple[str, int, int]]:
    import fcntl
    import gc

    files = [f for f in gc.get_objects() if type(f) is _io.FileIO and not f.closed]
    names = {f.fileno(): f.name for f in files}
    for fd in range(posix.sysconf("SC_OPEN_MAX")):
        try:
            kind, flags = posix.fstat(fd)[0], fcntl.fcntl(fd, fcntl.F_GETFL)
            yield str(names.get(fd, f"descriptor {fd}")), kind, flags
        except OSError:
            continue


class RefusedError(Exception):
    """A request that cannot be met now; the message is the reason."""


def _fork() -> int:
    try:
        return posix.fork()
    except OSError as e:  # the limit on processes
        raise RefusedError(f"no process can be started: {e.strerror}") from None


class Server:
    """Answers the requests of the session.

    ``namespace`` is the agent's. ``pid`` is this process, not one that the agent forked.
    """

    def __init__(self) -> None:
        self.pid = posix.getpid()
        self.socket = _socket.socket(fileno=CONTROL_FD)
        module = type(sys)("__main__")
        module.__builtins__ = builtins  # type: ignore[attr-defined]
        sys.modules["__main__"] = module
        self.namespace: dict[str, Any] = module.__dict__
        self.namespace["__annotations__"] = {}
        self.sources: dict[str, str] = {}
        self.futures = 0
        self.format_exception: Any = repr  # replaced when tracebacks.py is loaded
        self.error: Any = None  # what the agent's code raised
        self.raised: Any = None  # the same, as the loop of main() caught it
        self.status = 0  # of the agent's code
        self.ending: SystemExit | None = None  # ends a process that the agent forked
        self.signal_mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _HELD_SIGNALS)  # the agent's
        self.signals_held = True
        self.output = posix.fstat(1)[1:3]
        posix.dup2(1, BACKUP_FD, False)
        posix.set_inheritable(CONTROL_FD, False)
        self.handlers: dict[str, Any] = {
            "fork": self.fork,
            "load": self.load,
            "chdir": self.chdir,
            "leave_removed": self.leave_removed,
            "after_restore": self.after_restore,
        }
        sys.dont_write_bytecode = True
        sys.meta_path.append(LazySiteFinder())
        self.displayhook = sys.displayhook
        self.restore_streams()

    def serve(self) -> Iterator[Any]:
        """Answer requests until the owner closes the socket, and yield the code of actions.

        The caller executes it, so that no frame of this file is below the agent's. The iterator
        ends in a process that the agent forked, once it has run all its code.
        """
        try:
            while True:
                request, fds = self.receive()
                try:
                    if request[1] == "run":
                        answer = yield from self.run(*request[2:])
                    else:
                        answer = self.handlers[request[1]](*request[2:], fds=fds)
                except RefusedError as e:
                    answer = "!" + str(e)
                if posix.getpid() != self.pid:  # the caller ends it as a script
                    _signal.pthread_sigmask(_signal.SIG_SETMASK, self.signal_mask)
                    self.ending = SystemExit(self.status)
                    return
                self.send(request[0], answer)
        except BaseException:  # nothing of this file is shown
            posix._exit(1)

    def receive(self) -> tuple[tuple[Any, ...], list[int]]:
        try:
            space, close_on_exec = _socket.CMSG_SPACE(8), _socket.MSG_CMSG_CLOEXEC
            head, extra, _, _ = self.socket.recvmsg(_HEADER, space, close_on_exec)
            body, left = b"", int(head, 16)
            while left:
                part = self.socket.recv(min(left, 1 << 20))
                if not part:
                    posix._exit(0)
                body += part
                left -= len(part)
        except (OSError, ValueError):
            posix._exit(0)
        data = extra[0][2] if extra else b""
        fds = [int.from_bytes(data[i : i + 4], sys.byteorder) for i in range(0, len(data), 4)]
        return marshal.loads(body), fds

    def send(self, token: str, answer: str) -> None:
        text = token + " " + answer + "\0"
        try:
            self.socket.sendall(text.encode("utf-8", "surrogateescape"))
        except OSError:
            posix._exit(0)

    # ------------------------------------------------------------------ actions
    def run(self, number: int, code: str) -> Generator[Any, None, str]:
        """Yield the parts of an action: all but the last statement as a module, and then the last
        one as at a prompt, which shows its value. Return its status and the directory."""
        name = f"<action {number}>"
        self.sources[name] = code
        try:
            self.begin()
            for part in self.compile(code, name):
                yield part
                if self.raised is not None:
                    self.error, trace = self.raised[1][1:]
                    BaseException.with_traceback(self.error, trace.tb_next)
                    break
        except GeneratorExit:  # the loop of main() has ended
            raise
        except BaseException as e:
            self.error = e
        return f"{self.end()} {self.directory()}"

    def compile(self, code: str, name: str) -> list[Any]:
        tree = compile(code, name, "exec", _ONLY_AST | self.futures, True)
        last = [tree.body.pop()] if tree.body and type(tree.body[-1]).__name__ == "Expr" else []
        main = compile(tree, name, "exec", self.futures, True)
        self.futures |= main.co_flags & _FUTURE_FLAGS
        if not last:
            return [main]
        prompt = compile("0", name, "single", _ONLY_AST, True)
        prompt.body = last
        return [main, compile(prompt, name, "single", self.futures, True)]

    def directory(self) -> str:
        """Return the directory of the process as the kernel has it, also if it was removed. The
        text is empty if nothing can tell its name any more."""
        try:
            return posix.getcwd()
        except OSError:  # it was removed
            pass
        try:
            name, mark = posix.readlink("/proc/self/cwd"), " (deleted)"
        except OSError:
            return ""
        return name[: -len(mark)] if name.endswith(mark) else name

    def run_guarded(self, work: Any) -> int:
        """Call ``work``, which runs the agent's code, and return the status."""
        try:
            self.begin()
            work()
        except BaseException as e:
            self.error = e
        return self.end()

    def begin(self) -> None:
        """Prepare for code of the agent. Its signals arrive from now on."""
        self.restore_streams()
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        self.signals_held = False
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self.signal_mask)

    def end(self) -> int:
        """Return the status of the agent's code: 0, 1 for an exception, or that of `sys.exit`."""
        try:
            self.status = self.exit_status(self.error)
        except BaseException:  # of a method of the agent's
            self.status = 1
        self.error = self.raised = None
        self.clean_up()
        return self.status

    def exit_status(self, error: BaseException | None) -> int:
        if error is None:
            return 0
        if not isinstance(error, SystemExit):
            self.print_exception(error)
            return 1
        if isinstance(error.code, int):
            return int.__and__(error.code, 255)
        if error.code is not None:
            print(error.code, file=sys.stderr)
        return int(error.code is not None)

    def clean_up(self) -> None:
        """Undo what the agent's code installed, so that none of it runs between two actions."""
        for _ in range(_TRIES):
            try:
                held, self.signals_held = self.signals_held, True
                mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _HELD_SIGNALS)
                if not held:
                    self.signal_mask = mask
                _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
                settrace(None)
                setprofile(None)
                own = (getattr(sys, name, None) for name in ("stdout", "stderr"))
                for stream in (*own, *self.streams[1:]):
                    try:
                        stream.flush()
                    except BaseException:
                        pass
                if any(map(self.is_output, (BACKUP_FD, 1, 2))):
                    return
                break
            except BaseException:  # of a handler of the agent's, for a signal that came before
                continue
        if posix.getpid() == self.pid:
            posix._exit(1)

    def restore_streams(self) -> None:
        """Restore the standard streams, whatever the last action did to them."""
        intact = [fd for fd in (BACKUP_FD, 1, 2) if self.is_output(fd)]
        for fd in (BACKUP_FD, 1, 2):
            if fd not in intact:
                posix.dup2(intact[0], fd, fd != BACKUP_FD)
        try:
            posix.fstat(0)
        except OSError:
            posix.open("/dev/null", posix.O_RDONLY)  # the least free number, which is 0
        streams = getattr(self, "streams", ())
        if not streams or any(is_closed(s) for s in streams):
            self.streams = [open_stream(fd) for fd in (0, 1, 2)]
        sys.stdin, sys.stdout, sys.stderr = self.streams
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = self.streams  # type: ignore[misc]
        sys.displayhook = self.displayhook

    def is_output(self, fd: int) -> bool:
        try:
            return posix.fstat(fd)[1:3] == self.output
        except OSError:
            return False

    def print_exception(self, error: BaseException) -> None:
        """Print an exception without the frames of this file."""
        try:
            text = self.format_exception(error)
        except BaseException:
            text = type(error).__name__ + "\n"
        try:
            sys.stderr.write(text)
        except BaseException:
            self.restore_streams()
            posix.write(2, text.encode("utf-8", "backslashreplace"))

    # -------------------------------------------------------------------- forks
    def fork(self, purpose: str, fds: list[int]) -> str:
        """Fork the process. The child answers on the socket that came with the request.

        ``purpose``: a ``backup`` is refused where the child would lack a thread; a ``snapshot``
        also where it would share a file that is open for writing.
        """
        control = fds[0]
        try:
            self.check_fork(purpose)
            random = sys.modules.get("random")  # the module random reseeds itself in a fork
            chance = random.getstate() if random else None
            child = _fork()
            if child == 0:
                try:
                    if purpose != "test" and posix.fork():
                        posix._exit(0)
                except OSError:  # the parent's end of the socket says that there is no fork
                    posix._exit(1)
                posix.dup2(control, CONTROL_FD, False)
                self.pid = posix.getpid()
                if purpose == "snapshot":
                    posix.chdir("/")  # the directory may be replaced while the fork waits
                if chance is not None:
                    random.setstate(chance)  # type: ignore[union-attr]
                return str(self.pid)
            try:
                if purpose != "test":
                    posix.waitpid(child, 0)  # so that the agent's wait() does not find it
            except OSError:
                pass
            return "0"
        finally:
            posix.close(control)

    def check_fork(self, purpose: str) -> None:
        try:
            threads = len(posix.listdir("/proc/self/task")) - 1
            open_files: Any = _open_files
        except OSError:  # a sandbox without /proc: only Python's own threads are known
            threads, open_files = len(sys._current_frames()) - 1, _open_files_without_proc
        if threads and purpose in ("backup", "snapshot"):
            raise RefusedError(f"{threads} more threads are running")
        for name, kind, flags in open_files() if purpose == "snapshot" else ():
            if flags & _ACCESS_MODE and kind & 0o170000 == 0o100000:
                raise RefusedError(f"{name} is open for writing")

    # ------------------------------------------------------------------ the rest
    def after_restore(self, fds: list[int]) -> str:
        """Take the new process number and output: the first request after the process was moved to
        another sandbox."""
        self.pid, self.output = posix.getpid(), posix.fstat(BACKUP_FD)[1:3]
        return str(self.pid)

    def leave_removed(self, root: str, fds: list[int]) -> str:
        """Change to the root directory if the directory of the process was removed. Answer where
        it is."""
        try:
            return posix.getcwd()
        except OSError:
            posix.chdir(root)
            return root

    def chdir(self, path: str, fds: list[int]) -> str:
        try:
            posix.chdir(path)
        except OSError as e:
            raise RefusedError(str(e)) from None
        return ""

    def load(self, magic: bytes, code: bytes, source: str, fds: list[int]) -> str:
        """Load another guest module, which adds requests: compiled by a Python with this magic
        number, and as text."""
        import _frozen_importlib_external as importing

        more: dict[str, Any] = {
            "__builtins__": builtins.__dict__.copy(),
            "__name__": _FILE_NAME,
            "SERVER": self,
        }
        same = magic == importing.MAGIC_NUMBER
        exec(marshal.loads(code) if same else compile(source, _FILE_NAME, "exec", 0, True), more)
        self.handlers.update(more["install"](self))
        return ""


class LazySiteFinder:
    """Prepares the search for packages once one is imported that is not in the standard library.

    Preparing it at the start would take half of the interpreter's start.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        sys.meta_path.remove(self)
        import site

        site.main()
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, path)


def is_closed(stream: Any) -> bool:
    try:
        return bool(stream.closed)
    except ValueError:  # detached
        return True


def open_stream(fd: int) -> Any:
    """Open a standard stream as on a terminal: text in UTF-8, flushed at every line."""
    raw = _io.FileIO(fd, "wb" if fd else "rb", closefd=False)
    raw.name = ("<stdin>", "<stdout>", "<stderr>")[fd]
    buffer = _io.BufferedWriter(raw) if fd else _io.BufferedReader(raw)
    stream = _io.TextIOWrapper(buffer, "utf-8", "backslashreplace", line_buffering=bool(fd))
    stream.mode = "w" if fd else "r"  # type: ignore[misc]
    return stream


def main() -> Any:
    """Return the server to its caller, which executes ``codes`` in a loop.

    These iterators run in C: no frame of this file is on the stack while an action runs, and a
    trace that it has set ends before one is again. ``failures`` ends it, too, and has the
    exception that is being handled.
    """
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    sys.argv = [""]  # as at a prompt
    builtins.exit, builtins.quit = (
        _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)") for name in ("exit", "quit")
    )
    builtins.help = _sitebuiltins._Helper()
    host: Any = Server()
    host.send("", str(host.pid))
    executed: Any = map(exec, host.serve(), repeat(host.namespace))
    host.codes = map(setprofile, map(settrace, executed))
    untraced = map(setprofile, map(settrace, repeat(None)))
    host.failures = zip(untraced, iter(sys.exc_info, None))  # noqa: B905  # for Python 3.7
    return host
