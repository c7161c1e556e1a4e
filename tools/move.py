"""Moves and renames modules and names in the whole repository, by a table.

    python tools/move.py TABLE [--dry-run]

A line of TABLE has two or three fields, separated by blanks; `#` starts a comment::

    root intercode_sandbox packages/sandbox/src   # where a new top-level package lies
    intercode_sandbox intercode_sandbox           # a package with all below it, or one module
    intercode.core.errors:UsageError intercode_sandbox.errors:UsageError   # a name
    merge intercode.core.a intercode.core.b       # all that the module `a` defines goes into `b`

Files are moved with `git mv`. Then every tracked text file is rewritten: imports, dotted names in
code, strings and prose, and paths. The longest line that fits decides. The definition of a name is
not moved: move it by hand first, and all uses follow. Nothing is written if a target exists
already, or if a line names nothing. A merge puts the definitions at the end of the other module, or
below its imports if that uses them when it is loaded; the docstring becomes a comment. Afterwards
`ruff check --fix` and `ruff format` order and wrap the imports.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_TEXT = {
    ".cfg",
    ".css",
    ".html",
    ".ini",
    ".ipynb",
    ".js",
    ".md",
    ".py",
    ".pyi",
    ".sh",
    ".toml",
    ".txt",
    ".typed",
    ".yaml",
    ".yml",
    "",
}
_DOTTED = re.compile(r"(?<![\w./-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*)?")
_PATH = re.compile(r"(?<![\w.-])(?:[\w.-]+/)+[\w.-]*\w/?")


class TableError(ValueError):
    """A line of the table cannot be carried out."""


@dataclass
class Moves:
    """What a table says, and what there is.

    ``modules``: old module or package -> new one. ``names``: (module, name) -> (module, name).
    ``merges``: module -> the one that it goes into, also in ``modules``.
    ``roots``: top-level package -> directory that holds it. ``known``: all modules of today.
    """

    roots: dict[str, str]
    known: set[str]
    modules: dict[str, str] = field(default_factory=dict)
    names: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    merges: dict[str, str] = field(default_factory=dict)

    def module(self, old: str) -> str:
        """Return the new name of a module."""
        for prefix in _prefixes(old):
            if prefix in self.modules:
                return self.modules[prefix] + old.removeprefix(prefix)
        return old

    def name(self, module: str, name: str) -> tuple[str, str]:
        """Return the new module and the new name of what ``from module import name`` gives."""
        if (module, name) in self.names:
            return self.names[module, name]
        if (submodule := f"{module}.{name}") in self.known:
            parent, _, leaf = self.module(submodule).rpartition(".")
            return parent, leaf
        return self.module(module), name

    def dotted(self, text: str) -> str:
        """Return the new form of a dotted name such as ``a.b.C.method`` or ``a.b:C``."""
        chain, colon, last = text.partition(":")
        for prefix in _prefixes(chain):
            if prefix in self.known:
                break
        else:
            return text
        rest = [part for part in chain.removeprefix(prefix).split(".") if part]
        first = rest[0] if rest else last
        if first and (prefix, first) in self.names:
            module, name = self.names[prefix, first]
        else:
            module, name = self.module(prefix), first
        if rest:
            return ".".join([module, name, *rest[1:]]) + colon + last
        return f"{module}{colon}{name}" if colon else module

    def path(self, text: str) -> str:
        """Return the new path of a file or directory of a package; it may lack its root."""
        start = next((f"{r}/" for t, r in self.roots.items() if text.startswith(f"{r}/{t}/")), "")
        parts, package = text.removeprefix(start).split("/"), list[str]()
        while parts and ".".join([*package, parts[0].removesuffix(".py")]) in self.known:
            package.append(parts.pop(0))
        old = ".".join(package)
        new = self.module(old.removesuffix(".py"))
        if new == old.removesuffix(".py"):
            return text
        root = self.roots[new.partition(".")[0]] + "/" if start else ""
        suffix = ".py" if old.endswith(".py") else ""
        return "/".join([root + new.replace(".", "/") + suffix, *parts])


def _prefixes(dotted: str) -> Iterator[str]:
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        yield ".".join(parts[:count])


def read_table(text: str, files: list[str], roots: dict[str, str]) -> Moves:
    """Return the moves of a table. ``files`` are those of the repository, ``roots`` the source
    directories of its top-level packages. Raises TableError."""
    known = {module for file in files if (module := module_of(file, roots))}
    moves = Moves(dict(roots), known)
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        if fields[0] == "root" and len(fields) == 3:
            moves.roots[fields[1]] = fields[2]
        elif fields[0] == "merge" and len(fields) == 3:
            if missing := {*fields[1:]} - known:
                raise TableError(f"line {number}: there is no module {missing.pop()}")
            moves.merges[fields[1]] = moves.modules[fields[1]] = fields[2]
        elif len(fields) != 2 or (":" in fields[0]) != (":" in fields[1]):
            raise TableError(
                f"line {number}: not `old new`, `root package directory` or `merge old new`: {line}"
            )
        elif ":" in fields[0]:
            old, new = (tuple(f.split(":")) for f in fields)
            moves.names[old[0], old[1]] = new[0], new[1]
        elif fields[0] not in known:
            raise TableError(f"line {number}: there is no module {fields[0]}")
        else:
            moves.modules[fields[0]] = fields[1]
    return moves


def module_of(file: str, roots: dict[str, str]) -> str | None:
    """Return the module that a file is, None if it is none."""
    for top, root in roots.items():
        if file.endswith(".py") and file.startswith(f"{root}/{top}/"):
            dotted = file.removeprefix(f"{root}/").removesuffix(".py").replace("/", ".")
            return dotted.removesuffix(".__init__")
    return None


def file_moves(moves: Moves, files: list[str]) -> dict[str, str]:
    """Return old and new path of every file that moves. Raises TableError if two would be one."""
    renamed = {
        file: new
        for file in files
        if (new := moves.path(file)) != file and module_of(file, moves.roots) not in moves.merges
    }
    taken = [new for new in renamed.values() if new in files and new not in renamed]
    taken += [new for new in set(renamed.values()) if list(renamed.values()).count(new) > 1]
    if taken:
        raise TableError(f"there is a file already: {', '.join(sorted(set(taken)))}")
    return renamed


def rewrite(text: str, moves: Moves, is_python: bool) -> str:
    """Return the text of a file after the moves. Relative imports stay as they are."""
    edits = list(_import_edits(text, moves)) if is_python else []
    out, at = [], 0
    for start, end, new in [*edits, (len(text), len(text), "")]:
        part = _DOTTED.sub(lambda found: moves.dotted(found[0]), text[at:start])
        out += [_PATH.sub(lambda found: moves.path(found[0]), part), new]
        at = end
    return "".join(out)


def _import_edits(text: str, moves: Moves) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the new text of every `from … import …` of known modules."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    data = text.encode()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        if node.level or not node.module or node.module.partition(".")[0] not in moves.roots:
            continue
        targets: dict[str, list[str]] = {}
        for alias in node.names:
            module, name = moves.name(node.module, alias.name)
            shown = alias.asname or alias.name
            is_plain = name == shown and alias.asname != alias.name  # `a as a` is a public name
            targets.setdefault(module, []).append(name if is_plain else f"{name} as {shown}")
        start = len(data[: lines[node.lineno - 1] + node.col_offset].decode())
        end = len(data[: lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)].decode())
        if targets == {node.module: [ast.unparse(alias) for alias in node.names]}:
            yield start, end, text[start:end]
            continue
        statements = (f"from {m} import ({', '.join(names)})" for m, names in targets.items())
        yield start, end, ("\n" + " " * node.col_offset).join(statements)


def merged(old: str, new: str, name: str, module: str) -> str:
    """Return the text of the module ``new`` with all that ``old`` defines. ``name`` and ``module``
    are those under which the texts import them. Raises TableError if one name has two meanings."""
    trees = [ast.parse(text) for text in (old, new)]
    bound = [_bindings(tree, own) for tree, own in zip(trees, (name, module), strict=True)]
    differ = {n for n, origin in bound[0].items() if bound[1].get(n, origin) != origin}
    if twice := differ | (_defined(trees[0]) & _defined(trees[1])):
        raise TableError(f"{module} defines already: {', '.join(sorted(twice))}")
    statements = [
        n for n in trees[0].body if not isinstance(n, ast.Expr) or n is not trees[0].body[0]
    ]
    imports = [n for n in statements if isinstance(n, ast.Import | ast.ImportFrom)]
    rest = [n for n in statements if n not in imports]
    if any("TYPE_CHECKING" in ast.unparse(n) for n in rest if isinstance(n, ast.If)):
        raise TableError(f"a module that goes into {module} has imports for type checkers only")
    lines, added = new.splitlines(), old.splitlines()
    head = [ast.unparse(n) for n in imports if getattr(n, "module", "") != "__future__"]
    first = next(n for n in trees[0].body if n is rest[0])
    begin = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))]) - 1
    while added[begin - 1].startswith("#"):
        begin -= 1
    title = (ast.get_docstring(trees[0]) or "").splitlines()
    body = ["", "", *(f"# {line}".rstrip() for line in title), *added[begin:], ""]
    below = max(
        n.end_lineno or 0 for n in trees[1].body if isinstance(n, ast.Import | ast.ImportFrom)
    )
    if _defined(trees[0]) & _used_on_loading(trees[1]):
        lines[below:below] = body
    else:
        lines += body
    lines[below:below] = head
    inside = [n for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, ast.ImportFrom)]
    for node in sorted(inside, key=lambda n: -n.lineno):
        if node.module == module:
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines) + "\n"


def _defined(tree: ast.Module) -> set[str]:
    """Return the names that a module defines."""
    found = {n.name for n in tree.body if hasattr(n, "name")}
    stored = (
        n for s in tree.body if isinstance(s, ast.Assign | ast.AnnAssign) for n in ast.walk(s)
    )
    return found | {
        n.id for n in stored if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _bindings(tree: ast.Module, module: str) -> dict[str, str]:
    """Return the names that a module defines or imports, and the module that defines each."""
    found = dict.fromkeys(_defined(tree), module)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = str(getattr(node, "module", alias.name))
    return found


def _used_on_loading(tree: ast.Module) -> set[str]:
    """Return the names that a module uses before a function of it is called."""
    nodes, found = list[ast.AST](tree.body), set[str]()
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += [
                *node.decorator_list,
                *node.args.defaults,
                *filter(None, node.args.kw_defaults),
            ]
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        nodes += [n for f, n in _children(node) if f != "annotation"]
    return found


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in ast.iter_fields(node):
        values = value if isinstance(value, list) else [value]
        yield from ((name, v) for v in values if isinstance(v, ast.AST))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="print what would be moved")
    args = parser.parse_args()
    files = subprocess.check_output(["git", "ls-files"], text=True).splitlines()
    roots = {
        file.split("/")[-2]: file.rsplit("/", 2)[0]
        for file in files
        if re.fullmatch(r"(?:src|packages/\w+/src)/\w+/__init__\.py", file)
    }
    try:
        moves = read_table(args.table.read_text(), files, roots)
        places = {module_of(file, roots): Path(file) for file in files}
        for old, new in moves.merges.items():
            merged(places[old].read_text(), places[new].read_text(), old, new)
        renamed = file_moves(moves, files)
    except TableError as e:
        print(f"{args.table}: {e}", file=sys.stderr)
        return 2
    for old, new in renamed.items():
        if args.dry_run:
            print(old, "->", new)
            continue
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], check=True)
    changed = 0
    for file in (renamed.get(file, file) for file in files):
        path = Path(file)
        if args.dry_run or path.is_symlink() or path.suffix not in _TEXT:
            continue
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if (new := rewrite(text, moves, path.suffix in (".py", ".pyi"))) != text:
            path.write_bytes(new.encode())
            changed += 1
    for old, new in {} if args.dry_run else moves.merges.items():
        text = merged(places[old].read_text(), places[new].read_text(), new, new)
        places[new].write_text(text)
        subprocess.run(["git", "rm", "-qf", str(places[old])], check=True)
    print(f"{len(renamed)} files {'would be ' * args.dry_run}moved, {changed} rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
