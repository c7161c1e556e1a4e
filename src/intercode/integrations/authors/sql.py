"""The authors' ``SqlEnv``."""

from __future__ import annotations

from typing import Any, ClassVar

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, ExecResult, Profile, Score
from intercode.environments.sql import env
from intercode.integrations.authors.base import (
    AGENT_OBS,
    CORRUPT_GOLD,
    EVAL_OBS,
    REWARD,
    IntercodeEnv,
    ScorableEnv,
)


class _ScorableSqlEnv(ScorableEnv, env.SqlEnv):
    pass


class SqlEnv(IntercodeEnv):
    """SQL. An observation is a list of rows in the types of their client, None for a statement
    without a result, or the text of an error. ``engine="mysql"`` takes a real server."""

    name: ClassVar[str] = "ic_sql"
    environment: ClassVar[str] = "sql"
    env_class: ClassVar[type[ScorableEnv]] = _ScorableSqlEnv

    def _make_env(
        self, dataset: Dataset, settings: dict[str, Any], profile: Profile
    ) -> ScorableEnv:
        """``image_name`` means nothing here: there is no container."""
        if self.tool_mode:
            raise UsageError("SqlEnv needs data_path: its rows say which database is asked")
        return self.env_class(dataset, profile=profile, reward=self.recorder, **settings)

    def _convert_observation(self, shown: str, result: ExecResult | None) -> Any:
        if result is None or not result.ok:
            return shown
        return None if result.rows is None else list(result.rows)

    def _submission_info(self, score: Score) -> dict[str, Any]:
        gold = self.recorder.gold
        return {
            AGENT_OBS: str(self.observation),
            EVAL_OBS: str([] if gold.rows is None else list(gold.rows)),
            CORRUPT_GOLD: gold.failed,
            REWARD: score.value,
        }
