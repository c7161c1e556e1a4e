"""Runs an agent's code in one interpreter, action after action, and forks it on request.

A bare interpreter in a sandbox gets this file as text. It answers requests on a socket of its own.
The agent's code runs in the same process and can do all that this file can, so the near side treats
every answer as the agent's. Only modules that cost nothing to load are used until an exception has
to be shown.
"""

from __future__ import annotations

import _io
import _signal  # type: ignore[import-not-found]
import _socket
import builtins
import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

CONTROL_FD, BACKUP_FD = 63, 61  # the socket, and a copy of the output descriptor
_HEADER = 8  # bytes of a request's length, in hexadecimal
_ONLY_AST = 1024  # ast.PyCF_ONLY_AST, for compile()
_FUTURE_FLAGS = 0x1FE0000  # flags of `from __future__` for compile(), Python 3.8 or later
_ACCESS_MODE = 3  # O_ACCMODE, for open()
_FILE_NAME = "<intercode>"  # the name of this file in tracebacks


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
        self.output = posix.fstat(1)[1:3]
        posix.dup2(1, BACKUP_FD, False)
        posix.set_inheritable(CONTROL_FD, False)
        self.handlers: dict[str, Any] = {
            "run": self.run,
            "fork": self.fork,
            "load": self.load,
            "chdir": self.chdir,
            "leave_removed": self.leave_removed,
            "after_restore": self.after_restore,
            "ping": lambda fds: str(self.pid),
        }
        sys.dont_write_bytecode = True
        sys.meta_path.append(LazySiteFinder())
        self.displayhook = sys.displayhook
        self.restore_streams()

    def serve(self) -> NoReturn:
        """Answer requests until the owner closes the socket."""
        while True:
            request, fds = self.receive()
            try:
                answer = self.handlers[request[1]](*request[2:], fds=fds)
            except RefusedError as e:
                answer = "!" + str(e)
            self.send(request[0], answer)

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
        if posix.getpid() != self.pid:  # a process that the agent forked has run all its code
            posix._exit(0)
        text = token + " " + answer + "\0"
        try:
            self.socket.sendall(text.encode("utf-8", "surrogateescape"))
        except OSError:
            posix._exit(0)

    # ------------------------------------------------------------------ actions
    def run(self, number: int, code: str, fds: list[int]) -> str:
        """Run an action as a prompt does. Answer its status and the directory."""
        name = f"<action {number}>"
        self.sources[name] = code
        status = self.run_guarded(lambda: self.execute(code, name))
        return f"{status} {self.directory()}"

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

    def execute(self, code: str, name: str) -> None:
        """Run all but the last statement as a module. The last one also shows its value."""
        flags = _ONLY_AST | self.futures
        tree = compile(code, name, "exec", flags, True)
        last = [tree.body.pop()] if tree.body and type(tree.body[-1]).__name__ == "Expr" else []
        main = compile(tree, name, "exec", self.futures, True)
        self.futures |= main.co_flags & _FUTURE_FLAGS
        parts = [main]
        if last:
            import _ast

            parts.append(compile(_ast.Interactive(last), name, "single", self.futures, True))
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        for part in parts:
            exec(part, self.namespace)

    def run_guarded(self, work: Any) -> int:
        """Call ``work``, which runs the agent's code.

        Returns 0, 1 for an exception, or the status given to `sys.exit`.
        """
        status = 1
        self.restore_streams()
        try:
            work()
            status = 0
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
            if e.code is not None and not isinstance(e.code, int):
                print(e.code, file=sys.stderr)
            status &= 255
        except BaseException as e:
            self.print_exception(e)
        finally:
            self.clean_up()
        return status

    def clean_up(self) -> None:
        """Undo what the agent's code installed, so that none of it runs between two actions."""
        while True:
            try:
                _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
                sys.settrace(None)
                sys.setprofile(None)
                for stream in (sys.stdout, sys.stderr, *self.streams[1:]):
                    try:
                        stream.flush()
                    except Exception:
                        pass
                return
            except KeyboardInterrupt:
                continue

    def restore_streams(self) -> None:
        """Restore the standard streams, whatever the last action did to them."""
        for fd in (1, 2):
            try:
                if posix.fstat(fd)[1:3] == self.output:
                    continue
            except OSError:
                pass
            posix.dup2(BACKUP_FD, fd)
        streams = getattr(self, "streams", ())
        if not streams or any(s.closed for s in streams):
            self.streams = [open_stream(fd) for fd in (0, 1, 2)]
        sys.stdin, sys.stdout, sys.stderr = self.streams
        sys.displayhook = self.displayhook

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
            sys.stderr.write(text)

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
        """Take the new process number: the first request after the process was moved to another
        sandbox."""
        self.pid = posix.getpid()
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


def open_stream(fd: int) -> Any:
    """Open a standard stream as on a terminal: text in UTF-8, flushed at every line."""
    raw = _io.FileIO(fd, "wb" if fd else "rb", closefd=False)
    buffer = _io.BufferedWriter(raw) if fd else _io.BufferedReader(raw)
    stream = _io.TextIOWrapper(buffer, "utf-8", "backslashreplace", line_buffering=bool(fd))
    stream.mode = "w" if fd else "r"  # type: ignore[misc]
    return stream


def leave(code: Any = None) -> None:
    """Raise SystemExit, as `exit` and `quit` do at a prompt."""
    raise SystemExit(code)


def main() -> NoReturn:
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    builtins.exit = builtins.quit = leave  # type: ignore[assignment]
    host = Server()
    host.send("", str(host.pid))
    host.serve()
