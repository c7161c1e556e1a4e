"""An episode, and two side by side, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intercode.core import trajectories
from intercode.core.types import Step, Trajectory
from intercode.results.explanation import Explanation, TextComparison
from intercode.results.view import Library, ViewServer
from support.browser import Watched

pytestmark = pytest.mark.browser


@pytest.fixture
def page(watched: Watched, runs: Path, single: Callable[[Path], str]) -> Any:
    """The most complete episode of the first run, from a file."""
    return watched.open(single(runs), "#/episode/0/1?run=0")


def turn(page: Any, number: int) -> Any:
    return page.get_by_role("article", name=f"Turn {number}", exact=True)


@pytest.mark.slow
def test_a_turn_shows_thought_code_output_and_reward(page: Any) -> None:
    text = turn(page, 1).inner_text()
    for text_shown in (
        "First I look around.",
        "ls -l | head # look",
        "line 1\n",
        "line 100",
        "1,200 + 85 tokens",
        "$0.0021",
        "score 0.34",
        "output",
        "0.01",
        "changes",
        "0.33",
        "Not sent to the model: observation",
        "9000",
    ):
        assert text_shown in text, text_shown
    assert turn(page, 1).locator(".c-comment").inner_text() == "# look"
    assert turn(page, 1).locator(".c-option").inner_text() == "-l"


def test_marks_of_turns(page: Any) -> None:
    for number, text_shown in ((2, "refused"), (3, "human"), (5, "timed out"), (6, "no code")):
        assert text_shown in turn(page, number).locator("header").inner_text()
    assert "attempts" not in page.locator("main").inner_text()
    assert page.locator("h1").inner_text().startswith("✓ solved starter/files/0")


def test_long_output_is_folded(page: Any, watched: Watched) -> None:
    assert "line 50\n" not in turn(page, 1).inner_text()
    turn(page, 1).get_by_role("button", name="Show all 100 lines of the output").click()
    assert "line 50\n" in turn(page, 1).inner_text()
    page.locator("main").focus()
    watched.press("o")
    watched.press("j", "Enter")
    assert turn(page, 1).locator("button.unfold").get_attribute("aria-expanded") == "true"


def test_changed_files_show_the_changes_of_this_turn(page: Any) -> None:
    assert "2 paths changed since the beginning, all in this turn" in turn(page, 3).inner_text()
    gone = turn(page, 4).locator(".changes .gone").inner_text()
    assert gone.replace("\n", "") == "− restored:/srv/b"
    assert turn(page, 7).locator(".changes").count() == 0  # the submission did not read changes


def test_diffs_of_changed_files_have_signs_and_colours(page: Any) -> None:
    assert page.locator(".diffs").count() == 1
    diffs = turn(page, 4).locator(".diffs details")
    assert [d.locator("summary").inner_text() for d in diffs.all()] == ["/srv/a", "/srv/b"]
    first = diffs.first.locator("pre")
    assert first.inner_text().split("\n") == [
        "mode 644, now 600",
        "@@ -1,2 +1,2 @@",
        "-old <b>line</b>",
        "+new\tline",
        " kept",
        "\\ No newline at end of file",
    ]
    assert first.locator("del").inner_text() == "-old <b>line</b>"
    colours = {
        tag: first.locator(tag).evaluate("e => getComputedStyle(e).color") for tag in ("ins", "del")
    }
    assert len(set(colours.values())) == 2
    diffs.first.locator("summary").click()
    assert not first.is_visible()


def test_long_diffs_are_folded(
    watched: Watched, tmp_path: Path, single: Callable[[Path], str]
) -> None:
    long = "\n".join(["@@ -0,0 +1,90 @@", *(f"+{n}" for n in range(90))])
    step = Step("seq 90 > /f", "", changes=("/f",), diffs={"/f": long})
    log = tmp_path / "runs" / "one" / trajectories.TRAJECTORIES_FILE
    trajectories.append_trajectory(log, Trajectory("t/0", 0, "q", (step,), id="a"))
    diff = watched.open(single(tmp_path / "runs"), "#/episode/0/0").locator(".diffs")
    assert diff.locator("ins").count() == 0 and not diff.locator("pre").is_visible()
    diff.locator("summary").focus()
    watched.press("Enter")
    # the browser reports with a delay that the element was unfolded
    diff.locator("ins").last.wait_for()
    assert diff.locator("pre").inner_text() == long
    watched.press("Enter")
    watched.press("Enter")
    assert diff.locator("ins").count() == 90


def test_what_the_model_saw_is_shown_on_request(page: Any, watched: Watched) -> None:
    messages = turn(page, 1).locator(".messages")
    assert not messages.is_visible()
    watched.press("m")
    assert messages.is_visible()
    text = messages.inner_text()
    for text_shown in (
        "You act in turns.",
        "Hm, files.",
        "calls bash",
        '{"code": "ls -l"}',
        "3 token ids recorded, with log-probabilities",
    ):
        assert text_shown in text, text_shown


def test_forks_are_a_tree_with_links(page: Any) -> None:
    family = page.locator(".family")
    assert "2 episodes of one tree" in family.inner_text()
    family.get_by_role("link", name="branch after turn 3").click()
    page.wait_for_selector("h1:has-text('branch')")
    assert "shared with the parent" in turn(page, 3).locator("header").inner_text()
    assert "shared with the parent" not in turn(page, 4).locator("header").inner_text()


@pytest.mark.slow
def test_two_runs_task_by_task(watched: Watched, runs: Path, single: Callable[[Path], str]) -> None:
    page = watched.open(single(runs), "#/runs")
    watched.press("x", "j", "x", "c")
    page.wait_for_selector(".tabs")
    tabs = page.locator(".tabs").inner_text().split("\n")
    # solved are every third and every second of tasks 1 to 11: 2, 4, 8, 10 gained; 3, 9 lost
    assert tabs == ["all 12", "▲ gained 4", "▼ lost 2", "= equal 6", "? in one only 0"]
    assert "Not the same conditions: image" in page.locator(".warning").inner_text()
    page.get_by_role("button", name="lost").click()
    page.wait_for_selector(".space .row:has-text('lost')")
    assert page.locator(".space .row").count() == 2
    watched.press("Enter")
    page.wait_for_selector(".side-by-side")
    text = page.locator(".side-by-side").inner_text()
    assert "Flipped: solved in A, not solved in B. Their actions are the same." in text
    assert page.locator(".line .turn").count() == 4
    watched.press("Escape")
    page.wait_for_selector(".tabs [aria-pressed=true]:has-text('lost')")


def test_two_episodes_side_by_side(page: Any, watched: Watched) -> None:
    page.goto(page.url.split("#")[0] + "#/side-by-side/0/1/0/3")
    page.wait_for_selector(".side-by-side")
    assert "They differ from the first turn." in page.locator(".side-by-side").inner_text()
    tops = page.eval_on_selector_all(
        ".line:not(.heads)", "all => all.map(l => [...l.children].map(c => c.offsetTop))"
    )
    assert len(tops) == 7 and all(a == b for a, b in tops)
    assert page.locator(".line.difference").count() == 1
    watched.press("x")
    page.wait_for_selector(".line.heads .head.missed + .head.solved")


@pytest.mark.slow
def test_an_invalid_address_shows_an_error(
    watched: Watched, runs: Path, single: Callable[[Path], str]
) -> None:
    url = single(runs)
    for address in ("#/episode/0/99", "#/episode/9/0", "#/compare/0/9", "#/side-by-side/0/0/0/99"):
        page = watched.open(url, address)
        page.wait_for_selector("p.empty:has-text('There is no such')")
        page.goto("about:blank")
    assert watched.said == []


def test_the_gold_is_shown_beside_what_the_agent_left(watched: Watched, runs: Path) -> None:
    output, files = TextComparison("output", "a\nb", "a\nc"), TextComparison("files", "/f", "/f")
    found = Explanation(("echo <gold>",), 0.5, (output, files), ("a note",))
    with ViewServer(Library([runs]), explain=lambda _: found) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            page = watched.open(server.url, "#/episode/0/1?run=0")
            assert "echo <gold>" not in page.locator("main").inner_text()
            page.get_by_role("button", name="Show the gold").click()
            page.get_by_role("heading", name="Gold").wait_for()
            text = page.locator("section.gold").inner_text()
            for shown in ("echo <gold>", "a\nb", "a\nc", "files: as expected", "a note"):
                assert shown in text, text
        finally:
            server.stop()
            thread.join()
