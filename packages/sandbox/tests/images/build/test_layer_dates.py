"""Copies of layers keep the age that they had after set-up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from intercode_sandbox.images.build.layer_dates import SETUP_AGE, redated_layer
from intercode_sandbox.types import Layer

HOUR = 3600
LONG_AGO = 1_000_000_000


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    root = tmp_path / "layer"
    (root / "a").mkdir(parents=True)
    for name, date in (("a/new", 2_000_000_000), ("a/also", 1_999_999_990), ("old", LONG_AGO)):
        (root / name).write_text(name)
        os.utime(root / name, (date, date))
    (root / "link").symlink_to("a/new")
    for name in ("a", "link", "."):
        os.utime(root / name, (2_000_000_000,) * 2, follow_symlinks=False)
    return Layer(root, "sha256:abc")


def test_setup_dates_move_and_chosen_dates_stay(layer: Layer, tmp_path: Path) -> None:
    now = 2_100_000_000
    copy = redated_layer(layer, tmp_path / "home", now)
    newest = now // HOUR * HOUR - SETUP_AGE
    dates = {n: (copy.root / n).lstat().st_mtime for n in ("a/new", "a/also", "old", "link", "a")}
    assert dates == {
        "a/new": newest,
        "a/also": newest - 10,
        "old": LONG_AGO,
        "link": newest,
        "a": newest,
    }
    assert (copy.root / "a/new").read_text() == "a/new"
    assert (layer.root / "a/new").stat().st_mtime == 2_000_000_000, "the layer itself stays"


def test_one_copy_is_made_per_hour_and_old_ones_are_removed(layer: Layer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = redated_layer(layer, home, 2_100_000_000)
    assert redated_layer(layer, home, 2_100_000_000 // HOUR * HOUR + 3599) == first
    later = redated_layer(layer, home, 2_100_000_000 + 49 * HOUR)
    assert later.digest != first.digest
    assert not first.root.exists()
