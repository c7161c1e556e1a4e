"""What the reference players read: documents and tables that commands printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

Policy = Callable[[Sequence[tuple[int, int, str]], Mapping[int, str]], int | None]
"""Chooses among decisions on one rule, given what minutes say (meeting, decision, what became of
it) and their texts. None: the handbook."""


def adopted_last(events: Sequence[tuple[int, int, str]], texts: Mapping[int, str]) -> int | None:
    """Return the decision that counts, as the README of the documents says."""
    revoked = {number for _, number, fate in events if fate == "revoked"}
    held = [
        (at, n) for at, n, fate in events if fate == "adopted" and n in texts and n not in revoked
    ]
    return max(held)[1] if held else None


def highest_number(_events: Sequence[tuple[int, int, str]], texts: Mapping[int, str]) -> int | None:
    """Return the newest decision, whatever the minutes say."""
    return max(texts, default=None)


def no_decision(_events: Sequence[tuple[int, int, str]], _texts: Mapping[int, str]) -> int | None:
    """Return None: the handbook."""
    return None


def highest_adopted(events: Sequence[tuple[int, int, str]], texts: Mapping[int, str]) -> int | None:
    """Return the newest decision that was ever adopted."""
    return max((n for _, n, fate in events if fate == "adopted" and n in texts), default=None)


def adopted_last_or_revoked(
    events: Sequence[tuple[int, int, str]], texts: Mapping[int, str]
) -> int | None:
    """Return the decision that was adopted last, without regard to revocations."""
    held = [(at, n) for at, n, fate in events if fate == "adopted" and n in texts]
    return max(held)[1] if held else None


def files_in(output: str) -> dict[str, str]:
    """Return the contents that ``tail -n +1 FILES`` printed, by path."""
    parts = re.split(r"^==> (.+) <==\n", output, flags=re.M)
    return {path: text.strip() for path, text in zip(parts[1::2], parts[2::2], strict=True)}


def read_rules(
    handbook: Mapping[str, str],
    decisions: Mapping[str, str],
    minutes: Mapping[str, str],
    policy: Policy,
    changes: bool = True,
) -> dict[str, str]:
    """Return the text of each rule that counts. ``changes``: with those made at adoption."""
    about = {}
    for text in decisions.values():
        match = re.search(r"# Decision (\d+)[\s\S]*rule `([\w-]+)`:([\s\S]*)", text)
        if match:
            about[int(match[1])] = match[2], match[3].strip()
    events: list[tuple[int, int, str]] = []
    dates: dict[tuple[str, str], int] = {}
    for meeting, (path, text) in enumerate(sorted(minutes.items())):
        date = path.rpartition("/")[2].removesuffix(".md")
        for line in text.splitlines():
            number = re.search(r"[Dd]ecision (\d+)", line)
            back = re.search(r"adopted on (\S+) about `([\w-]+)`", line)
            fate = re.search(r"revoked|deferred|adopted", line.lower())
            if back:
                events.append((meeting, dates[back[1], back[2]], "revoked"))
            elif number and fate:
                events.append((meeting, int(number[1]), fate[0]))
                if fate[0] == "adopted" and int(number[1]) in about:
                    name, rule = about[int(number[1])]
                    dates[date, name] = int(number[1])
                    if changes:
                        about[int(number[1])] = name, _changed(rule, line)
    found = {}
    for path, text in handbook.items():
        name = path.rpartition("/")[2].removesuffix(".md")
        texts = {number: rule for number, (where, rule) in about.items() if where == name}
        chosen = policy(events, texts)
        found[name] = text if chosen is None else texts[chosen]
    return found


def _changed(rule: str, line: str) -> str:
    """Return a rule with the change that a line of the minutes makes to it."""
    match = re.search(r"with (?!a change)(.+?) (?:in place of|where it has) (.+)\.", line)
    if match is None:
        return rule
    new, old = (re.findall(r"[\w-]+", part) for part in match.groups())
    replaced = dict(zip(old, new, strict=True))
    return re.sub(r"[\w-]+", lambda word: replaced.get(word[0], word[0]), rule)
