"""The columns that each environment of this package reads, and how rows get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from intercode.core.errors import DataError
from intercode.core.types import Payload
from intercode.datasets.hidden_tests import find_entry_point
from intercode_sandbox.lines import split_lines

_TEST_KEYS = {"input", "output"}


@dataclass(frozen=True, kw_only=True)
class RowPayload(Payload):
    """The columns of an environment of this package.

    ``environment``: its name. ``marks``: the columns by which rows are known as its own.
    ``takes_probe``: whether its tasks may have a probe of the end state.
    """

    environment: ClassVar[str] = ""
    marks: ClassVar[tuple[str, ...]] = ()
    takes_probe: ClassVar[bool] = True

    @classmethod
    def columns(
        cls,
        row: Mapping[str, Any],
        where: str,
        gold: str | None = None,  # noqa: ARG003
    ) -> dict[str, Any]:
        """Return the columns of a row, with what its payload makes of them. Columns that are not
        in the payload stay as they are. ``gold``: that of the row.

        Raises DataError that begins with ``where`` and names the field.
        """
        payload = cls.of_row(row, where)
        own = {f.name: getattr(payload, f.name) for f in fields(cls) if f.name in row}
        return {k: v if v is None else own.get(k, v) for k, v in row.items()}


@dataclass(frozen=True, kw_only=True)
class BashPayload(RowPayload):
    """``compare``: how outputs are compared; see COMPARISONS in environments/bash/outputs.py."""

    environment: ClassVar[str] = "bash"
    compare: str = ""

    @property
    def only_changes(self) -> bool:
        return self.compare == "changes"


@dataclass(frozen=True, kw_only=True)
class SqlPayload(RowPayload):
    """``compare``: what is compared: DATABASE, RESULT, or FURTHER (see further_columns.py); empty:
    the changes of a gold that changes tables, else its result."""

    environment: ClassVar[str] = "sql"
    marks: ClassVar[tuple[str, ...]] = ("database",)
    takes_probe: ClassVar[bool] = False
    DATABASE: ClassVar[str] = "database"
    RESULT: ClassVar[str] = "result"
    FURTHER: ClassVar[str] = "further-columns"
    compare: str = ""

    @property
    def only_changes(self) -> bool:
        return self.compare == self.DATABASE

    @classmethod
    def of_row(cls, row: Mapping[str, Any], where: str) -> Self:
        payload = super().of_row(row, where)
        known = cls.DATABASE, cls.RESULT, cls.FURTHER
        if payload.compare not in ("", *known):
            raise DataError(
                f"{where}: 'compare' must be one of {', '.join(known)}, not {payload.compare!r}"
            )
        return payload


@dataclass(frozen=True, kw_only=True)
class CtfPayload(RowPayload):
    """``also_flags``: further flags that are right. ``network_setup``: set-up code that needs a
    network, which runs only with one."""

    environment: ClassVar[str] = "ctf"
    marks: ClassVar[tuple[str, ...]] = ("flag",)
    takes_probe: ClassVar[bool] = False
    also_flags: tuple[str, ...] = ()
    network_setup: str = ""


@dataclass(frozen=True, kw_only=True)
class PythonPayload(RowPayload):
    """``tests``: assert statements, or mappings with ``input`` and ``output``. ``entry``: the name
    that they call. ``setup``: code that runs between the solution and the tests. ``prelude``: code
    that goes before the solution. ``mode``: ``assert`` for statements; for inputs and outputs
    ``call`` with an entry, of which they are arguments and return value, else ``stdin``, of a
    program."""

    environment: ClassVar[str] = "python"
    marks: ClassVar[tuple[str, ...]] = ("tests",)
    takes_probe: ClassVar[bool] = False
    entry: str = ""
    setup: str = ""
    prelude: str = ""
    mode: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any], where: str) -> Self:
        payload = super().of_row(row, where)
        texts = [isinstance(test, str) for test in payload.tests]
        if any(texts) and not all(texts):
            raise DataError(f"{where}: 'tests' must all be texts, or all have 'input' and 'output'")
        if not any(texts):
            _check_pairs(payload.tests, bool(payload.entry), where)
        return payload

    @classmethod
    def columns(cls, row: Mapping[str, Any], where: str, gold: str | None = None) -> dict[str, Any]:
        """Return the columns of a row, with ``entry`` and ``mode``.

        The tests may also be a text with one assert statement per line. Of assert statements,
        ``find_entry_point`` finds the entry in the gold.
        """
        tests = row.get("tests")
        if tests is None:
            return super().columns(row, where)
        if isinstance(tests, str):
            tests = [line for line in split_lines(tests) if line.strip()]
        payload = cls.of_row({**row, "tests": _require_tests(tests, where)}, where)
        entry, mode = payload.entry, "call" if payload.entry else "stdin"
        if all(isinstance(test, str) for test in payload.tests):
            mode = "assert"
            if not entry and gold is None:
                raise DataError(
                    f"{where}: a row without a gold needs 'entry', the name that the tests call"
                )
            found = payload.tests, payload.setup, where
            entry = entry or find_entry_point(gold or "", *found).name
        more = {"entry": entry, "tests": payload.tests, "setup": payload.setup, "mode": mode}
        return {**row, **more}


@dataclass(frozen=True, kw_only=True)
class CodePayload(RowPayload):
    """``tests``: mappings with ``input`` and ``output``. Without ``entry``, these are the standard
    input and output of a program; with it, the list of arguments of that function and its return
    value. ``language``: the name of a language. ``example``: the standard input when the agent runs
    its program."""

    environment: ClassVar[str] = "code"
    marks: ClassVar[tuple[str, ...]] = ("tests", "language")
    language: str = ""
    entry: str = ""
    example: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any], where: str) -> Self:
        payload = super().of_row(row, where)
        _check_pairs(payload.tests, bool(payload.entry), where)
        return payload

    @classmethod
    def columns(cls, row: Mapping[str, Any], where: str, gold: str | None = None) -> dict[str, Any]:
        """Return the columns of a row. Raises DataError also for a reference to code that defines a
        language: rows run no code outside the sandbox."""
        if row.get("tests") is not None:
            _require_tests(row["tests"], where)
        columns = super().columns(row, where, gold)
        if ":" in str(columns.get("language")):
            raise DataError(
                f"{where}: the language {row['language']!r} refers to code that would run outside "
                "the sandbox: remove it from the rows, read the code, and pass it as the option "
                "language; or install it as a plugin (intercode.languages)"
            )
        return columns


_PAYLOADS: tuple[type[RowPayload], ...] = (
    CodePayload,
    PythonPayload,
    CtfPayload,
    SqlPayload,
    BashPayload,
)


def payload_of(rows: Sequence[Mapping[str, Any]], environment: str | None) -> type[RowPayload]:
    """Return the first payload whose marks a row has, and Bash's if none has them.

    Rows for an ``environment`` that is none of this package have those of RowPayload: it checks its
    own columns itself.
    """
    if environment not in (None, *(p.environment for p in _PAYLOADS)):
        return RowPayload
    for payload in _PAYLOADS:
        marks = payload.marks[:1] if payload.environment == environment else payload.marks
        if marks and any(
            row.get(marks[0]) not in (None, "") and row.keys() >= {*marks} for row in rows
        ):
            return payload
    return BashPayload


def takes_probe(environment: str) -> bool:
    """Return whether tasks of an environment may have a probe of the end state."""
    return all(p.takes_probe for p in _PAYLOADS if p.environment == environment)


def _require_tests(tests: Any, where: str) -> Any:
    """Return tests. Raises DataError unless they are a list with at least one."""
    if not isinstance(tests, list) or not tests:
        raise DataError(f"{where}: 'tests' must be a list with at least one test, not {tests!r}")
    return tests


def _check_pairs(tests: Sequence[Any], called: bool, where: str) -> None:
    """Raise DataError unless tests are inputs and outputs: lists of arguments if a function is
    ``called``, else all of them texts."""
    for test in tests:
        if not isinstance(test, Mapping) or test.keys() != _TEST_KEYS:
            raise DataError(f"{where}: a test has exactly 'input' and 'output', not {test!r}")
        if called and not isinstance(test["input"], list):
            raise DataError(
                f"{where}: 'input' lists the arguments of a call, not {test['input']!r}"
            )
        if not called and not all(isinstance(text, str) for text in test.values()):
            raise DataError(
                f"{where}: a program's 'input' and 'output' are texts, not {test!r}; if the tests "
                "call a function, give its name as 'entry'"
            )
