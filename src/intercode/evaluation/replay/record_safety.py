"""What a record from elsewhere may make this machine do when it is re-executed: nothing that leaves
the box, reads files of ours, or imports code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.languages import LANGUAGES
from intercode.datasets import datasets, is_dataset_file
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.rewards import REWARDS
from intercode.evaluation.replay.recorded_environments import ReplayOptions
from intercode.sandbox.images.recipes import packaged

MAX_TIMEOUT = 600.0
"""Seconds that an action may take at most on the word of a record."""
_ALLOWED_SETTINGS: Mapping[str, Callable[[Any], bool]] = {
    "session": lambda v: isinstance(v, str),
    "separate_stderr": lambda v: isinstance(v, bool),
    "use_gold_cache": lambda v: isinstance(v, bool),
    "recycle": lambda v: isinstance(v, bool),
    "engine": lambda v: v in ("embedded", "sqlite", "mysql"),
    "language": lambda v: v is None or (isinstance(v, str) and v in LANGUAGES),
    "build": lambda v: v is False,
    "interpreter": lambda v: isinstance(v, str) and bool(re.fullmatch(r"python3(\.\d+)?", v)),
    "test_timeout": lambda v: v is None or (isinstance(v, int | float) and 0 < v <= MAX_TIMEOUT),
}
"""Settings of environments that a record may choose, with the values that it may give them."""


def reject_unsafe_record(facts: Mapping[str, Any], options: ReplayOptions) -> None:
    """Raises UsageError for what a record from elsewhere may not choose, with the option by which
    you can choose it yourself."""
    environment = facts.get("environment")
    if environment not in list(ENVIRONMENTS):
        raise UsageError(f"the record names the environment {environment!r}, which is none of ours")
    dataset = str(facts.get("dataset") or "")
    if options.dataset is None and not _is_builtin_dataset(dataset):
        raise UsageError(
            f"the record names the dataset {dataset!r}, a file or loader of its author's: get it, "
            "look at it, and give it with --dataset"
        )
    reward = facts.get("reward")
    if reward is not None and reward not in list(REWARDS) and "reward" not in options.env_options:
        raise UsageError(
            f"the record was scored with {reward!r}, code of its author's that would run outside "
            "the box: read it, and if you trust it give it with --reward"
        )
    image = str(facts.get("image") or "")
    if options.image is None and image not in ("", "host") and not _is_packaged_recipe(image):
        raise UsageError(
            f"the record was made on the image {image!r}, a path of its author's or an address: "
            "give yours with --image"
        )
    if options.network is None and facts.get("network") not in (None, "none"):
        raise UsageError(
            "the record was made with the network, which its actions would have here as well: "
            "--network host allows it, --network none goes without"
        )
    if not isinstance(facts.get("policy"), Mapping | None):
        raise UsageError("the record's policy is a file of its author's, and not rules")
    _reject_settings(facts, options)


def _reject_settings(facts: Mapping[str, Any], options: ReplayOptions) -> None:
    settings = facts.get("env_options") or {}
    if not isinstance(settings, Mapping):
        raise UsageError(f"the record's env_options are {settings!r:.80}, not settings")
    for name, value in settings.items():
        if name not in options.env_options and not _ALLOWED_SETTINGS.get(name, lambda _: False)(
            value
        ):
            raise UsageError(
                f"the record sets {name}={value!r:.80}, which a record may not: "
                f"give --env-option {name}=... yourself"
            )
    timeout = facts.get("timeout")
    sound = isinstance(timeout, int | float) and 0 < timeout <= MAX_TIMEOUT
    if timeout is not None and not sound and options.timeout is None:
        raise UsageError(
            f"the record gives an action {timeout!r:.80} seconds: give --timeout yourself"
        )


def _is_packaged_recipe(image: str) -> bool:
    """Whether an image is one of our recipes, which build nothing of anybody else's."""
    kind, _, name = image.partition(":")
    return kind == "recipe" and name in packaged.recipe_names()


def _is_builtin_dataset(spec: str) -> bool:
    name = re.split("[:@]", spec, maxsplit=1)[0]
    return name in datasets and not is_dataset_file(spec)
