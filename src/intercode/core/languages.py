"""The table of languages: how a program is written, compiled and run, and how a live interpreter is
driven.

A further language is one entry, in this table or in another package.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from intercode.core.errors import UsageError
from intercode.core.registry import Registry

PROGRAM_DIRECTORY = "/tmp/program"
"""The directory inside the sandbox in which a program is written and compiled. ``{home}`` in an
argument stands for it."""


@dataclass(frozen=True, slots=True)
class Repl:
    """How a live interpreter is driven.

    ``argv`` starts it. ``{driver}`` in it stands for the text of ``driver``, a program in the
    language itself that answers requests as sessions/programs/repl.py describes.
    """

    argv: tuple[str, ...]
    driver: str


@dataclass(frozen=True, slots=True)
class Language:
    """How code of one language runs.

    A program is one file, ``source``. ``compile`` runs in its directory where the language needs
    it, and ``run`` in the directory of the task. ``repl`` is None where the language has no live
    interpreter here; tests then cannot call functions. ``packages`` are the Debian packages with
    the programs. ``notes`` tell an agent what a program has to look like. ``tags`` are the
    lower-case words after a code fence that mean the language; the first one is the one to ask for.
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
        """One line: the title and what can be done with the language here."""
        ways = ["programs, compiled" if self.compile else "programs"]
        ways += ["functions, in a live interpreter"] if self.repl is not None else []
        return f"{self.title}: {'; '.join(ways)}"


def expand_arguments(argv: tuple[str, ...]) -> list[str]:
    """Return arguments with the program's directory in place of ``{home}``."""
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
"""Names to languages. Settings, and tasks that a program makes, may also name a language as
``package.module:name``."""
_loaded: dict[str, Language] = {}


def load_language(name: str) -> Language:
    """Return the language with a name. Raises UnknownNameError, or UsageError for an object that
    is no Language."""
    found = LANGUAGES.load(name)
    if not isinstance(found, Language):
        raise UsageError(f"{name!r} is {type(found).__name__}, not a Language")
    _loaded[name] = found
    return found


def loaded_language(name: str) -> Language | None:
    """Return the language with a name where that imports no code that was not imported before, else
    None.

    Names that come from records and servers go through this function.
    """
    return load_language(name) if name in LANGUAGES else _loaded.get(name)
