"""Many episodes: ``evaluate`` plays them, ``replay`` plays them again, ``check`` proves tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode.environments.base.testing import check_env
    from intercode.evaluation.evaluate.plan import make_plan
    from intercode.evaluation.evaluate.run import run_plan
    from intercode.evaluation.evaluate.run_directory import unused_directory
    from intercode.evaluation.play.player import Choice, Player, play_task
    from intercode.evaluation.rollout import rollout_branches, take_turn
    from intercode.evaluation.testing import check_dataset

__all__ = [
    "Choice",
    "Player",
    "check_dataset",
    "check_env",
    "make_plan",
    "play_task",
    "rollout",
    "rollout_branches",
    "run_plan",
    "take_turn",
    "unused_directory",
]

__getattr__ = lazy_imports(
    __name__,
    {
        "Choice": ".play.player",
        "Player": ".play.player",
        "check_dataset": ".testing",
        "check_env": "intercode.environments.base.testing",
        "make_plan": ".evaluate.plan",
        "play_task": ".play.player",
        "rollout_branches": ".rollout",
        "run_plan": ".evaluate.run",
        "take_turn": ".rollout",
        "unused_directory": ".evaluate.run_directory",
    },
)
