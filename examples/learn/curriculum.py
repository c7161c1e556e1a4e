"""Whether the order of tasks helps: four difficulties in turns, in stages, or the highest alone.

    python examples/learn/curriculum.py [--out DIR] [--seeds N] [--episodes N]

Run it again after an interruption: it goes on. `curves.py` prints the table. A stage has 480
episodes, so that a run of 1,920 plays each difficulty as often as in turns.
"""

from __future__ import annotations

from runs import run_all
from settings import curricula

if __name__ == "__main__":
    run_all({name: ("final", setting) for name, setting in curricula().items()}, __doc__)
