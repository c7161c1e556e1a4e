"""Builds the documentation site in build/site, from docs/ and from the package itself.

    python tools/docs_build.py

It copies docs/ to build/docs, adds the notebooks of tutorials, and the pages that are made from the
packages (their public names, the command line, the task families, settings of Harbor's tasks, the
texts of ``intercode doctor --fix``) and from files outside docs/, and calls Zensical, which fails
for a dead link or anchor. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import notebooks

import intercode
from intercode import cli
from intercode.integrations.harbor.tasks.tables import SETTINGS
from intercode_lab.families.family import all_families
from intercode_sandbox.tiers import protections, remedies

ROOT = Path(__file__).parents[1]
STAGE, SITE = ROOT / "build/docs", ROOT / "build/site"
CONFIG = ROOT / "build/mkdocs.yml"
CACHE = ROOT / "build/.cache"
"""What zensical keeps of pages. It does not notice that a docstring of a page has changed."""
PACKAGES = (
    "intercode",
    "intercode_sandbox",
    "intercode_sql",
    *(
        f"intercode.{name}"
        for name in (
            "core",
            "sessions",
            "datasets",
            "models",
            "agents",
            "environments",
            "results",
            "evaluation",
            "integrations.trl",
        )
    ),
)
INHERITED = {"intercode.integrations.trl": "get_reward, reset"}
"""What the classes of a package have of a base class that is not in its ``__all__``."""
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RENAMES.md": "renames.md",
    "SECURITY.md": "security.md",
}
"""Files outside docs/ that are pages of the site. Other pages in Markdown are below source/, and
other files are shown there as text."""
_SANDBOX, _GYM = "packages/sandbox/src/intercode_sandbox", "packages/intercode/src/intercode"
GENERATED = {
    f"{_GYM}/cli/__init__.py": "reference/cli.md",
    f"{_GYM}/integrations/harbor/tasks/tables.py": "reference/harbor-settings.md",
    f"{_SANDBOX}/tiers/protections.py": "reference/threat-table.md",
    f"{_SANDBOX}/tiers/remedies.py": "reference/fix.md",
    "packages/lab/src/intercode_lab/families": "reference/families.md",
    f"{_GYM}/__init__.py": "reference/api/intercode.md",
    f"{_GYM}/core/__init__.py": "reference/api/core.md",
    f"{_GYM}/agents/__init__.py": "reference/api/agents.md",
}
"""The generated page of what a file of the repository declares. A link to the file leads to that
page in the site, and to the file where the repository is read."""
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "bash", ".jsonl": "json"}


def stage() -> None:
    """Write the sources of the site: the copied pages, and the generated ones."""
    for folder in (STAGE, SITE, CACHE):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", STAGE)
    for name, page in PAGES.items():
        shutil.copyfile(ROOT / name, STAGE / page)
    for path in sorted(STAGE.rglob("*.md")):
        origin = next((name for name, copy in PAGES.items() if STAGE / copy == path), None)
        source = ROOT / origin if origin else ROOT / "docs" / path.relative_to(STAGE)
        path.write_text(redirect_links(path, source), "utf-8")
    for notebook in notebooks.write(STAGE / "tutorials"):
        page = notebook.with_suffix(".md")
        title, _, text = page.read_text("utf-8").partition("\n")
        link = f"[Download this page as a notebook]({notebook.name})"
        page.write_text(f"{title}\n\n{link}\n{text}", "utf-8")
    folder = STAGE / "reference/api"
    folder.mkdir(parents=True)
    for package in PACKAGES:
        name = package.removeprefix("intercode.")
        (folder / f"{name}.md").write_text(api_page(package), "utf-8")
    for page, lines in {
        "cli": cli_page(),
        "families": families_page(),
        "fix": fix_page(),
        "harbor-settings": harbor_page(),
        "threat-table": ["# What each isolation tier protects\n", protections.render_markdown()],
    }.items():
        (STAGE / f"reference/{page}.md").write_text("\n".join(lines), "utf-8")
    pages = "".join(
        f"\n          - {package}: reference/api/{package.removeprefix('intercode.')}.md"
        for package in PACKAGES
    )
    config = (ROOT / "mkdocs.yml").read_text("utf-8").replace(" REFERENCE", pages)
    config = config.replace(": build/", ": ").replace("packages/", "../packages/")
    CONFIG.write_text(config.replace("[tools/", "[../tools/"), "utf-8")


def redirect_links(page: Path, source: Path) -> str:
    """Return the text of a page, which is made from ``source``. Its links to files outside docs/
    lead to pages of the site: those of PAGES, or a new page that shows the file."""

    def redirect(link: re.Match[str]) -> str:
        if "://" in link[2]:
            return link[0]
        target = (source.parent / link[2]).resolve()
        if not (target.is_relative_to(ROOT) and target.exists()):
            sys.exit(f"{source.relative_to(ROOT)}: {link[2]} does not exist")
        name = str(target.relative_to(ROOT))
        if target.is_relative_to(ROOT / "docs"):
            copy = STAGE / target.relative_to(ROOT / "docs")
        elif name in GENERATED:
            copy = STAGE / GENERATED[name]
        else:
            end = "" if target.suffix in (".md", ".svg") else ".md"
            copy = STAGE / PAGES.get(name, f"source/{name}{end}")
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(source_page(target), "utf-8")
                if target.suffix == ".md":
                    copy.write_text(redirect_links(copy, target), "utf-8")
        return link[1] + os.path.relpath(copy, page.parent) + link[3]

    return _LINK.sub(redirect, page.read_text("utf-8"))


def source_page(target: Path) -> str:
    """Return a page with a file, or with all files of a directory, of the repository; a page or a
    picture is returned as it is."""
    if target.suffix in (".md", ".svg"):
        return target.read_text("utf-8")
    files = sorted(p for p in target.rglob("*") if p.is_file()) if target.is_dir() else [target]
    parts = [f"# {target.relative_to(ROOT)}"]
    for path in files:
        if path.suffix == ".pyc":
            continue
        if path != target:
            parts.append(f"## {path.relative_to(target)}")
        language = _LANGUAGES.get(path.suffix, "text")
        parts.append(f"````{language}\n{path.read_text('utf-8').rstrip()}\n````")
    return "\n\n".join(parts) + "\n"


def api_page(package: str) -> str:
    """Return the page with every public name of a package."""
    module = importlib.import_module(package)
    names = [name for name in module.__all__ if name != "__version__"]
    inherited = INHERITED.get(package)
    more = f"\n    options:\n      inherited_members: [{inherited}]" if inherited else ""
    parts = [f"# {package}", *(f"::: {package}.{name}{more}" for name in names)]
    return "\n\n".join(parts) + "\n"


def cli_page() -> Iterator[str]:
    """Yield the lines of the page of the command line: the help of every command."""
    yield "# The command line\n"
    yield f"The help of every command of version {intercode.__version__}, from its parser.\n"
    yield from ("| command | |", "|---|---|")
    for name, text in cli.COMMANDS.items():
        yield f"| [`{name}`](#{name}) | {text} |"
    for name in cli.COMMANDS:
        _, parser, _ = cli._make_parser(name)
        yield f"\n## {name}\n\n```text\n{parser.format_help().strip()}\n```"
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner, sub in action.choices.items():
                    yield f"\n### {name} {inner}\n\n```text\n{sub.format_help().strip()}\n```"


def families_page() -> Iterator[str]:
    """Yield the lines of the page with every task family."""
    yield "# Every task family\n\nWhat each family asks, from its docstring, and its split.\n"
    yield "Those with a bound need [looking](../task-families.md#looking).\n"
    yield from ("| family | group | task | split | bound |", "|---|---|---|---|---|")
    for family in all_families():
        name = family.id.partition("/")[2]
        bound = "" if family.blind is None else family.blind
        yield f"| `{name}` | {family.group} | {family.description} | {family.split} | {bound} |"


def fix_page() -> Iterator[str]:
    """Yield the lines of the page with all texts of which ``intercode doctor --fix`` chooses."""
    yield "# Texts to paste\n"
    yield "`intercode doctor --fix` prints those that give a machine more isolation tiers.\n"
    yield remedies.render(remedies.remedies_elsewhere(), markdown=True).replace("### ", "## ")


def harbor_page() -> Iterator[str]:
    """Yield the lines of the page with every setting of a Harbor task."""
    yield "# Settings of Harbor's task.toml\n"
    yield from ("| table | setting | |", "|---|---|---|")
    for table, settings in SETTINGS.items():
        for name, treatment in settings.items():
            yield f"| `{table or '(root)'}` | `{name}` | {treatment} |"


def check_nav() -> None:
    """Exit with a message if a page of docs/ is missing in the navigation of mkdocs.yml."""
    listed = CONFIG.read_text("utf-8")
    pages = [path.relative_to(STAGE) for path in sorted(STAGE.rglob("*.md"))]
    lost = [str(p) for p in pages if p.parts[0] != "source" and f": {p}\n" not in listed]
    if lost:
        sys.exit(f"mkdocs.yml names no place in the navigation for {', '.join(lost)}")


def main() -> None:
    """Build the site."""
    stage()
    check_nav()
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(CONFIG)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    pages = sum(1 for _ in SITE.rglob("*.html"))
    print(
        f"{SITE.relative_to(ROOT)}: {pages} pages; python -m http.server -d build/site shows them"
    )


if __name__ == "__main__":
    main()
