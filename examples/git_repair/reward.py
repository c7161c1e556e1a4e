"""1 for a repository in the state that the gold leaves it in; half of what is right otherwise."""

from intercode.core.types import Score, State, Task


def repaired(_task: Task, agent: State, gold: State) -> Score:
    """Compare the facts that probe.sh prints of both."""
    want, have = set(gold.probe_output.splitlines()), set(agent.probe_output.splitlines())
    right = len(want & have) / len(want | have)
    return Score(1.0 if right == 1.0 else right / 2, {"facts": right})
