"""The leaderboard: self-contained, with comparable tables only, and safe against hostile
bundles."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import DataError, UsageError
from intercode.core.trajectories import TRAJECTORIES_FILE, append_trajectory
from intercode.core.types import Trajectory
from intercode.results.export.bundle.bundle import write_bundle
from intercode.results.export.bundle.leaderboard import write_leaderboard
from intercode.results.export.bundle.receipt import Receipt, receipt_path
from support.talks import run_in


class Page(HTMLParser):
    """The tables of a page as text, and its tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.tables[-1][-1][-1] += data


def _page(tmp_path: Path, *bundles: Path) -> Page:
    return Page(write_leaderboard(bundles, tmp_path / "page").read_text("utf-8"))


def _bundle(tmp_path: Path, name: str, rewards: tuple[float, ...], **meta: Any) -> Path:
    out = tmp_path / f"{name}.tar.gz"
    write_bundle(run_in(tmp_path / name, rewards, **meta), out)
    return out


def _receipt(path: Path, **changes: Any) -> None:
    from intercode.results.export.bundle.bundle import read_bundle

    made = Receipt(read_bundle(path).sha256, True, 2, 3, 4, 0, "", 1, "0.1", "2026-01-31T00:00:00")
    text = json.dumps(dataclasses.replace(made, **changes).as_json())
    receipt_path(path).write_text(text)


def test_the_best_result_leads_with_its_interval(tmp_path: Path) -> None:
    worse = _bundle(tmp_path, "a", (0.0, 0.0, 1.0), model="m/worse")
    better = _bundle(tmp_path, "b", (1.0, 1.0, 0.0), model="m/better")
    (table,) = _page(tmp_path, worse, better).tables
    assert [row[1] for row in table] == ["model", "m/better", "m/worse"]
    assert table[1][3:6] == ["2 / 3", "66.7 %", "20.8 to 93.9"]
    assert [row[-1] for row in table[1:]] == ["not verified"] * 2


def test_a_refuted_result_does_not_lead(tmp_path: Path) -> None:
    forged = _bundle(tmp_path, "a", (1.0, 1.0, 1.0), model="m/forged")
    honest = _bundle(tmp_path, "b", (1.0, 0.0, 0.0), model="m/honest")
    _receipt(forged, equal=False, differing=1, first="starter/1, step 2")
    (table,) = _page(tmp_path, forged, honest).tables
    assert [row[1] for row in table[1:]] == ["m/honest", "m/forged"]
    text = (tmp_path / "page" / "index.html").read_text("utf-8")
    assert "It cannot show who wrote the actions" in text


def test_an_agent_that_kills_its_episodes_does_not_lead(tmp_path: Path) -> None:
    honest = _bundle(tmp_path, "honest", (1.0,) * 6 + (0.0,) * 6, model="m/honest")
    killer = run_in(tmp_path / "killer", (1.0,) * 3, model="m/killer")
    for n in range(3, 12):
        lost = Trajectory(f"starter/{n}", n, "q", (), end="error", error="lost", id=f"e{n}")
        append_trajectory(killer / TRAJECTORIES_FILE, lost)
    write_bundle(killer, tmp_path / "killer.tar.gz")
    (table,) = _page(tmp_path, tmp_path / "killer.tar.gz", honest).tables
    assert [row[1] for row in table[1:]] == ["m/honest", "m/killer"]
    assert [row[4] for row in table[1:]] == ["50.0 %", "25.0 % (at most 100.0 %)"]
    assert table[2][3] == "3 / 12 (9 errors)"


@pytest.mark.parametrize(
    "other",
    [
        {"profile": "original"},
        {"dataset": "starter:verified"},
        {"dataset_hash": "bb"},
        {"scoring": "bash-3"},
        {"image_digest": "sha256:1"},
        {"arch": "aarch64"},
        {"tier": "local"},
        {"network": "host"},
        {"reward": "mine:strict"},
    ],
)
def test_other_conditions_get_a_table_of_their_own(tmp_path: Path, other: dict[str, Any]) -> None:
    one = _bundle(tmp_path, "a", (1.0, 0.0, 1.0))
    two = _bundle(tmp_path, "b", (1.0, 0.0, 1.0), **other)
    assert [len(t) for t in _page(tmp_path, one, two).tables] == [2, 2]


def test_other_tasks_of_the_same_dataset_too(tmp_path: Path) -> None:
    one = _bundle(tmp_path, "a", (1.0, 0.0, 1.0))
    two = _bundle(tmp_path, "b", (1.0, 0.0))
    assert len(_page(tmp_path, one, two).tables) == 2


def test_a_receipt_says_what_was_verified(tmp_path: Path) -> None:
    path = _bundle(tmp_path, "a", (1.0, 0.0, 1.0))
    _receipt(path)
    ((_, row),) = _page(tmp_path, path).tables
    assert row[-1] == "✓ 2 of 3 episodes reproduced (2026-01-31)"
    _receipt(path, equal=False, differing=1, first="starter/1, step 2: time of the run")
    ((_, row),) = _page(tmp_path, path).tables
    assert row[-1].startswith("✗ 1 of 2 episodes differ, first starter/1, step 2")


def test_a_receipt_of_another_bundle_is_ignored(tmp_path: Path) -> None:
    path = _bundle(tmp_path, "a", (1.0, 0.0, 1.0))
    _receipt(path, bundle="0" * 64)
    ((_, row),) = _page(tmp_path, path).tables
    assert row[-1] == "not verified"
    receipt_path(path).write_text("{}")
    with pytest.raises(DataError, match="not a receipt of `intercode replay`"):
        _page(tmp_path, path)


def test_text_of_a_bundle_is_escaped_and_nothing_is_loaded(tmp_path: Path) -> None:
    evil = '<script>alert(1)</script>"><img src=http://x/y onerror=alert(1)>'
    path = _bundle(tmp_path, "a", (1.0,), model=evil, dataset=evil, image=evil, agent=evil)
    page = _page(tmp_path, path)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "a"}
    assert not any(k.startswith("on") or k in ("src", "href") for k, _ in page.attributes)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert page.tables[0][1][1] == evil
    assert [p.name for p in (tmp_path / "page").iterdir()] == ["index.html"]


def test_the_same_bundle_twice_is_refused(tmp_path: Path) -> None:
    path = _bundle(tmp_path, "a", (1.0,))
    copy = tmp_path / "copy.tar.gz"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(UsageError, match="is the same bundle as"):
        _page(tmp_path, path, copy)
