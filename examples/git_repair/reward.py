"""Returns 1 for the same facts as the gold's, otherwise half of the share that is equal."""

from intercode.core import Score, State, Task


def repaired(_task: Task, agent: State, gold: State) -> Score:
    """Compare the facts that probe.sh prints for the agent and for the gold."""
    want, have = set(gold.probe_output.splitlines()), set(agent.probe_output.splitlines())
    right = len(want & have) / len(want | have)
    return Score(1.0 if right == 1.0 else right / 2, {"facts": right})
