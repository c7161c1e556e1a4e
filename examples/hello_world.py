"""Plays a few starter tasks, with a model if INTERCODE_MODEL is set, else with their golds.

python examples/hello_world.py
OPENAI_BASE_URL=http://localhost:8000/v1 INTERCODE_MODEL=my-model python examples/hello_world.py
"""

from __future__ import annotations

import os

import intercode
from intercode.agents import open_agent
from intercode.evaluation.rollout import rollout
from intercode.models import open_model


def main() -> None:
    """Play five tasks and print what happened."""
    with intercode.make("bash", dataset="starter") as env:
        name = os.environ.get("INTERCODE_MODEL")
        if name:
            agent = open_agent("try-again", model=open_model(name), max_turns=5)
        else:
            golds = {task.id: task.golds[:1] for task in env.dataset.tasks}
            agent = open_agent("gold", golds=golds)
        for index in range(5):
            trajectory = rollout(agent, env, index)
            print(f"\n{trajectory.task}: {trajectory.query}")
            for step in trajectory.steps:
                print(f"  $ {step.action}\n  {step.observation.strip()}")
            print(f"  reward {trajectory.score:.2f}, {trajectory.end}")


if __name__ == "__main__":
    main()
