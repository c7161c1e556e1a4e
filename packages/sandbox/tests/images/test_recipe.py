"""Packaged recipes and their errors."""

from __future__ import annotations

import pytest

from intercode_sandbox.errors import ConfigError, InterCodeError, UnknownNameError
from intercode_sandbox.images.recipes import packaged
from intercode_sandbox.types import Image

GOOD = 'suite = "bookworm"\ndate = "20261120"\npackages = ["bash"]\n'


def test_the_packaged_recipe_is_pinned() -> None:
    found = packaged.load_recipe("nl2bash")
    assert {"nl2bash", "ctf"} <= set(packaged.recipe_names())
    assert (found.suite, found.date, found.epoch) == ("bookworm", "20261120", 1_795_132_800)
    assert {"bash", "git", "procps", "jq"} <= set(found.packages)
    assert {"bash", "libc6", "python3.11"} <= dict(found.versions).keys()
    digest = dict(found.digests)["amd64"]
    assert packaged.is_pinned(Image("tar:/any", f"sha256:{digest}"))
    assert not packaged.is_pinned(Image("recipe:nl2bash", "sha256:" + "0" * 64))
    assert not packaged.is_pinned(Image("recipe:nl2bash", digest))


@pytest.mark.parametrize(
    ("text", "lock", "kind", "message"),
    [
        ("suite =", "", ConfigError, "not valid TOML"),
        (GOOD + "suit = 1", "", UnknownNameError, "did you mean 'suite'"),
        (GOOD.replace('"bookworm"', "12"), "", ConfigError, "suite = 12"),
        (GOOD.replace('["bash"]', "[3]"), "", ConfigError, r"not \[3\]"),
        (GOOD.replace('["bash"]', "[]"), "", ConfigError, "packages must be"),
        ('suite = "bookworm"', "", ConfigError, "lacks date, packages"),
        (GOOD.replace("20261120", "20261320"), "", ConfigError, "'20261320' is not YYYYMMDD"),
        (GOOD.replace("20261120", "2026-11"), "", ConfigError, "eight digits"),
        (GOOD, "bash=5.2\nlibc6", ConfigError, "'libc6' in the lock"),
    ],
)
def test_faults(text: str, lock: str, kind: type[InterCodeError], message: str) -> None:
    with pytest.raises(kind, match=message):
        packaged.parse_recipe("mine", text, lock)
