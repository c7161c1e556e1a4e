"""Lists the Debian archives that builds install from: given mirrors, or those of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from intercode_sandbox.errors import UsageError
from intercode_sandbox.lines import split_lines

_SUITE_SUFFIXES = ("", "-updates", "-security")
"""Suffixes of suite names: the release, its updates, its security updates."""
_PUBLIC_LINE = re.compile(r"deb (https?://[^@\s]+) (\S+) main")
_STANZA = """Types: deb
URIs: {uri}
Suites: {suites}
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


def recipe_sources(suite: str, date: str, mirrors: Sequence[str], etc: Path = Path("/etc")) -> str:
    """Return the text of a sources.list for ``suite``.

    ``mirrors`` are base URLs or whole ``deb …`` lines, in which ``{date}`` is replaced by the
    recipe's date in the format of snapshot.debian.org. Without mirrors, the archives of this
    machine are used. Raises UsageError without mirrors if this machine does not run that suite.
    """
    if mirrors:
        filled = [m.replace("{date}", f"{date}T000000Z") for m in mirrors]
        return "".join(m + "\n" if m.startswith("deb ") else _source_line(m, suite) for m in filled)
    found = machine_sources(suite, etc)
    if not found:
        raise UsageError(
            f"this machine has no archives of Debian {suite!r}: name one with --mirror (the "
            f"snapshot of {date} has exactly the pinned packages), or use a root file system with "
            "--image tar:/path.tar"
        )
    return "".join(found)


def image_sources(archives: str, dated: bool) -> str:
    """Return the text of the debian.sources of an image that was installed from ``archives``.

    ``archives`` is the text of a sources.list. Left out are archives of local files and addresses
    with a password, which code in a sandbox must not read. ``dated``: the archives are snapshots of
    a past day, whose signatures have expired.
    """
    suites: dict[str, list[str]] = {}
    for line in split_lines(archives):
        if found := _PUBLIC_LINE.fullmatch(line):
            suites.setdefault(found[1], []).append(found[2])
    expired = "Check-Valid-Until: no\n" if dated else ""
    return "\n".join(
        _STANZA.format(uri=uri, suites=" ".join(names)) + expired for uri, names in suites.items()
    )


def machine_sources(suite: str, etc: Path = Path("/etc")) -> list[str]:
    """Return this machine's archives of ``suite`` as sources.list lines, in the order of its files.

    Only Debian's main component counts, and only if the machine runs that suite.
    """
    if parse_os_release(_read_text(etc / "os-release")) != ("debian", suite):
        return []
    folder = etc / "apt" / "sources.list.d"
    lists = [etc / "apt" / "sources.list", *sorted(folder.glob("*.list"))]
    found = [line for path in lists for line in _parse_list_file(_read_text(path), suite)]
    for path in sorted(folder.glob("*.sources")):
        found += _parse_sources_file(_read_text(path), suite)
    return list(dict.fromkeys(found))


def _source_line(uri: str, suite: str) -> str:
    return f"deb {uri} {suite} main\n"


def _read_text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def parse_os_release(text: str) -> tuple[str, str]:
    """Return the id and code name of the distribution in the text of an os-release file."""
    pairs = (line.partition("=") for line in split_lines(text))
    values = {key: value.strip("\"'") for key, _, value in pairs}
    return values.get("ID", ""), values.get("VERSION_CODENAME", "")


def _is_debian_key(signed_by: str) -> bool:
    return not signed_by or "debian-archive" in signed_by


def _parse_list_file(text: str, suite: str) -> Iterator[str]:
    for line in split_lines(text):
        words = line.split("#")[0].split()
        if not words or words[0] != "deb":
            continue
        options = ""
        if words[1:] and words[1].startswith("["):
            options, _, rest = " ".join(words[1:]).partition("]")
            words = ["deb", *rest.split()]
        signed = options.partition("signed-by=")[2].split(" ")[0]
        if len(words) > 3 and "main" in words[3:] and _is_debian_key(signed):
            yield from (_source_line(words[1], s) for s in _matching_suites(words[2], suite))


def _parse_sources_file(text: str, suite: str) -> Iterator[str]:
    for block in text.split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in split_lines(block):
            if line.startswith("#"):
                continue
            if line[:1] not in (" ", "\t"):
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
            elif key:
                fields[key] += "\n" + line.strip()
        wanted = (
            "deb" in fields.get("types", "").split()
            and "main" in fields.get("components", "").split()
            and fields.get("enabled", "yes").lower() not in ("no", "false", "0")
            and _is_debian_key(fields.get("signed-by", ""))
        )
        for uri in fields.get("uris", "").split() if wanted else ():
            yield from (
                _source_line(uri, s) for s in _matching_suites(fields.get("suites", ""), suite)
            )


def _matching_suites(text: str, suite: str) -> list[str]:
    return [word for word in text.split() if word in {suite + kind for kind in _SUITE_SUFFIXES}]
