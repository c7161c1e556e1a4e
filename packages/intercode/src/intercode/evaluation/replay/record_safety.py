"""Rejects records that choose files, code or the network of the machine that executes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from intercode.core.errors import UsageError
from intercode.datasets import is_recordable
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.rewards import REWARDS, names_episode_reward
from intercode.environments.base.settings import MAX_RECORDED_TIMEOUT
from intercode.evaluation.replay.recorded_environments import ReplayOptions
from intercode_sandbox.contract import Limits
from intercode_sandbox.images.recipes import packaged

MOST_OF_DEFAULT = 4
"""How many times the default limits of a sandbox a record may choose."""


def reject_unsafe_record(metadata: Mapping[str, Any], options: ReplayOptions) -> None:
    """Raise UsageError for a setting that a record of others may not choose.

    The message names the option that chooses it.
    """
    environment = metadata.get("environment")
    if environment not in list(ENVIRONMENTS):
        raise UsageError(
            f"the record names the environment {environment!r}, which does not exist here"
        )
    dataset = str(metadata.get("dataset") or "")
    if options.dataset is None and not is_recordable(dataset):
        raise UsageError(
            f"the record names the dataset {dataset!r}, a file or loader of its author: get it, "
            "review it, and give it with --dataset"
        )
    reward = metadata.get("reward")
    named = reward is None or reward in list(REWARDS) or names_episode_reward(reward)
    if not named and "reward" not in options.env_options:
        raise UsageError(
            f"the record was scored with {reward!r}, code of its author that would run outside "
            "the sandbox: review it, and give it with --reward"
        )
    image = str(metadata.get("image") or "")
    if options.image is None and image not in ("", "host") and not _is_packaged_recipe(image):
        raise UsageError(
            f"the record was made on the image {image!r}, a path or an address of its author: "
            "give your own with --image"
        )
    if options.network is None and metadata.get("network") not in (None, "none"):
        raise UsageError(
            "the record was made with the network, which its actions would have here as well: "
            "give --set network=host to allow it, network=none to execute without it"
        )
    if not isinstance(metadata.get("policy"), Mapping | None):
        raise UsageError("the record's policy is a file of its author, not rules")
    _reject_settings(metadata, options)


def _are_small(limits: object) -> bool:
    """Return whether limits are at most those that a record may choose."""
    defaults = Limits()
    return isinstance(limits, Mapping) and all(
        isinstance(value, int | float)
        and value <= MOST_OF_DEFAULT * (getattr(defaults, str(name), 0) or MAX_RECORDED_TIMEOUT)
        for name, value in limits.items()
    )


def _remaining(name: str, recorded: object, given: Mapping[str, Any]) -> object:
    """Return what is left of a recorded setting once those given are joined with it (see
    ``join_settings``), or an empty table."""
    if name not in given:
        return recorded
    own = given[name]
    if isinstance(recorded, Mapping) and isinstance(own, Mapping):
        return {key: value for key, value in recorded.items() if key not in own}
    joined = isinstance(own, Mapping) or (own is True and isinstance(recorded, Mapping))
    return recorded if joined else {}


def _reject_settings(metadata: Mapping[str, Any], options: ReplayOptions) -> None:
    settings = metadata.get("env_options") or {}
    if not isinstance(settings, Mapping):
        raise UsageError(f"the record's env_options are {settings!r:.80}, not settings")
    declared = fields(ENVIRONMENTS.load(metadata["environment"]).settings_class)
    tests = {f.name: f.metadata.get("from_record") for f in declared}
    given = options.env_options
    for name, value in settings.items():
        test = tests.get(name)
        left = _remaining(name, value, given)
        if left != {} and (test is None or not test(left)):
            raise UsageError(
                f"the record sets {name}={value!r:.80}, which a record may not: "
                f"give --set {name}=... yourself"
            )
    limits = _remaining("limits", metadata.get("limits") or {}, given)
    if not _are_small(limits):
        raise UsageError(
            f"the record gives its sandboxes the limits {limits!r:.200}, more than a record may: "
            "give --set limits=... yourself"
        )
    timeout = metadata.get("timeout")
    allowed = isinstance(timeout, int | float) and 0 < timeout <= MAX_RECORDED_TIMEOUT
    if timeout is not None and not allowed and options.timeout is None:
        raise UsageError(
            f"the record gives an action {timeout!r:.80} seconds: give --set timeout=... yourself"
        )


def _is_packaged_recipe(image: str) -> bool:
    """Return whether an image is a recipe of this package."""
    kind, _, name = image.partition(":")
    return kind == "recipe" and name in packaged.recipe_names()
