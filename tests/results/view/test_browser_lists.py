"""Runs, episodes, filters, sorting and keys, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intercode.core import trajectories
from intercode.results.compare.comparison import compare_all, open_side
from intercode.results.view import Library
from support.browser import Watched
from support.view_runs import FACTS, plain_episode, serving, write_run

pytestmark = pytest.mark.browser


def names(page: Any) -> list[str]:
    """Return the visible tasks, in order."""
    found = page.eval_on_selector_all(
        ".space .row", "rows => rows.map(r => [r.offsetTop, r.querySelector('.name').textContent])"
    )
    return [name for _, name in sorted(found)]


def chosen(page: Any) -> str:
    text: str = page.locator(".space .row[aria-selected=true]").inner_text()
    return text


@pytest.mark.slow
def test_runs_with_their_figures(watched: Watched, served: str) -> None:
    page = watched.open(served)
    assert page.locator("h1").inner_text().startswith("2 runs")
    text = page.locator(".space .row").first.inner_text()
    assert "first" in text and "m-1" in text and "30.8 %" in text
    assert watched.said == []


def test_runs_that_are_read_in_part(
    watched: Watched, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no figures until all is read, also in a page that nobody looks at."""
    library = Library([runs], step=1)
    monkeypatch.setattr(library, "refresh", lambda: None)
    with serving(library) as address:
        page = watched.open(address)
        text = page.locator(".space .row").first.inner_text()
        assert "so far: 1 episode, 1 MB left to read" in text and "%" not in text
        page.goto(f"{address}#/compare/0/1")
        page.wait_for_selector(".side:has-text('so far: 1 episode')")
        assert page.locator(".test").count() == 0
        page.goto(f"{address}#/episode/0/14?run=0")
        page.wait_for_selector(".turn")
        page.goto(f"{address}#/runs")
        page.wait_for_selector(".space .row:has-text('30.8 %')")  # read up to its last episode
        page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
        monkeypatch.undo()
        page.wait_for_selector(".space .row:has-text('second'):has-text('%')")
        assert page.locator("text=so far").count() == 0
    assert watched.said == []


@pytest.mark.slow
def test_the_keyboard_is_enough(watched: Watched, served: str) -> None:
    page = watched.open(served)
    watched.press("j")
    assert "second" in chosen(page)
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    watched.press("Enter")
    page.wait_for_selector("#search")
    assert "15 episodes" in page.locator("h1").inner_text()
    watched.press("ArrowDown", "Enter")
    page.wait_for_selector(".turn")
    assert "starter/files/0" in page.locator("h1").inner_text()
    watched.press("j", "j")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Turn 2"
    watched.press("n")
    page.wait_for_selector("h1:has-text('branch')")
    watched.press("Escape")
    page.wait_for_selector("#search")
    assert "branch" in chosen(page)  # the episode shown last is selected
    watched.press("?")
    assert page.locator("#help").is_visible() and "next row" in page.locator("#help").inner_text()
    watched.press("Escape")
    assert not page.locator("#help").is_visible() and page.locator("#search").is_visible()
    watched.press("Escape")
    page.wait_for_selector("h1:has-text('2 runs')")
    assert watched.said == []


@pytest.mark.slow
def test_searching_while_one_types(watched: Watched, served: str) -> None:
    page = watched.open(served, "#/list?run=0")
    watched.press("/")
    page.keyboard.type("number 1")
    assert names(page) == ["text/1", "text/10", "text/11"]
    assert page.evaluate("document.activeElement.id") == "search"
    page.reload()
    page.wait_for_selector(".space .row")
    assert len(names(page)) == 3  # the address contains the choices
    page.fill("#search", "needle-7")
    assert page.locator("p.empty").is_visible()
    page.get_by_label("in whole episodes").check()
    page.wait_for_selector(".space .row")
    assert names(page) == ["text/7"]
    assert watched.said == []


def test_searching_whole_episodes_in_one_file(
    watched: Watched, runs: Path, single: Callable[[Path], str]
) -> None:
    page = watched.open(single(runs), "#/list?run=1&q=needle-7&in=all")
    page.wait_for_selector(".space .row")
    assert names(page) == ["text/7"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ("result=solved", 4),
        ("result=failed", 1),
        ("result=missed", 10),
        ("end=submitted", 1),
        ("group=files", 4),
        ("hardness=hard", 6),
        ("tag=read", 4),
        ("refused=1", 2),
        ("human=1", 2),
        ("cut=1", 2),
        ("timed=1", 1),
        ("branch=1", 1),
        ("replaced=1", 1),
        ("agent=react", 15),
        ("result=solved&hardness=hard", 2),
        ("group=nothing", 0),
    ],
)
def test_filters(watched: Watched, served: str, filters: str, count: int) -> None:
    page = watched.open(served, f"#/list?run=0&{filters}")
    word = "episode" if count == 1 else "episodes"
    assert page.locator("h1").inner_text().startswith(f"{count} {word}")
    assert page.locator(".space .row").count() == count


@pytest.mark.slow
def test_a_filter_is_chosen_and_keeps_the_keyboard(watched: Watched, served: str) -> None:
    page = watched.open(served, "#/list?run=0")
    page.get_by_label("Result").select_option("solved")
    page.wait_for_selector("h1:has-text('4 episodes')")
    assert page.evaluate("document.activeElement.dataset.key") == "result"
    page.get_by_label("branches").check()
    page.wait_for_selector("h1:has-text('0 episodes')")
    page.get_by_role("button", name="All episodes").click()
    page.wait_for_selector("h1:has-text('30 episodes')")


@pytest.mark.slow
def test_sorting_and_turning_it_round(watched: Watched, served: str) -> None:
    page = watched.open(served, "#/list?run=0&group=text")
    head = page.locator("[role=columnheader]", has_text="Time")
    head.get_by_role("button").click()
    page.wait_for_selector("[aria-sort=descending]")
    assert names(page)[0] == "text/11"
    page.locator("[role=columnheader]", has_text="Time").get_by_role("button").click()
    page.wait_for_selector("[aria-sort=ascending]")
    assert names(page)[0] == "text/1"
    page.locator("[role=columnheader]", has_text="Task").get_by_role("button").click()
    page.wait_for_selector("[role=columnheader][aria-sort=ascending]:has-text('Task')")
    assert names(page)[1:3] == ["text/2", "text/3"]  # in numeric order


@pytest.mark.slow
def test_new_episodes_come_with_a_reload(watched: Watched, served: str, runs: Path) -> None:
    page = watched.open(served, "#/list?run=0")
    log = runs / "first" / trajectories.TRAJECTORIES_FILE
    trajectories.append_trajectory(log, plain_episode(40, True, dict(FACTS)))
    watched.press("r")
    page.wait_for_selector("h1:has-text('16 episodes')")


@pytest.mark.slow
def test_new_episodes_appear_without_a_reload_and_the_scroll_position_stays(
    watched: Watched, served: str, runs: Path
) -> None:
    page = watched.open(served, "#/list?run=0&q=number")
    page.locator("details.metadata > summary").click()
    watched.press(*"jjjjjjj")
    assert "text/8" in chosen(page)
    page.locator("#search").evaluate("field => { field.focus(); field.setSelectionRange(2, 3); }")
    log = runs / "first" / trajectories.TRAJECTORIES_FILE
    trajectories.append_trajectory(log, plain_episode(40, True, dict(FACTS)))
    page.wait_for_selector("#status:has-text('1 new episode')")
    assert page.locator("h1").inner_text().startswith("12 episodes")
    assert "text/8" in chosen(page) and "text/40" in names(page)
    assert page.locator("details.metadata").get_attribute("open") is not None
    place = "[document.activeElement.id, document.activeElement.selectionStart]"
    assert page.evaluate(place) == ["search", 2]
    page = watched.open(served, "#/episode/0/1?run=0")
    trajectories.append_trajectory(log, plain_episode(41, True, dict(FACTS)))
    page.locator(".turn").first.evaluate("turn => { turn.dataset.same = 'yes'; }")
    page.wait_for_selector("#status:has-text('1 new episode')")
    assert page.locator(".turn[data-same]").count() == 1  # what is read stays as it is
    assert watched.said == []


@pytest.mark.slow
def test_tasks_and_runs(watched: Watched, runs: Path, single: Callable[[Path], str]) -> None:
    page = watched.open(single(runs))
    watched.press("t")
    page.wait_for_selector("h1:has-text('12 tasks')")
    heads = [head.strip() for head in page.locator("[role=columnheader]").all_inner_texts()]
    assert heads == ["Task", "A", "B", "Solved by"]
    cells = {
        row.split("\n")[0]: row.split("\n")[-1]
        for row in page.locator(".space .row").all_inner_texts()
    }
    assert cells["text/6"] == "2 of 2" and cells["text/3"] == cells["text/2"] == "1 of 2"
    assert cells["text/1"] == "0 of 2"
    page.get_by_role("button", name="by all").click()
    page.wait_for_selector("button[aria-pressed=true]:has-text('by all')")
    assert "text/6" in names(page) and "text/3" not in names(page)
    page.locator(".space .row", has_text="text/6").locator("a").last.click()
    page.wait_for_selector(".turn")
    assert "starter/text/6" in page.locator("h1").inner_text()
    assert watched.said == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["served", "file"])
def test_a_comparison_has_the_p_value_of_the_command(
    watched: Watched, way: str, served: str, runs: Path, single: Callable[[Path], str]
) -> None:
    sides = [open_side(letter, runs / name) for letter, name in (("A", "first"), ("B", "second"))]
    (found,) = compare_all(sides, ["image"])
    page = watched.open(served if way == "served" else single(runs), "#/compare/1/0")
    page.wait_for_selector("p.test")
    text = page.locator("p.test").inner_text()
    assert text.startswith(f"{found.test.method} of success over 12 tasks")
    assert text.endswith(f"p = {found.test.p:.4f}") and watched.said == []


@pytest.mark.slow
def test_only_the_rows_in_sight_are_in_the_page(
    watched: Watched, tmp_path: Path, single: Callable[[Path], str]
) -> None:
    log = tmp_path / "many" / trajectories.TRAJECTORIES_FILE
    log.parent.mkdir()
    line = (plain_episode(n, n % 2 == 0, dict(FACTS)) for n in range(600))
    log.write_text("".join(row(t) for t in line), "utf-8")
    page = watched.open(single(tmp_path / "many"))
    page.locator("h1", has_text=re.compile("^600 episodes")).wait_for()  # all are read
    assert page.locator(".space .row").count() < 80
    watched.press("End")
    assert "text/599" in chosen(page)
    assert page.locator(".space .row[aria-selected=true]").bounding_box()["y"] < 800
    watched.press("Home")
    assert "text/0" in chosen(page)
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == "601"


def row(trajectory: Any) -> str:
    """Return one line, without waiting for the disk as ``append`` does."""
    return json.dumps(trajectories.trajectory_to_row(trajectory)) + "\n"


@pytest.mark.slow
def test_a_filter_hides_the_figures_of_the_whole_run(watched: Watched, served: str) -> None:
    page = watched.open(served, "#/list?run=0")
    assert "30.8 %" in page.locator(".lead").inner_text()
    for filters, text in (("group=nothing", "0 episodes"), ("result=solved", "4 episodes")):
        page = watched.open(served, f"#/list?run=0&{filters}")
        page.wait_for_selector(f"h1:has-text('{text}')")
        assert "30.8 %" not in page.locator(".lead").inner_text()


@pytest.mark.slow
def test_a_comparison_has_group_and_hardness_under_their_names(
    watched: Watched, tmp_path: Path, single: Callable[[Path], str]
) -> None:
    for name in ("a", "b"):
        log = tmp_path / "runs" / name / trajectories.TRAJECTORIES_FILE
        for n in range(1, 4):
            episode = plain_episode(n, True, dict(FACTS)).replace(group=None)
            trajectories.append_trajectory(log, episode)
    page = watched.open(single(tmp_path / "runs"), "#/compare/0/1")
    heads = page.locator("[role=columnheader]").all_inner_texts()
    assert "Hardness" in [h.strip() for h in heads] and "Group" not in "".join(heads)
    assert "hard" in page.locator(".space .row").first.inner_text()


@pytest.mark.slow
def test_the_breadcrumb_leaves_room_for_the_buttons_of_a_small_screen(
    browser: Any, served: str
) -> None:
    watched = Watched(browser, viewport={"width": 390, "height": 800})
    page = watched.open(served, "#/episode/0/1?run=0")
    buttons = page.locator("body > header button:visible").all()
    left = min(button.bounding_box()["x"] for button in buttons)
    for crumb in page.locator("#crumbs li").all():
        box = crumb.bounding_box()
        assert box["width"] > 10 and box["x"] + box["width"] <= left
    assert all(b.bounding_box()["x"] + b.bounding_box()["width"] <= 390 for b in buttons)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_a_phone_shows_names_that_differ_and_success_first(
    browser: Any, single: Callable[[Path], str], tmp_path: Path
) -> None:
    whole = [f"starter-{a}-large-{m}-2026-01-31" for a in ("act", "plan") for m in ("m1", "m2")]
    for name in whole:
        write_run(tmp_path / "runs" / name)
    watched = Watched(browser, viewport={"width": 390, "height": 800})
    page = watched.open(single(tmp_path / "runs"))
    assert page.locator(".space strong").all_inner_texts() == [
        "act-m1",
        "act-m2",
        "plan-m1",
        "plan-m2",
    ]
    box = page.locator(".space .success").first.bounding_box()
    assert box["x"] > 0 and box["x"] + box["width"] <= 390
    page.set_viewport_size({"width": 1280, "height": 800})
    page.reload()
    page.wait_for_selector(".space strong")
    assert page.locator(".space strong").all_inner_texts() == whole
    assert watched.said == []
    page.close()
