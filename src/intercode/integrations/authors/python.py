"""The authors' ``PythonEnv``."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, ClassVar

from intercode.core.types import ExecResult, Score, TestRun
from intercode.environments.python import env
from intercode.integrations.authors.base import AGENT_OBS, EVAL_OBS, REWARD, IntercodeEnv, Judged


class _Python(Judged, env.PythonEnv):
    pass


class PythonEnv(IntercodeEnv):
    """Python. An observation is a dictionary with ``output`` and ``error``, or the text of an
    error; ``submit NAME`` has the tests run on that function.

    ``is_agent``: whether actions come whole. If not, the lines of a function that an action begins
    are read from standard input, up to an empty one.
    """

    name: ClassVar[str] = "ic_python"
    kind: ClassVar[str] = "python"
    images: ClassVar = {"intercode-python": "recipe:python"}
    judged: ClassVar[type[Judged]] = _Python

    def __init__(self, image_name: str, *, is_agent: bool = False, **settings: Any) -> None:
        super().__init__(image_name, **settings)
        self.is_agent = is_agent

    def exec_action(self, action: str) -> None:
        if action.strip().startswith("def ") and not self.is_agent:
            action = "\n".join([action, *_typed()])
        super().exec_action(action)

    def get_reward(self) -> tuple[float, dict[str, Any]]:
        reward, info = super().get_reward()
        if isinstance(self.env, env.PythonEnv) and self.env.profile == "original":
            self.env.regrade()
        return reward, info

    def _seen(self, shown: str, result: ExecResult | None) -> Any:  # noqa: ARG002
        return ast.literal_eval(shown) if shown.startswith("{'") else shown

    def _executed(self, valid: bool) -> bool:
        """Theirs is true where the code failed."""
        seen = self.observation
        return bool(seen.get("error")) if isinstance(seen, dict) else valid

    def _answer(self) -> str | None:
        return self.trajectory[-1][0].removeprefix("submit").strip() or None

    def _judgement(self, score: Score) -> dict[str, Any]:
        info: dict[str, Any] = {"submitted_function": self._answer(), REWARD: score.value}
        for key, state in ((AGENT_OBS, self.watching.agent), (EVAL_OBS, self.watching.gold)):
            info[key] = {test.test: _said(test) for test in state.tests}
        return info


def _said(test: TestRun) -> dict[str, str]:
    """What their service answers to a test."""
    error = {"error": test.error}
    return error if test.output is None else {"output": test.output} | error


def _typed() -> Iterable[str]:
    while line := input(". "):
        yield line
