"""The authors' ``BashEnv`` and ``CTFEnv``."""

from __future__ import annotations

from typing import Any, ClassVar

from intercode.core.types import Score
from intercode.environments.bash import env
from intercode.environments.bash.reward import CHECKED
from intercode.environments.ctf import env as ctf
from intercode.integrations.authors.base import (
    AGENT_OBS,
    CORRUPT_GOLD,
    EVAL_OBS,
    REWARD,
    IntercodeEnv,
    Judged,
)


class _Bash(Judged, env.BashEnv):
    pass


class _CTF(Judged, ctf.CTFEnv):
    pass


class _InShell(IntercodeEnv):
    @property
    def workdir(self) -> str:
        """The directory in which the next action runs."""
        return self.env.working_directory


class BashEnv(_InShell):
    """Bash. ``info`` of a submission has the parts of the reward, and how the changes differ."""

    name: ClassVar[str] = "ic_bash"
    kind: ClassVar[str] = "bash"
    images: ClassVar = {"intercode-nl2bash": "recipe:nl2bash"}
    judged: ClassVar[type[Judged]] = _Bash

    def _judgement(self, score: Score) -> dict[str, Any]:
        agent, gold = self.watching.agent, self.watching.gold
        info = {
            REWARD: dict(score.parts),
            "diff_miss": list(score.details["missed"]),
            "diff_extra": list(score.details["extra"]),
            "answer_similarity": score.details["similarity"],
            AGENT_OBS: self.observation,
            EVAL_OBS: gold.output,
            CORRUPT_GOLD: gold.output is None,
        }
        both = [e for e in set(agent.status) & set(gold.status) if e[1] in CHECKED]
        if both:
            same = sum(agent.checksums.get(p) == gold.checksums.get(p) for p, _ in both)
            info["diff_same"] = {"files": both, "correct": same, "total": len(both)}
        return info


class CTFEnv(_InShell):
    """Capture the Flag: ``submit FLAG``. Without ``preprocess`` an episode begins in ``/``."""

    name: ClassVar[str] = "ic_ctf"
    kind: ClassVar[str] = "ctf"
    images: ClassVar = {"intercode-ctf": "recipe:ctf"}
    judged: ClassVar[type[Judged]] = _CTF

    def _answer(self) -> str:
        return self.trajectory[-1][0].removeprefix("submit").strip()

    def _judgement(self, score: Score) -> dict[str, Any]:
        return {AGENT_OBS: self._answer(), REWARD: score.value}
