"""Encodes plain values as data, without calling any code of the agent's.

server.py loads this file on request. A sent value is the agent's claim about what its code
returned. Whether it is right is decided outside, where the right value is known.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SERVER: Any = None  # set by install()
_MAX_DEPTH, _MAX_VALUES = 60, 200_000
_MAX_JSON_INTEGER = 1 << 53
_REPR_MODULES = (
    "decimal",
    "fractions",
    "datetime",
    "uuid",
)  # modules whose values are sent as their repr()


def json_text(value: str) -> str:
    import _json

    return _json.encode_basestring_ascii(value)


class Encoder:
    """Encodes a value as JSON: numbers and texts as they are, any other value as a list with its
    kind first.

    Methods of an agent's subclass of a built-in type are not called: the built-in type's own
    methods read the content.
    """

    def __init__(self) -> None:
        self.remaining = _MAX_VALUES

    def encode(self, value: Any, depth: int = 0) -> str:
        self.remaining -= 1
        if self.remaining < 0 or depth > _MAX_DEPTH:
            raise ValueError("too large or too deep to be compared")
        if value is None or value is True or value is False:
            return {None: "null", True: "true", False: "false"}[value]
        for kind, how in KINDS:
            if isinstance(value, kind):
                return how(self, value, depth + 1)  # type: ignore[no-any-return]
        return self.other(value, depth + 1)

    def sequence(self, kind: str, values: Any, depth: int) -> str:
        parts = [self.encode(v, depth) for v in values]
        return "[" + ",".join(['"' + kind + '"', *parts]) + "]"

    def integer(self, value: int, depth: int) -> str:
        value = int.__add__(value, 0)
        return (
            str(value) if -_MAX_JSON_INTEGER < value < _MAX_JSON_INTEGER else f'["i","{value:x}"]'
        )

    def float_value(self, value: float, depth: int) -> str:
        return f'["f","{float.__repr__(float.__add__(value, 0.0))}"]'

    def mapping(self, value: dict[Any, Any], depth: int) -> str:
        flat = [part for pair in dict.items(value) for part in pair]
        return self.sequence("d", flat, depth)

    def other(self, value: Any, depth: int) -> str:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind.__module__ == "numpy" and hasattr(kind, "item") and not getattr(value, "shape", 1):
            return self.encode(value.item(), depth)
        if kind.__module__ in _REPR_MODULES:
            return f'["v",{json_text(name)},{json_text(repr(value))}]'
        if hasattr(kind, "__next__") or kind in VIEWS:
            try:
                return self.sequence("g", [name, *self.take(value)], depth)
            except Exception:
                pass
        try:
            truth = bool(value)
        except Exception:
            truth = True
        return f'["o",{json_text(name)},{"true" if truth else "false"}]'

    def take(self, values: Any) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if len(found) > self.remaining:
                raise ValueError("endless")
            found.append(value)
        return found


KINDS: Any = (
    (int, Encoder.integer),
    (float, Encoder.float_value),
    (str, lambda e, v, d: json_text(str.__add__(v, ""))),
    (complex, lambda e, v, d: f'["c","{v.real!r}","{v.imag!r}"]'),
    (bytes, lambda e, v, d: f'["b","{bytes.hex(v)}"]'),
    (bytearray, lambda e, v, d: f'["a","{bytearray.hex(v)}"]'),
    (list, lambda e, v, d: e.sequence("l", list.__iter__(v), d)),
    (tuple, lambda e, v, d: e.sequence("t", tuple.__iter__(v), d)),
    (set, lambda e, v, d: e.sequence("s", set.__iter__(v), d)),
    (frozenset, lambda e, v, d: e.sequence("z", frozenset.__iter__(v), d)),
    (dict, Encoder.mapping),
    (range, lambda e, v, d: e.sequence("r", (v.start, v.stop, v.step), d)),
)
VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()))


def encode_exception(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        return f'["!",{json_text(kind)},{json_text(str(error)[:300])}]'
    except BaseException:
        return f'["!",{json_text(kind)},""]'


def evaluate(expression: str, space: dict[str, Any]) -> str:
    """Return the value of an expression, or the exception that it raised, encoded."""
    try:
        return Encoder().encode(eval(compile(expression, "<test>", "eval", 0, True), space))
    except BaseException as e:
        return encode_exception(e)


def evaluate_all(expressions: tuple[str, ...], fds: list[int]) -> str:
    """Return the values of expressions in the agent's namespace."""
    found: list[str] = []
    SERVER.run_guarded(lambda: found.extend(evaluate(e, SERVER.namespace) for e in expressions))
    return "[" + ",".join(found) + "]"


def evaluate_clean(setup: str, expressions: tuple[str, ...], fds: list[int]) -> str:
    """Return the values of expressions where no agent's code has run. Modules are imported by
    name."""
    space: dict[str, Any] = ImportingNamespace(vars(sys.modules["builtins"]))
    try:
        exec(compile(setup, "<setup>", "exec", 0, True), space)
    except Exception:
        pass  # the rest needs a solution; the definitions before it exist
    return "[" + ",".join(evaluate(e, space) for e in expressions) + "]"


class ImportingNamespace(dict):  # type: ignore[type-arg]
    """A namespace in which an unknown name is the module with that name."""

    def __missing__(self, name: str) -> Any:
        try:
            return __import__(name)
        except ImportError:
            raise KeyError(name) from None


def alias(name: str, other: str, fds: list[int]) -> str:
    """Make ``name`` mean what ``other`` means."""
    if other in SERVER.namespace:
        SERVER.namespace[name] = SERVER.namespace[other]
    else:
        SERVER.namespace.pop(name, None)
    return ""


def call(name: str, arguments: list[Any], fds: list[int]) -> str:
    """Return what a function, or a method of a class ``Solution``, returns for plain arguments."""
    found: list[str] = []

    def work() -> None:
        try:
            space = SERVER.namespace
            function = space[name] if name in space else getattr(space["Solution"](), name)
            found.append(Encoder().encode(function(*arguments)))
        except BaseException as e:
            found.append(encode_exception(e))

    SERVER.run_guarded(work)
    return found[0]


def run_program(code: str, fds: list[int]) -> str:
    """Run a whole program. Its input is the descriptor that came with the request.

    What it writes to standard error is thrown away, unless it raises.
    """
    import posix
    import sys

    def work() -> None:
        errors = posix.dup(2)
        posix.dup2(posix.open("/dev/null", posix.O_WRONLY), 2)
        try:
            exec(compile(code, "<program>", "exec", 0, True), SERVER.namespace)
        except SystemExit:
            raise
        except BaseException:
            try:
                sys.stderr.flush()
            except Exception:
                pass
            posix.dup2(errors, 2)  # for the traceback
            raise

    posix.dup2(fds[0], 0)
    return str(SERVER.run_guarded(work))


def namespace_text(fds: list[int]) -> str:
    """Return the namespace as text that depends on its content only."""
    lines = []
    for name, value in sorted(SERVER.namespace.items()):
        if name.startswith("__"):
            continue
        code = getattr(value, "__code__", None)
        try:
            shown = repr((code.co_code, code.co_names)) if code else Encoder().encode(value)
        except BaseException:
            shown = type(value).__name__
        lines.append(f"{name} {shown}")
    return "\n".join(lines).replace("\0", "")


def install(server: Any) -> dict[str, Any]:
    """Join a server. Return the requests that this module answers."""
    global SERVER
    SERVER = server
    return {
        "values": evaluate_all,
        "clean": evaluate_clean,
        "alias": alias,
        "call": call,
        "program": run_program,
        "state_text": namespace_text,
    }
