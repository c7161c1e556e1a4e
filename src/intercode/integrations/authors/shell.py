"""The authors' ``BashEnv`` and ``CTFEnv``."""

from __future__ import annotations

from typing import Any, ClassVar

from intercode.core.types import Score
from intercode.environments.bash import env
from intercode.environments.bash.reward import CHECKED_CODES
from intercode.environments.ctf import env as ctf
from intercode.integrations.authors.base import (
    AGENT_OBS,
    CORRUPT_GOLD,
    EVAL_OBS,
    REWARD,
    IntercodeEnv,
    ScorableEnv,
)


class _ScorableBashEnv(ScorableEnv, env.BashEnv):
    pass


class _ScorableCtfEnv(ScorableEnv, ctf.CTFEnv):
    pass


class _ShellEnv(IntercodeEnv):
    @property
    def workdir(self) -> str:
        """The directory in which the next action runs."""
        return self.env.working_directory


class BashEnv(_ShellEnv):
    """Bash. ``info`` of a submission has the parts of the reward, and how the changes differ."""

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
    """Capture the Flag: ``submit FLAG``. Without ``preprocess`` an episode begins in ``/``."""

    name: ClassVar[str] = "ic_ctf"
    environment: ClassVar[str] = "ctf"
    images: ClassVar = {"intercode-ctf": "recipe:ctf"}
    env_class: ClassVar[type[ScorableEnv]] = _ScorableCtfEnv

    def _submitted_answer(self) -> str:
        return self.trajectory[-1][0].removeprefix("submit").strip()

    def _submission_info(self, score: Score) -> dict[str, Any]:
        return {AGENT_OBS: self._submitted_answer(), REWARD: score.value}
