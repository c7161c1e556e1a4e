"""The lock of the workspace is up to date, and holds nothing of the machine that wrote it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
LOCKED = {package["name"]: package for package in LOCK["package"]}
"""Of names with more than one version, the last: packages of the workspace have one."""


Requirements = set[tuple[str, str, frozenset[str], str]]
"""Extra or group, name, extras, and versions."""


def declared(document: dict[str, Any]) -> Requirements:
    """Return the requirements of a project, also those of its dependency groups."""
    project = document["project"]
    groups = {"": project["dependencies"], **project.get("optional-dependencies", {})}
    for name, texts in document.get("dependency-groups", {}).items():
        groups[f"group {name}"] = texts
    return {
        (
            extra,
            canonicalize_name(r.name),
            frozenset(r.extras),
            "" if is_ours(r) else str(r.specifier),
        )
        for extra, texts in groups.items()
        for r in map(Requirement, texts)
    }


def is_ours(requirement: Requirement) -> bool:
    """Return whether a requirement is a package of the workspace, which is locked as its folder."""
    return requirement.name.startswith("intercode-")


def locked(name: str) -> Requirements:
    """Return the requirements of a package of the workspace for which the lock was made."""
    metadata, found = LOCKED[name]["metadata"], set()
    rows = [("", row) for row in metadata["requires-dist"]]
    for group, members in metadata.get("requires-dev", {}).items():
        rows += [(f"group {group}", row) for row in members]
    for group, row in rows:
        extra = re.search(r"extra == '(.+?)'", row.get("marker", ""))
        versions = str(Requirement(f"x{row.get('specifier', '')}").specifier)
        found.add(
            (extra[1] if extra else group, row["name"], frozenset(row.get("extras", ())), versions)
        )
    return found


def test_the_lock_was_made_for_the_requirements_of_all_packages() -> None:
    documents = [
        tomllib.loads(path.read_text("utf-8")) for path in ROOT.glob("packages/*/pyproject.toml")
    ]
    names = [document["project"]["name"] for document in documents]
    assert sorted(names) == sorted(LOCK["manifest"]["members"])
    for name, document in zip(names, documents, strict=True):
        assert locked(name) == declared(document), f"{name}: run `uv lock`"


def test_what_excludes_other_extras_is_installed_from_the_lock() -> None:
    """Each dependency group is a virtual environment of the machine that runs all tests."""
    product = tomllib.loads((ROOT / "packages/intercode/pyproject.toml").read_text("utf-8"))
    made = re.findall(r"\.ci/separate (\S+)", (ROOT / ".ci/run").read_text("utf-8"))
    assert sorted(made) == sorted(product["dependency-groups"])
    assert not list((ROOT / ".ci").glob("*.txt"))


def test_the_lock_names_no_registry_but_pypi() -> None:
    sources = {str(package["source"]) for package in LOCK["package"]}
    folders = {f"{{'editable': 'packages/{n}'}}" for n in ("intercode", "lab", "sandbox", "sql")}
    assert sources == {"{'registry': 'https://pypi.org/simple'}", *folders}
    urls = re.findall(r'url = "(.*?)"', (ROOT / "uv.lock").read_text("utf-8"))
    assert urls and {url.split("/")[2] for url in urls} == {"files.pythonhosted.org"}
