"""A run in which every text from outside tries to become markup."""

from __future__ import annotations

from pathlib import Path

from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory, Usage

ATTACKS = (
    "<script>window.taken = 1</script>",
    '<img src="http://127.0.0.1:9/x.png" onerror="window.taken = 1">',
    "</script><script>window.taken = 1</script>",
    '"><svg onload="window.taken = 1">',
    "</pre></title></style><iframe srcdoc='<script>parent.taken = 1</script>'></iframe>",
    "javascript:window.taken=1",
    "<!--<script>",
    "{{constructor.constructor('window.taken=1')()}}",
)
UNSEEN = "\x1b[31mred\x1b[0m \u202edetrevni\u202c \x00\x07 zero\u200bwidth \ud800"
EVERYTHING = "\n".join((*ATTACKS, UNSEEN))
RUN = {
    "agent": f"react{ATTACKS[0]}",
    "model": ATTACKS[1],
    "dataset": ATTACKS[2],
    "environment": "bash",
    "profile": "standard",
    ATTACKS[3]: {ATTACKS[0]: ATTACKS[1]},
}


def step(text: str) -> Step:
    """Return a turn with a text in every field that can hold one."""
    said = (
        {
            "role": text,
            "content": text,
            "reasoning": text,
            text: text,
            "tool_calls": [{"function": {"name": text, "arguments": text}}],
        },
        {"role": "user", "content": [{"type": "text", "text": text}, {text: 1}]},
    )
    return Step(
        text,
        text,
        score=Score(0.5, {text: 0.5}),
        changes=(text,),
        thought=text,
        actor=text,
        messages=said,
        context={text: text},
        usage=Usage(1, 1, 1),
        diffs={text: f"{text}\n+{text}\n-{text}"},
    )


def episode() -> Trajectory:
    """Return an episode with one turn for each attack."""
    steps = tuple(step(text) for text in (*ATTACKS, EVERYTHING))
    return Trajectory(
        EVERYTHING,
        0,
        EVERYTHING,
        steps,
        end="error",
        error=EVERYTHING,
        group=ATTACKS[0],
        hardness=ATTACKS[1],
        run=RUN,
        id=ATTACKS[3],
        tags=ATTACKS,
    )


def write(directory: Path) -> Path:
    """Write two runs with such episodes; the name of one of them is an attack, too."""
    for name in ("plain", "<img src=x onerror=window.taken=1>"):
        trajectories.append_trajectory(directory / name / trajectories.TRAJECTORIES_FILE, episode())
        trajectories.append_trajectory(
            directory / name / trajectories.TRAJECTORIES_FILE,
            episode().replace(parent=ATTACKS[3], branched_at=1, id=ATTACKS[0]),
        )
    return directory
