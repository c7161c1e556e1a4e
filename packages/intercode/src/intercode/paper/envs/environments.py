"""The authors' environments: Bash, CTF, SQL, Python, and SWE, which is not supported."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, ClassVar, NoReturn

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, ExecResult, Score, TestResult
from intercode.environments.bash.env import BashEnv as OurBashEnv
from intercode.environments.ctf.env import CTFEnv as OurCTFEnv
from intercode.environments.python.env import PythonEnv as OurPythonEnv
from intercode.environments.sql.env import SqlEnv as OurSqlEnv
from intercode.paper.bash.reward import CHECKED_CODES
from intercode.paper.envs.base import (
    AGENT_OBS,
    CORRUPT_GOLD,
    EVAL_OBS,
    REWARD,
    IntercodeEnv,
    ScorableEnv,
)
from intercode.paper.python.profile import score_and_load_gold


class _ScorableBashEnv(ScorableEnv, OurBashEnv):
    pass


class _ScorableCtfEnv(ScorableEnv, OurCTFEnv):
    pass


class _ShellEnv(IntercodeEnv):
    @property
    def workdir(self) -> str:
        """The directory in which the next action runs."""
        return self.env.working_directory


class BashEnv(_ShellEnv):
    """Bash. ``info`` of a submission holds the parts of the reward and how the file changes
    differ.

    The arguments are those of ``IntercodeEnv``.
    """

    name: ClassVar[str] = "ic_bash"
    environment: ClassVar[str] = "bash"
    images: ClassVar = {"intercode-nl2bash": "recipe:nl2bash"}
    env_class: ClassVar[type[ScorableEnv]] = _ScorableBashEnv

    def _submission_info(self, score: Score) -> dict[str, Any]:
        agent, gold = self.recorder.agent, self.recorder.gold
        info = {
            REWARD: dict(score.parts),
            "diff_miss": list(score.details["missed"]),
            "diff_extra": list(score.details["extra"]),
            "answer_similarity": score.details["similarity"],
            AGENT_OBS: self.observation,
            EVAL_OBS: gold.output,
            CORRUPT_GOLD: gold.output is None,
        }
        both = [e for e in set(agent.status) & set(gold.status) if e[1] in CHECKED_CODES]
        if both:
            same = sum(agent.checksums.get(p) == gold.checksums.get(p) for p, _ in both)
            info["diff_same"] = {"files": both, "correct": same, "total": len(both)}
        return info


class CTFEnv(_ShellEnv):
    """Capture the Flag: ``submit FLAG``. Without ``preprocess`` an episode begins in ``/``.

    The arguments are those of ``IntercodeEnv``.
    """

    name: ClassVar[str] = "ic_ctf"
    environment: ClassVar[str] = "ctf"
    images: ClassVar = {"intercode-ctf": "recipe:ctf"}
    env_class: ClassVar[type[ScorableEnv]] = _ScorableCtfEnv

    def _submitted_answer(self) -> str:
        return self.trajectory[-1][0].removeprefix("submit").strip()

    def _submission_info(self, score: Score) -> dict[str, Any]:
        return {AGENT_OBS: self._submitted_answer(), REWARD: score.value}


class _ScorableSqlEnv(ScorableEnv, OurSqlEnv):
    pass


class SqlEnv(IntercodeEnv):
    """SQL. ``engine="mysql"`` uses a real server.

    An observation is a list of rows in the types of the authors' client, None for a statement
    without a result, or the text of an error.

    The arguments are those of ``IntercodeEnv``. ``image_name`` is ignored, and ``data_path``
    needed.
    """

    name: ClassVar[str] = "ic_sql"
    environment: ClassVar[str] = "sql"
    env_class: ClassVar[type[ScorableEnv]] = _ScorableSqlEnv

    def _make_env(self, dataset: Dataset, settings: dict[str, Any], profile: str) -> ScorableEnv:
        """Return our environment. ``image_name`` is ignored: there is no container."""
        if self.tool_mode:
            raise UsageError("SqlEnv needs data_path: its rows name the database")
        return self.env_class(dataset, profile=profile, reward=self.recorder, **settings)

    def _convert_observation(self, output: str, result: ExecResult | None) -> Any:
        if result is None or not result.ok:
            return output
        return None if result.rows is None else list(result.rows)

    def _submission_info(self, score: Score) -> dict[str, Any]:
        gold = self.recorder.gold
        return {
            AGENT_OBS: str(self.observation),
            EVAL_OBS: str([] if gold.rows is None else list(gold.rows)),
            CORRUPT_GOLD: gold.failed,
            REWARD: score.value,
        }


class _ScorablePythonEnv(ScorableEnv, OurPythonEnv):
    pass


class PythonEnv(IntercodeEnv):
    """Python. ``submit NAME`` runs the tests on that function.

    An observation is a dictionary with ``output`` and ``error``, or the text of an error.

    Args:
        image_name: As for ``IntercodeEnv``.
        is_agent: Whether actions are complete. If not, the further lines of a function definition
            are read from standard input, up to an empty one.
        **settings: The other arguments of ``IntercodeEnv``.
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
        if isinstance(self.env, OurPythonEnv) and self.env.profile == "original":
            score_and_load_gold(self.env)
        return reward, info

    def _convert_observation(self, output: str, result: ExecResult | None) -> Any:  # noqa: ARG002
        return ast.literal_eval(output) if output.startswith("{'") else output

    def _execution_flag(self, valid: bool) -> bool:
        """Return the authors' flag, which is true if the code failed."""
        observation = self.observation
        return bool(observation.get("error")) if isinstance(observation, dict) else valid

    def _submitted_answer(self) -> str | None:
        return self.trajectory[-1][0].removeprefix("submit").strip() or None

    def _submission_info(self, score: Score) -> dict[str, Any]:
        info: dict[str, Any] = {"submitted_function": self._submitted_answer(), REWARD: score.value}
        for key, state in ((AGENT_OBS, self.recorder.agent), (EVAL_OBS, self.recorder.gold)):
            info[key] = {test.test: _test_response(test) for test in state.tests}
        return info


def _test_response(test: TestResult) -> dict[str, str]:
    """Return what the authors' service responds to a test."""
    error = {"error": test.error}
    return error if test.output is None else {"output": test.output} | error


def _read_lines() -> Iterable[str]:
    while line := input(". "):
        yield line


class SWEEnv:
    """Exists so that scripts can import it; it cannot be instantiated.

    The authors' environment gave every submission the reward 0.

    >>> from intercode.paper.envs import SWEEnv
    >>> SWEEnv("image")
    Traceback (most recent call last):
    intercode_sandbox.errors.UsageError: SWEEnv is not part of this package: ...
    """

    def __init__(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(
            "SWEEnv is not part of this package: the authors' gave every submission the reward 0; "
            "rows of SWE-bench are played as swe-bench:FILE"
        )
