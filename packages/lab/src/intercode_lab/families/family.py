"""What a task family is: a function that draws tasks without end, each from a seed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from intercode.core.errors import InterCodeError, UnknownNameError, UsageError
from intercode.core.types import Payload, Task
from intercode.datasets.endless import FIRST_EPISODE_SEED
from intercode_lab.families.choices import Choices
from intercode_sandbox.hidden_files import hide_from_host_image
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.registry import (
    Registry,
    is_module,
    load_module,
    unknown_name_error,
)

T = TypeVar("T")
DIFFICULTIES = (1, 2, 3, 4, 5)
FAMILIES = Registry(
    "environment with task families",
    {
        "bash": "intercode_lab.families.bash:FAMILIES",
        "code": "intercode_lab.families.code:FAMILIES",
        "ctf": "intercode_lab.families.ctf:FAMILIES",
        "python": "intercode_lab.families.python:FAMILIES",
        "sql": "intercode_lab.families.sql:FAMILIES",
    },
    group="intercode.families",
)
"""The families of each environment, as a sequence of Family. An installed package adds a module
with families, or a sequence of them, under a name of its own."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The choices from which a family draws one task.

    ``difficulty``: from 1 to 5. Three sources of choices, which do not influence each other:

    - ``query``: all that the query says.
    - ``hidden``: what the golds depend on and the query does not say, in a family that asks for
      looking.
    - ``world``: everything else in the initial state. Another world leaves query and golds as
      they are.
    """

    difficulty: int
    query: Choices
    hidden: Choices
    world: Choices

    def by_difficulty(self, *values: T) -> T:
        """Return the value for this difficulty, of five."""
        return values[self.difficulty - 1]

    def phrase(self, queries: Sequence[str]) -> tuple[int, str]:
        """Return one of several phrasings of a query, after its number. How many there are
        influences no other choice."""
        number = self.query.index(len(queries))
        return number, queries[number]


@dataclass(frozen=True, kw_only=True)
class FamilyPayload(Payload):
    """What a family says of a task that it drew.

    ``phrasing``: the number of the phrasing of the query. ``turns``: the actions of a player who
    looks first, the last of which solves the task.
    """

    phrasing: int = 0
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """A task family. Called with a seed and a difficulty, it returns the same task on any machine.

    ``function``: draws a task without an id. ``group``: the module of the family. ``held_out``: the
    family belongs to the split ``test``. ``blind``: the greatest chance of success of an agent that
    acts without observing (None: nothing is claimed); see docs/task-families.md. ``source``: where
    ``load_families`` finds it (empty: under the name of its environment).
    """

    name: str
    environment: str
    group: str
    description: str
    function: Callable[[Draw], Task]
    held_out: bool = False
    blind: float | None = None
    source: str = ""

    @property
    def split(self) -> str:
        """``test`` for a family that is held out from training, else ``train``."""
        return "test" if self.held_out else "train"

    @property
    def id(self) -> str:
        """The beginning of the ids of its tasks."""
        return f"families/{self.environment}/{self.name}"

    def __call__(self, seed: int, difficulty: int, *, variant: int = 0, other: int = 0) -> Task:
        """Return the task of a seed.

        ``variant``: a number above 0 gives the same query and golds in another world. ``other``: a
        number above 0 gives the same query, with other hidden choices and so, in general, other
        golds. Raises UsageError for a difficulty that is not from 1 to 5, for a negative seed, and
        if the function raises or does not return a Task.
        """
        if difficulty not in DIFFICULTIES:
            raise UsageError(f"the difficulty of {self.id} is {difficulty}; it must be from 1 to 5")
        if seed < 0:
            raise UsageError(f"the seed of {self.id} is {seed}; it must be at least 0")
        key = (self.id, difficulty, seed)
        hidden = (*key, other) if other else key
        world = (*hidden, "variant", variant) if variant else hidden
        draw = Draw(
            difficulty, Choices("query", *key), Choices("hidden", *hidden), Choices("world", *world)
        )
        try:
            task = self.function(draw)
        except InterCodeError:
            raise
        except Exception as e:
            raise UsageError(
                f"{self.id}, of {self.source or self.function.__module__}, cannot be drawn with "
                f"seed {seed} and difficulty {difficulty}: {type(e).__name__}: {e}"
            ) from e
        if not isinstance(task, Task):
            raise UsageError(f"{self.id} returned a {type(task).__name__}, not a Task")
        data = {"turns": list(task.solution_actions), **task.data}
        return replace(
            task,
            id=f"{self.id}/{difficulty}/{seed}",
            data=data,
            group=self.group,
            hardness=f"difficulty {difficulty}",
            tags=(*task.tags, self.name),
            vary=partial(_vary, self.source or self.environment, self.name, seed, difficulty),
        )

    def endless(self, difficulty: int) -> Task:
        """Return the task of seed 0, which every episode replaces by one of the episode's seed."""
        drawn = _draw_first(self, difficulty, cache_root())
        if drawn.database is not None and not drawn.database.path.exists():  # it was pruned
            drawn = self(0, difficulty)
        instantiate = partial(_instantiate, self.source or self.environment, self.name, difficulty)
        return replace(drawn, id=f"{self.id}/{difficulty}", instantiate=instantiate, vary=None)


@lru_cache(maxsize=1024)
def _draw_first(family: Family, difficulty: int, _cache: Path) -> Task:
    """Return the task of seed 0, whose database may be in this cache."""
    return family(0, difficulty)


def family(
    environment: str, *, held_out: bool = False, blind: float | None = None
) -> Callable[[Callable[[Draw], Task]], Family]:
    """Make a family of the decorated function. Its name, with hyphens, is that of the family, and
    the first line of its docstring the description."""

    def decorate(function: Callable[[Draw], Task]) -> Family:
        name = function.__name__.replace("_", "-")
        group = function.__module__.rpartition(".")[2]
        description = (inspect.getdoc(function) or "").partition("\n")[0]
        return Family(name, environment, group, description, function, held_out, blind)

    return decorate


def families_in(*modules: ModuleType) -> tuple[Family, ...]:
    """Return the families of modules, in their order."""
    return tuple(value for m in modules for value in vars(m).values() if isinstance(value, Family))


def load_families(
    source: str, decorator: str = "@family(ENVIRONMENT), all of the same environment"
) -> tuple[Family, ...]:
    """Return the families of a source: an environment, a name that an installed package adds, a
    module, or a file.

    ``decorator``: what functions need, for a message. Raises UnknownNameError for another name, and
    UsageError for a module or file that cannot be loaded, has no families, or has families of
    several environments.
    """
    if source.endswith(".py"):
        source = str(Path(source).absolute())  # the working directory may change
        found, group = load_module(source), Path(source).stem
    elif source in FAMILIES or not is_module(source):
        try:
            found, group = FAMILIES.load(source), ""
        except UnknownNameError as e:
            raise UnknownNameError(f"{e}; or a file.py or package.module with families") from e
    else:
        found, group = load_module(source), ""
    if source in FAMILIES and not FAMILIES.origin(source):
        return tuple(found)
    families = families_in(found) if isinstance(found, ModuleType) else tuple(found)
    if len(environments := sorted({f.environment for f in families})) != 1:
        what = f"families of {' and '.join(environments)}" if environments else "no families"
        raise UsageError(f"{source} has {what}: it needs functions with {decorator}")
    return tuple(_from_source(f, source, group or f.group) for f in families)


def _from_source(family: Family, source: str, group: str) -> Family:
    """Return a family of a user's module, which sandboxes on the image ``host`` must not show."""
    if file := getattr(sys.modules.get(family.function.__module__), "__file__", None):
        hide_from_host_image(Path(file))
    return replace(family, source=source, group=group)


def find_family(source: str, name: str) -> Family:
    """Return the family of a name. Raises UnknownNameError if there is none; else as
    ``load_families``."""
    families = load_families(source)
    for candidate in families:
        if candidate.name == name:
            return candidate
    raise unknown_name_error(f"family of {source}", name, [f.name for f in families])


def all_families() -> Iterator[Family]:
    """Yield every family of every environment and of every installed package."""
    for environment in FAMILIES:
        yield from load_families(environment)


def _instantiate(source: str, name: str, difficulty: int, _task: Task, seed: int) -> Task:
    return find_family(source, name)(FIRST_EPISODE_SEED + seed, difficulty)


def _vary(source: str, name: str, seed: int, difficulty: int, _task: Task, n: int) -> Task:
    return find_family(source, name)(seed, difficulty, variant=n)
