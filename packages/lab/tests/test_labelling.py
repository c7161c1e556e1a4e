"""Labelling by hand: what the page gets to see, what is stored, and who may store it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Step, Trajectory
from intercode.results.view import Library, ViewServer
from intercode_lab.labels.label_file import LabelFile
from intercode_lab.labels.records import Label, read_labels
from intercode_lab.labels.viewer import Labelling
from support.browser import Watched
from support.view_runs import RICH, write_run

OWN = {"Content-Type": "application/json"}
"""The headers of a label that the page sends, without its origin."""


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


@pytest.fixture
def server(tmp_path: Path, labels: Path) -> Iterator[ViewServer]:
    library = Library([write_run(tmp_path / "a")])
    with ViewServer(library, labelling=Labelling(library, LabelFile(labels))) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        server.stop()
        thread.join()


def send(server: ViewServer, path: str, value: Any, headers: dict[str, str]) -> int:
    """Send a label and return the status of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def read(server: ViewServer, path: str) -> Any:
    answer = server.respond(path, "")
    return None if answer is None else json.loads(answer[1])


def test_the_page_sees_no_reward_until_it_asks(server: ViewServer) -> None:
    items = read(server, "labels")["items"]
    assert [item["task"] for item in items[:3]] == [
        "starter/files/0",
        "starter/files/0",
        "starter/text/1",
    ]
    assert len(items) == 13 and all(item["label"] is None for item in items)
    item = read(server, "labels/0")
    assert set(item) == {
        "task",
        "query",
        "environment",
        "answer",
        "branched_at",
        "steps",
        "label",
        "reason",
    }
    assert len(item["steps"]) == len(RICH) and item["environment"] == "bash"
    hidden = ("score", "reward", "thought", "message", "messages")
    assert not any(step[name] for step in item["steps"] for name in hidden)
    for path in ("index", "episode/0/1", "search", "version", "gold/0/1", "labels/x"):
        assert read(server, path) is None
    assert read(server, "result/0") == {
        "reward": 1.0,
        "parts": {"output": 0.34, "changes": 0.66},
        "end": "submitted",
    }
    with pytest.raises(UsageError, match="no trajectory 13"):
        read(server, "labels/13")


def test_a_wrong_submission_is_shown_as_a_right_one(tmp_path: Path) -> None:
    steps = (Step("ls", "flag.txt"), Step("submit X", "Wrong answer.", valid=False, refused=True))
    run = {"environment": "ctf", "dataset": "starter"}
    trajectories.write_run_metadata(tmp_path / "a", run)
    log = tmp_path / "a" / trajectories.TRAJECTORIES_FILE
    trajectories.append_trajectory(log, Trajectory("t/0", 0, "Find it.", steps, run=run))
    item = Labelling(Library([tmp_path / "a"]), LabelFile(tmp_path / "l.jsonl")).item(0)
    assert item["steps"][1]["observation"] == "" and not item["steps"][1]["refused"]
    assert item["answer"] == "X"


def test_a_label_is_stored_in_the_format_of_validity(server: ViewServer, labels: Path) -> None:
    own = {**OWN, "Origin": f"http://127.0.0.1:{server.port}"}
    path = f"/{server.secret}/labels/2"
    assert send(server, path, {"label": "correct", "reason": " fine\n"}, own) == 200
    assert send(server, f"/{server.secret}/labels/3", {"label": "ambiguous"}, own) == 200
    changed = {"label": "incorrect", "reason": "ein Ü", "saw_result": True}
    assert send(server, path, changed, own) == 200
    assert [json.loads(line) for line in labels.read_text("utf-8").splitlines()] == [
        {
            "task": "starter/text/1",
            "query": "Print the number 1.",
            "actions": ["pwd", "echo 1"],
            "label": "incorrect",
            "reason": "ein Ü",
            "output": "1\nneedle-1",
            "dataset": "starter",
            "saw_result": True,
        },
        {
            "task": "starter/text/2",
            "query": "Print the number 2.",
            "actions": ["pwd", "echo 2"],
            "label": "ambiguous",
            "reason": "",
            "output": "2\nneedle-2",
            "dataset": "starter",
        },
    ]
    assert [label.value for label in read_labels([labels])] == ["incorrect", "ambiguous"]
    item = read(server, "labels/2")
    assert (item["label"], item["reason"]) == ("incorrect", "ein Ü")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Origin": "http://evil.example"}, 404),
        ({"Origin": "null"}, 404),
        ({"Origin": ""}, 404),
        ({"Host": "evil.example"}, 404),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Length": "999999"}, 413),
    ],
)
def test_another_page_stores_nothing(
    server: ViewServer, labels: Path, change: dict[str, str], status: int
) -> None:
    own = {**OWN, "Origin": f"http://127.0.0.1:{server.port}", **change}
    path = f"/{server.secret}/labels/2"
    assert send(server, path, {"label": "correct"}, own) == status
    assert labels.read_bytes() == b""


def test_what_is_no_label_is_refused(server: ViewServer, labels: Path) -> None:
    own = {**OWN, "Origin": f"http://localhost:{server.port}"}
    for value in ({"label": "right"}, ["correct"], b"{", {"label": "correct", "reason": 1}):
        assert send(server, f"/{server.secret}/labels/2", value, own) == 400
    assert send(server, "/wrong/labels/2", {"label": "correct"}, own) == 404
    assert send(server, f"/{server.secret}/index", {"label": "correct"}, own) == 404
    assert labels.read_bytes() == b""


def test_a_file_whose_last_line_has_no_end(labels: Path) -> None:
    row = {"task": "a", "query": "q", "actions": ["ls"], "label": "correct"}
    labels.write_text(json.dumps(row))
    LabelFile(labels).store(Label("b", "q", ("ls",), "incorrect"))
    assert [label.task for label in read_labels([labels])] == ["a", "b"]
    labels.write_text(json.dumps(row)[:-5])
    with pytest.raises(DataError, match="line 1"):
        LabelFile(labels)
    with pytest.raises(UsageError, match="cannot write labels"):
        LabelFile(labels / "below")


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, labels = str(write_run(tmp_path / "a")), str(tmp_path / "l.jsonl")
    for more in (["--html", str(tmp_path / "x.html")], ["--with-gold"]):
        assert main(["view", run, "--label", labels, *more]) == 2
        assert f"--label cannot be used with {more[0]}" in capsys.readouterr().err
    assert not (tmp_path / "l.jsonl").exists()


@pytest.mark.browser
def test_labels_by_keys_survive_a_reload(
    server: ViewServer, labels: Path, watched: Watched
) -> None:
    page = watched.open(server.url, "#/label/3")
    text = page.locator("main").inner_text()
    assert "Print the number 1." in text and "needle-1" in text and "0 labelled" in text
    assert "reward" not in text and "solved" not in text
    watched.press("e")
    page.keyboard.type("prints 1 e n")
    watched.press("Escape", "1")
    page.wait_for_url(lambda url: url.endswith("#/label/4"))
    page.wait_for_selector("text=1 labelled in labels.jsonl")
    watched.press("g")
    page.wait_for_selector("text=The grader: score")
    watched.press("2")
    page.wait_for_url(lambda url: url.endswith("#/label/5"))
    page.reload()
    page.wait_for_selector("text=2 labelled in labels.jsonl")
    watched.press("p")
    page.wait_for_selector("text=Print the number 2.")
    watched.press("p")
    page.wait_for_selector("text=Print the number 1.")
    assert page.get_by_label("Reason").input_value() == "prints 1 e n"
    pressed = page.get_by_role("button", name="correct 1").first
    assert pressed.get_attribute("aria-pressed") == "true"
    stored = read_labels([labels])
    assert [(label.value, label.reason) for label in stored] == [
        ("correct", "prints 1 e n"),
        ("incorrect", ""),
    ]
    assert [dict(label.extra) for label in stored] == [{}, {"saw_result": True}]
    assert watched.said == []
