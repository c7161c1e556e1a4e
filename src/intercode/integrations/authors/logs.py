"""One file for each submission, as the authors' environments write them."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from intercode.integrations.authors.base import IntercodeEnv


def save_submission(env: IntercodeEnv, folder: str) -> Path:
    """Write actions, observations and the reward to ``folder/logs_NAME/log_TIME.json``; several
    submissions within one moment get a number more."""
    row: dict[str, Any] = {"environment": env.name}
    if not env.tool_mode:
        row |= {"query_idx": env.query_idx, "query": env.query, "gold": env.gold}
        row["reward"] = env.reward
    row["trajectory"] = [
        {"action": a, "observation": _observation_text(o)} for a, o in env.trajectory
    ]
    row["info"] = env.info
    place = Path(folder) / f"logs_{env.name}"
    place.mkdir(parents=True, exist_ok=True)
    stamp, number = datetime.now().strftime("%Y%m%d%H%M%S"), 0
    text = json.dumps(row, indent=2, default=str)
    while True:
        path = place / f"log_{stamp}{f'_{number}' if number else ''}.json"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return path
        except FileExistsError:
            number += 1


def _observation_text(observation: Any) -> str:
    if isinstance(observation, list):
        return "".join(map(str, observation))
    return str(observation)
