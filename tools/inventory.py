"""Lists everything that users can name, and compares it with ``tests/frozen/inventory.tsv``.

    python tools/inventory.py            print what the table lacks, and what is gone
    python tools/inventory.py --write    add and update rows
    python tools/inventory.py --sweep S  begin the column of the sweep S
    python tools/inventory.py --removed  print the rows that are gone, as lines of a changelog

The table has a row for each name, and a column for each sweep that restructures the packages. A
cell says ``kept``, ``new``, ``is now NAME`` (a name of the same kind, which exists), ``removed:
WHY``, or ``gone`` in the columns after the one that says how. ``--write`` fills in the cells of
names that exist, and of members and parameters whose owner has a cell. The other cells are written
by hand. A name that comes later than the first sweep has ``-`` in the columns before.

Everything is read from the source, the parser of the command line and the documentation:

    name        the names in ``__all__`` of a package, and of a module that is such a name
    member      methods, attributes and fields of these classes, and of their private bases
    parameter   parameters of these functions, classes and methods
    entry       the names of a registry, and for environments and agents their settings
    command, argument, choice     of the real parser; the choices of an argument
    variable    environment variables that the source reads
    extra, entry point            of ``pyproject.toml``, and the groups that plugins use
    error       InterCodeError and what derives from it, also in private modules
    field       keys of records: dataclasses of records, and the tables of docs/records.md
    documented  headings of pages; code in the first cell of tables; names, methods and keyword
                arguments in examples in Python
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "frozen" / "inventory.tsv"
SOURCES = sorted(ROOT.glob("packages/*/src"))
NO_PROMISES = re.compile(r"results|benchmarks|audit|comparison|glossary")
"""Pages of figures and findings, whose tables and headings promise nothing."""
SETTINGS_MODULE = "intercode.environments.base.settings"
Row = tuple[str, str]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


# --------------------------------------------------------------------- names of Python
@cache
def path_of(module: str) -> Path | None:
    """Return the file of a module of ours."""
    bases = [source.joinpath(*module.split(".")) for source in SOURCES]
    files = [p for base in bases for p in (base / "__init__.py", base.with_suffix(".py"))]
    found = [p for p in files if p.is_file()]
    return found[0] if found else None


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module of ours."""
    path = path_of(module)
    assert path is not None, module
    return ast.parse(path.read_text("utf-8"))


@cache
def scope_of(module: str) -> dict[str, ast.AST | str]:
    """Return the names of a module: a node, or the dotted name of what is imported."""
    names: dict[str, ast.AST | str] = {}
    path = path_of(module)
    inside = module.split(".") if path and path.name == "__init__.py" else module.split(".")[:-1]

    def visit(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.If | ast.Try):
                visit(node.body)
            elif isinstance(node, Definition):
                names.setdefault(node.name, node)
            elif isinstance(node, ast.ImportFrom):
                base = inside[: len(inside) - node.level + 1] if node.level else []
                origin = ".".join([*base, *filter(None, [node.module])])
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{origin}.{alias.name}"
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update({t.id: node for t in targets if isinstance(t, ast.Name)})

    visit(tree_of(module).body)
    return names


def find(module: str, name: str) -> tuple[str, ast.AST | None]:
    """Return the module that defines a name and the node there; for a module, its name alone."""
    for _ in range(9):
        found = scope_of(module).get(name)
        if found is None and path_of(f"{module}.{name}"):
            return f"{module}.{name}", None
        if not isinstance(found, str):
            return module, found
        if path_of(found):
            return found, None
        module, _, name = found.rpartition(".")
        if not path_of(module):
            return module, None
    raise RecursionError(f"{module}.{name} is imported in a circle")


def listed(module: str) -> list[str]:
    """Return ``__all__`` of a module; without one, the classes and functions that it defines."""
    scope = scope_of(module)
    if isinstance(node := scope.get("__all__"), ast.Assign):
        return list(ast.literal_eval(node.value))
    return [k for k, v in scope.items() if isinstance(v, Definition) and not k.startswith("_")]


def public_packages() -> list[str]:
    """Return the packages whose names are public, the shortest path first."""
    source, *others = SOURCES
    paths = [
        *source.glob("*/__init__.py"),
        *source.glob("*/*/__init__.py"),
        *source.glob("*/integrations/*/__init__.py"),
        *source.glob("*/paper/envs/__init__.py"),
    ]
    names = [".".join(p.parent.relative_to(source).parts) for p in sorted(paths, key=depth)]
    own = [p.parent.name for other in others for p in other.glob("*/__init__.py")]
    return [names[0], *own, *names[1:]]


def depth(path: Path) -> tuple[int, Path]:
    """Return a sort key: the number of parts of a path."""
    return len(path.parts), path


def python_names() -> Iterator[Row]:
    """Yield public names with their members and parameters, which a class has at one place only."""
    known: dict[tuple[str, ast.AST | None], str] = {}
    for package in public_packages():
        for name in (f"{package}.{n}" for n in listed(package)):
            yield "name", name
            module, node = find(*name.rpartition(".")[::2])
            known.setdefault((module, node), name)
            for inner in listed(module) if node is None and path_of(module) else ():
                yield "name", f"{name}.{inner}"
                known.setdefault(find(module, inner), f"{name}.{inner}")
    for (module, node), name in known.items():
        yield from described_parts(name, module, node, {n for _, n in known if n})


def described_parts(
    name: str, module: str, node: ast.AST | None, public: set[ast.AST]
) -> Iterator[Row]:
    """Yield the parameters of a function, or the members of a class and their parameters."""
    if isinstance(node, ast.ClassDef):
        found = members(module, node, public - {node})
        yield from (("parameter", f"{name} {s}") for s in settings(module, found))
        for member, inner in found.items():
            if member == "__init__":
                yield from (("parameter", f"{name} {p}") for p in parameters(inner))
            elif not member.startswith("_"):
                yield "member", f"{name}.{member}"
                yield from (("parameter", f"{name}.{member} {p}") for p in parameters(inner))
    else:
        yield from (("parameter", f"{name} {p}") for p in parameters(node))


def members(
    module: str, node: ast.ClassDef, described: Set[ast.AST] = frozenset()
) -> dict[str, ast.AST]:
    """Return the members of a class, with those of bases of ours that are not described."""
    found: dict[str, ast.AST] = {}
    for base in reversed(node.bases):
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Name):
            home, inner = find(module, base.id)
            if isinstance(inner, ast.ClassDef) and inner not in described:
                found |= members(home, inner, described)
    for part in node.body:
        if isinstance(part, Definition):
            found[part.name] = part
            if part.name == "__init__" and isinstance(part, ast.FunctionDef):
                found |= dict.fromkeys(assigned(part), part.args)
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                found |= {t.id: forwarded(module, part) for t in names if isinstance(t, ast.Name)}
    return found


def forwarded(module: str, part: ast.Assign | ast.AnnAssign) -> ast.AST:
    """Return the method that ``name = function(Class.name)`` stands for, or else the assignment."""
    match part.value:
        case ast.Call(args=[ast.Attribute(value=ast.Name(id=owner), attr=name), *_]):
            home, node = find(module, owner)
            return members(home, node).get(name, part) if isinstance(node, ast.ClassDef) else part
    return part


def settings(module: str, found: dict[str, ast.AST]) -> Iterator[str]:
    """Yield the settings that the ``settings_class`` among the members of a class declares."""
    declared = found.get("settings_class")
    if isinstance(declared, ast.AnnAssign) and isinstance(declared.value, ast.Name):
        for base in (module, SETTINGS_MODULE):  # the second if the member is inherited
            _, node = find(base, declared.value.id)
            if isinstance(node, ast.ClassDef):
                body = (part.target for part in node.body if isinstance(part, ast.AnnAssign))
                yield from (target.id for target in body if isinstance(target, ast.Name))
                return


def assigned(init: ast.FunctionDef) -> Iterator[str]:
    """Yield the attributes of the object that ``__init__`` assigns."""
    for node in ast.walk(init):
        if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)):
            continue
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.attr


def parameters(node: ast.AST | None) -> Iterator[str]:
    """Yield the public parameters of a function."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    a = node.args
    star = [f"{'*' * n}{arg.arg}" for n, arg in ((1, a.vararg), (2, a.kwarg)) if arg]
    names = [*(arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)), *star]
    yield from (n for n in names if n not in ("self", "cls") and not n.strip("*").startswith("_"))


def registries() -> Iterator[Row]:
    """Yield the names of registries; for environments and agents, the settings of each."""
    for module, text in sources():
        if "= Registry(" not in text:
            continue
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Registry":
                kind, entries, *_ = node.args
                group = [ast.literal_eval(k.value) for k in node.keywords if k.arg == "group"]
                yield from (("entry point", f"group {g}") for g in group)
                added = dict(item for g in group for item in entry_points(g))
                for key, value in named_entries(kind, entries):
                    value = value or added.get(key.rpartition(" ")[2], "")
                    yield "entry", key
                    if ast.literal_eval(kind) in ("environment", "agent"):
                        home, _, name = value.partition(":")
                        _, found = find(home, name)
                        inside = members(home, found) if found else {}  # type: ignore[arg-type]
                        given = (*parameters(inside.get("__init__")), *settings(home, inside))
                        yield from (("entry", f"{key} {p}") for p in given)


def named_entries(kind: ast.expr, entries: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield ``KIND NAME`` and the reference of each entry that is written as such."""
    assert isinstance(entries, ast.Dict), "a registry begins with a literal dictionary"
    word = str(ast.literal_eval(kind))
    for key, value in zip(entries.keys, entries.values, strict=True):
        if isinstance(key, ast.Constant):
            yield f"{word} {key.value!s}", value.value if isinstance(value, ast.Constant) else ""


@cache
def sources() -> list[tuple[str, str]]:
    """Return the dotted name, or the path of another file, and the text of every source file."""
    found = []
    for source, path in ((s, p) for s in SOURCES for p in sorted(s.rglob("*"))):
        if path.suffix in (".py", ".c", ".h", ".toml", ".sh"):
            parts = path.relative_to(source).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append((name if path.suffix == ".py" else str(path), path.read_text("utf-8")))
    return found


def variables_and_errors() -> Iterator[Row]:
    """Yield environment variables and the errors that callers may catch, by their form in the
    text."""
    read = re.compile(r"environ(?:\.\w+)?[\[(]\"(\w+)\"|getenv\(\"(\w+)\"|\b(INTERCODE_[A-Z_]+)\b")
    derived = re.compile(r"(?m)^class (\w+)\((\w+Error)\b")
    bases: dict[str, str] = {}
    for _, text in sources():
        yield from (("variable", m[1] or m[2] or m[3]) for m in read.finditer(text))
        # intercode_sql.dbapi comes last, with the names of PEP 249
        bases = {**dict(derived.findall(text)), **bases}
    for error in ("InterCodeError", *bases):
        base = error
        while base in bases:
            base = bases[base]
        if base == "InterCodeError":
            yield "error", error


# --------------------------------------------------------------------- commands and packaging
def commands() -> Iterator[Row]:
    """Yield commands, their arguments and the choices of these, from the real parser."""
    from intercode import cli

    def visit(verb: str, parser: argparse.ArgumentParser) -> Iterator[Row]:
        yield "command", verb
        for action in parser._actions:
            if action.help == argparse.SUPPRESS:  # an old name, which is refused
                continue
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    yield from visit(f"{verb} {name}", inner)
                continue
            for flag in action.option_strings or [str(action.metavar or action.dest)]:
                yield "argument", f"{verb} {flag}"
                yield from (("choice", f"{verb} {flag} {c}") for c in action.choices or ())

    for name in cli.COMMANDS:
        yield from visit(f"intercode {name}", cli._make_parser(name)[1])


@cache
def projects() -> list[dict[str, Any]]:
    """Return the metadata of the distributions."""
    paths = ROOT.glob("packages/*/pyproject.toml")
    return [tomllib.loads(path.read_text("utf-8"))["project"] for path in paths]


def entry_points(group: str) -> Iterator[tuple[str, str]]:
    """Yield the names that the distributions add to a group, and their references."""
    for project in projects():
        yield from project.get("entry-points", {}).get(group, {}).items()


def packaging() -> Iterator[Row]:
    """Yield extras and entry points."""
    for project in projects():
        yield from (("extra", name) for name in project.get("optional-dependencies", {}))
        yield from (("entry point", f"script {name}") for name in project.get("scripts", {}))
        for group, entries in project.get("entry-points", {}).items():
            yield from (("entry point", f"{group} {name}") for name in entries)


# --------------------------------------------------------------------- documentation
def documentation() -> Iterator[Row]:
    """Yield headings, code in the first cells of tables, and the names that examples use."""
    own = sorted(ROOT.glob("packages/*/README.md"))
    for path in (ROOT / "README.md", *own, *sorted((ROOT / "docs").rglob("*.md"))):
        text, page = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
        for fence in re.findall(r"(?ms)^ *```python\n(.*?)^ *```", text):
            yield from (("documented", f"example {name}") for name in used_names(fence))
        if NO_PROMISES.search(page):
            continue
        text = re.sub(r"(?ms)^ *(`{3,}).*?^ *\1", "", text)
        yield from (("documented", f"{page} # {m}") for m in re.findall(r"(?m)^#+ (.+?) *$", text))
        kind = "field" if page == "docs/records.md" else "documented"
        for cell in re.findall(r"(?m)^\| *([^|]*?`[^|]*?) *\|", text):
            yield from ((kind, f"{page} {code}") for code in re.findall(r"`([^`\t\n]+)`", cell))


def used_names(example: str) -> Iterator[str]:
    """Yield the imports from our packages, and the methods and keyword arguments of calls."""
    try:
        tree = ast.parse(re.sub(r"(?m)^(>>> |\.\.\. )", "", example))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("intercode"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "intercode":
            yield f"intercode.{node.attr}"
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield f".{node.func.attr}()"
            yield from (f"{k.arg}=" for k in node.keywords if k.arg)


def records() -> Iterator[Row]:
    """Yield the fields of the dataclasses that are written as records."""
    module = "intercode.core.types.records"
    for name in ("Trajectory", "Step", "Usage"):
        for member, node in members(*find(module, name)).items():  # type: ignore[arg-type]
            if isinstance(node, ast.AnnAssign):
                yield "field", f"{name} {member}"


def collect() -> list[Row]:
    """Return everything that exists, sorted."""
    parts = (
        python_names,
        registries,
        variables_and_errors,
        commands,
        packaging,
        documentation,
        records,
    )
    return sorted({row for part in parts for row in part()})


# --------------------------------------------------------------------- the table
class Table:
    """The rows of the file, and the names of its sweeps."""

    def __init__(self, text: str) -> None:
        header, *lines = text.splitlines()
        self.sweeps = header.split("\t")[2:]
        self.rows: dict[Row, list[str]] = {}
        for line in lines:
            kind, name, *cells = line.split("\t")
            self.rows[kind, name] = cells

    def text(self) -> str:
        """Return the text of the file."""
        rows = [[*row, *cells] for row, cells in sorted(self.rows.items())]
        return "".join("\t".join(r) + "\n" for r in [["kind", "name", *self.sweeps], *rows])

    def faults(self, present: set[Row]) -> list[str]:
        """Return what is wrong with the table, a line each; empty if it describes ``present``."""
        found = [
            f"not in the table: {kind} {name}"
            for kind, name in sorted(present)
            if (kind, name) not in self.rows
        ]
        for (kind, name), cells in sorted(self.rows.items()):
            last = next((cell for cell in reversed(cells) if cell != "gone"), "")
            exists = (kind, name) in present
            if len(cells) != len(self.sweeps) or "" in cells:
                found.append(f"empty cell: {kind} {name}")
            elif exists != (last in ("kept", "new") and cells[-1] != "gone"):
                found.append(f"{'exists' if exists else 'is gone'}: {kind} {name}: {last}")
            elif not exists and not re.match(r"(is now|removed:) \S", last):
                found.append(f"neither kept, new, is now, nor removed: {kind} {name}: {last}")
            elif (new := successor(last)) and (kind, new) not in present | self.rows.keys():
                found.append(f"is now what does not exist: {kind} {name}: {new}")
        return found

    def update(self, present: set[Row]) -> None:
        """Fill in the cells of the last sweep that need no decision."""
        width = len(self.sweeps)
        for row in present:
            before = self.rows.get(row)
            cells = before if before is not None else ["-"] * (width - 1) + ["new"]
            if cells[-1] not in ("kept", "new"):
                cells = [*cells[: width - 1], "kept"]
            self.rows[row] = cells
        for row, cells in sorted(self.rows.items()):
            if row not in present and cells[-1] in ("", "kept", "new"):
                ended = any(cell and cell not in ("kept", "new", "-") for cell in cells[:-1])
                cells[-1] = "gone" if ended else self.cell_of_owner(row, present)

    def cell_of_owner(self, row: Row, present: set[Row]) -> str:
        """Return the cell of a gone member, parameter or setting that follows from its owner's."""
        kind, name = row
        for owner_kind, mark in (
            ("member", " "),
            ("name", " "),
            ("entry", " "),
            ("name", "."),
            ("command", " "),
            ("argument", " "),
        ):
            owner, found, rest = name.rpartition(mark)
            cells = self.rows.get((owner_kind, owner)) if found else None
            if cells and (owner_kind, owner) not in present and cells[-1]:
                if new := successor(cells[-1]):
                    same = f"{new}{mark}{rest}"
                    return f"is now {same}" if (kind, same) in present else ""
                return cells[-1] if cells[-1].startswith("removed:") else ""
        return ""


def successor(cell: str) -> str:
    """Return the new name that a cell gives, or an empty string."""
    return cell.removeprefix("is now ") if cell.startswith("is now ") else ""


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description="the inventory of public names")
    parser.add_argument("--write", action="store_true", help="add and update rows")
    parser.add_argument("--sweep", help="begin a column of this name")
    parser.add_argument("--removed", action="store_true", help="print the rows that are gone")
    args = parser.parse_args()
    table = Table(TABLE.read_text("utf-8") if TABLE.exists() else "kind\tname")
    if args.removed:
        for (kind, name), cells in sorted(table.rows.items()):
            gone = [cell for cell in cells if cell.startswith(("is now ", "removed:"))]
            print("".join(f"- {kind} `{name}`: {cell}\n" for cell in gone), end="")
        return 0
    present = set(collect())
    if args.sweep:
        table.sweeps.append(args.sweep)
        table.rows = {row: [*cells, ""] for row, cells in table.rows.items()}
    if args.sweep or args.write:
        known = set(table.rows)
        table.update(present)
        if args.sweep and not known:  # the first table: everything is as it was
            table.rows = {row: ["kept"] for row in table.rows}
        TABLE.write_text(table.text(), "utf-8")
    faults = table.faults(present)
    print("\n".join(faults) or f"{len(present)} names, none missing")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
