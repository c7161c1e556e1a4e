"""The table of programming languages: how to compile and run a program, and how to control a live
interpreter.

To add a language, add one entry here, or register one from another package.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from intercode.core.errors import UsageError
from intercode_sandbox.registry import Registry

PROGRAM_DIRECTORY = "/tmp/program"
"""The directory in the sandbox to which a program is written, and in which it is compiled. In the
arguments of a Language, ``{home}`` stands for it."""


@dataclass(frozen=True, slots=True)
class Repl:
    """How to start a live interpreter and call functions in it.

    ``driver``: the text of a program in the language, which answers requests (the protocol is in
    sessions/programs/repl.py). ``argv``: the command that starts the interpreter; ``{driver}`` in
    it stands for the text of ``driver``.
    """

    argv: tuple[str, ...]
    driver: str


@dataclass(frozen=True, slots=True)
class Language:
    """How to compile and run code in one language.

    ``title``: the name for people. ``source``: the name of the file to which a program is written.
    ``compile``: the command that compiles it, run in the directory of the program; empty if there
    is no compiler. ``run``: the command that runs the program, in the directory of the task.
    ``repl``: a live interpreter; without one, tests cannot call functions. ``packages``: the Debian
    packages with the compiler or interpreter. ``notes``: tells an agent what a program has to look
    like. ``tags``: the lower-case names of the language after a Markdown code fence; prompts use
    the first one.
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
        """A sentence with the title and the kinds of tasks: programs, functions, or both."""
        compiled = ", which are compiled" if self.compile else ""
        functions = ", and functions in a live interpreter" if self.repl is not None else ""
        return f"Tasks are {self.title} programs{compiled}{functions}."


def expand_arguments(argv: tuple[str, ...], home: str) -> list[str]:
    """Return the arguments with ``{home}`` replaced by the directory of the program."""
    return [argument.replace("{home}", home) for argument in argv]


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
"""Languages by name. A setting, or a task that is made by code, may also refer to a language as
``package.module:name``."""


def load_language(name: str) -> Language:
    """Return the language that a name or reference stands for.

    Raises UnknownNameError for an unknown name, UsageError for an object that is not a Language.
    """
    language = LANGUAGES.load(name)
    if not isinstance(language, Language):
        raise UsageError(f"{name!r} is {type(language).__name__}, not a Language")
    return language
