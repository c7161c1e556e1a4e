"""What an environment is, and the language of its actions: values that agents, policies, statistics
and exports ask, in place of the environment's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from intercode_sandbox.registry import load_object

Stratum = Literal["group", "hardness"]
"""A property of tasks by which tables and samples are split."""
Observations = Literal["text", "rows", "dictionary"]
Function = Callable[..., Any] | str | None
"""A function, or ``package.module:name`` for one that is imported when it is first needed."""


def load_function(function: Function, default: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a field of a description stands for, ``default`` if it is None.

    Raises UsageError for a reference that cannot be loaded.
    """
    if isinstance(function, str):
        found: Callable[..., Any] = load_object(function)
        return found
    return default if function is None else function


def _nothing(*_: Any) -> None:
    return None


def _no(*_: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Terminal:
    """How a terminal shows the language, for answers that are copied from one.

    ``prompt``, ``continuation``: regular expressions of what stands before a command and before its
    further lines. ``is_open``: a function that tells whether a command goes on in the next line
    whatever stands before it (None: further lines have the continuation's prompt).
    """

    prompt: str
    continuation: str
    is_open: Function = None


@dataclass(frozen=True, slots=True)
class Typing:
    """How a person types the language.

    ``prompt``, ``continuation_prompt``: ``{}`` stands for the working directory. ``unfinished``: a
    function that tells whether the lines so far need another one (None: one line is an action).
    ``help_note``: is added to the text of the command `help`. ``lexer``: the class of Pygments that
    colours code. ``indents``: whether a line keeps the indentation of the line before it.
    """

    prompt: str = "> "
    continuation_prompt: str = ". "
    unfinished: Function = None
    help_note: str = ""
    lexer: str = "TextLexer"
    indents: bool = False

    def is_unfinished(self, lines: Sequence[str]) -> bool:
        """Return whether the lines so far need another one."""
        return bool(load_function(self.unfinished, _no)(lines))


@dataclass(frozen=True, slots=True)
class ActionLanguage:
    """A language in which actions are written.

    ``name``: as records and rules call it. ``title``: as people call it. ``tags``: its lower-case
    names after a Markdown code fence; prompts use the first one. ``is_code``: tells whether text
    without a fence is code (None: only fences count). ``terminal``, ``typing``: see there.
    ``without_here_documents``: returns some code without its here-documents, and the word that ends
    the one in which the code ends (None: the language has none).

    ``rule_kinds``: the kinds of rules that a policy may have for it, and ``policy_parser`` the
    function that returns the parts of an action (page Action policies).
    ``explores``: tells whether an action only reads. ``error_class``: a function of the
    observation and of whether the action is known to have failed, that returns the class of the
    error, None for none.

    A function is one, or ``package.module:name``.

    >>> from intercode.core import ActionLanguage
    >>> ActionLanguage("jq", tags=("jq", "json")).title
    'jq'
    """

    name: str
    title: str = ""
    tags: tuple[str, ...] = ()
    is_code: Function = None
    terminal: Terminal | None = None
    without_here_documents: Function = None
    typing: Typing = field(default_factory=Typing)
    rule_kinds: tuple[str, ...] = ()
    policy_parser: Function = None
    explores: Function = None
    error_class: Function = None

    def __post_init__(self) -> None:
        if isinstance(self.tags, str):  # its letters would be tags
            raise TypeError(f"tags is a tuple of words, such as ({self.tags!r},), not a text")
        object.__setattr__(self, "title", self.title or self.name)
        object.__setattr__(self, "tags", self.tags or (self.name.lower(),))

    def recognises(self, text: str) -> bool:
        """Return whether a text without a fence is code."""
        return bool(load_function(self.is_code, _no)(text))

    def is_exploration(self, code: str) -> bool:
        """Return whether an action reads and changes nothing, as far as that is known."""
        return bool(load_function(self.explores, _no)(code))

    def class_of_error(self, observation: str, failed: bool) -> str | None:
        """Return the class of the error that an observation shows, None for none that is known."""
        found: str | None = load_function(self.error_class, _nothing)(observation, failed)
        return found


@dataclass(frozen=True, slots=True)
class EnvironmentDescription:
    """What others need to know of an environment. It is on the class, and a subclass inherits it.

    - ``language``: of the actions.
    - ``judged``: tells an agent, in whole sentences, what is scored.
    - ``tool``, ``argument``: the function that runs code by tool calls, and its argument.
    - ``answer``: the argument of the function ``submit``, empty if it takes none;
      ``answer_required``: whether it must be given.
    - ``expects_answer``: the submitted answer is scored, and not the state.
    - ``judges_code``: the code that was written is scored, and not what it printed.
    - ``gold_is_hidden``: running a gold shows nothing that an answer could be compared with.
    - ``image``: ``shared``, ``per-task``, or ``none`` if no sandbox is used.
    - ``strata``: how tables and samples are split, the first that tasks have.
    - ``state_code``: prints the state of the interpreter, for checks that it holds no gold.
    - ``example_action``: an action that changes nothing, for validators.
    - ``programs``: which the image must have beyond a shell.
    - ``observations``: their form in the logs of the paper's authors.
    - ``replay_rules``: the class of rules to replay records with (None: the usual rules).
    - ``harbor_files``: a function of a task and a line that enters its directory, that returns the
      files of a Harbor task, by name with content and mode (None: only tasks with a probe can be
      exported).
    - ``reward``: the reward of datasets that name none, in the profile ``standard`` (empty: the
      registered ``NAME-standard``).
    """

    language: ActionLanguage
    judged: str = "The state that you reach is judged."
    tool: str = "run"
    argument: str = "code"
    answer: str = "answer"
    answer_required: bool = False
    expects_answer: bool = False
    judges_code: bool = False
    gold_is_hidden: bool = False
    image: Literal["shared", "per-task", "none"] = "shared"
    strata: tuple[Stratum, Stratum] = ("group", "hardness")
    state_code: str = ""
    example_action: str = ""
    programs: tuple[str, ...] = ()
    observations: Observations = "text"
    replay_rules: Function = None
    harbor_files: Function = None
    reward: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.language, ActionLanguage):
            raise TypeError(
                "language is an ActionLanguage, such as ActionLanguage('jq'), not "
                f"{self.language!r}"
            )

    def record(self) -> dict[str, Any]:
        """Return what a record holds of the description: everything but functions, as JSON."""
        language = {"name": self.language.name, "title": self.language.title}
        plain = {k: _jsonable(getattr(self, k)) for k in _PLAIN_FIELDS}
        return {"language": {**language, "tags": list(self.language.tags)}, **plain}


_PLAIN_FIELDS = tuple(
    f.name
    for f in fields(EnvironmentDescription)
    if f.name not in ("language", "replay_rules", "harbor_files", "reward")
)


def _jsonable(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def describe_unknown(environment: str) -> EnvironmentDescription:
    """Return the description of an environment of which only the name is known: its language is
    its name, and is read from fences only."""
    return EnvironmentDescription(ActionLanguage(environment or "code"))


def read_description(environment: str, recorded: object) -> EnvironmentDescription:
    """Return the description that a record or a server gives, with defaults for what is missing or
    of another type. It has no functions: nothing of a record is imported. An
    ``image`` of ``none`` is not taken: with it, reports leave out that results are not
    comparable."""
    default = describe_unknown(environment)
    if not isinstance(recorded, Mapping):
        return default
    plain = {
        name: _as_type_of(getattr(default, name), recorded.get(name), _RECORDED_CHOICES.get(name))
        for name in _PLAIN_FIELDS
    }
    row = recorded.get("language")
    row = row if isinstance(row, Mapping) else {}
    language = default.language
    name, title = (_as_type_of(getattr(language, k), row.get(k)) for k in ("name", "title"))
    tags = _as_type_of((), row.get("tags"))
    return EnvironmentDescription(ActionLanguage(name, title, tags), **plain)


_RECORDED_CHOICES: Mapping[str, tuple[str, ...]] = {
    "image": ("shared", "per-task"),
    "strata": get_args(Stratum),
    "observations": get_args(Observations),
}
"""The values that a record may give."""


def _as_type_of(default: Any, value: Any, choices: Sequence[str] | None = None) -> Any:
    """Return a value, or the default if its type is another one or it is none of the choices. A
    tuple, which JSON has as a list, holds texts, and as many as its default if there are
    choices."""
    if not isinstance(default, tuple):
        allowed = choices is None or value in choices
        return value if type(value) is type(default) and allowed else default
    if not isinstance(value, list) or not all(type(item) is str for item in value):
        return default
    if choices is not None and not (len(value) == len(default) and set(value) <= set(choices)):
        return default
    return tuple(value)
