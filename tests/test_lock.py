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


def declared(project: dict[str, Any]) -> set[tuple[str, str, frozenset[str], str]]:
    """Return the requirements of a project: extra, name, extras, versions."""
    groups = {"": project["dependencies"], **project.get("optional-dependencies", {})}
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


def locked(name: str) -> set[tuple[str, str, frozenset[str], str]]:
    """Return the requirements of a package of the workspace for which the lock was made."""
    found = set()
    for row in LOCKED[name]["metadata"]["requires-dist"]:
        extra = re.search(r"extra == '(.+?)'", row.get("marker", ""))
        versions = str(Requirement(f"x{row.get('specifier', '')}").specifier)
        found.add(
            (extra[1] if extra else "", row["name"], frozenset(row.get("extras", ())), versions)
        )
    return found


def test_the_lock_was_made_for_the_requirements_of_all_packages() -> None:
    projects = [
        tomllib.loads(path.read_text("utf-8"))["project"]
        for path in ROOT.glob("packages/*/pyproject.toml")
    ]
    assert sorted(p["name"] for p in projects) == sorted(LOCK["manifest"]["members"])
    for project in projects:
        assert locked(project["name"]) == declared(project), f"{project['name']}: run `uv lock`"


def test_the_lock_names_no_registry_but_pypi() -> None:
    sources = {str(package["source"]) for package in LOCK["package"]}
    folders = {f"{{'editable': 'packages/{n}'}}" for n in ("intercode", "lab", "sandbox", "sql")}
    assert sources == {"{'registry': 'https://pypi.org/simple'}", *folders}
    urls = re.findall(r'url = "(.*?)"', (ROOT / "uv.lock").read_text("utf-8"))
    assert urls and {url.split("/")[2] for url in urls} == {"files.pythonhosted.org"}
