"""The authors' ``PythonEnv``."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, ClassVar

from intercode.core.types import ExecResult, Score, TestResult
from intercode.environments.python import env
from intercode.integrations.authors.base import (
    AGENT_OBS,
    EVAL_OBS,
    REWARD,
    IntercodeEnv,
    ScorableEnv,
)


class _ScorablePythonEnv(ScorableEnv, env.PythonEnv):
    pass


class PythonEnv(IntercodeEnv):
    """Python. An observation is a dictionary with ``output`` and ``error``, or the text of an
    error; ``submit NAME`` has the tests run on that function.

    ``is_agent``: whether actions come whole. If not, the lines of a function that an action begins
    are read from standard input, up to an empty one.
    """

    name: ClassVar[str] = "ic_python"
    environment: ClassVar[str] = "python"
    images: ClassVar = {"intercode-python": "recipe:python"}
    env_class: ClassVar[type[ScorableEnv]] = _ScorablePythonEnv

    def __init__(self, image_name: str, *, is_agent: bool = False, **settings: Any) -> None:
        super().__init__(image_name, **settings)
        self.is_agent = is_agent

    def exec_action(self, action: str) -> None:
        if action.strip().startswith("def ") and not self.is_agent:
            action = "\n".join([action, *_read_lines()])
        super().exec_action(action)

    def get_reward(self) -> tuple[float, dict[str, Any]]:
        reward, info = super().get_reward()
        if isinstance(self.env, env.PythonEnv) and self.env.profile == "original":
            self.env.score_and_load_gold()
        return reward, info

    def _convert_observation(self, shown: str, result: ExecResult | None) -> Any:  # noqa: ARG002
        return ast.literal_eval(shown) if shown.startswith("{'") else shown

    def _execution_flag(self, valid: bool) -> bool:
        """Theirs is true where the code failed."""
        seen = self.observation
        return bool(seen.get("error")) if isinstance(seen, dict) else valid

    def _submitted_answer(self) -> str | None:
        return self.trajectory[-1][0].removeprefix("submit").strip() or None

    def _submission_info(self, score: Score) -> dict[str, Any]:
        info: dict[str, Any] = {"submitted_function": self._submitted_answer(), REWARD: score.value}
        for key, state in ((AGENT_OBS, self.recorder.agent), (EVAL_OBS, self.recorder.gold)):
            info[key] = {test.test: _test_response(test) for test in state.tests}
        return info


def _test_response(test: TestResult) -> dict[str, str]:
    """What their service answers to a test."""
    error = {"error": test.error}
    return error if test.output is None else {"output": test.output} | error


def _read_lines() -> Iterable[str]:
    while line := input(". "):
        yield line
