"""Plans a variant of a file system, and writes it as a script for Bash."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from intercode.core.types import Task
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode_lab.families.choices import WORDS, Choices
from intercode_lab.variants.bash.listing import Entry, read_entries, task_text
from intercode_lab.variants.makers import VariantMaker
from intercode_sandbox.lines import split_lines

_SIZES = (0, 10, 60, 250, 700, 1500, 3000, 7000, 40000)
"""Sizes of new files in bytes, away from the limits that queries name."""
_MAX_INLINE = 8192
_AGES = (0.02, 0.2, 1.4, 3.5, 5.5, 9.5, 20.5, 45.5, 100.5, 400.5)
"""Ages in days, away from the limits that queries name."""
_MODES = (0o644, 0o644, 0o755, 0o664, 0o600, 0o666, 0o777, 0o444)
_RANKS = re.compile(
    r"smallest|largest|biggest|oldest|latest|newest"
    r"|sort[^|]*\|\s*(?:head|tail)\b|-printf ['\"]?%[sT]",
    re.I,
)
"""Words of tasks in which files of equal size or date would be ties."""
_BLANK = re.compile(r"\b(?:non-?)?(?:empty|blank) lines?\b|\bspaces only\b|alphanumeric", re.I)
"""Queries about blank lines. Many golds of other tasks are not meant for them."""
_DUPLICATES = re.compile(r"duplicate|identical|uniq", re.I)
_NAME_TEST = re.compile(r"-i?(?:name|path|wholename)\s+(\"[^\"]*\"|'[^']*'|[^\s'\"]+)")
_GREP = re.compile(r"\bgrep\b((?:\s+-[\w-]+)*)\s+(?:-e\s+)?(\"[^\"]*\"|'[^']*'|[^\s|'\"]+)")
_QUOTED = re.compile(r"[\"']([A-Za-z][\w-]{1,20})[\"']")


class VariantPlan:
    """A plan of changes to the files of a task. ``script`` is its result."""

    def __init__(self, task: Task, entries: Mapping[str, Entry], seed: int) -> None:
        self._choices = Choices("files", task.id, seed)
        self._text = task_text(task)
        self._code = "\n".join((*task.golds, task.setup or ""))
        self._old = entries
        self._ranked = bool(_RANKS.search(self._text))
        self._directories = [e.path for e in entries.values() if e.is_directory]
        self._files = {e.path: e for e in entries.values() if not e.is_directory}
        self._new: dict[str, str | None] = {}
        self._modes: dict[str, int] = {}
        self._commands: list[str] = []
        self._words = self._searched_words()
        self._blank_lines = bool(_BLANK.search(task.query))
        self._used_sizes = {e.size for e in self._files.values()}
        self._make()

    @property
    def script(self) -> str:
        """The script that makes the variant. It changes nothing of the shell that runs it."""
        body = "\n".join((*self._commands, *self._mode_commands(), *self._date_commands()))
        return f"(\nset -e\nnow=$(( $(date +%s) / 3600 * 3600 ))\n{body}\n) </dev/null"

    # ------------------------------------------------------------------- the plan
    def _make(self) -> None:
        self._edit_files()
        self._add_directories()
        for name in self._names_to_match():
            self._add_file(self._choices.one(self._searched_directories()), name)
            self._add_file(self._choices.one(self._directories), name)
        if "extension" in self._text:
            for name in (self._new_word(), f"{self._new_word()}.{self._new_word()}.log"):
                self._add_file(self._choices.one(self._searched_directories()), name)
        for _ in range(5 + self._choices.index(4)):
            self._add_file(self._choices.one(self._directories), self._new_name())
        self._copy_file()
        if self._ranked:
            self._separate_sizes()

    def _searched_words(self) -> list[str]:
        """Return the words that the task searches files for, with words that are only similar."""
        found = [m[2].strip("'\"") for m in _GREP.finditer(self._code)]
        found += _QUOTED.findall(self._text)
        exact = sorted({w for w in found if re.fullmatch(r"[A-Za-z][\w-]*", w)})
        similar = [f"{w}s" for w in exact]
        if re.search(r"case", self._text, re.I):
            similar += [w.swapcase() for w in exact]
        return [*exact, *exact, *similar]

    def _edit_files(self) -> None:
        """Edit the files that the task names and some others. In half of all variants, files with
        one content are edited alike."""
        alike, edited = self._choices.chance(50), dict[tuple[str, str], str]()
        for path, entry in self._files.items():
            if entry.text is None or (not entry.text and not self._is_named(entry)):
                continue
            key = entry.text, extension(entry.name)
            if not (alike and key in edited):
                change = self._is_named(entry) or self._choices.chance(40)
                new = self._edited(entry, entry.name)
                edited[key] = new if change else entry.text
            if edited[key] != entry.text:
                self._write(path, edited[key])

    def _is_named(self, entry: Entry) -> bool:
        return entry.path in self._text or entry.path[1:] in self._text

    def _add_directories(self) -> None:
        names = sorted({path.rpartition("/")[2] for path in self._directories})
        tops = {path for path in self._directories if path.count("/") == 1}
        names = [n for n in names if f"/{n}" not in tops] or [*WORDS[:2]]
        tested = [name for name in names if name in self._tested_names()]
        searched = self._searched_directories()
        for name in (*tested, *tested, *[""] * (3 + self._choices.index(2))):
            near = self._choices.chance(60)
            parent = self._choices.one(searched if near else self._directories)
            other = self._choices.one(names) if self._choices.chance(60) else self._new_word()
            if self._make_directory(path := f"{parent}/{name or other}"):
                self._directories.append(path)
        empty = f"{self._choices.one(self._searched_directories())}/{self._new_word()}"
        self._make_directory(empty)
        self._make_directory(f"{empty}/{self._new_word()}")

    def _searched_directories(self) -> list[str]:
        """Return the directories that the task names and those in them, or all if it names none
        but those of the root directory."""
        named = {word.rstrip("/.") for word in re.findall(r"/[\w./-]+", self._text)}
        deep = [f"{path}/" for path in named if path.count("/") > 1]
        found = [p for p in self._directories if any(f"{p}/".startswith(d) for d in deep)]
        return found or self._directories

    def _make_directory(self, path: str) -> bool:
        """Make a directory. It stays empty unless it is added to the directories."""
        if not self._is_free(path):
            return False
        self._commands.append(f"mkdir {shlex.quote(path)}")
        self._new[path] = None
        return True

    def _tested_names(self) -> list[str]:
        """Return the names and patterns that the golds search for."""
        found = (m[1].strip("'\"").rpartition("/")[2] for m in _NAME_TEST.finditer(self._text))
        return list(dict.fromkeys(found))

    def _names_to_match(self) -> Iterator[str]:
        """Yield names of new files that the tests of the golds match."""
        present = {entry.name for entry in self._files.values()}
        kinds = sorted({extension(name) for name in present} - {""})
        for pattern in self._tested_names():
            if "[" in pattern or "{" in pattern or not pattern.strip("*?."):
                continue
            if "*" not in pattern and "?" not in pattern:
                if pattern in present:
                    yield pattern
                continue
            if pattern.lstrip("*") in kinds:
                pattern = f"*.{pattern.lstrip('*')}"
            name = re.sub(r"\*+", lambda _: self._new_word(), pattern).replace("?", "x")
            yield name.lstrip("/")
        for kind in kinds:
            if re.search(rf"(?:\*\.|\.|\b){re.escape(kind)}\b", self._text):
                yield f"{self._new_word()}.{kind}"

    def _new_name(self) -> str:
        kinds = sorted({extension(e.name) for e in self._files.values()})
        stems = sorted({e.name.rpartition(".")[0] or e.name for e in self._files.values()})
        hidden = any(e.name.startswith(".") for e in self._files.values())
        stem = self._choices.one(stems) if stems and self._choices.chance(40) else self._new_word()
        stem = stem.lstrip(".") or self._new_word()
        if hidden and self._choices.chance(15):
            stem = f".{stem}"
        kind = self._choices.one([*kinds, "log", "md"])
        return f"{stem}.{kind}" if kind and len(kind) < 8 else stem

    def _new_word(self) -> str:
        word = self._choices.one(WORDS)
        return word.capitalize() if self._choices.chance(30) else word

    def _add_file(self, directory: str, name: str) -> None:
        path = f"{directory}/{name}"
        if not self._is_free(path):
            return
        alike = [e for e in self._files.values() if extension(e.name) == extension(name) and e.size]
        source = self._choices.one(alike) if alike else None
        if source is not None and source.text is None and source.size <= 1 << 16:
            self._commands.append(f"cp {shlex.quote(source.path)} {shlex.quote(path)}")
            self._new[path] = ""
        elif source is not None and source.text and self._choices.chance(60):
            self._write(path, self._edited(source, name))
        else:
            self._write(path, new_text(self._new_size(), self._words, self._choices))
        if self._choices.chance(50):
            self._modes[path] = self._choices.one(_MODES)

    def _edited(self, entry: Entry, name: str) -> str:
        text = entry.text or ""
        return edited_text(name, text, self._words, self._choices, self._blank_lines)

    def _new_size(self) -> int:
        size = self._choices.one(_SIZES)
        if not self._ranked:
            return size
        size = max(size, 10)
        while size in self._used_sizes:
            size += 3
        return size

    def _copy_file(self) -> None:
        """Add a file with the content, and one with the name, of another file."""
        texts = [e for e in self._files.values() if e.text]
        if self._ranked or not texts:
            return
        named = [e for e in texts if f".{extension(e.name)}" in self._text]
        entry = self._choices.one(named or texts)
        parents = [entry.path.rpartition("/")[0], *self._directories]
        beside = self._choices.chance(50) or _DUPLICATES.search(self._text) is not None
        source = shlex.quote(entry.path)
        kind = extension(entry.name)
        name = f"{self._new_word()}.{kind}" if kind else self._new_word()
        for path in (
            f"{parents[0] if beside else self._choices.one(parents)}/{name}",
            f"{self._choices.one(parents)}/{self._case_changed(entry.name)}",
        ):
            if self._is_free(path):
                self._commands.append(f"cp {source} {shlex.quote(path)}")
                self._new[path] = ""

    def _case_changed(self, name: str) -> str:
        """Return a name with the letters before its extension in another case, if the task speaks
        of case."""
        stem, dot, kind = name.rpartition(".")
        if not re.search(r"case", self._text, re.I) or not stem:
            return name
        return f"{stem.swapcase()}{dot}{kind}"

    def _separate_sizes(self) -> None:
        """Lengthen text files until no two files have one size."""
        sizes: set[int] = set()
        for path, entry in self._files.items():
            text = self._new.get(path, entry.text)
            size = entry.size if text is None else len(text.encode())
            if size in sizes and text is not None:
                while size in sizes or size in self._used_sizes:
                    text, size = f"{text.rstrip(chr(10))}x\n", len(text.rstrip("\n").encode()) + 2
                if "." + extension(path) not in (".json", ".html", ".sql"):
                    self._write(path, text)
            sizes.add(size)

    def _is_free(self, path: str) -> bool:
        return path not in self._old and path not in self._new

    def _write(self, path: str, text: str) -> None:
        self._new[path] = text
        self._used_sizes.add(len(text.encode()))
        self._commands.append(f"printf %s {shlex.quote(text)} > {shlex.quote(path)}")

    # ------------------------------------------------------------ modes and dates
    def _mode_commands(self) -> Iterator[str]:
        groups: dict[int, list[str]] = defaultdict(list)
        for path, mode in self._modes.items():
            groups[mode].append(shlex.quote(path))
        for mode, paths in groups.items():
            yield f"chmod {mode:o} {' '.join(paths)}"

    def _date_commands(self) -> Iterator[str]:
        """Date every new and changed file, and every directory, to a whole minute.

        Dates are relative to the hour, so that a query for the last 7 days means the same each
        day. Directories come last: a new file changes the date of its directory.
        """
        directories = [p for p, e in self._old.items() if e.is_directory]
        directories += [p for p, text in self._new.items() if text is None]
        files = [p for p, text in self._new.items() if text is not None]
        files += [p for p in self._files if p not in self._new and self._choices.chance(30)]
        for group in (files, directories):
            groups: dict[float, list[str]] = defaultdict(list)
            for number, path in enumerate(group):
                old = group is directories and number % 2
                age = self._choices.one(_AGES[-3:] if old else _AGES)
                offset = number * 61.0 if self._ranked else 0.0
                groups[age * 86400 + offset].append(shlex.quote(path))
            for seconds, paths in groups.items():
                yield f"touch -d @$((now - {round(seconds)})) {' '.join(paths)}"


# Changes texts and makes new ones that are like the texts of a task.
_COMMENT = {
    "c": "//",
    "h": "//",
    "java": "//",
    "js": "//",
    "php": "//",
    "sh": "#",
    "py": "#",
}
"""How a comment begins, by the extension of source files, of which only comments are changed."""
_FIXED = frozenset(("json", "html", "sql", "xml"))
"""Extensions of files whose syntax a new line would break."""
_MAX_LINES = 60


def extension(name: str) -> str:
    """Return what follows the last dot of a name, or an empty string for a name without one."""
    stem, dot, last = name.rpartition(".")
    return last if dot and stem else ""


def edited_text(
    name: str, text: str, words: Sequence[str], choices: Choices, blank_lines: bool = False
) -> str:
    """Return the text of a file with some lines changed, added, moved and removed.

    Lines of paths, of tables with commas and of source code keep their form. ``words`` are put into
    new lines, ``blank_lines`` between them. The text stays as it is if its form is not known.
    """
    kind, end = extension(name).lower(), "\n" if text.endswith("\n") else ""
    if kind in _FIXED:
        return text
    lines = split_lines(text)
    if kind in _COMMENT:
        at = len(lines) if choices.chance(60) else choices.index(len(lines) + 1)
        comment = f"{_COMMENT[kind]} {' '.join(choices.some((*words, *WORDS), 3))}"
        at = max(at, 1) if lines and lines[0].startswith(("#!", "<?")) else at
        added = [comment, "", comment] if blank_lines and choices.chance(50) else [comment]
        return "\n".join([*lines[:at], *added, *lines[at:]]) + (end or "\n")
    filled = [line for line in lines if line.strip()]
    if filled and all(line.startswith("/") for line in filled):
        return text
    if len(filled) > 1 and all("," in line for line in filled):
        return "\n".join(_edited_table(lines, choices)) + end
    edited = _edited_lines(lines, words, choices)
    for blank in ("", "   ") if blank_lines else ():
        edited.insert(choices.index(len(edited) + 1), blank)
    return "\n".join(edited) + (end or "\n" * (not text))


def _edited_table(lines: list[str], choices: Choices) -> list[str]:
    """Return a table in another order, with lines that mix the columns of others."""
    rows = [line.split(",") for line in lines[1:] if line.strip()]
    width = min((len(row) for row in rows), default=0)
    for _ in range(2 if rows else 0):
        rows.append([choices.one(rows)[column] for column in range(width)])
    new = [",".join(row) for row in rows]
    return [lines[0], *choices.some(new, len(new))]


def _edited_lines(lines: list[str], words: Sequence[str], choices: Choices) -> list[str]:
    lines = list(lines[:_MAX_LINES])
    if len(lines) > 2 and choices.chance(30):
        del lines[choices.index(len(lines))]
    for _ in range(2 + choices.index(3)):
        at = choices.index(len(lines) + 1)
        if lines and choices.chance(35):
            lines.insert(at, choices.one(lines))
        else:
            lines.insert(at, new_line(words, choices))
    return lines


def new_line(words: Sequence[str], choices: Choices) -> str:
    """Return a line of several words. One of ``words`` is in it in a third of all cases."""
    chosen = choices.some(WORDS, 2 + choices.index(4))
    if words and choices.chance(35):
        chosen.insert(choices.index(len(chosen) + 1), choices.one(words))
    if choices.chance(20):
        chosen.append(str(choices.index(900) + 100))
    return " ".join(chosen)


def new_text(size: int, words: Sequence[str], choices: Choices) -> str:
    """Return a text of exactly ``size`` characters, in lines."""
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(new_line(words, choices))
        length += len(lines[-1]) + 1
    text = "".join(f"{line}\n" for line in lines)[:size]
    return text[:-1] + "\n" if text else text


# Makes variants of a Bash task.
def make_variant(env: SandboxedEnv, seed: int) -> Task | None:
    """Return the task of an environment, which has been reset to it, with other files.

    The result's ``setup`` runs that of the task and then changes the files. None if the task is
    about no files of its own, so that all its variants would be alike.
    """
    task = env.task
    workspace = env.open_workspace()
    try:
        entries = read_entries(workspace.sandbox, task)
    finally:
        workspace.close()
    if not any(entry.is_directory for entry in entries.values()):
        return None
    script = VariantPlan(task, entries, seed).script
    return replace(task, setup="\n".join(filter(None, (task.setup, script))))


MAKER = VariantMaker(make_variant)
