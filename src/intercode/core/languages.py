"""The table of languages: how a program is written down, compiled and run, and how a live
interpreter is driven. A further language is one entry, here or in a package of anybody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from intercode.core.errors import UsageError
from intercode.core.registry import Registry

PROGRAM_DIRECTORY = "/tmp/program"
"""The directory of a box in which a program is written down and compiled; ``{home}`` in an argument
stands for it."""


@dataclass(frozen=True, slots=True)
class Repl:
    """How a live interpreter is driven. ``argv`` starts it; ``{driver}`` in it stands for the text
    of ``driver``, a program in the language itself that answers as repl.py asks."""

    argv: tuple[str, ...]
    driver: str


@dataclass(frozen=True, slots=True)
class Language:
    """How code of one language runs.

    A program is one file, ``source``. ``compile`` is run in its directory, where there is anything
    to compile, and ``run`` in the directory of the task. ``repl``: None where the language has no
    live interpreter here, and no calls of functions can be asked of it. ``packages``: Debian's that
    bring the programs. ``notes`` tell an agent what a program has to look like. ``tags`` are the
    lower-case words after a fence that mean the language, the one to ask for first.
    """

    title: str
    source: str
    run: tuple[str, ...]
    compile: tuple[str, ...] = ()
    repl: Repl | None = None
    packages: tuple[str, ...] = ()
    notes: str = ""
    tags: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One line: its title, and what is done with it here."""
        ways = ["programs, compiled" if self.compile else "programs"]
        ways += ["functions, in a live interpreter"] if self.repl is not None else []
        return f"{self.title}: {'; '.join(ways)}"


def expand_arguments(argv: tuple[str, ...]) -> list[str]:
    """Arguments with the directory of the program in them."""
    return [argument.replace("{home}", PROGRAM_DIRECTORY) for argument in argv]


JAVASCRIPT = Language(
    "JavaScript",
    "main.js",
    run=("node", "{home}/main.js"),
    repl=Repl(
        ("node", "-e", "{driver}"),
        files("intercode.core").joinpath("repl_drivers", "javascript.js").read_text("utf-8"),
    ),
    packages=("nodejs",),
    notes="Code runs in Node.js; modules are loaded with require.",
    tags=("javascript", "js", "node", "nodejs"),
)
C = Language(
    "C",
    "main.c",
    run=("{home}/main",),
    compile=("gcc", "-std=gnu17", "-O2", "-Wall", "-o", "main", "main.c", "-lm"),
    packages=("gcc", "libc6-dev"),
    notes="A program is one file with a function main.",
    tags=("c",),
)
_JAVA_FLAGS = ("-Xmx512m", "-Xss64m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_JAVAC_FLAGS = ("-J-XX:+UseSerialGC", "-J-XX:-UsePerfData", "-J-XX:TieredStopAtLevel=1")
JAVA = Language(
    "Java",
    "Main.java",
    run=("java", *_JAVA_FLAGS, "-cp", "{home}", "Main"),
    compile=("javac", *_JAVAC_FLAGS, "-encoding", "UTF-8", "Main.java"),
    packages=("openjdk-17-jdk-headless",),
    notes="A program is one file whose class with the method main is called Main.",
    tags=("java",),
)

LANGUAGES = Registry(
    "language",
    {
        "c": "intercode.core.languages:C",
        "java": "intercode.core.languages:JAVA",
        "javascript": "intercode.core.languages:JAVASCRIPT",
    },
    group="intercode.languages",
)
"""Names to languages. Settings, and tasks that are made by a program, may also name one as
``package.module:name``."""
_loaded: dict[str, Language] = {}


def load_language(name: str) -> Language:
    """The language of a name. Raises UnknownNameError, or UsageError for what is no Language."""
    found = LANGUAGES.load(name)
    if not isinstance(found, Language):
        raise UsageError(f"{name!r} is {type(found).__name__}, not a Language")
    _loaded[name] = found
    return found


def loaded_language(name: str) -> Language | None:
    """The language of a name, where that takes no code that was not loaded before: names may come
    from records and servers."""
    return load_language(name) if name in LANGUAGES else _loaded.get(name)
